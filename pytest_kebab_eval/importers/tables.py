"""A table as CSV, JSONL or JSON -> its rows, each with the line it starts on.

CSV and JSONL are read row by row. Other endings, and standard input, are told apart by the first character.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.importers.documents import read_json_members
from pytest_kebab_eval.importers.importer import Json
from pytest_kebab_eval.importers.records import decode
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.limits import IMPORTED_LINE
from pytest_kebab_eval.text import brief

_Lines = Iterable[tuple[int, bytes]]
_decoder = msgspec.json.Decoder(dict[str, Any])


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
        try:
            line.decode()
        except UnicodeDecodeError:
            raise source.error(number, "this is not UTF-8 text") from None
        yield number, line


def _is_json_lines(data: bytes) -> bool:
    """Whether the first line is a whole object, and another follows it."""
    first, _, rest = data.strip().partition(b"\n")
    try:
        return rest.lstrip().startswith(b"{") and isinstance(_decoder.decode(first), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


# -- JSON ----------------------------------------------------------------------------------------


def _from_json(source: Source, data: bytes, names: Collection[str]) -> Iterator[TableRow]:
    """The objects of a list; an object in which no such list is looked for is the only row."""
    members = read_json_members(data, source.error, names)
    if members and all(member.key is not None for member in members):
        yield TableRow(members[0].line, {member.key or "": member.value for member in members})
        return
    for number, member in enumerate(members, start=1):
        if not isinstance(member.value, dict):
            raise source.error(member.line, f"number {number} of the list is no object")
        yield TableRow(member.line, member.value)


def _from_json_lines(source: Source, lines: _Lines) -> Iterator[TableRow]:
    for number, line in lines:
        values = _with_nan(line) if b"NaN" in line else None
        yield TableRow(number, values or decode(source, number, line, _decoder, "row"))


def _with_nan(line: bytes) -> Json | None:
    """An object in which Python wrote NaN, which is no JSON: a score that is missing."""
    try:
        found = json.loads(line, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# -- CSV -----------------------------------------------------------------------------------------


def _from_csv(source: Source, lines: _Lines) -> Iterator[TableRow]:
    with _long_cells():
        reader = csv.reader((line.decode() for _, line in lines), strict=True)
        line, header = 1, None
        try:
            for cells in reader:
                if header is None:
                    header = _header(source, line, cells)
                elif cells:
                    yield TableRow(line, _by_column(source, line, header, cells))
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


def _by_column(source: Source, line: int, header: list[str], cells: list[str]) -> Json:
    if len(cells) != len(header):
        raise source.error(line, f"there are {len(cells)} cells instead of {len(header)}")
    return {name: cell or None for name, cell in zip(header, cells, strict=True)}


@contextmanager
def _long_cells() -> Iterator[None]:
    """Let a cell be as long as a line; the module's limit, 128 kB, is the whole process's."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, IMPORTED_LINE))
    try:
        yield
    finally:
        csv.field_size_limit(before)
