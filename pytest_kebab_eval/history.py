"""How the metrics of a suite went, run by run: from stored aggregates, computing those that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.evaluation import aggregate_run
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.scoring.aggregates import stored_values
from pytest_kebab_eval.store import Database, in_order, open_database

LAST_RUNS = 30


class HistoryPoint(NamedTuple):
    """One run on the way; values by metric name."""

    run_id: str
    created_at: str
    values: dict[str, float]


def history(
    path: Path,
    golden: GoldenSet,
    suite: str | None = None,
    *,
    last: int | None = LAST_RUNS,
    most_results: int | None = None,
) -> list[HistoryPoint]:
    """The last runs of a suite (of all suites, if none is named), the oldest first.

    Runs whose aggregate is missing are scored, the newest first, but no more than `most_results` results in
    all; runs beyond that are left out. Nothing is stored.
    """
    points = []
    budget = most_results
    with open_database(path) as database:
        for run in _chosen(database, suite, last):
            values = stored_values(database.stored_aggregate(run.run_id))
            if not values:
                size = database.result_count(run.run_id)
                if budget is not None and size > budget:
                    continue
                budget = None if budget is None else budget - size
                scored = aggregate_run(database, database.with_config(run), golden).by_name()
                values = {name: value for name, value in scored.items() if value is not None}
            points.append(HistoryPoint(run.run_id, run.created_at, values))
    return points[::-1]


def _chosen(database: Database, suite: str | None, last: int | None) -> Sequence[Run]:
    runs = [run for run in in_order(database.runs()) if suite is None or run.suite == suite]
    return runs[:last]
