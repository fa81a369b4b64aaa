"""How far two rankings are apart: by hand, and in gates and reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import CompareReport, GateError
from pytest_kebab_eval.comparing.one_pass import Overlaps
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, make_database, result, stored, write_golden
from tests.unit.comparing.conftest import said


def overlap(a: list[int], b: list[int], k: int) -> float | None:
    found = Overlaps([k])
    results = [stored(result(*map(str, ids))) for ids in (a, b)]
    found.add(0, "q1", results[:1], results[1:])
    return found.of("q1", k)


lists = st.lists(st.integers(0, 20), unique=True, max_size=15)


@pytest.mark.parametrize(
    ("a", "b", "k", "value"),
    [
        ([1, 2, 3], [1, 2, 3], 3, 1.0),
        ([1, 2, 3], [3, 2, 1], 3, 1.0),  # order does not matter
        ([1, 2, 3], [3, 2, 1], 1, 0.0),
        ([1, 2, 3], [1, 2, 4], 3, 2 / 4),
        ([1, 2], [], 3, 0.0),
        ([], [], 3, 1.0),
        ([1], [1, 2, 3], 3, 1 / 3),
    ],
)
def test_overlap_is_what_is_shared_over_what_there_is(
    a: list[int], b: list[int], k: int, value: float
) -> None:
    assert overlap(a, b, k) == value


@given(lists, lists)
def test_movement_is_between_0_and_1_and_the_same_both_ways(a: list[int], b: list[int]) -> None:
    assert 0 <= (overlap(a, b, 5) or 0) <= 1
    assert overlap(a, b, 5) == overlap(b, a, 5)
    assert overlap(a, a, 5) == 1


# -- in the report -----------------------------------------------------------------------------------


def compared(
    directory: Path, a: dict[str, Json], b: dict[str, Json], *gates: str, **entry: object
) -> CompareReport:
    entries = [{"id": name, "query": "?", "lang": "de" if name < "q2" else "en", **entry} for name in a]
    golden = write_golden(directory / "golden.yaml", entries)
    db = make_database(directory / "kebab.sqlite", a=a, b=b)
    chosen = Settings("a", "b", db, db, golden, gates=gates, fail_on=frozenset())
    return evaluate(chosen, find_inputs(chosen)).report


A = {"q1": result("c1", "c2"), "q2": result("c1"), "q3": result("c1")}
B = {"q1": result("c2", "c1"), "q2": result("c1"), "q3": result("x")}


def test_rankings_are_compared_without_any_label(tmp_path: Path) -> None:
    report = compared(tmp_path, A, B)
    assert [comparison.overlap for comparison in report.per_query] == [1.0, 1.0, 0.0]
    assert report.comparison is not None
    assert report.comparison.values["overlap@10"] == 0.6667  # (1 + 1 + 0) / 3
    assert report.comparison.values["overlap@1"] == 0.3333
    assert report.comparison.slices["lang=de"]["overlap@1"] == 0.0


def test_what_is_in_the_top_k_is_known_by_the_stored_ranks(tmp_path: Path) -> None:
    a = {"q1": result(hit("c1", 1), hit("c2", 12))}
    b = {"q1": result(hit("c1", 1), hit("c2", 2))}
    report = compared(tmp_path, a, b)
    assert report.comparison is not None
    # in the top 10: c1 in A, c1 and c2 in B; in the top 20 there would be no difference
    assert report.comparison.values["overlap@10"] == 0.5
    assert report.per_query[0].overlap == 0.5


def test_a_query_that_errored_in_both_runs_has_no_rankings(tmp_path: Path) -> None:
    errored = result(error="boom")
    report = compared(tmp_path, {"q1": errored, "q2": errored}, {"q1": errored, "q2": result("c1")})
    assert report.comparison is not None
    assert report.comparison.values["overlap@5"] == 0.0  # of q2 alone, which has moved


@pytest.mark.parametrize(
    ("gate", "passes", "reason"),
    [
        ("regressions <= 1", True, "regressions is 1 of 3 queries"),
        ("regressions <= 0", False, "regressions is 1 of 3 queries, not <= 0"),
        ("regressions <= 40%", True, "regressions is 1 of 3 queries (33.33%)"),
        ("regressions <= 33%", False, "regressions is 1 of 3 queries (33.33%), not <= 33%"),
        ("regressions{lang=de} == 0", True, "regressions{lang=de} is 0 of 1 query"),
        ("losses <= 0", False, "losses is 1 of 3 queries, not <= 0"),
        ("wins >= 1", False, "wins is 0 of 3 queries, not >= 1"),
        ("failed <= 1", True, "failed is 1 of 3 queries"),
        ("overlap@5 >= 0.7", False, "overlap@5 is 0.6667 over 3 queries, not >= 0.7"),
        ("overlap@7 >= 60%", True, "overlap@7 is 0.6667 over 3 queries"),
        ("overlap@5{lang=de} >= 0.9", True, "overlap@5{lang=de} is 1 over 1 query"),
        ("overlap@5{lang=ko} >= 0.9", False, "nothing was compared for overlap@5{lang=ko}; lang is de, en"),
    ],
)
def test_a_gate_on_the_comparison_itself(tmp_path: Path, gate: str, passes: bool, reason: str) -> None:
    (judged,) = compared(tmp_path, A, B, gate, expected_chunk_ids=["c1"]).gates
    assert (judged.passed, said(judged)) == (passes, reason)


def test_a_delta_of_the_comparison_makes_no_sense(tmp_path: Path) -> None:
    with pytest.raises(GateError, match="regressions compares the two runs already, so drop 'delta'"):
        compared(tmp_path, A, B, "delta regressions <= 0")


def test_a_run_alone_has_no_comparison_to_gate_on(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?"}])
    db = make_database(tmp_path / "kebab.sqlite", b=B)
    chosen = Settings(None, "b", db, db, golden, gates=("overlap@5 >= 0.5",))
    with pytest.raises(GateError, match="is on the comparison of two runs, which takes --kebab-run-a"):
        find_inputs(chosen)
