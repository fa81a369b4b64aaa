"""JSON text -> plain values, one at a time, each with its line."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

from pytest_kebab_eval.golden.parsing import ParseError
from pytest_kebab_eval.text import printable

_SPACE = frozenset(" \t\r\n")
_SPACES = re.compile(r"[ \t\r\n]*")


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
