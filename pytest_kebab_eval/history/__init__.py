"""The runs of a suite in order of time: how their metrics went, run by run.

From stored aggregates, computing those that are missing. An aggregate that was stored for another golden file
says nothing about this one, so it is computed anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history.drift import Drift, Ranks, find_drifts, rank_number, ranks_of
from pytest_kebab_eval.history.sightings import (
    RunJudge,
    State,
    Watched,
    Yardstick,
    has_chunk_targets,
    witnesses,
)
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reading import score_run
from pytest_kebab_eval.scoring.aggregates import aggregate, stored_values
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import Address, Database, open_database, whole_runs

LAST_RUNS = 30


class HistoryPoint(NamedTuple):
    """One run on the way; values by metric name."""

    run_id: str
    created_at: str
    values: dict[str, float]
    of_other_golden: bool = False  # the values are, and the results are gone that could be scored
    suite: str = ""
    ranks: Ranks | None = None  # what each query found; None: it was not asked for, or is too much to read


def history(
    address: Address,
    golden: GoldenSet,
    suite: str | None = None,
    *,
    last: int | None = LAST_RUNS,
    most_results: int | None = None,
    ranked_by: Settings | None = None,
    most_ranked: int | None = None,
) -> list[HistoryPoint]:
    """The last runs of a suite (of all suites, if none is named), the oldest first.

    Runs whose aggregate is missing or of another golden file are scored, the newest first, but no more than
    `most_results` results in all; runs beyond that are left out. With `ranked_by`, runs have the ranks of
    their queries, where there are two of a suite to be held against each other; of those that are not
    scored, no more than `most_ranked` results are read for it. Nothing is stored.
    """
    budget, to_rank = most_results, most_ranked
    points: list[HistoryPoint] = []
    unranked: dict[int, Run] = {}  # by their places among the points
    with open_database(address) as database:
        runs = whole_runs(database, suite)[:last]
        for run in runs:
            point, size = _stored_point(database, run, golden), database.result_count(run.run_id)
            if point is None:
                if budget is not None and size > budget:
                    continue
                budget = None if budget is None else budget - size
                point = _scored_point(database, run, golden)
            elif ranked_by and (to_rank is None or size <= to_rank):
                to_rank = None if to_rank is None else to_rank - size
                unranked[len(points)] = run
            points.append(point)
        ranked = Counter(
            point.suite for place, point in enumerate(points) if point.ranks or place in unranked
        )
        unranked = {place: run for place, run in unranked.items() if ranked[run.suite] > 1}
        if ranked_by and unranked:
            reader = _RankReader(database, runs, golden, ranked_by)
            for place, run in unranked.items():
                points[place] = points[place]._replace(ranks=reader.read(run))
    return points[::-1]


class _RankReader:
    """Reads what the queries of runs found, as `blame` does; each suite has its own way to be matched."""

    def __init__(
        self, database: Database, runs: Sequence[Run], golden: GoldenSet, settings: Settings
    ) -> None:
        self._database = database
        watched = [Watched(query.id) for query in golden.queries]
        self._targets = {query.id: has_chunk_targets(query) for query in golden.queries}
        self._judges: dict[str, RunJudge] = {}
        for suite in {run.suite for run in runs}:
            opened = [(database, database.with_config(run)) for run in runs[::-1] if run.suite == suite]
            self._judges[suite] = RunJudge(Yardstick(settings, golden, witnesses(opened)), watched)

    def read(self, run: Run) -> Ranks:
        opened = self._database, self._database.with_config(run)
        return {
            watch.query_id: rank_number(
                seen.rank,
                errored=seen.state in (State.ERROR, State.UNREADABLE),
                has_targets=self._targets[watch.query_id],
            )
            for watch, seen in self._judges[run.suite].sightings(opened, 0)
            if seen.state is not State.ABSENT
        }


def drifts_of(points: Sequence[HistoryPoint], metrics: Sequence[str]) -> dict[str, list[Drift]]:
    """The metrics that drift, by suite; the oldest run is first."""
    suites: dict[str, dict[str, Ranks]] = {}
    for point in points:
        if not point.of_other_golden:
            suites.setdefault(point.suite, {})[point.run_id] = point.ranks or {}
    return {suite: find_drifts(runs, metrics) for suite, runs in suites.items()}


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
    return HistoryPoint(run.run_id, run.created_at, values, of_other_golden, run.suite)


def _scored_point(database: Database, run: Run, golden: GoldenSet) -> HistoryPoint:
    card = score_run(database, database.with_config(run), golden)
    values = {name: value for name, value in aggregate(card).values.items() if value is not None}
    return HistoryPoint(run.run_id, run.created_at, values, suite=run.suite, ranks=ranks_of(card))
