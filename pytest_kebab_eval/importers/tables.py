"""A table as CSV, JSONL or JSON -> its rows; a cell -> a list; a document -> the members of a list.

Rows and members have the line that they start on. CSV and JSONL are read row by row. Other endings, and
standard input, are told apart by the first character.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.golden.values import JsonReader, ParseError, decode_utf8
from pytest_kebab_eval.golden.yaml_values import YamlReader, events, line_of
from pytest_kebab_eval.importers.importer import Json
from pytest_kebab_eval.importers.sources import Source, decode, json_object, parsed_json
from pytest_kebab_eval.limits import IMPORTED_LINE, PYTHON_CELL
from pytest_kebab_eval.text import brief

_Lines = Iterable[tuple[int, bytes]]


class TableRow(NamedTuple):
    """A row: values by column; in CSV all are text, and empty cells None."""

    line: int
    values: Json


def read_table(source: Source, names: Collection[str] = ()) -> Iterator[TableRow]:
    """The rows of a table; in a JSON document they may be under one of these names, or within several."""
    row = None
    for row in _rows(source, names):
        yield row
    if row is None:
        raise source.error(None, "there are no rows in this file")


def _rows(source: Source, names: Collection[str]) -> Iterator[TableRow]:
    if source.ending == ".csv":
        return _from_csv(source, source.lines(with_blank=True))
    if source.ending in {".jsonl", ".ndjson"}:
        return _from_json_lines(source, source.lines())
    data = source.read()
    start = data.lstrip()[:1]
    if start not in {b"[", b"{"}:
        return _from_csv(source, _lines_of(source, data))
    if start == b"{" and _is_json_lines(data):
        return _from_json_lines(source, ((n, line) for n, line in _lines_of(source, data) if line.strip()))
    return _from_json(source, data, names)


def _lines_of(source: Source, data: bytes) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        source.check_encoding(number, line)
        yield number, line


def _is_json_lines(data: bytes) -> bool:
    """Whether the first line is a whole object, and another follows it."""
    first, _, rest = data.strip().partition(b"\n")
    try:
        return rest.lstrip().startswith(b"{") and isinstance(json_object.decode(first), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def _from_json(source: Source, data: bytes, names: Collection[str]) -> Iterator[TableRow]:
    """The objects of a list; an object in which no such list is looked for is the only row."""
    members = read_json_members(source, data, names)
    if members and all(member.key is not None for member in members):
        values = {member.key or "": member.value for member in members}
        yield TableRow(members[0].line, values)
        return
    for number, member in enumerate(members, start=1):
        if not isinstance(member.value, dict):
            raise source.error(member.line, f"number {number} of the list is no object")
        yield TableRow(member.line, member.value)


def _from_json_lines(source: Source, lines: _Lines) -> Iterator[TableRow]:
    for number, line in lines:
        values = _with_nan(line) if b"NaN" in line else None
        yield TableRow(number, values or decode(source, number, line, json_object, "row"))


def _with_nan(line: bytes) -> Json | None:
    """An object in which Python wrote NaN, which is no JSON: a score that is missing."""
    try:
        found = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# -- CSV ---------------------------------------------------------------------------------------------


def _from_csv(source: Source, lines: _Lines) -> Iterator[TableRow]:
    with _long_cells():
        reader = csv.reader((line.decode() for _, line in lines), strict=True)
        line, header = 1, None
        try:
            for cells in reader:
                if header is None:
                    header = _header(source, line, cells)
                elif cells:
                    if len(cells) != len(header):
                        raise source.error(line, f"there are {len(cells)} cells instead of {len(header)}")
                    yield TableRow(line, {n: cell or None for n, cell in zip(header, cells, strict=True)})
                line = reader.line_num + 1
        except csv.Error as error:
            raise source.error(line, f"this is not CSV: {brief(str(error), 80)}") from None


def _header(source: Source, line: int, cells: list[str]) -> list[str] | None:
    """The names of the columns; None for a blank line."""
    if not any(cell.strip() for cell in cells):
        return None
    repeated = {cell for cell in cells if cells.count(cell) > 1}
    if repeated:
        raise source.error(line, f"the column '{brief(min(repeated), 40)}' is there twice")
    return cells


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell be as long as a line; the module's limit, 128 kB, is the whole process's."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, IMPORTED_LINE))
    try:
        yield
    finally:
        csv.field_size_limit(before)


# -- what a cell spells ------------------------------------------------------------------------------

_PYTHON_TEXT = re.compile(r"""\s*,?\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def opened(given: Any) -> Any:
    """A value; a cell of CSV that spells a JSON object, list or text is what it spells."""
    if isinstance(given, str) and given.lstrip()[:1] in {"{", "[", '"'}:
        parsed = parsed_json(given)
        return given if parsed is None else parsed
    return given


