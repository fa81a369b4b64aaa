"""What holds for the significance of any changes, and that it is the same bytes everywhere."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.significance import Significance, paired_significance
from tests.unit.comparing.conftest import graded, ranks, yes_no

# -- properties ------------------------------------------------------------------------------------

one_change = st.one_of(
    st.sampled_from([1 / 2, -1 / 2, 1 / 3, -1 / 3, 2 / 3, -1 / 6, 1.0, -1.0]),
    st.floats(-5, 5).filter(lambda change: abs(change) > 1e-6),
)
some_changes = st.lists(one_change, max_size=90)
signs = st.lists(st.sampled_from([-1.0, 1.0]), max_size=60)
unchanged = st.integers(0, 50)


def mirrored(result: Significance) -> tuple[object, ...]:
    return (
        result.down,
        result.up,
        None if result.high is None else 0.0 - result.high,
        None if result.low is None else 0.0 - result.low,
        result.p,
        result.verdict,
    )


def values(result: Significance) -> tuple[object, ...]:
    return (result.up, result.down, result.low, result.high, result.p, result.verdict)


@given(some_changes, unchanged)
def test_swapping_the_runs_mirrors_a_graded_result(changes: list[float], zeros: int) -> None:
    n = len(changes) + zeros
    there = graded(*changes, n=n)
    back = graded(*[-change for change in changes], n=n, lower_is_better=True)
    assert values(back) == mirrored(there)


@given(signs, unchanged)
def test_swapping_the_runs_mirrors_a_yes_no_result(changes: list[float], zeros: int) -> None:
    up, down = changes.count(1.0), changes.count(-1.0)
    n = up + down + zeros
    assert values(yes_no(down, up, n, lower_is_better=True)) == mirrored(yes_no(up, down, n))


@given(some_changes, unchanged, st.randoms(use_true_random=False))
def test_the_order_of_the_queries_does_not_matter(changes: list[float], zeros: int, shuffler: Any) -> None:
    shuffled = list(changes)
    shuffler.shuffle(shuffled)
    n = len(changes) + zeros
    assert graded(*shuffled, n=n) == graded(*changes, n=n)


@given(some_changes, unchanged, st.booleans())
def test_results_are_within_their_bounds(changes: list[float], zeros: int, is_yes_no: bool) -> None:
    if is_yes_no:
        changes = [math.copysign(1.0, change) for change in changes]
    n = len(changes) + zeros
    result = paired_significance(changes, n, yes_no=is_yes_no, max_value=1.0 if is_yes_no else 5.0)
    assert result.up + result.down == len(changes)
    assert (result.p is None) == (n == 0)
    assert result.p is None or 0.0001 <= result.p <= 1
    assert (result.low is None) == (result.high is None) == (n < 2)
    if result.low is not None and result.high is not None:
        assert result.low - 0.0001 <= math.fsum(changes) / n <= result.high + 0.0001
        assert not is_yes_no or -1 <= result.low <= result.high <= 1


@given(some_changes, unchanged, st.booleans())
def test_more_unchanged_queries_leave_p(changes: list[float], zeros: int, is_yes_no: bool) -> None:
    if is_yes_no:
        changes = [math.copysign(1.0, change) for change in changes]
    n = max(6, len(changes) + zeros)
    fewer = paired_significance(changes, n, yes_no=is_yes_no)
    more = paired_significance(changes, n + 7, yes_no=is_yes_no)
    assert more.p == fewer.p


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_more_lopsided_yes_no_result_has_a_smaller_p(up: int, down: int) -> None:
    more, less = max(up, down), min(up, down)
    lopsided, even = yes_no(more + 1, less - 1, 800), yes_no(more, less, 800)
    assert lopsided.p is not None
    assert even.p is not None
    assert lopsided.p <= even.p


@given(st.lists(st.floats(0.001, 5), min_size=1, max_size=90), st.data())
def test_turning_a_loss_into_a_gain_does_not_raise_p_of_a_graded_gain(
    sizes: list[float], data: st.DataObject
) -> None:
    losses = data.draw(st.sets(st.integers(0, len(sizes) - 1), min_size=1))
    changes = [-size if i in losses else size for i, size in enumerate(sizes)]
    if math.fsum(changes) < 0:
        return
    turned = [
        size if i == min(losses) else change
        for i, (size, change) in enumerate(zip(sizes, changes, strict=True))
    ]
    before, after = graded(*changes).p, graded(*turned).p
    assert before is not None
    assert after is not None
    assert after <= before


# -- the same bytes everywhere ---------------------------------------------------------------------


def test_a_simulated_p_is_the_same_on_every_platform_and_python() -> None:
    # too many sums to enumerate; the exact p is 0.0198, and 0.0224 that of the one sequence of flips
    assert graded(*ranks(64, negative=3)).p == 0.0224


def test_a_simulated_p_is_the_same_in_another_process_with_another_hash_seed() -> None:
    script = (
        "import random; random.seed(1)\n"
        "from pytest_kebab_eval.comparing.significance import paired_significance\n"
        "changes = [float(-i if i % 3 == 0 else i) for i in range(1, 41)]\n"
        "print(paired_significance(changes, 50, yes_no=False))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert printed == str(graded(*ranks(40, negative=3), n=50))


def test_nothing_is_drawn_from_the_global_generator() -> None:
    random.seed(5)
    before = random.getstate()
    graded(*ranks(40, negative=3))
    assert random.getstate() == before


def test_zero_has_no_sign() -> None:
    for result in (graded(n=10), graded(1.0, -1.0, n=2), graded(1e-9, -2e-9, n=30), yes_no(1, 1, 9)):
        shown = [result.low, result.high]
        assert "-0.0" not in map(str, shown)


@pytest.mark.parametrize("n", [10, 30, 100])
@pytest.mark.parametrize("falling", [0.01, 0.1])
@pytest.mark.parametrize("by", [1.0, 0.5])
def test_the_interval_has_the_true_change_as_often_as_it_should(n: int, falling: float, by: float) -> None:
    generator = random.Random(n)
    held = 0
    for _ in range(200):
        changes = [-by for _ in range(n) if generator.random() < falling]
        found = paired_significance(changes, n, yes_no=by == 1.0)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= -falling * by <= found.high
    assert held >= 178  # of 200; where it is 93 %, that or more in 98 % of such tests
