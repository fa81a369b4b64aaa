"""Two runs in total: section 3.3 of the contract; and which test a metric's change is put to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_kebab_eval import compare_runs
from tests.builders import deltas_of, make_database, render_report_json, result, side_a, write_golden
from tests.unit.comparing.conftest import C1, ERRORED, HIT, MISS, RULED, SHIPPED, at, compared_all

# -- totals ----------------------------------------------------------------------------------------


def test_a_delta_is_b_less_a_of_the_rounded_values(tmp_path: Path) -> None:
    a = {"q1": HIT, "q2": MISS, "q3": MISS}
    b = {"q1": HIT, "q2": HIT, "q3": MISS}
    report = compared_all(tmp_path, dict.fromkeys(a, C1), a, b)
    # 2/3 - 1/3 is 0.3333, but 0.6667 - 0.3333 is 0.3334
    assert (side_a(report).values["hit@1"], report.aggregate_b.values["hit@1"]) == (0.3333, 0.6667)
    assert deltas_of(report).values["hit@1"] == 0.3334


def test_a_delta_is_negative_where_b_is_less(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": at(4)})
    assert deltas_of(report).values["mrr"] == -0.75


@pytest.mark.parametrize("answering", ["a", "b", "neither"])
def test_a_delta_is_null_if_either_value_is(tmp_path: Path, answering: str) -> None:
    a, b = (SHIPPED if answering == side else HIT for side in ("a", "b"))
    report = compared_all(tmp_path, {"q1": RULED}, {"q1": a}, {"q1": b})
    assert deltas_of(report).values["groundedness"] is None
    assert json.loads(render_report_json(report))["deltas"]["groundedness"] is None


def test_equal_runs_have_no_difference(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": C1}, {"q1": at(3)}, {"q1": at(3)})
    assert set(deltas_of(report).values.values()) <= {0.0, None}
    assert "-0.0" not in render_report_json(report)


def test_queries_that_are_paired_errored_and_absent_are_counted(tmp_path: Path) -> None:
    entries = dict.fromkeys(("both", "errs-in-b", "only-a", "only-b", "neither"), C1)
    a = {"both": HIT, "errs-in-b": HIT, "only-a": HIT}
    b = {"both": HIT, "errs-in-b": ERRORED, "only-b": MISS}
    paired = deltas_of(compared_all(tmp_path, entries, a, b)).paired
    assert (paired.queries, paired.errored_a, paired.errored_b) == (2, 0, 1)
    assert (paired.absent_a, paired.absent_b) == (2, 2)


def test_deltas_are_over_the_queries_that_both_runs_have_and_the_others_are_told_apart(
    tmp_path: Path,
) -> None:
    a = {"q1": HIT, "q2": at(2), "only-a": MISS}
    b = {"q1": HIT, "q2": HIT, "only-b": MISS, "only-b2": MISS}
    report = compared_all(tmp_path, dict.fromkeys({*a, *b}, C1), a, b)
    # all: (1 + 1/2 + 0)/3 = 0.5 and (1 + 1 + 0 + 0)/4 = 0.5; paired: (1 + 1/2)/2 = 0.75 and 1
    assert deltas_of(report).values["mrr"] == 0.25
    over_all = deltas_of(report).paired.unpaired
    assert over_all is not None
    assert over_all["mrr"] == 0.0


def test_deltas_of_slices_are_over_the_queries_that_both_runs_have(tmp_path: Path) -> None:
    entries = {
        "q1": {**C1, "difficulty": "hard"},
        "only-a": {**C1, "difficulty": "hard"},
        "only-b": {**C1, "difficulty": "hard"},
    }
    report = compared_all(tmp_path, entries, {"q1": HIT, "only-a": MISS}, {"q1": HIT, "only-b": MISS})
    assert deltas_of(report).slices["difficulty=hard"]["hit@5"] == 0.0
    assert deltas_of(report).counts["hit@5"] == 0


def test_runs_of_the_same_queries_have_no_other_deltas(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": C1, "neither": C1}, {"q1": HIT}, {"q1": HIT})
    assert deltas_of(report).paired.unpaired is None


def test_results_that_the_golden_file_has_no_query_for_are_listed_and_not_compared(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": C1}, {"q1": HIT, "z": HIT}, {"q1": HIT, "y": HIT})
    assert report.not_in_golden == ("y", "z")
    assert [comparison.query_id for comparison in report.per_query] == ["q1"]
    assert (side_a(report).total_queries, side_a(report).counts["hit@1"]) == (2, 1)


def test_a_query_in_neither_run_is_absent_and_in_no_delta(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": C1, "q2": C1}, {"q1": HIT}, {"q1": HIT})
    of_both, of_neither = report.per_query
    assert (of_both.query_id, of_both.checks, of_neither.checks) == ("q1", (), ("absent",))
    assert deltas_of(report).paired.queries == 1


def test_queries_are_sorted_by_id(tmp_path: Path) -> None:
    rows = {"q10": HIT, "q2": HIT, "a": HIT}
    report = compared_all(tmp_path, dict.fromkeys(rows, C1), rows, rows)
    assert [comparison.query_id for comparison in report.per_query] == ["a", "q10", "q2"]


# -- which test ------------------------------------------------------------------------------------


def test_values_that_are_all_yes_or_no_have_the_same_p_whatever_the_metric_is_called(tmp_path: Path) -> None:
    found = {f"q{n}": result("c1") for n in range(30)}
    lost = {f"q{n}": result("x" if n < 7 else "c1") for n in range(30)}
    entries = [{"id": name, "query": "?", "expected_chunk_ids": ["c1"]} for name in found]
    golden = write_golden(tmp_path / "golden.yaml", entries)
    db = make_database(tmp_path / "kebab.sqlite", a=found, b=lost)
    significance = compare_runs("a", "b", db=db, golden=golden).significance
    hit, precision, recall = (significance[name] for name in ("hit@1", "precision@1_chunk", "recall@5"))
    assert hit.p == precision.p == recall.p == 0.0078  # mid-p of seven changes, all one way: 2^-7
    assert (hit.low, hit.high) == (precision.low, precision.high)
