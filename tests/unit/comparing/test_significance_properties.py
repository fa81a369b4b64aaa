"""What holds for the significance of any changes."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.significance import PairedTest, mid_p, paired_test
from tests.unit.comparing.conftest import graded, yes_no

# -- properties ------------------------------------------------------------------------------------

one_change = st.one_of(
    st.sampled_from([1 / 2, -1 / 2, 1 / 3, -1 / 3, 2 / 3, -1 / 6, 1.0, -1.0]),
    st.floats(-5, 5).filter(lambda change: abs(change) > 1e-6),
)
some_changes = st.lists(one_change, max_size=90)
signs = st.lists(st.sampled_from([-1.0, 1.0]), max_size=60)
unchanged = st.integers(0, 50)


def turned(result: PairedTest) -> PairedTest:
    """What it is with the runs swapped."""
    low, high = (None if end is None else 0.0 - end for end in (result.low, result.high))
    return result._replace(up=result.down, down=result.up, change=0.0 - result.change, low=high, high=low)


@given(some_changes, unchanged)
def test_swapping_the_runs_mirrors_a_graded_result(changes: list[float], zeros: int) -> None:
    n = len(changes) + zeros
    assert graded(*[-change for change in changes], n=n) == turned(graded(*changes, n=n))


@given(signs, unchanged)
def test_swapping_the_runs_mirrors_a_yes_no_result(changes: list[float], zeros: int) -> None:
    up, down = changes.count(1.0), changes.count(-1.0)
    n = up + down + zeros
    assert yes_no(down, up, n) == turned(yes_no(up, down, n))


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
    result = paired_test(changes, n, yes_no=is_yes_no, max_value=1.0 if is_yes_no else 5.0)
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
    fewer, more = (paired_test(changes, count, yes_no=is_yes_no) for count in (n, n + 7))
    assert more.p == fewer.p


@given(st.lists(one_change, max_size=11))
def test_p_of_few_changes_is_that_of_all_their_signs(changes: list[float]) -> None:
    sums = [0.0]
    for change in changes:
        sums = [total + sign * change for total in sums for sign in (1, -1)]
    seen = abs(math.fsum(changes))
    at_least = [sum(abs(total) >= seen + edge for total in sums) / len(sums) for edge in (1e-9, -1e-9)]
    assert at_least[0] - 0.00006 <= (graded(*changes, n=20).p or 0.0) <= max(at_least[1], 0.0001) + 0.00006


@given(st.integers(0, 14), st.integers(0, 14))
def test_mid_p_is_that_of_all_ways_to_change(up: int, down: int) -> None:
    changed, k = up + down, min(up, down)
    ways = [sum(way) for way in product((0, 1), repeat=changed)] if changed <= 12 else None
    counts = Counter(ways) if ways else {j: math.comb(changed, j) for j in range(changed + 1)}
    exact = (2 * sum(counts[j] for j in range(k)) + counts[k]) / 2**changed
    assert mid_p(up, down) == pytest.approx(min(1.0, exact))


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
        found = paired_test(changes, n, yes_no=by == 1.0)
        assert found.low is not None
        assert found.high is not None
        held += found.low <= -falling * by <= found.high
    assert held >= 178  # of 200; where it is 93 %, that or more in 98 % of such tests
