"""Errors, time, cost and scope of a run: nearest-rank percentiles, exact totals, and what they are over."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from tests.builders import Json, answer, hit, line, make_database, result, write_golden


def scored(
    directory: Path, results: Mapping[str, Json], entries: Mapping[str, Json] | None = None, **database: Any
) -> AggregateMetrics:
    """A run scored alone; its queries are in the golden file, with what `entries` say of them."""
    entries = entries or {name: {} for name in results}
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=results, **database)
    return compute_aggregate("a", db=db, golden=golden)


def with_n(aggregate: AggregateMetrics, metric: str) -> tuple[float | None, int]:
    return aggregate.value(metric), aggregate.counts[metric]


# -- time ------------------------------------------------------------------------------------------


def nearest_rank(values: Sequence[int], percent: int) -> int:
    """The smallest value that at least so many percent of the values do not exceed."""
    return next(
        value for value in sorted(values) if 100 * sum(v <= value for v in values) >= percent * len(values)
    )


@given(times=st.lists(st.integers(0, 50), min_size=1, max_size=45))
def test_percentiles_are_the_smallest_time_that_enough_queries_do_not_exceed(times: list[int]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        results = {f"q{n}": result(elapsed_ms=ms) for n, ms in enumerate(times)}
        aggregate = scored(Path(directory), results)
    assert aggregate.value("latency_p50_ms") == nearest_rank(times, 50)
    assert aggregate.value("latency_p95_ms") == nearest_rank(times, 95)


@pytest.mark.parametrize(
    ("n", "p50", "p95"),
    [
        (1, 1, 1),
        (2, 1, 2),  # 50 % of two is the first itself
        (3, 2, 3),
        (20, 10, 19),  # 95 % of twenty is nineteen, exactly
        (21, 11, 20),
    ],
)
def test_percentiles_by_hand(tmp_path: Path, n: int, p50: int, p95: int) -> None:
    aggregate = scored(tmp_path, {f"q{ms}": result(elapsed_ms=ms) for ms in range(1, n + 1)})
    assert (aggregate.value("latency_p50_ms"), aggregate.value("latency_p95_ms")) == (p50, p95)


@pytest.mark.parametrize("stage", ["folder_selection", "retrieval", "generation", "judge"])
def test_every_stage_has_percentiles_of_its_own(tmp_path: Path, stage: str) -> None:
    results = {
        "q1": result(elapsed_ms=100, timings_ms={stage: 8}),
        "q2": result(elapsed_ms=100, timings_ms={stage: 2}),
        "q3": result(elapsed_ms=100, timings_ms={stage: 4}),
        "q4": result(elapsed_ms=100),
    }
    aggregate = scored(tmp_path, results)
    # of 2, 4, 8: the second and the third; the query that stored none is not a 0
    assert with_n(aggregate, f"latency_p50_ms:{stage}") == (4.0, 3)
    assert with_n(aggregate, f"latency_p95_ms:{stage}") == (8.0, 3)
    assert with_n(aggregate, "latency_p95_ms") == (100.0, 4)


def test_a_query_that_errored_took_its_time_all_the_same(tmp_path: Path) -> None:
    results = {"q1": result(elapsed_ms=5), "q2": result(elapsed_ms=900, error="timeout", timed_out=True)}
    assert with_n(scored(tmp_path, results), "latency_p95_ms") == (900.0, 2)


# -- errors ----------------------------------------------------------------------------------------


def test_errors_and_timeouts_are_counted_apart_and_over_all_queries_of_the_run(tmp_path: Path) -> None:
    results = {
        "slow": result("c1", timed_out=True),  # it answered in the end
        "broken": result(error="boom"),
        "both": result(error="timeout", timed_out=True),
        "stray": result(error="boom"),
        "fine": result("c1"),
    }
    aggregate = scored(tmp_path, results, {name: {} for name in results if name != "stray"})
    assert with_n(aggregate, "error_rate") == (0.6, 5)
    assert with_n(aggregate, "timeout_rate") == (0.4, 5)
    assert aggregate.failed_queries == 3


def test_an_error_of_no_words_is_an_error(tmp_path: Path) -> None:
    assert scored(tmp_path, {"q1": result("c1", error="")}).value("error_rate") == 1.0


# -- totals ----------------------------------------------------------------------------------------


def test_totals_are_exact_sums(tmp_path: Path) -> None:
    # ten times 0.1 is 1, not 0.9999999999999999, and then a tenth of a cent stays visible
    results = {f"q{n}": result(cost_usd=0.1) for n in range(10)} | {"last": result(cost_usd=0.0011)}
    assert with_n(scored(tmp_path, results), "cost_usd") == (1.0011, 11)


def test_totals_are_over_what_was_stored_also_by_a_query_that_errored(tmp_path: Path) -> None:
    def used(prompt: int, completion: int) -> Json:
        return answer(usage={"prompt_tokens": prompt, "completion_tokens": completion})

    results = {
        "q1": result(cost_usd=0.25, answer=used(100, 7)),
        "q2": result(cost_usd=0.5, answer=used(20, 3), error="cut off"),
        "stray": result(cost_usd=0.125),
        "silent": result(),
    }
    aggregate = scored(tmp_path, results, {"q1": {}, "q2": {}, "silent": {}})
    assert with_n(aggregate, "cost_usd") == (0.875, 3)
    assert with_n(aggregate, "prompt_tokens") == (120.0, 2)
    assert with_n(aggregate, "completion_tokens") == (10.0, 2)


def test_a_cost_of_nothing_is_zero_and_not_unknown(tmp_path: Path) -> None:
    assert with_n(scored(tmp_path, {"q1": result(cost_usd=0)}), "cost_usd") == (0.0, 1)


# -- scope -----------------------------------------------------------------------------------------


def scope(*folders: str, mode: str = "on") -> Json:
    return {"mode": mode, "folders": list(folders)}


def test_the_paths_of_expected_chunks_come_from_the_index(tmp_path: Path) -> None:
    corpus = {"in/d1#1": ("in/d1", [line()])}  # its path is in/d1.md
    entry = {"expected_chunk_ids": ["in/d1#1"]}
    results = {"inside": result(scope=scope("in")), "outside": result(scope=scope("out"))}
    entries = dict.fromkeys(results, entry)
    assert with_n(scored(tmp_path, results, entries, corpus=corpus), "scope_miss_rate") == (0.5, 2)


def test_a_scope_that_leaves_one_of_two_targets_in_sight_is_no_miss(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "a/x.md"}, {"path": "b/y.md"}]}
    results = {"one": result(scope=scope("b")), "none": result(scope=scope("c", "d"))}
    assert with_n(scored(tmp_path, results, dict.fromkeys(results, entry)), "scope_miss_rate") == (0.5, 2)


def test_a_scope_of_no_folders_excludes_everything(tmp_path: Path) -> None:
    entries: dict[str, Json] = {"q1": {"gold_supports": [{"path": "a/x.md"}]}}
    assert scored(tmp_path, {"q1": result(scope=scope())}, entries).value("scope_miss_rate") == 1.0


def test_scope_with_a_fallback_is_on(tmp_path: Path) -> None:
    entries: dict[str, Json] = {"q1": {"gold_supports": [{"path": "a/x.md"}]}}
    stored = result(scope=scope("b", mode="on_with_fallback"))
    assert with_n(scored(tmp_path, {"q1": stored}, entries), "scope_miss_rate") == (1.0, 1)


def test_a_target_is_not_left_out_for_having_been_missed(tmp_path: Path) -> None:
    # The paths are known of what was found alone. That says nothing of the scopes that found nothing:
    # a rate over the lucky ones would be 0 however bad the scopes are.
    entries: dict[str, Json] = {"found": {"expected_doc_ids": ["d1"]}, "missed": {"expected_doc_ids": ["d2"]}}
    results = {
        "found": result(hit("d1#1", doc_path="in/d1.md"), scope=scope("in")),
        "missed": result(hit("x#1", doc_path="out/x.md"), scope=scope("out")),
    }
    assert scored(tmp_path, results, entries).value("scope_miss_rate") != 0.0
