"""Rows, with the line that each starts on, of CSV, JSONL, a JSON or YAML document; what a cell spells.

JSONL is read row by row. Other endings, and standard input, are told apart by the first character.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from pytest_kebab_eval.golden.values import JsonReader, ParseError, is_unicode
from pytest_kebab_eval.golden.yaml_values import YamlReader, events, line_of
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.limits import IMPORTED_LINE, PYTHON_CELL
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.folding import fold_id

Json = dict[str, Any]
Id = str | int
T = TypeVar("T")
_TOP_LEVEL = "the top level must be a list or a mapping"
_MAX_DEPTH = 8  # of lists and mappings under the names that are looked for
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")  # half of a surrogate pair, which JSON can spell


class Row(NamedTuple):
    """A row of a table, or a member of a document's list or mapping; of a mapping it has a key."""

    line: int
    value: Any
    key: str | None = None


# -- JSONL: a record a line ------------------------------------------------------------------------


def records(source: Source, kind: type[T], what: str) -> Iterator[tuple[int, bytes, T]]:
    """Each line's number, the line and its record; an error if the file has no line."""
    decoder = msgspec.json.Decoder(kind)
    number = 0
    for number, line in source.lines():
        yield number, line, decode(source, number, line, decoder, what)
    if not number:
        raise source.error(None, f"there is no {what} in this file")