def as_list(given: Any) -> list[Any]:
    """A list, also one that a cell spells as JSON, Python or NumPy do; another value is a list of one."""
    if isinstance(given, str):
        given = _parsed_list(given) or given
    if isinstance(given, Mapping):
        inner = next((given[key] for key in ("documents", "results", "chunks") if key in given), None)
        given = inner if isinstance(inner, list) else [given]
    if given is None or (isinstance(given, str) and given.strip() in {"", "[]"}):
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _parsed_list(cell: str) -> list[Any] | None:
    """The list that a cell spells: `["a", "b"]`, `['a', 'b']`, or NumPy's `['a' 'b']`; None if none."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    found = parsed_json(text)
    return found if isinstance(found, list) else _python_texts(text[1:-1]) or _python_objects(text)


def _python_texts(inside: str) -> list[Any] | None:
    found, at = [], 0
    while match := _PYTHON_TEXT.match(inside, at):
        found.append(_ESCAPE.sub(_unescaped, match[2] if match[1] is None else match[1]))
        at = match.end()
    return None if inside[at:].strip(" \t\r\n,") else found


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else match[0]
    return _ESCAPED.get(escape, escape)


def _python_objects(text: str) -> list[Any] | None:
    """A list of objects as Python prints it."""
    if "{" not in text or len(text) > PYTHON_CELL:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list) else None


# -- documents ---------------------------------------------------------------------------------------


class Member(NamedTuple):
    """A member of a list or mapping; of a mapping it has a key."""

    value: Any
    line: int
    key: str | None = None


class _Inner(list[Member]):
    """The members of a list or mapping that has one of the names looked for."""


_MAX_DEPTH = 8  # of lists and mappings under the names that are looked for


def read_members(source: Source, name: str) -> list[Member]:
    """The members of the list or mapping under `name`, or of the whole document if it has no such key."""
    data = source.read()
    try:
        text = decode_utf8(data)
        is_json = source.ending == ".json" or (
            source.ending not in {".yaml", ".yml"} and text.lstrip()[:1] in {"{", "["}
        )
        wrong = _WRONG_TOP_LEVEL.format(name)
        members = (
            _JsonMembers(text).read([name], wrong, refuses_scalars=True)
            if is_json
            else _YamlMembers(text).read_under(name)
        )
    except ParseError as error:
        raise source.error(error.line, str(error)) from None
    return _innermost(members)


def read_json_members(source: Source, data: bytes, names: Collection[str] = ()) -> list[Member]:
    """The members of a JSON document, or of the innermost list or mapping in it that is under such names."""
    try:
        members = _JsonMembers(decode_utf8(data)).read(names, "the top level must be a list or a mapping")
    except ParseError as error:
        raise source.error(error.line, str(error)) from None
    return _innermost(members)


def _innermost(members: list[Member]) -> list[Member]:
    while inner := [member.value for member in members if isinstance(member.value, _Inner)]:
        members = inner[0]
    return members


_EMPTY = "there is nothing in this file"
_WRONG_TOP_LEVEL = "the top level must be a mapping with '{}', or a list"
_NO_COLLECTION = "'{}' must be a list or a mapping"


class _JsonMembers(JsonReader):
    def read(
        self, names: Collection[str], wrong_top_level: str, *, refuses_scalars: bool = False
    ) -> list[Member]:
        """The members of the document; values under these names are members themselves, at any level."""
        first = self.peek()
        if not first:
            raise ParseError(1, _EMPTY)
        if first not in "[{":
            raise ParseError(self.line, wrong_top_level)
        found = list(self._members(names, 0, refuses_scalars=refuses_scalars))
        if self.peek():
            raise ParseError(self.line, "this is not JSON: there is something after its end")
        return found

    def _members(self, names: Collection[str], depth: int, *, refuses_scalars: bool) -> Iterator[Member]:
        if depth > _MAX_DEPTH:
            raise ParseError(self.line, "this is nested too deeply")
        for key in self._keys():
            if key in names and self.peek() in {"[", "{"}:
                line = self.line
                inner = self._members(names, depth + 1, refuses_scalars=refuses_scalars)
                yield Member(_Inner(inner), line, key)
            elif key in names and refuses_scalars:
                raise ParseError(self.line, _NO_COLLECTION.format(key))
            else:
                value, line = self.value()
                yield Member(value, line, key)

    def _keys(self) -> Iterator[str | None]:
        """The keys of the mapping that starts here, None for those of a list; the caller reads the values."""
        opening = self.take("[{")
        closing = "]" if opening == "[" else "}"
        if self.peek() == closing:
            self.skip()
            return
        separator = ","
        while separator == ",":
            key = None
            if opening == "{":
                key, line = self.value()
                if not isinstance(key, str):
                    raise ParseError(line, "this is not JSON: a key must be in quotes")
                self.take(":")
            yield key
            separator = self.take("," + closing)


class _YamlMembers(YamlReader):
    def read_under(self, name: str) -> list[Member]:
        """The members of the document; the value under `name` is members itself."""
        with self.reading() as next_event:
            next_event()  # the stream's start
            if isinstance(next_event(), events.StreamEndEvent):
                raise ParseError(1, _EMPTY)
            event = next_event()
            if not isinstance(event, (events.SequenceStartEvent, events.MappingStartEvent)):
                raise ParseError(line_of(event), _WRONG_TOP_LEVEL.format(name))
            members = list(self._members(event, 1, name))
            next_event()  # the document's end
            event = next_event()
            if not isinstance(event, events.StreamEndEvent):
                raise ParseError(line_of(event), "a second YAML document starts here; keep to one")
            return members

    def _members(self, start: Any, depth: int, name: str | None = None) -> Iterator[Member]:
        next_event = self.loader.get_event
        is_mapping = isinstance(start, events.MappingStartEvent)
        end = events.MappingEndEvent if is_mapping else events.SequenceEndEvent
        while not isinstance(event := next_event(), end):
            if not is_mapping:
                yield Member(self.value(event, depth + 1), line_of(event))
                continue
            if not isinstance(event, events.ScalarEvent):
                raise ParseError(line_of(event), "a key must be plain text")
            key, line = event.value, line_of(event)
            event = next_event()
            if key != name:
                yield Member(self.value(event, depth + 1), line, key)
            elif isinstance(event, (events.SequenceStartEvent, events.MappingStartEvent)):
                yield Member(_Inner(self._members(event, depth + 1)), line, key)
            else:
                raise ParseError(line, _NO_COLLECTION.format(name))
