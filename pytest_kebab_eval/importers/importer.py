"""What an importer is, which ones are installed, and what they make: golden entries and results by id."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden.queries import check_entries, plain_metadata
from pytest_kebab_eval.golden.values import Entry, Problem, is_unicode
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.limits import GOLDEN_NUMBER
from pytest_kebab_eval.store.plain import result_fields
from pytest_kebab_eval.text import brief, printable

Json = dict[str, Any]
GROUP = "kebab_eval.importers"  # of entry points, each an importer; pyproject.toml has ours

MAX_SLICES = 20  # that a name in the metadata of imported queries may make
_RULES = ("forbidden_chunk_ids", "forbidden_doc_ids", "must_rank_at_most", "require")


class ImportOption(NamedTuple):
    """A file of the format; the name `results` becomes the option `--results`."""

    name: str
    help: str
    required: bool = True


optional = partial(ImportOption, required=False)  # a file that may be left out


class Imported(NamedTuple):
    """A run in a foreign format; its results are read as they are asked for."""

    results: Iterable[tuple[str, bytes]]
    golden: Callable[[], Iterable[Json]] | None  # makes the entries of a golden file, if the format has any
    config: Json  # the run's snapshot; complete only when all results have been read
    join: tuple[Ids, Ids] | None = None  # of results and of golden entries, if these are of two files
    warnings: tuple[str, ...] = ()


class Importer(NamedTuple):
    """A foreign format; `read` takes the files by the names of their options."""

    name: str
    help: str
    options: tuple[ImportOption, ...]
    read: Callable[[Mapping[str, Source]], Imported]

    def missing(self, given: Collection[str]) -> str | None:
        """The option that is missing, as it would be written."""
        required = (option.name for option in self.options if option.required and option.name not in given)
        return next((f"--{name}" for name in required), None)

    @property
    def joins_files(self) -> bool:
        """Whether results and what is expected of them can come in two files."""
        return len(self.options) > 1


# -- the importers of all installed distributions ----------------------------------------------------


class InstalledImporters:
    """Importers by name, each loaded when it is asked for; ours go before others of the same name."""

    def __init__(self) -> None:
        self._entries: dict[str, EntryPoint] = {}
        self.left_out: dict[str, list[str]] = {}  # by name, a sentence on each other one of that name
        found = sorted(entry_points(group=GROUP), key=lambda e: (e.name, not _is_ours(e), _distribution(e)))
        if not any(map(_is_ours, found)):
            raise InputError(
                "pytest-kebab-eval was installed before its formats were entry points, so none is found;"
                " install it again (in a clone: pip install --editable .)"
            )
        for entry in found:
            first = self._entries.setdefault(entry.name, entry)
            if first is not entry:
                problem = _problem(entry, f"is left out: {_distribution(first)} has one of that name")
                self.left_out.setdefault(entry.name, []).append(str(problem))

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def load(self, name: str) -> Importer:
        """The importer of that name; an `InputError` if it cannot be used."""
        entry = self._entries[name]
        try:
            found = entry.load()
        except Exception as error:  # noqa: BLE001  # code of others
            reason = brief(f"{type(error).__name__}: {error}", 120)
            raise _problem(entry, f"cannot be loaded: {reason}") from None
        if not isinstance(found, Importer):
            raise _problem(entry, f"cannot be used: {printable(entry.value)} is no Importer")
        if found.name != name:
            raise _problem(entry, f"cannot be used: it is called '{printable(found.name)}' itself")
        return found

    def load_all(self, tell: Callable[[str], object]) -> list[Importer]:
        """All that can be used, in the order of their names; `tell` gets a sentence on each other one."""
        found = []
        for name in self._entries:
            try:
                found.append(self.load(name))
            except InputError as error:
                tell(str(error))
            for sentence in self.left_out.get(name, ()):
                tell(sentence)
        return found


def _is_ours(entry: EntryPoint) -> bool:
    return entry.value.startswith("pytest_kebab_eval.")


def _distribution(entry: EntryPoint) -> str:
    return printable(f"{entry.dist.name} {entry.dist.version}") if entry.dist else "another distribution"


def _problem(entry: EntryPoint, what: str) -> InputError:
    return InputError(f"the importer '{printable(entry.name)}' of {_distribution(entry)} {what}")


# -- what importers make -----------------------------------------------------------------------------


def metadata_fields(given: Any) -> Json:
    """The golden fields in what a tool knows of a query beside it: rules by their own names, and `metadata`.

    Lists and mappings are left out: they are no slices. A name is changed where a gate could not have it.
    """
    known = given if isinstance(given, Mapping) else {}
    rules = {name: known[name] for name in _RULES if known.get(name) is not None}
    own = {
        re.sub("[={}]", "_", name): value
        for name, value in known.items()
        if name not in _RULES
        and isinstance(name, str)
        and name.isprintable()
        and name.strip()
        and _is_label(value)
    }
    return {**rules, "metadata": plain_metadata(own)}


def _is_label(value: Any) -> bool:
    """Whether a value can be a slice: a text that is not blank, a flag, or a number of a sensible size."""
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, (int, float)) and abs(value) <= GOLDEN_NUMBER


def with_few_slices(entries: Collection[Json]) -> Iterator[Json]:
    """The entries; metadata with very many values is kept in lists, which make no slices."""
    values: dict[str, set[Any]] = {}
    for entry in entries:
        for name, value in entry.get("metadata", {}).items():
            values.setdefault(name, set()).add(value)
    many = {name for name, found in values.items() if len(found) > MAX_SLICES}
    for entry in entries:
        own = entry.get("metadata", {})
        kept = {name: [value] if name in many else value for name, value in own.items()}
        yield {**entry, "metadata": kept} if kept else entry


def golden_entry(source: Source, line: int, fields: Json) -> Json:
    """A golden entry, without fields that are None or empty; an error if it is not a valid one."""
    entry = {
        field: value for field, value in fields.items() if value is not None and value not in ("", [], {})
    }
    problems: list[Problem] = []
    list(check_entries([Entry(entry, line)], problems))
    if not is_unicode(entry):
        problems.append(Problem(line, "this query has a character that is not Unicode text"))
    if problems:
        raise source.error(line, problems[0].text)
    return entry


def result_json(query_id: str, query: str, hits: Iterable[Any], answer: Json | None, **more: Any) -> bytes:
    """A result as it is stored; hits are in the order of their ranks."""
    return msgspec.json.encode(result_fields(query_id, hits, answer, query=query, **more))


def joined_files(
    results: Source,
    read: Iterable[tuple[str, bytes]],
    expected: Source,
    golden: Mapping[str, Json],
    *,
    noun: str = "id",
    config: Json | None = None,
) -> Imported:
    """The results of one file, and the golden entries of another, by id."""
    found = Ids(results, noun)
    join = found, Ids(expected, noun, golden)
    entries = partial(with_few_slices, golden.values())
    return Imported(found.adding(read), entries, {} if config is None else config, join)


# -- two files that belong together by the ids in them -----------------------------------------------


class Ids(dict[str, None]):
    """The ids in a file, in the order in which they appear."""

    def __init__(self, source: Source, noun: str, ids: Iterable[str] = ()) -> None:
        super().__init__(dict.fromkeys(ids))
        self.source = source
        self._noun = noun

    def __str__(self) -> str:
        return f"{len(self)} {self._noun}{'' if len(self) == 1 else 's'}"

    def adding(self, results: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
        """The results as they come; their ids are added."""
        for query_id, result in results:
            self[query_id] = None
            yield query_id, result

    def missing_in(self, other: Ids) -> list[str]:
        """The ids that the other file does not have."""
        return [query_id for query_id in self if query_id not in other]


def check_join(results: Ids, expected: Ids) -> str | None:
    """A sentence if an id is in one file alone; an `InputError` if none is in both.

    All results must have been read.
    """
    alone = results.missing_in(expected), expected.missing_in(results)
    if len(alone[0]) == len(results):
        raise nothing_alike(results, expected)
    if not any(alone):
        return None
    examples = [
        f"'{brief(ids[0], 40)}' is in {file.source.name} alone"
        for ids, file in zip(alone, (results, expected), strict=True)
        if ids
    ]
    return (
        f"{results.source.name} has {results} and {expected.source.name} has {expected},"
        f" {len(results) - len(alone[0])} of them in both: {', '.join(examples)};"
        " say --allow-missing if that is right"
    )


def nothing_alike(ids: Ids, expected: Ids) -> InputError:
    """The error for two files that have no id in common, with an id of each."""
    name, other = ids.source.name, expected.source.name
    return ids.source.error(
        None,
        f"none of its {ids} is one of the {expected} in {other}:"
        f" '{brief(next(iter(ids)), 40)}' is in {name}, '{brief(next(iter(expected)), 40)}' in {other};"
        " write the ids alike, or name the files of the same queries",
    )
