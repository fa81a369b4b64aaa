"""A golden file -> its entries as plain values with lines, and what the readers of all formats share.

The fields are not checked here.
"""

from __future__ import annotations

import errno
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.text import pattern, printable, shown_path

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


# -- entries ------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """Something wrong in a golden file."""

    line: int
    text: str


class Entry(NamedTuple):
    """One entry of a golden file; `key_marks` has the positions of its keys (YAML only)."""

    value: Any
    line: int
    key_marks: dict[Any, Any]

    def line_of(self, key: Any) -> int:
        """The line of a key, or that of the entry where it is not known."""
        mark = self.key_marks.get(key)
        return self.line if mark is None else int(mark.line) + 1


def read_entries(path: Path, problems: list[Problem]) -> Iterator[Entry]:
    """The entries of a golden file, as they are read; the file's ending says the format."""
    data = _read_bytes(path)
    is_empty = True
    try:
        for entry in entries_of(data, path.suffix.lower(), problems):
            is_empty = False
            yield entry
    except ParseError as error:
        raise GoldenError(f"{shown_path(path)}:{error.line}: {error}") from None
    if is_empty and not problems:
        raise GoldenError(f"{shown_path(path)}:1: there is no query in this file; add one")


def read_text(path: Path) -> str:
    """The text of a golden file, with the mark that some editors put at its start."""
    try:
        decode_utf8(data := _read_bytes(path))
    except ParseError as error:
        raise GoldenError(f"{shown_path(path)}:{error.line}: {error}") from None
    return data.decode()


def entries_of(data: bytes, suffix: str, problems: list[Problem]) -> Iterator[Entry]:
    """The entries that a file of that ending holds."""
    text = decode_utf8(data)  # for JSONL and YAML only to say where it is not UTF-8
    if suffix == ".json":
        return _json_entries(text)
    return _jsonl_entries(data, problems) if suffix == ".jsonl" else _yaml_entries(data, problems)


def _read_bytes(path: Path) -> bytes:
    try:
        return read_file(path)
    except FileNotFoundError:
        raise GoldenError(
            f"there is no golden file {shown_path(path)}; name yours with --kebab-golden=FILE"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise GoldenError(f"cannot read the golden file {shown_path(path)}: {reason}") from None


# -- YAML ---------------------------------------------------------------------------------------------


def _yaml_entries(data: bytes, problems: list[Problem]) -> Iterator[Entry]:
    from pytest_kebab_eval.golden.yaml_events import YamlReader, events, line_of  # JSON needs no YAML

    reader = YamlReader(data)
    with reader.reading() as next_event:
        next_event()  # the stream's start
        if isinstance(next_event(), events.StreamEndEvent):
            return
        event = next_event()
        if not isinstance(event, events.SequenceStartEvent):
            raise ParseError(line_of(event), "the top level must be a list of queries: - id: …")
        while not isinstance(event := next_event(), events.SequenceEndEvent):
            key_marks: dict[Any, Any] = {}
            yield Entry(reader.value(event, 1, key_marks), line_of(event), key_marks)
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, events.StreamEndEvent):
            problems.append(Problem(line_of(event), "a second YAML document starts here; keep to one"))


# -- JSON ---------------------------------------------------------------------------------------------


def _jsonl_entries(data: bytes, problems: list[Problem]) -> Iterator[Entry]:
    for number, line in enumerate(io.BytesIO(data.removeprefix(BYTE_ORDER_MARK)), start=1):
        stripped = line.decode().strip()
        if not stripped:
            continue
        reader = JsonReader(stripped, number)
        try:
            value, _ = reader.value()
            if reader.peek():
                raise ParseError(number, "there is more than one JSON value on this line")
        except ParseError as error:
            problems.append(Problem(error.line, str(error)))
        else:
            yield Entry(value, number, {})


def _json_entries(text: str) -> Iterator[Entry]:
    reader = JsonReader(text)
    if reader.peek() != "[":
        raise ParseError(reader.line, "the top level must be a list of queries: [ … ]")
    reader.skip()
    if reader.peek() == "]":
        return
    separator = ","
    while separator == ",":
        value, line = reader.value()
        yield Entry(value, line, {})
        separator = reader.peek()
        reader.skip()
    if separator != "]":
        raise ParseError(reader.line, "a ',' or ']' is missing after a query")
    if reader.peek():
        raise ParseError(reader.line, "there is something after the list's end")


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
