"""The beginning of a file -> what can be told of its format: its kind, and the names or columns in it."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from itertools import islice
from math import isnan
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.importers.sources import Source, parsed_json
from pytest_kebab_eval.text import brief

_YAML_KEY = re.compile(rb"([A-Za-z_][\w-]*)\s*:")
_LINES_OF_YAML = 200
_NAMES_SHOWN = 6

TABLE = ("csv", "jsonl", "json")


class Sample(NamedTuple):
    """What a file looks like.

    `keys` are the names of a directory's files, of CSV's columns, or of the first object in JSON or JSONL;
    `top` are those of a JSON or YAML document itself; `fields` are the first line's, of any other text.
    """

    kind: str
    keys: frozenset[str] = frozenset()
    top: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()
    has_tabs: bool = False
    is_whole: bool = False  # of `{query: {document: number}}`: whether all numbers are whole

    @property
    def columns(self) -> frozenset[str]:
        """The names of a table's columns; none of what is no table."""
        return self.keys if self.kind in TABLE else frozenset()

    def describe(self) -> str:
        """What was seen, for an error."""
        names = sorted(self.keys or self.top)
        listed = ", ".join(brief(name, 30) for name in names[:_NAMES_SHOWN])
        more = ", …" if len(names) > _NAMES_SHOWN else ""
        if self.kind == "columns":
            return f"text in {len(self.fields)} columns"
        return f"{_KINDS[self.kind]}{f' with {listed}{more}' if names else ''}"


_KINDS = {
    "directory": "a directory",
    "csv": "CSV",
    "json": "JSON",
    "jsonl": "JSONL",
    "yaml": "YAML",
    "sgml": "SGML",
    "scores": "numbers by query and document, in JSON",
    "empty": "an empty file",
}

Fits = Callable[[Sample], bool]


def never(_: Sample) -> bool:
    """For files that cannot be told from others."""
    return False


def has_keys(*names: str) -> Fits:
    """A table with all of these columns."""
    return lambda sample: sample.columns.issuperset(names)


def has_top(*names: str) -> Fits:
    """A document with all of these names at the top level."""
    return lambda sample: sample.kind in {"json", "yaml"} and sample.top.issuperset(names)


def is_run(sample: Sample) -> bool:
    """A run in TREC's columns."""
    return sample.kind == "columns" and len(sample.fields) == 6 and is_number_at(sample, 4)


def is_scores(sample: Sample) -> bool:
    """`{query: {document: number}}`."""
    return sample.kind == "scores"


def is_topics(sample: Sample) -> bool:
    """Texts by id."""
    return (sample.kind == "columns" and sample.has_tabs and len(sample.fields) == 2) or (
        sample.kind == "jsonl" and {"query_id", "text"} <= sample.keys
    )


def is_number_at(sample: Sample, column: int) -> bool:
    """Whether that column of the first line is a number."""
    try:
        return len(sample.fields) > column and not isnan(float(sample.fields[column]))
    except ValueError:
        return False


def take_sample(path: str) -> Sample:
    """What the file or directory looks like."""
    if Path(path).is_dir():
        return Sample("directory", frozenset(entry.name for entry in Path(path).iterdir()))
    source = Source(path)
    first = next(source.lines(), None)
    if first is None:
        return Sample("empty")
    line = first[1].decode().strip("\r\n")
    if line.lstrip()[:1] in {"{", "["}:
        return _sample_of_json(path, line)
    if source.ending == ".csv":
        return Sample("csv", frozenset(next(csv.reader([line]))))
    if source.ending in {".yaml", ".yml"}:
        lines = (line for _, line in islice(source.lines(), _LINES_OF_YAML))
        keys = (match[1].decode() for line in lines if (match := _YAML_KEY.match(line)))
        return Sample("yaml", top=frozenset(keys))
    if line.lstrip().startswith("<"):
        return Sample("sgml")
    has_tabs = "\t" in line
    return Sample("columns", fields=tuple(line.split("\t") if has_tabs else line.split()), has_tabs=has_tabs)


def _sample_of_json(path: str, line: str) -> Sample:
    """JSONL if the first line is an object of its own and another follows, or the ending says so."""
    source = Source(path)
    first = parsed_json(line)
    lines = len(list(islice(Source(path).lines(), 2)))
    if isinstance(first, dict) and (source.ending in {".jsonl", ".ndjson"} or lines > 1):
        return Sample("jsonl", frozenset(first))
    value = first if lines == 1 else parsed_json(source.text())
    if isinstance(value, list):
        return Sample("json", _keys_of_first(value))
    if not isinstance(value, dict):
        raise source.error(None, "this is neither JSON nor JSONL")
    if value and all(isinstance(inner, dict) for inner in value.values()):
        firsts = [number for inner in value.values() for number in islice(inner.values(), 1)]
        if firsts and all(isinstance(number, (int, float)) for number in firsts):
            numbers = (number for inner in value.values() for number in inner.values())
            return Sample("scores", is_whole=all(isinstance(number, int) for number in numbers))
    lists = [inner for inner in value.values() if isinstance(inner, list) and _keys_of_first(inner)]
    return Sample("json", _keys_of_first(lists[0]) if lists else frozenset(), top=frozenset(value))


def _keys_of_first(values: list[Any]) -> frozenset[str]:
    return frozenset(values[0]) if values and isinstance(values[0], dict) else frozenset()
