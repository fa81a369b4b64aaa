"""Runs from one store to another, tags that people move, and old runs that go."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import backend_of, open_database
from pytest_kebab_eval.store.address import (
    Address,
    PostgresAddress,
    missing_directory,
    same_database,
    shown_address,
)
from pytest_kebab_eval.store.database import Database, RawRun
from pytest_kebab_eval.store.run_names import check_suite, in_order, moment_of, warn_of_times
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.progress import Advancing, Progress

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


class Copied(NamedTuple):
    """What became of runs that were to be copied, by their ids."""

    copied: tuple[str, ...]
    there_already: tuple[str, ...]  # the same, byte for byte, but for aggregates, which every gate computes


def copy_runs(source: Address, target: Address, run_ids: Sequence[str]) -> Copied:
    """Copy runs as they are, all or none; of one that is there already, an `InputError` if it differs."""
    if same_database(source, target):
        raise InputError(f"{shown_address(source)} is both the source and the target; name two databases")
    if missing := missing_directory(target) if isinstance(target, Path) else "":
        raise InputError(f"cannot copy to {shown_address(target)}: {missing}")
    if isinstance(source, PostgresAddress) and isinstance(target, PostgresAddress):
        with tempfile.TemporaryDirectory() as directory:  # a pool may have one connection for both
            between = Path(directory, "runs.sqlite")
            copy_runs(source, between, run_ids)
            return copy_runs(between, target, run_ids)
    with ExitStack() as stack:
        database = stack.enter_context(open_database(source))
        count = sum(database.result_count(run_id) for run_id in run_ids)
        progress = stack.enter_context(Progress("copying", count))
        found = map(database.raw_run, run_ids)
        runs = [run._replace(rows=Advancing(run.rows, progress)) for run in found]
        known = _known_in(target, runs) if backend_of(target).is_there() else ()
        new = [run for run in runs if run.run_id not in known]
        if new:
            backend_of(target).write_runs(new)
    return Copied(tuple(run.run_id for run in new), tuple(known))


def _known_in(target: Address, runs: Sequence[RawRun]) -> list[str]:
    """The runs that the target has already; an `InputError` if one of them is not the same there."""
    known = []
    with open_database(target) as database:
        there = {run.run_id for run in database.runs()}
        for run in runs:
            if run.run_id in there:
                if differing := " and ".join(_differing(database, run)):
                    raise InputError(
                        f"{database.name} has another run '{printable(run.run_id)}' already; nothing was"
                        f" copied: it has another {differing}. To keep both, kebab-eval export this one and"
                        " import it with --run-id"
                    )
                known.append(run.run_id)
    return known


def _differing(database: Database, run: RawRun) -> Iterator[str]:
    """What is not the same in the run of that id there."""
    there = database.raw_run(run.run_id)
    columns = {
        "suite": "suite",
        "config_json": "configuration",
        "commit_hash": "commit",
        "created_at": "time",
    }
    for column, what in columns.items():
        if getattr(there, column) != getattr(run, column):
            yield what
    if not database.holds(run.run_id, run.rows):
        yield "result of a query"


def set_tag(db: Address, name: str, run_id: str) -> None:
    """Have a tag name this run; an `InputError` if it cannot be a tag's name."""
    if not _TAG.fullmatch(name):
        raise InputError(
            f"'{brief(name)}' cannot be a tag: it takes letters, digits and . _ / -, 100 at most, and begins"
            " with a letter or a digit"
        )
    backend_of(db).tag(name, run_id)


class Prunable(NamedTuple):
    """The runs of a store that are old enough to go, and those that only a tag keeps."""

    to_remove: list[Run]
    tagged: list[Run]
    warnings: list[str]


def find_prunable(
    db: Address, keep: int, suite: str | None = None, branches: Collection[str] = ()
) -> Prunable:
    """All but the newest runs of each suite and branch; where branches are named, all others count as one.

    Of a run without a time nobody knows its age.
    """
    with open_database(db) as database:
        check_suite(database, suite)
        named = set(database.tags().values())
        runs = in_order(run for run in database.runs() if suite in (None, run.suite))
        warn_of_times(database, runs)
        warnings = list(database.warnings)
    seen: Counter[tuple[str, str | None]] = Counter()
    old = []
    for run in runs:
        if moment_of(run.created_at) is not None:
            branch = run.recorded.branch
            line = (run.suite, branch if not branches or branch in branches else None)
            seen[line] += not run.recorded.is_partial
            if seen[line] > keep - run.recorded.is_partial:
                old.append(run)
    removable, tagged = ([run for run in old if (run.run_id in named) is kept] for kept in (False, True))
    return Prunable(removable, tagged, warnings)


def tags_by_run(tags: dict[str, str]) -> dict[str, list[str]]:
    """The tags of each run that has any, sorted."""
    found: dict[str, list[str]] = {}
    for name in sorted(tags):
        found.setdefault(tags[name], []).append(name)
    return found
