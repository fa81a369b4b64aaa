"""What an importer is, which ones are installed, and what they make: golden entries and results by id."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden.queries import check_entries
from pytest_kebab_eval.golden.values import Entry, Problem, is_unicode
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Json
from pytest_kebab_eval.store.plain import result_fields
from pytest_kebab_eval.text import brief, printable

GROUP = "kebab_eval.importers"  # of entry points, each an importer; pyproject.toml has ours


class ImportOption(NamedTuple):
    """An option of a format: `results` becomes `--results`, a file or, if it is none, a text."""

    name: str
    help: str
    required: bool = True
    is_file: bool = True


class Imported(NamedTuple):
    """A run in a foreign format; the rest is complete when its results were read."""

    results: Iterable[tuple[str, bytes]]
    golden: Mapping[str, Json] | None  # the entries of a golden file by id, if the format has any
    config: Mapping[str, Any] = {}  # the run's snapshot
    files: tuple[Source, Source] | None = None  # with the results and with the entries, if these are two
    noun: str = "id"  # what joins the two
    is_empty: Callable[[Json], bool] = lambda _: False  # whether an entry without a result found nothing


class Importer(NamedTuple):
    """A foreign format; `read` takes a `Source` for each file that was given, by the name of its option."""

    name: str
    help: str
    options: tuple[ImportOption, ...]
    read: Callable[[Mapping[str, Any]], Imported]


# -- the importers of all installed distributions ----------------------------------------------------


def installed_importers() -> dict[str, EntryPoint]:
    """The importers by name; ours go before others of the same name."""
    found = sorted(
        entry_points(group=GROUP), key=lambda entry: (not entry.value.startswith("pytest_kebab_eval."), entry)
    )
    return {entry.name: entry for entry in reversed(found)}


def load_importer(entry: EntryPoint) -> Importer:
    """The importer that an entry point names; an `InputError` if it cannot be used."""
    of = f" of {entry.dist.name} {entry.dist.version}" if entry.dist else ""
    what = f"the importer '{printable(entry.name)}'{printable(of)} cannot be"
    try:
        found = entry.load()
    except Exception as error:  # noqa: BLE001  # code of others
        raise InputError(f"{what} loaded: {brief(f'{type(error).__name__}: {error}', 120)}") from None
    if not isinstance(found, Importer):
        raise InputError(f"{what} used: {printable(entry.value)} is no Importer")
    return found


# -- what importers make -----------------------------------------------------------------------------


def result_json(query_id: str, query: str, hits: Iterable[Any], answer: Json | None, **more: Any) -> bytes:
    """A result as it is stored; hits are in the order of their ranks."""
    return msgspec.json.encode(result_fields(query_id, hits, answer, query=query, **more))


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


def labels(given: Any) -> Json:
    """What of a tool's metadata makes slices: texts, numbers and flags, by names that a gate can have."""
    known = given if isinstance(given, Mapping) else {}
    return {
        re.sub("[={}]", "_", name): value
        for name, value in known.items()
        if isinstance(name, str) and name.strip() and name.isprintable()
        if (isinstance(value, str) and value.strip())
        or (isinstance(value, (int, float)) and abs(value) < 1e15)
    }


# -- two files that belong together by the ids in them -----------------------------------------------


def check_join(
    results: Source, expected: Source, found: Collection[str], golden: Collection[str], noun: str
) -> str | None:
    """A sentence if an id is in one file alone; an `InputError` if none is in both."""
    only_found = [name for name in found if name not in golden]
    only_golden = [name for name in golden if name not in found]
    if not only_found and not only_golden:
        return None
    counts = f"{len(found)} {noun}s", f"{len(golden)} {noun}s"
    if len(only_found) == len(found):
        raise results.error(
            None,
            f"none of its {counts[0]} is one of the {counts[1]} in {expected.name}:"
            f" '{brief(only_found[0], 40)}' is in {results.name}, '{brief(only_golden[0], 40)}' in"
            f" {expected.name}; write the ids alike, or name the files of the same queries",
        )
    sides = ((only_found, results), (only_golden, expected))
    examples = [f"'{brief(names[0], 40)}' is in {source.name} alone" for names, source in sides if names]
    return (
        f"{results.name} has {counts[0]} and {expected.name} has {counts[1]},"
        f" {len(found) - len(only_found)} of them in both: {', '.join(examples)};"
        " say --allow-missing if that is right"
    )
