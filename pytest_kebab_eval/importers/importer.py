"""What an importer is, and what it makes: golden entries and results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.golden.entries import check_entries
from pytest_kebab_eval.golden.reading import Entry, Problem
from pytest_kebab_eval.importers.joining import Join
from pytest_kebab_eval.importers.samples import Fits, never
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.store.results import result_fields

Json = dict[str, Any]


class ImportOption(NamedTuple):
    """A file of the format; the name `results` becomes the option `--results`.

    `fits` says whether a file looks like it, for `import auto`.
    """

    name: str
    help: str
    required: bool = True
    fits: Fits = never


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
    """A foreign format; `read` takes the files by the names of their options.

    Of the options in `needs_one_of`, which are not required, one must be given.
    """

    name: str
    help: str
    options: tuple[ImportOption, ...]
    read: Callable[[Mapping[str, Source]], Imported]
    needs_one_of: tuple[str, ...] = ()

    def missing(self, given: Collection[str]) -> str | None:
        """The option that is missing, as it would be written."""
        required = [option.name for option in self.options if option.required and option.name not in given]
        if required:
            return f"--{required[0]}"
        if self.needs_one_of and not set(self.needs_one_of) & set(given):
            return " or ".join(f"--{name}" for name in self.needs_one_of)
        return None

    @property
    def option_names(self) -> tuple[str, ...]:
        """The names of its files."""
        return tuple(option.name for option in self.options)

    @property
    def joins_files(self) -> bool:
        """Whether results and what is expected of them can come in two files."""
        return len(self.options) > 1


def golden_entry(source: Source, line: int, fields: Json) -> Json:
    """A golden entry, without fields that are None or empty; an error if it is not a valid one."""
    entry = {
        field: value for field, value in fields.items() if value is not None and value not in ("", [], {})
    }
    problems: list[Problem] = []
    list(check_entries([Entry(entry, line, {})], problems))
    if problems:
        raise source.error(line, problems[0].text)
    return entry


def result_json(query_id: str, query: str, hits: Iterable[Any], answer: Json | None, **more: Any) -> bytes:
    """A result as it is stored; hits are in the order of their ranks."""
    return msgspec.json.encode(result_fields(query_id, hits, answer, query=query, **more))
