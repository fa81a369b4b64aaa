"""What an importer is, and what it makes: golden entries and results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.golden.entries import check_entries
from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.importers.joining import Join
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.store.results import result_fields

Json = dict[str, Any]


class ImportOption(NamedTuple):
    """A file of the format; the name `results` becomes the option `--results`."""

    name: str
    help: str
    required: bool = True


class Imported(NamedTuple):
    """A run in a foreign format; its results are read as they are asked for.

    `golden` makes the entries of a golden file, if the format has any. `config` is the run's snapshot; it is
    complete only when all results have been read. `join` is there if results and golden entries are of two
    files.
    """

    results: Iterable[tuple[str, bytes]]
    golden: Callable[[], Iterable[Json]] | None
    config: Json
    join: Join | None = None
    warnings: tuple[str, ...] = ()


class Importer(NamedTuple):
    """A foreign format; `read` takes the files by the names of their options."""

    name: str
    help: str
    options: tuple[ImportOption, ...]
    read: Callable[[Mapping[str, Source]], Imported]

    @property
    def joins_files(self) -> bool:
        """Whether results and what is expected of them come in two files."""
        return sum(option.required for option in self.options) > 1


def golden_entry(source: Source, line: int, fields: Json) -> Json:
    """A golden entry, without fields that are None or empty; an error if it is not a valid one."""
    entry = {
        field: value for field, value in fields.items() if value is not None and value not in ("", [], {})
    }
    problems: list[Problem] = []
    check_entries([Entry(entry, line, {})], problems)
    if problems:
        raise source.error(line, problems[0].text)
    return entry


def result_json(query_id: str, query: str, hits: Iterable[Any], answer: Json | None, **more: Any) -> bytes:
    """A result as it is stored; hits are in the order of their ranks."""
    return msgspec.json.encode(result_fields(query_id, hits, answer, query=query, **more))
