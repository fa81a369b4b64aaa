"""What the readers of all formats share: an error with its line, text from bytes, and JSON with lines."""

from __future__ import annotations

import errno
import json
from collections import Counter
from pathlib import Path
from typing import Any

from pytest_kebab_eval.text import pattern, printable

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = frozenset(" \t\r\n")
_SPACES = pattern(r"[ \t\r\n]*")


class ParseError(Exception):
    """The file cannot be read any further than this line."""

    def __init__(self, line: int, text: str) -> None:
        super().__init__(text)
        self.line = line


def read_file(path: Path) -> bytes:
    """The content of a file; an `OSError` for a pipe or a device, which might never end."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
    return path.read_bytes()


def decode_utf8(data: bytes) -> str:
    """The text of a file; a `ParseError` if it is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(line, "this is not UTF-8 text; save the file as UTF-8") from None


class JsonReader:
    """Walks through a JSON text by hand where lines matter, and leaves the values to `json`."""

    def __init__(self, text: str, line: int = 1) -> None:
        self._text = text
        self._at = 0
        self.line = line

    def peek(self) -> str:
        """The next character that is not a space; empty at the end."""
        char = self._text[self._at : self._at + 1]
        if char not in _SPACE:
            return char
        match = _SPACES.match(self._text, self._at)
        self._move_to(match.end() if match else self._at)
        return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Go past the character that `peek` gave."""
        self._at += 1

    def take(self, allowed: str) -> str:
        """The next character, which must be one of these."""
        char = self.peek()
        if not char or char not in allowed:
            raise ParseError(self.line, f"this is not JSON: expected {' or '.join(allowed)}")
        self.skip()
        return char

    def value(self) -> tuple[Any, int]:
        """The next value, and the line that it starts on."""
        self.peek()
        line = self.line
        value, end = _decode_at(self._text, self._at, line)
        self._move_to(end)
        return value, line

    def _move_to(self, end: int) -> None:
        self.line += self._text.count("\n", self._at, end)
        self._at = end


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = max(counts, key=lambda key: counts[key])
        raise ValueError(f"the key '{printable(twice)}' is there twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_decode = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_refuse_constant).raw_decode


def _decode_at(text: str, start: int, line: int) -> tuple[Any, int]:
    """The value that starts there, and where it ends."""
    try:
        return _decode(text, start)
    except json.JSONDecodeError as error:
        at = line + text.count("\n", start, error.pos)
        raise ParseError(at, f"this is not JSON: {error.msg}") from None
    except RecursionError:
        raise ParseError(line, "this is nested too deeply") from None
    except ValueError as error:
        reason = "a number here has too many digits" if "digits" in str(error) else str(error)
        raise ParseError(line, reason) from None
