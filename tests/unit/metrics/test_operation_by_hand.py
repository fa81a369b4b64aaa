"""The formula of each metric of scope, errors, time and cost, on runs small enough to work out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json, answer, result
from tests.unit.conftest import scored, scored_one

# -- scope -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folders", "value"),
    [(["guide"], 0.0), (["faq"], 1.0), (["faq", "guide"], 0.0), (["gui"], 1.0), (["guide/"], 0.0)],
)
def test_a_scope_misses_whose_folders_exclude_every_target(
    tmp_path: Path, folders: list[str], value: float
) -> None:
    entry = {"gold_supports": [{"path": "guide/a.md"}, {"path": "guide/deep/b.md"}]}
    stored = result(scope={"mode": "on", "folders": folders})
    assert scored_one(tmp_path, entry, stored)["scope_miss_rate"] == value


@pytest.mark.parametrize("scope", [None, {"mode": "off", "folders": ["faq"]}, {"mode": "on"}])
def test_scope_is_over_queries_run_with_scope_on_whose_folders_are_stored(
    tmp_path: Path, scope: Json | None
) -> None:
    entry = {"gold_supports": [{"path": "guide/a.md"}]}
    scores = scored_one(tmp_path, entry, result(scope=scope))
    assert (scores["scope_miss_rate"], scores.n("scope_miss_rate")) == (None, 0)


# -- how the run went ------------------------------------------------------------------------------


def test_error_and_timeout_rates_are_over_all_queries(tmp_path: Path) -> None:
    results = {
        "q1": result(error="boom"),
        "q2": result(error="timeout", timed_out=True),
        "q3": result("c1"),
        "q4": result("c1"),
    }
    scores = scored(tmp_path, {name: {} for name in results}, results)
    assert (scores["error_rate"], scores["timeout_rate"]) == (0.5, 0.25)


def test_latency_percentiles_are_by_nearest_rank(tmp_path: Path) -> None:
    results = {f"q{n:02}": result(elapsed_ms=10 * n) for n in range(1, 21)}
    scores = scored(tmp_path, {"q01": {}}, results)
    # of 20 values: p50 is the 10th, p95 the 19th
    assert (scores["latency_p50_ms"], scores["latency_p95_ms"]) == (100.0, 190.0)


def test_latency_by_stage_is_over_the_queries_that_stored_it(tmp_path: Path) -> None:
    results = {
        "q1": result(timings_ms={"retrieval": 7}),
        "q2": result(timings_ms={"retrieval": 3, "generation": 50}),
        "q3": result(),
    }
    scores = scored(tmp_path, {"q1": {}}, results)
    # of 3 and 7: p50 is the 1st, p95 the 2nd
    assert (scores["latency_p50_ms:retrieval"], scores["latency_p95_ms:retrieval"]) == (3.0, 7.0)
    assert scores["latency_p95_ms:generation"] == 50.0
    assert scores["latency_p95_ms:judge"] is None


def test_costs_and_tokens_are_totals(tmp_path: Path) -> None:
    def spent(cost: float, prompt: int, completion: int) -> Json:
        usage = {"prompt_tokens": prompt, "completion_tokens": completion, "latency_ms": 5}
        return result(cost_usd=cost, answer=answer(usage=usage))

    results = {"q1": spent(0.1, 100, 10), "q2": spent(0.2, 200, 5), "q3": result()}
    scores = scored(tmp_path, {"q1": {}}, results)
    assert (scores["cost_usd"], scores["prompt_tokens"], scores["completion_tokens"]) == (0.3, 300.0, 15.0)


def test_a_run_that_stored_no_costs_has_none(tmp_path: Path) -> None:
    scores = scored_one(tmp_path, {}, result(answer=answer()))
    assert (scores["cost_usd"], scores["prompt_tokens"]) == (None, None)
