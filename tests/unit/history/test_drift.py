"""Metrics that get worse little by little."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.history import HistoryPoint, drifts_of, history
from pytest_kebab_eval.history.drift import (
    ERRORED,
    NOT_FOUND,
    Drift,
    RankPairs,
    StepChanges,
    find_drifts,
    followed_metric,
    ranks_of,
)
from pytest_kebab_eval.reading import score_run
from pytest_kebab_eval.reports.wording import drift_words
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import open_database
from tests.builders import golden, make_database, result
from tests.stores import SqliteStore

METRICS = ("hit@5", "mrr", "error_rate")


def run(lost: int, queries: int = 100, lost_as: int = NOT_FOUND) -> dict[str, int]:
    """A run in which the first queries are lost, and all others found at rank 1."""
    return {f"q{number}": lost_as if number < lost else 1 for number in range(queries)}


def drifts(lost: list[int], *metrics: str, lost_as: int = NOT_FOUND) -> list[Drift]:
    """What drifts in runs r0, r1, … of 100 queries, of which so many are lost."""
    runs = {f"r{number}": run(count, lost_as=lost_as) for number, count in enumerate(lost)}
    return find_drifts(runs, metrics or METRICS)


# -- what drifts -------------------------------------------------------------------------------------


def test_small_losses_drift_once_they_are_more_than_noise_together() -> None:
    # With one more each way: 13 / sqrt(13 + 2) = 3.36, above 3.55 * sqrt(100 / 113) = 3.34; 12 are 3.21.
    assert drifts([0, 0, *range(13)], "hit@5") == []
    assert drifts([0, 0, *range(14)], "hit@5") == [Drift("hit@5", -0.13, "r2", 13)]


def test_the_words_say_how_far_since_which_run_and_that_no_step_shows_it() -> None:
    (drift,) = drifts([0, 0, *range(14)], "hit@5")
    assert drift_words(drift) == "drifts: down 0.13 since r2 (13 runs), no single step explains it"


def test_a_metric_of_which_less_is_better_drifts_upwards() -> None:
    found = drifts([*range(15)], "error_rate", lost_as=ERRORED)
    assert [drift_words(drift) for drift in found] == [
        "drifts: up 0.14 since r0 (14 runs), no single step explains it"
    ]


def test_a_metric_that_gets_better_does_not_drift() -> None:
    assert drifts([*range(40, 0, -1)]) == []


def test_a_metric_that_got_better_again_no_longer_drifts() -> None:
    assert drifts([*range(20), *range(20, -1, -1)]) == []


def test_one_large_step_is_called_a_step_and_it_is_said_where_to_look() -> None:
    (drift,) = drifts([0, 0, 1, 16, 17], "hit@5")
    assert drift.is_step
    assert drift_words(drift) == (
        "fell in one step: down 0.17 since r1 (3 runs), 0.15 of it in r3, significant by itself;"
        " see kebab-eval blame --regressions r2 r3"
    )


def test_a_step_that_explains_less_than_half_of_it_is_named_beside_the_drift() -> None:
    # Nine of nine for the worse: mid-p = 2^-9 = 0.002, times 15 steps 0.03
    (drift,) = drifts([0, 9, *range(10, 24)], "hit@5")
    assert (drift.is_step, drift.worst_run, drift.worst_change) == (False, "r1", -0.09)
    assert drift_words(drift) == (
        "drifts: down 0.23 since r0 (15 runs), 0.09 of it in r1, significant by itself"
    )


def test_a_step_must_be_significant_given_how_many_steps_there_are() -> None:
    # Six of six for the worse: mid-p = 2^-6 = 0.016, times 15 steps 0.23
    (drift,) = drifts([0, 6, *range(7, 21)], "hit@5")
    assert drift_words(drift) == "drifts: down 0.2 since r0 (15 runs), no single step explains it"


@pytest.mark.parametrize("outage", [[40], [40, 40, 40], [40, 30, 20]])
@pytest.mark.parametrize("at", [1, 10, 19])
def test_a_step_that_recovers_explains_no_drift(outage: list[int], at: int) -> None:
    lost = [*range(21)]
    (drift,) = drifts([*lost[:at], *outage, *lost[at:]], "hit@5")
    assert drift.change == (-0.19 if at == 1 else -0.2)  # it begins anew after an outage at its begin
    assert (drift.is_step, drift.worst_run) == (False, "")


def test_of_a_step_that_recovers_in_part_no_more_is_told_than_what_is_left() -> None:
    (drift,) = drifts([0, 0, 40, 38, 30, 32], "hit@5")
    assert (drift.change, drift.worst_run, drift.worst_change) == (-0.32, "r2", -0.3)


def test_a_step_is_never_more_than_the_fall() -> None:
    # The second run has half of the queries, and the step is over those: 29 of 50.
    half, lost = run(1, queries=50), run(30)
    (drift,) = find_drifts({"a": run(0), "b": half, "c": lost, "d": lost}, ["hit@5"])
    assert (drift.change, drift.worst_run, drift.worst_change) == (-0.3, "c", -0.3)


def test_runs_without_results_are_stepped_over() -> None:
    runs = {"a": run(0), "gone": {}, **{f"r{number}": run(number) for number in range(14)}}
    assert find_drifts(runs, ["hit@5"]) == [Drift("hit@5", -0.13, "r0", 13)]


def test_queries_that_a_run_lacks_are_not_paired() -> None:
    # Half of the queries are new, and all of them missed: hit@5 falls to one half, and no query fell.
    few, more = run(0, queries=50), run(0, queries=50) | {f"new{number}": 0 for number in range(50)}
    assert find_drifts({"a": few, "b": few, "c": more, "d": more}, METRICS) == []


def test_metrics_that_do_not_follow_from_ranks_and_errors_are_not_looked_at() -> None:
    assert followed_metric("groundedness") is None
    assert drifts([*range(40)], "groundedness") == []


@pytest.mark.parametrize("runs", [[], [0], [0, 30]])
def test_any_number_of_runs_may_be_asked(runs: list[int]) -> None:
    assert [drift.is_step for drift in drifts(runs, "hit@5")] == [True] * (len(runs) > 1)


# -- chance ------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-3, 12), st.integers(-3, 12)), min_size=1, max_size=60))
def test_changes_are_those_of_the_queries_one_by_one(ranks: list[tuple[int, int]]) -> None:
    pairs = RankPairs([{str(n): pair[side] for n, pair in enumerate(ranks)} for side in (0, 1)])
    for name in METRICS:
        metric = followed_metric(name)
        assert metric is not None
        values = [(metric.value(a), metric.value(b)) for a, b in ranks]
        sign = 1 if name == "error_rate" else -1
        worse = [sign * (b - a) for a, b in values if a is not None and b is not None]
        found = pairs.changes(metric, 0, 1)
        assert found.n == len(worse)
        assert found.total == pytest.approx(math.fsum(worse))
        assert found.squares == pytest.approx(math.fsum(change * change for change in worse))


def test_no_change_has_no_limit_that_it_exceeds() -> None:
    assert StepChanges(0.0, 0.0, 0).mean <= StepChanges(0.0, 0.0, 0).limit


def test_coins_seldom_drift() -> None:
    chance = random.Random(6)
    found = 0
    for _ in range(100):
        runs = {
            str(number): run(0, 60) | {f"q{query}": chance.randint(0, 1) for query in range(40)}
            for number in range(15)
        }
        found += bool(find_drifts(runs, ["hit@5"]))
    assert found <= 5


# -- from stored runs --------------------------------------------------------------------------------


def test_stored_runs_are_ranked_as_their_scorecards_are(tmp_path: Path) -> None:
    entries = [{"id": f"q{number}", "expected_chunk_ids": ["c"]} for number in range(4)]
    judged = golden(*entries, {"id": "free"}, {"id": "doc", "expected_doc_ids": ["d"]})
    results = {"q0": result("c"), "q1": result("x", "c"), "q2": result("x"), "q3": result(error="no")}
    results |= {"free": result("c"), "doc": result("x")}
    path = make_database(tmp_path / "kebab.sqlite", first=results, r=results)
    settings = Settings(run_a=None, run_b="r", db_a=path, db_b=path, golden=tmp_path / "golden.yaml")
    with open_database(path) as database:
        stored = next(run for run in database.runs() if run.run_id == "r")
        card = score_run(database, database.with_config(stored), judged)
    expected = {"q0": 1, "q1": 2, "q2": 0, "q3": -1, "free": -2, "doc": -2}
    assert ranks_of(card) == expected
    scored = history(path, judged, ranked_by=settings)
    assert [point.ranks for point in scored] == [expected, expected]
    SqliteStore(path).execute(
        "UPDATE eval_runs SET aggregate_json = '{\"mrr\": 0.5}'"
    )  # so that nothing is scored
    ranked = history(path, judged, ranked_by=settings)
    assert [(point.values, point.ranks) for point in ranked] == [({"mrr": 0.5}, expected)] * 2
    assert history(path, judged)[1].ranks is None  # nobody asked
    assert history(path, judged, ranked_by=settings, most_ranked=11)[1].ranks is None  # too many: 12
    assert drifts_of(ranked, METRICS) == {"suite": []}


def test_a_run_without_another_of_its_suite_to_be_held_against_is_not_ranked(tmp_path: Path) -> None:
    path = make_database(tmp_path / "kebab.sqlite", a={"q1": result("c")}, b={"q1": result("c")})
    settings = Settings(run_a="a", run_b="b", db_a=path, db_b=path, golden=tmp_path / "golden.yaml")
    judged = golden({"id": "q1", "expected_chunk_ids": ["c"]})
    store = SqliteStore(path)
    store.execute("UPDATE eval_runs SET aggregate_json = '{\"mrr\": 1.0}'")
    assert [point.ranks for point in history(path, judged, ranked_by=settings)] == [{"q1": 1}, {"q1": 1}]
    store.execute("UPDATE eval_runs SET suite = 'other' WHERE run_id = 'a'")
    assert [point.ranks for point in history(path, judged, ranked_by=settings)] == [None, None]


def test_each_suite_drifts_by_itself() -> None:
    points = [
        HistoryPoint(f"{suite}{number}", "", {}, suite=suite, ranks=run(number if suite == "a" else 0))
        for number in range(20)
        for suite in ("a", "b")
    ]
    found = drifts_of(points, ["hit@5"])
    assert [(drift.since, drift.runs) for drift in found["a"]] == [("a0", 19)]
    assert found["b"] == []
