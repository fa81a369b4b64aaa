"""The text of a golden file -> its entries as plain values with lines; their fields are not checked here."""

from __future__ import annotations

import errno
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.text import pattern, printable

BYTE_ORDER_MARK = "\ufeff"  # with which some editors start a file
_SPACE = frozenset(" \t\r\n")
_SPACES = pattern(r"[ \t\r\n]*")
_HALF_PAIR = pattern(r"\\u[dD]")  # what may be half of a surrogate pair, which JSON can spell


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
    """The text of a file, perhaps after a mark that says so; a `ParseError` if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParseError(line, "this is not UTF-8 text; save the file as UTF-8") from None


# -- entries ------------------------------------------------------------------------------------------


class Problem(NamedTuple):
    """Something wrong in a golden file."""

    line: int
    text: str


class Entry(NamedTuple):
    """One entry of a golden file, and the lines of its keys (of JSON, they are not known)."""

    value: Any
    line: int
    key_lines: Mapping[Any, int] = {}  # an empty one


def entries_of(text: str, suffix: str, problems: list[Problem]) -> Iterator[Entry]:
    """The entries that a file of that ending holds, as they are read."""
    if suffix in {".json", ".jsonl"}:
        entries = _json_entries(text) if suffix == ".json" else _jsonl_entries(text, problems)
        return _unicode_entries(entries, problems) if _HALF_PAIR.search(text) else entries
    from pytest_kebab_eval.golden.yaml_values import yaml_entries  # JSON needs no YAML

    return yaml_entries(text, problems)


# -- JSON ---------------------------------------------------------------------------------------------


def _jsonl_entries(text: str, problems: list[Problem]) -> Iterator[Entry]:
    number, start, text = 0, 0, text.removeprefix(BYTE_ORDER_MARK)
    while start < len(text):
        number, end = number + 1, text.find("\n", start) % (len(text) + 1)
        line, start = text[start:end].strip(), end + 1
        if not line:
            continue
        try:
            value, end = _decode_at(line, 0, number)
            if line[end:]:
                raise ParseError(number, "there is more than one JSON value on this line")
        except ParseError as error:
            problems.append(Problem(error.line, str(error)))
        else:
            yield Entry(value, number)


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
        yield Entry(value, line)
        separator = reader.peek()
        reader.skip()
    if separator != "]":
        raise ParseError(reader.line, "a ',' or ']' is missing after a query")
    if reader.peek():
        raise ParseError(reader.line, "there is something after the list's end")


def _unicode_entries(entries: Iterable[Entry], problems: list[Problem]) -> Iterator[Entry]:
    for entry in entries:
        if is_unicode(entry.value):
            yield entry
        else:
            problems.append(Problem(entry.line, "this entry has a character that is not Unicode text"))


def is_unicode(value: Any) -> bool:
    """Whether all texts in a value can be written: none has half of a surrogate pair."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    except RecursionError:
        pass  # which is said of its fields
    return True


class JsonReader:
    """Walks through a JSON text by hand where lines matter, and leaves the values to `json`."""

    def __init__(self, text: str, line: int = 1) -> None:
        self._text = text.removeprefix(BYTE_ORDER_MARK)
        self.at = 0
        self.line = line

    def peek(self) -> str:
        """The next character that is not a space; empty at the end."""
        char = self._text[self.at : self.at + 1]
        if char not in _SPACE:
            return char
        match = _SPACES.match(self._text, self.at)
        self._move_to(match.end() if match else self.at)
        return self._text[self.at : self.at + 1]

    def skip(self) -> None:
        """Go past the character that `peek` gave."""
        self.at += 1

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
        value, end = _decode_at(self._text, self.at, line)
        self._move_to(end)
        return value, line

    def _move_to(self, end: int) -> None:
        self.line += self._text.count("\n", self.at, end)
        self.at = end


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
