"""The runs of a suite in order of time: how their metrics went, run by run.

From stored aggregates, computing those that are missing. An aggregate that was stored for another golden file
says nothing about this one, so it is computed anew.
"""

from __future__ import annotations

from typing import NamedTuple

from pytest_kebab_eval.comparing.aggregates import stored_values
from pytest_kebab_eval.comparing.totals import aggregate_of_run
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.open_runs import score_runs
from pytest_kebab_eval.store import Address, Database, open_database, whole_runs

LAST_RUNS = 30


class HistoryPoint(NamedTuple):
    """One run on the way; values by metric name."""

    run_id: str
    created_at: str
    values: dict[str, float]
    of_other_golden: bool = False  # the values are, and the results are gone that could be scored


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
    points: list[HistoryPoint] = []
    with open_database(address) as database:
        for run in whole_runs(database, suite)[:last]:
            point, size = _stored_point(database, run, golden), database.result_count(run.run_id)
            if point is None:
                if budget is not None and size > budget:
                    continue
                budget = None if budget is None else budget - size
                point = _scored_point(database, run, golden)
            points.append(point)
    return points[::-1]


def _stored_point(database: Database, run: Run, golden: GoldenSet) -> HistoryPoint | None:
    """The stored aggregate; None if there is none, or it is of another golden file and can be computed."""
    found = database.stored_aggregate(run.run_id)
    values = stored_values(found)
    if not values:
        return None
    # kebab's own aggregates do not say of which golden file they are, and count as of this one.
    of_other_golden = found.get("golden_sha256") not in (None, golden.fingerprint)
    if of_other_golden and database.result_count(run.run_id):
        return None
    return HistoryPoint(run.run_id, run.created_at, values, of_other_golden)


def _scored_point(database: Database, run: Run, golden: GoldenSet) -> HistoryPoint:
    aggregate = aggregate_of_run(score_runs(database, [database.with_config(run)], golden), 0)
    values = {name: value for name, value in aggregate.values.items() if value is not None}
    return HistoryPoint(run.run_id, run.created_at, values)
