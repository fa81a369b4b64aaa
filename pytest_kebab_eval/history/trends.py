"""How the metrics of a suite went, run by run: from stored aggregates, computing those that are missing.

An aggregate that was stored for another golden file says nothing about this one, so it is computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reading import score_run
from pytest_kebab_eval.scoring.aggregates import aggregate, stored_values
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.store import Address, Database, in_order, open_database

LAST_RUNS = 30


class HistoryPoint(NamedTuple):
    """One run on the way; values by metric name.

    `of_other_golden`: the values are of another golden file, and the results are gone that could be scored.
    """

    run_id: str
    created_at: str
    values: dict[str, float]
    of_other_golden: bool = False


def history(
    address: Address,
    golden: GoldenSet,
    suite: str | None = None,
    *,
    last: int | None = LAST_RUNS,
    most_results: int | None = None,
) -> list[HistoryPoint]:
    """The last runs of a suite (of all suites, if none is named), the oldest first.

    Runs whose aggregate is missing or of another golden file are scored, the newest first, but no more than
    `most_results` results in all; runs beyond that are left out. Nothing is stored.
    """
    budget = most_results
    points = []
    with open_database(address) as database:
        for run in _chosen(database, suite, last):
            stored = _Stored.read(database, run)
            size = 0 if stored.stands_for(golden) else stored.results
            if budget is not None and size > budget:
                continue
            budget = None if budget is None else budget - size
            points.append(_point(database, run, golden, stored))
    return points[::-1]


def history_point(
    database: Database, run: Run, golden: GoldenSet, card: Scorecard | None = None
) -> HistoryPoint:
    """One run of an open database, as `history` has it; with its scorecard, nothing is scored again."""
    return _point(database, run, golden, _Stored.read(database, run), card)


class _Stored(NamedTuple):
    """What is stored of a run: an aggregate, the golden file that it is of, and how many results."""

    values: dict[str, float]
    golden_sha256: str | None
    results: int

    @classmethod
    def read(cls, database: Database, run: Run) -> _Stored:
        found = database.stored_aggregate(run.run_id)
        sha = found.get("golden_sha256")
        return cls(stored_values(found), sha, database.result_count(run.run_id))

    def is_of(self, golden: GoldenSet) -> bool:
        """Whether the aggregate is of that golden file; kebab's own do not say, and count as it."""
        return self.golden_sha256 in (None, golden.fingerprint)

    def stands_for(self, golden: GoldenSet) -> bool:
        return bool(self.values) and (self.is_of(golden) or not self.results)


def _point(
    database: Database, run: Run, golden: GoldenSet, stored: _Stored, card: Scorecard | None = None
) -> HistoryPoint:
    if stored.stands_for(golden):
        return HistoryPoint(run.run_id, run.created_at, stored.values, not stored.is_of(golden))
    scored = aggregate(card or score_run(database, database.with_config(run), golden)).by_name()
    values = {name: value for name, value in scored.items() if value is not None}
    return HistoryPoint(run.run_id, run.created_at, values)


def _chosen(database: Database, suite: str | None, last: int | None) -> Sequence[Run]:
    runs = [run for run in in_order(database.runs()) if suite is None or run.suite == suite]
    return runs[:last]
