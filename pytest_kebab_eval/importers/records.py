"""The lines of a file -> records of a given type, each with its id."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.text import brief, printable

T = TypeVar("T")
Id = str | int

_CONTROL = re.compile(r"[\x00-\x1f]")


class UniqueIds:
    """Checks the ids of a file: none may be missing, and none may be there twice."""

    def __init__(self, source: Source, field: str) -> None:
        self._source = source
        self._field = field
        self._lines: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, line: int, given: Id | None) -> str:
        """The id as text; an error if it is missing or there already."""
        query_id = required_id(self._source, line, given, self._field)
        first = self._lines.get(query_id)
        if first is not None:
            where = f"taken already, at line {first}" if first != line else "there twice"
            raise self._source.error(line, f"the id '{printable(query_id)}' is {where}")
        self._lines[query_id] = line
        return query_id


def required_id(source: Source, line: int, given: Id | None, field: str) -> str:
    """The id as text; an error if it is missing or blank."""
    if given is None or not str(given).strip():
        raise source.error(line, f"'{field}' is missing")
    return str(given)


def unique_records(
    source: Source, kind: type[T], what: str, field: str, id_of: Callable[[T], Id | None] | None = None
) -> Iterator[tuple[int, str, T]]:
    """Each line's number, id and record; `id_of` gives the id if it is not in `field`."""
    ids = UniqueIds(source, field)
    id_of = id_of or attrgetter(field)
    for line, record in json_lines(source, kind, what):
        yield line, ids.add(line, id_of(record)), record


def json_lines(source: Source, kind: type[T], what: str) -> Iterator[tuple[int, T]]:
    """Each line's number and its record; an error if the file has no line."""
    decoder = msgspec.json.Decoder(kind)
    number = 0
    for number, line in source.lines():
        yield number, decode(source, number, line, decoder, what)
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


def parsed_json(text: str) -> Any:
    """The JSON value that the text is; None if it is none.

    Control characters in its texts may be bare: Langfuse fills in escapes (`\\u001b`) in what it exports.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return _with_control_characters(text) if _CONTROL.search(text) else None


def _with_control_characters(text: str) -> Any:
    try:
        return json.loads(text, strict=False, parse_constant=_no_json)
    except (ValueError, RecursionError):
        return None


def _no_json(constant: str) -> None:
    raise ValueError(constant)


def distinct_texts(given: Iterable[Id] | None) -> list[str]:
    """Ids or texts as text, each once, without blank ones."""
    return list(dict.fromkeys(text for text in map(str, given or ()) if text.strip()))
