"""Gates say over how many queries, and one that no outcome could fail says so and fails."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.significance import least_p, paired_test
from tests.builders import Json, hit, result
from tests.unit.comparing.conftest import C1, Sides, gated, hits, judged, said

# -- the least p that so many queries can have -----------------------------------------------------


@pytest.mark.parametrize(
    ("n", "of_yes_no", "of_graded"),
    [
        (0, 1.0, 1.0),
        (1, 0.5, 1.0),  # 2^-1, 2 · 2^-1
        (2, 0.25, 0.5),
        (4, 0.0625, 0.125),
        (5, 0.0312, 0.0625),  # 0.03125, as it is shown
        (6, 0.0156, 0.0312),
        (13, 0.0001, 0.0002),
        (100_000, 0.0001, 0.0001),  # never 0
    ],
)
def test_the_least_p_is_that_of_changes_all_one_way(n: int, of_yes_no: float, of_graded: float) -> None:
    assert (least_p(n, yes_no=True), least_p(n, yes_no=False)) == (of_yes_no, of_graded)


@pytest.mark.parametrize("n", range(1, 8))
def test_of_all_outcomes_of_a_yes_no_metric_none_has_a_smaller_p_and_one_has_it(n: int) -> None:
    outcomes = itertools.product([-1.0, 0.0, 1.0], repeat=n)
    found = {paired_test([change for change in outcome if change], n, yes_no=True).p for outcome in outcomes}
    assert min(p for p in found if p is not None) == least_p(n, yes_no=True)


@pytest.mark.parametrize("n", range(1, 6))
def test_of_all_outcomes_of_a_graded_metric_none_has_a_smaller_p_and_one_has_it(n: int) -> None:
    outcomes = itertools.product([-1.0, -0.5, 0.0, 0.25, 0.5], repeat=n)
    found = {paired_test([change for change in outcome if change], n, yes_no=False).p for outcome in outcomes}
    assert min(p for p in found if p is not None) == least_p(n, yes_no=False)


# -- gates that cannot fail ------------------------------------------------------------------------

UNLESS = "delta hit@1 >= 0 unless p > 0.05"


@pytest.mark.parametrize("found", range(5))
def test_over_four_queries_the_gate_fails_whatever_was_found(tmp_path: Path, found: int) -> None:
    gate = judged(tmp_path, hits(4, 4), hits(found, 4), UNLESS)
    assert not gate.passed
    assert gate.value == found / 4 - 1
    assert said(gate).endswith(
        "over 4 queries" + (", not >= 0" if found < 4 else "") + "; with so few no result has p <= 0.05:"
        " at least 5 are needed, or drop 'unless'"
    )


@pytest.mark.parametrize("found", range(6))
def test_over_five_queries_it_fails_when_all_are_lost_and_not_before(tmp_path: Path, found: int) -> None:
    assert judged(tmp_path, hits(5, 5), hits(found, 5), UNLESS).passed is (found > 0)


@pytest.mark.parametrize(
    ("queries", "p", "needed"),
    [(4, "0.0625", None), (4, "0.0624", 5), (1, "0.5", None), (5, "0.01", 7), (5, "0.0001", 13)],
)
def test_what_is_needed_depends_on_the_p_of_the_gate(
    tmp_path: Path, queries: int, p: str, needed: int | None
) -> None:
    reason = judged(tmp_path, hits(9, queries), hits(9, queries), f"delta hit@1 >= 0 unless p > {p}").reason
    assert (f"at least {needed} are needed" if needed else "over") in reason
    assert ("with so few" in reason) is (needed is not None)


def test_without_unless_few_queries_are_enough(tmp_path: Path) -> None:
    assert judged(tmp_path, hits(2, 2), hits(2, 2), "delta hit@1 >= 0").passed


def test_a_graded_metric_needs_six(tmp_path: Path) -> None:
    second = {f"q{n:02}": result(hit("x"), hit("c1", 2)) for n in range(5)}  # mrr 0.5, which is no yes or no
    gate = judged(tmp_path, second, hits(0, 5), "delta mrr >= 0 unless p > 0.05")
    assert not gate.passed
    assert (
        "over 5 queries, not >= 0; with so few no result has p <= 0.05: at least 6 are needed" in gate.reason
    )


def test_what_is_needed_goes_by_the_test_that_was_made_of_this_outcome(tmp_path: Path) -> None:
    second = {f"q{n:02}": result(hit("x"), hit("c1", 2)) for n in range(5)}
    gate = "delta mrr >= 0 unless p > 0.05"
    fallen = judged(tmp_path, hits(5, 5), second, gate)  # graded in B: the least p is 2 · 2^-5 = 0.0625
    assert (fallen.passed, "at least 6 are needed" in fallen.reason) == (False, True)
    lost = judged(tmp_path, hits(5, 5), hits(0, 5), gate)  # yes or no throughout: p = 2^-5
    assert (lost.passed, "are needed" in lost.reason) == (False, False)
    assert judged(tmp_path, hits(5, 5), hits(1, 5), gate).passed  # p = 2^-4: may be chance


def test_the_test_of_map_is_that_to_the_common_depth(tmp_path: Path) -> None:
    # A found its chunk at rank 2 of two hits, which is 0 within the one hit that B stored: yes or no.
    second = {f"q{n:02}": result(hit("x"), hit("c1", 2)) for n in range(5)}
    reason = judged(tmp_path, second, hits(1, 5), "delta map >= 0 unless p > 0.05").reason
    assert reason == "delta map is 0.2 over 5 queries"


def test_only_queries_that_both_runs_have_count(tmp_path: Path) -> None:
    gate = judged(tmp_path, hits(4, 4), hits(9, 9), UNLESS)
    assert (gate.passed, "over 4 queries; with so few" in gate.reason) == (False, True)


@pytest.mark.parametrize(
    ("gate", "never"),
    [
        ("regressions <= 4", "regressions is never above 4"),
        ("failed < 5", "failed is never above 4"),
    ],
)
def test_a_limit_that_no_value_is_beyond_fails_whatever_was_found(
    tmp_path: Path, gate: str, never: str
) -> None:
    for found in (0, 4):
        gate_result = judged(tmp_path, hits(4, 4), hits(found, 4), gate)
        assert not gate_result.passed
        assert said(gate_result).endswith(f"; nothing could fail this gate, as {never}")


@pytest.mark.parametrize(
    "gate",
    [
        "hit@5 > 0",
        "error_rate < 100%",
        "delta mrr > -1",
        "latency_p95_ms <= 99",
        "failed < 100%",
        "new <= 999",
    ],
)
def test_a_limit_that_some_value_is_beyond_holds(tmp_path: Path, gate: str) -> None:
    assert judged(tmp_path, hits(4, 4), hits(4, 4), gate).passed


@pytest.mark.parametrize("found", range(5))
def test_where_a_has_too_little_to_fall_that_far_any_fall_fails_the_gate(tmp_path: Path, found: int) -> None:
    gate = judged(tmp_path, hits(2, 20), hits(found, 20), "delta hit@1 >= -0.2")
    assert gate.passed is (found >= 2)
    assert ", not >= -0.2" not in gate.reason
    assert said(gate).endswith("nothing could fail this gate, A's being 0.1") is (found < 2)


def test_where_a_has_nothing_to_lose_nothing_was_lost(tmp_path: Path) -> None:
    assert judged(tmp_path, hits(0, 9), hits(0, 9), "delta hit@1 >= -5% unless p > 0.05").passed
    assert judged(tmp_path, hits(0, 9), hits(9, 9), "delta hit@1 >= -0.1").passed


@pytest.mark.parametrize("found", range(5))
def test_where_too_few_queries_can_fall_for_unless_any_fall_fails_the_gate(
    tmp_path: Path, found: int
) -> None:
    gate = judged(tmp_path, hits(3, 30), hits(found, 30), "delta hit@1 >= -0.05 unless p > 0.05")
    assert gate.passed is (found >= 3)
    few = "; only 3 of them can fall, and with so few no result has p <= 0.05: at least 5 are needed"
    assert (few in gate.reason) is (found < 3)


@pytest.mark.parametrize(("lost", "passes"), [(4, True), (5, False)])
def test_what_must_not_change_at_all_is_judged_by_the_way_it_changed(
    tmp_path: Path, lost: int, passes: bool
) -> None:
    gate = judged(tmp_path, hits(40, 40), hits(40 - lost, 40), "delta hit@1 == 0 unless p > 0.05")
    assert gate.passed is passes
    assert "; p = 0.0" in gate.reason


def test_runs_that_differ_too_much_for_unless_let_nothing_pass(sides: Sides) -> None:
    def run(found: int) -> dict[str, Json]:
        return {f"s{n}": result("c1" if n < found else "x") for n in range(40)} | {"q1": result("c1")}

    gate = "delta hit@5 >= 0 unless p > 0.05"  # even if B's runs found nothing, p over the runs is above 0.05
    worse, same = (sides_gate(sides, [run(40), run(10)], b, gate) for b in ([run(4), run(8)], [run(36)] * 2))
    assert not worse.passed
    assert said(worse).endswith(
        "; with 2 and 2 runs that differ so much no result has p <= 0.05: record more, or drop 'unless'"
    )
    assert same.passed


def sides_gate(sides: Sides, a: list[dict[str, Json]], b: list[dict[str, Json]], gate: str) -> GateResult:
    (sides.path / "runs.sqlite").unlink(missing_ok=True)
    (found,) = sides.evaluate(a, b, gates=(gate,), fail_on=frozenset[str]()).report.gates
    return found


def test_a_metric_that_must_not_rise_needs_room_above(tmp_path: Path) -> None:
    broken = {f"q{n:02}": result(error="boom") for n in range(26)}
    a, b = hits(30, 30) | broken, {name: result(error="boom") for name in hits(30, 30)}
    gate = judged(tmp_path, a, b, "delta error_rate <= 0 unless p > 0.06")
    assert not gate.passed
    assert said(gate).endswith(
        "only 4 of them can rise, and with so few no result has p <= 0.06: at least 5 are needed,"
        " or drop 'unless'"
    )


# -- n ---------------------------------------------------------------------------------------------


CHANCE = "; chance alone may explain the change (p = 0.5)"


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ("hit@5 >= 0.5", "hit@5 is 0.6 over 5 queries"),
        ("hit@5 >= 0.9", f"hit@5 is 0.6 over 5 queries, not >= 0.9{CHANCE}"),
        ("hit@5{difficulty=hard} >= 0.9", "hit@5{difficulty=hard} is 1 over 1 query"),
        ("delta hit@5 >= -5%", f"delta hit@5 is -25.00% (-0.25 of A's 1) over 4 queries, not >= -5%{CHANCE}"),
        ("delta latency_p95_ms <= 0", "delta latency_p95_ms is 0 over 4 queries"),
        ("error_rate == 0", "error_rate is 0 over 6 queries"),
        ("regressions == 0", "regressions is 1 of 4 queries, not == 0"),
        ("regressions <= 50%", "regressions is 1 of 4 queries (25.00%)"),
        ("new <= 1", "new is 2 beside 4 queries compared, not <= 1"),
        ("overlap@5 >= 0.5", "overlap@5 is 0.75 over 4 queries"),
    ],
)
def test_a_gate_says_over_how_many_queries_its_value_is(tmp_path: Path, gate: str, reason: str) -> None:
    # Of six queries in B one expects nothing; A has the first four.
    entries: dict[str, Json] = {"q00": C1 | {"difficulty": "hard"}, **{f"q0{n}": C1 for n in range(1, 5)}}
    entries["free"] = {}
    a, b = hits(4, 4), hits(3, 5) | {"free": result("c1")}
    (found,) = gated(tmp_path, entries, a, b, gate).gates
    assert said(found) == reason
