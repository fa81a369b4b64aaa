"""Tags that people move, and old runs that go."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import backend_of, open_database
from pytest_kebab_eval.store.address import (
    Address,
)
from pytest_kebab_eval.store.run_names import check_suite, in_order, moment_of, warn_of_times
from pytest_kebab_eval.text import brief

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")


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
