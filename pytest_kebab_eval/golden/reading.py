"""A golden file -> its entries as plain values, each with its line; the fields are not checked here."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden.parsing import BYTE_ORDER_MARK, JsonReader, ParseError, decode_utf8, read_file
from pytest_kebab_eval.golden.yaml_events import YamlReader, events, line_of
from pytest_kebab_eval.text import shown_path


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


# -- JSON ----------------------------------------------------------------------------------------


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


# -- YAML ----------------------------------------------------------------------------------------


def _yaml_entries(data: bytes, problems: list[Problem]) -> Iterator[Entry]:
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