def decode(source: Source, number: int, data: bytes, decoder: msgspec.json.Decoder[T], what: str) -> T:
    """JSON as a record of the decoder's type; an error with the line if it is none."""
    try:
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise source.error(number, f"this is not a {what}: {brief(str(error), 120)}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise source.error(number, f"this is not JSON: {brief(str(error), 120)}") from None
    except RecursionError:
        raise source.error(number, "this is nested too deeply") from None


def checked_id(
    source: Source, line: int, given: Id | None, field: str, lines: dict[str, int] | None = None
) -> str:
    """The id as text; an error if it is missing or blank, or one of the `lines` before has it."""
    name = "" if given is None else fold_id(str(given))
    if not name:
        raise source.error(line, f"'{field}' is missing")
    if lines is not None:
        if name in lines:
            where = f"taken already, at line {lines[name]}" if lines[name] != line else "there twice"
            raise source.error(line, f"the id '{printable(name)}' is {where}")
        lines[name] = line
    return name


def distinct_texts(given: Iterable[Id] | None) -> list[str]:
    """Ids or texts as text, each once, without blank ones."""
    return list(dict.fromkeys(text for text in map(str, given or ()) if text.strip()))


# -- tables ------------------------------------------------------------------------------------------


def read_table(source: Source, names: Collection[str] = ()) -> Iterator[Row]:
    """The rows of a table, each a mapping; in a JSON document they may be under one of these names.

    In CSV all values are text, and empty cells None.
    """
    row = None
    for row in _rows(source, names):
        if not isinstance(row.value, dict):
            raise source.error(row.line, "this row is no object")
        yield row
    if row is None:
        raise source.error(None, "there are no rows in this file")


def _rows(source: Source, names: Collection[str]) -> Iterable[Row]:
    if source.ending in {".jsonl", ".ndjson"}:
        return _from_json_lines(source, source.lines())
    text = source.text()
    start = "" if source.ending == ".csv" else text.lstrip()[:1]
    if start not in {"[", "{"}:
        return _from_csv(source, text)
    first, _, rest = text.strip().partition("\n")
    if start == "{" and rest.lstrip().startswith("{") and isinstance(parsed_json(first), dict):
        lines = enumerate(text.encode().split(b"\n"), start=1)
        return _from_json_lines(source, ((number, line) for number, line in lines if line.strip()))
    rows = read_members(source, names, text)
    if rows and all(row.key is not None for row in rows):
        return [Row(rows[0].line, {row.key: row.value for row in rows})]  # an object alone is the only row
    return rows


def _from_json_lines(source: Source, lines: Iterable[tuple[int, bytes]]) -> Iterator[Row]:
    decoder = msgspec.json.Decoder(Json)
    for number, line in lines:
        if b"NaN" in line:  # which Python writes for a score that is missing
            line = re.sub(rb'("(?:[^"\\]|\\.)*")|\bNaN\b', lambda found: found[1] or b"null", line)
        yield Row(number, decode(source, number, line, decoder, "row"))


def _from_csv(source: Source, text: str) -> Iterator[Row]:
    limit = csv.field_size_limit()
    csv.field_size_limit(max(limit, IMPORTED_LINE))  # the module's limit, 128 kB, is the whole process's
    line, header = 1, list[str]()
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        for cells in reader:
            if not header:
                header = cells if any(cell.strip() for cell in cells) else []
                twice = [cell for cell in header if header.count(cell) > 1]
                if twice:
                    raise source.error(line, f"the column '{brief(twice[0], 40)}' is there twice")
            elif cells:
                if len(cells) != len(header):
                    raise source.error(line, f"there are {len(cells)} cells instead of {len(header)}")
                yield Row(line, {name: cell or None for name, cell in zip(header, cells, strict=True)})
            line = reader.line_num + 1
    except csv.Error as error:
        raise source.error(line, f"this is not CSV: {brief(str(error), 80)}") from None
    finally:
        csv.field_size_limit(limit)


# -- documents ---------------------------------------------------------------------------------------


def read_members(source: Source, names: Collection[str], text: str | None = None) -> list[Row]:
    """The members of a JSON or YAML document, or of the innermost list or mapping in it under these names."""
    text = source.text() if text is None else text
    is_yaml = source.ending in {".yaml", ".yml"} or (
        source.ending != ".json" and text.lstrip()[:1] not in {"{", "["}
    )
    if not text.strip():
        raise source.error(None, "there is nothing in this file")
    try:
        rows = _yaml_document(text, names) if is_yaml else _json_document(text, names)
    except ParseError as error:
        raise source.error(error.line, str(error)) from None
    for row in rows if _HALF_PAIR.search(text) else ():
        if not is_unicode([row.key, row.value]):
            raise source.error(row.line, "this has a character that is not Unicode text")
    return rows


def _json_document(text: str, names: Collection[str]) -> list[Row]:
    reader = JsonReader(text)
    if reader.peek() not in {"[", "{"}:
        raise ParseError(reader.line, _TOP_LEVEL)
    rows = _json_members(reader, names)
    if reader.peek():
        raise ParseError(reader.line, "this is not JSON: there is something after its end")
    return rows


def _json_members(reader: JsonReader, names: Collection[str], depth: int = 0) -> list[Row]:
    if depth > _MAX_DEPTH:
        raise ParseError(reader.line, "this is nested too deeply")
    rows, inner = list[Row](), None
    opening = reader.take("[{")
    closing = "]" if opening == "[" else "}"
    if reader.peek() == closing:
        reader.skip()
        return rows
    separator = ","
    while separator == ",":
        key = None
        if opening == "{":
            key, line = reader.value()
            if not isinstance(key, str):
                raise ParseError(line, "this is not JSON: a key must be in quotes")
            reader.take(":")
        if key in names and reader.peek() in {"[", "{"}:
            found = _json_members(reader, names, depth + 1)
            inner = found if inner is None else inner
        else:
            value, line = reader.value()
            rows.append(Row(line, value, key))
        separator = reader.take("," + closing)
    return rows if inner is None else inner


def _yaml_document(text: str, names: Collection[str]) -> list[Row]:
    reader = YamlReader(text)
    with reader.reading() as next_event:
        next_event()  # the stream's start
        start = next_event() if isinstance(next_event(), events.DocumentStartEvent) else None
        if not isinstance(start, (events.SequenceStartEvent, events.MappingStartEvent)):
            raise ParseError(line_of(start) if start else 1, _TOP_LEVEL)
        rows = _yaml_members(reader, start, names)
        next_event()  # the document's end
        event = next_event()
        if not isinstance(event, events.StreamEndEvent):
            raise ParseError(line_of(event), "a second YAML document starts here; keep to one")
        return rows


def _yaml_members(reader: YamlReader, start: Any, names: Collection[str], depth: int = 1) -> list[Row]:
    rows, inner, next_event = list[Row](), None, reader.loader.get_event
    is_mapping = isinstance(start, events.MappingStartEvent)
    while not isinstance(event := next_event(), (events.MappingEndEvent, events.SequenceEndEvent)):
        key, line = None, line_of(event)
        if is_mapping:
            if not isinstance(event, events.ScalarEvent):
                raise ParseError(line, "a key must be plain text")
            key, event = event.value, next_event()
        if key in names and isinstance(event, (events.SequenceStartEvent, events.MappingStartEvent)):
            found = _yaml_members(reader, event, (), depth + 1)
            inner = found if inner is None else inner
        else:
            rows.append(Row(line, reader.value(event, depth + 1), key))
    return rows if inner is None else inner


# -- what a cell spells ------------------------------------------------------------------------------

_PYTHON_TEXT = re.compile(r"""[\s,]*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""", re.DOTALL)


def parsed_json(text: str) -> Any:
    """The JSON value that the text is; None if it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def opened(given: Any) -> Any:
    """A value; a cell of CSV that spells a JSON object, list or text is what it spells."""
    if isinstance(given, str) and given.lstrip()[:1] in {"{", "[", '"'}:
        parsed = parsed_json(given)
        return given if parsed is None else parsed
    return given


def as_list(given: Any) -> list[Any]:
    """A list, also one that a cell spells as JSON, Python or NumPy do; another value is a list of one."""
    if isinstance(given, str):
        given = _parsed_list(given.strip()) or given
    if isinstance(given, Mapping):
        inner = next((given[key] for key in ("documents", "results", "chunks") if key in given), None)
        given = inner if isinstance(inner, list) else [given]
    if given is None or (isinstance(given, str) and given.strip() in {"", "[]"}):
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _parsed_list(cell: str) -> list[Any] | None:
    """The list that a cell spells: `["a", "b"]`, `['a', 'b']`, or NumPy's `['a' 'b']`; None if none."""
    if not (cell.startswith("[") and cell.endswith("]")) or len(cell) > PYTHON_CELL:
        return None
    found = parsed_json(cell)
    if found is None:
        texts, at = list[str](), 1
        while match := _PYTHON_TEXT.match(cell, at):
            texts.append(match[1])
            at = match.end()
        found = _literal(cell if cell[at:-1].strip(" \t\r\n,") else f"[{','.join(texts)}]")
    return found if isinstance(found, list) else None


def _literal(text: str) -> Any:
    try:
        found = ast.literal_eval(text)
        return found if is_unicode(found) else None
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
