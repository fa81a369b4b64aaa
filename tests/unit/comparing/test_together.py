"""Many drops that might each be noise, and whether all of them can be."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.checks import Tally
from pytest_kebab_eval.comparing.noise.together import (
    Together,
    _Sums,
    count_patterns,
    judge_together,
    reversed_patterns,
)

Passed = Sequence[Sequence[bool | None]]  # for each query in the runs of A and then in those of B

LOST, GAINED, STEADY = [True] * 3 + [False] * 3, [False] * 3 + [True] * 3, [True] * 6


def judge(passed: Passed, runs_a: int = 3, runs_b: int = 3) -> Together:
    patterns = count_patterns((query, 1) for query in passed)
    return judge_together({"check": patterns}, runs_a, runs_b)["check"]


def flaky(queries: int, runs: int = 6, seed: int = 1) -> list[list[bool]]:
    generator = random.Random(seed)
    rates = [generator.uniform(0.05, 0.95) for _ in range(queries)]
    return [[generator.random() < rate for _ in range(runs)] for rate in rates]


# -- what is seen ----------------------------------------------------------------------------------


def test_ten_full_losses_beside_a_hundred_flaky_queries_are_no_noise() -> None:
    found = judge([*flaky(100), *[LOST] * 10, *[STEADY] * 390])
    assert found.alpha < 0.01
    assert found.fallen == {Tally(3, 3, 0, 3)}
    assert (found.fell, found.rose) == (10, 1)


def test_as_many_gains_as_losses_are_noise() -> None:
    assert judge([*flaky(100), *[LOST] * 10, *[GAINED] * 10]).alpha > 0.5


def test_gains_are_drops_of_the_reverse() -> None:
    patterns = count_patterns((query, 1) for query in [*flaky(100), *[GAINED] * 10])
    assert judge_together({"check": patterns}, 3, 3)["check"].alpha > 0.5
    assert judge_together({"check": reversed_patterns(patterns)}, 3, 3)["check"].alpha < 0.01


def test_many_small_drops_are_seen_though_no_query_fell_far() -> None:
    # 60 queries that fall from five of five to three of five, with nothing that gains
    found = judge([*flaky(20, 10), *[[*[True] * 5, *way] for way in _ways(5, 3) for _ in range(6)]], 5, 5)
    assert found.alpha < 0.05
    assert found.worse >= 60 > found.better
    assert Tally(5, 5, 3, 5) in found.fallen


def _ways(runs: int, passes: int) -> list[list[bool]]:
    return [[run in chosen for run in range(runs)] for chosen in combinations(range(runs), passes)]


# -- what runs share is no change ------------------------------------------------------------------


@pytest.mark.parametrize("down", [{3}, {3, 4}, {0, 3, 4}, {0, 1, 3, 4, 5}])
def test_a_shard_that_some_runs_lack_is_noise(down: set[int]) -> None:
    shard = [run not in down for run in range(6)]
    assert judge([*flaky(20), *[shard] * 20, *[STEADY] * 60]).alpha > 0.05


def test_a_shard_that_half_of_ten_runs_lack_is_noise() -> None:
    shard = [run not in {1, 5, 6, 8, 9} for run in range(10)]
    assert judge([*flaky(20, 10), *[shard] * 20], 5, 5).alpha > 0.05


# -- how often, exactly ----------------------------------------------------------------------------


@given(
    st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from([1, 3]),
)
def test_over_queries_it_is_never_less_often_than_dealing_out_all_runs_says(
    passed: list[tuple[bool, ...]], runs_a: int, power: int
) -> None:
    sums = _Sums(count_patterns((query, 1) for query in passed), (1 << runs_a) - 1)
    seen = _total(passed, [tuple(range(runs_a))] * len(passed), power)
    every = [*product([*combinations(range(4), runs_a)], repeat=len(passed))]
    as_large = sum(_total(passed, way, power) >= seen - 1e-9 for way in every)
    if seen > 0:
        assert sums.over_queries(power) >= as_large / len(every) - 1e-9


def _total(passed: Sequence[Sequence[bool]], chosen: Sequence[Sequence[int]], power: int) -> float:
    """The sum of the powers of the drops, if these had been the runs of A for each query."""
    drops = []
    for query, of_a in zip(passed, chosen, strict=True):
        a = [query[run] for run in of_a]
        b = [query[run] for run in range(len(query)) if run not in of_a]
        drops.append((sum(a) / len(a) - sum(b) / len(b)) ** power)
    return math.fsum(drops)


def test_many_flaky_queries_are_dealt_out_as_a_simulation_says() -> None:
    passed = [*flaky(60, 6, seed=5), *[LOST] * 2]
    sums = _Sums(count_patterns((query, 1) for query in passed), 7)
    generator, counts = random.Random(2), Counter[int]()
    totals = {power: _total(passed, [(0, 1, 2)] * len(passed), power) for power in (1, 3)}
    for _ in range(600):
        chosen = [generator.sample(range(6), 3) for _ in passed]
        for power, seen in totals.items():
            counts[power] += _total(passed, chosen, power) >= seen - 1e-9
    for power in totals:
        share, found = counts[power] / 600, sums.over_queries(power)
        assert share - 0.03 <= found <= 4 * share + 0.03


# -- few runs, and not as many on each side --------------------------------------------------------


def test_one_run_of_b_against_five_is_no_alarm_where_nothing_changed() -> None:
    alarms = sum(judge(flaky(100, 6, seed), 5, 1).alpha <= 0.05 for seed in range(100))
    assert alarms <= 5


def test_a_query_that_some_runs_lack_counts_by_those_that_have_it() -> None:
    yes, no = True, False
    gaps = [[yes, None, yes, no, no, None], [None, yes, yes, None, no, no], [yes, yes, yes, *[None] * 3]]
    found = judge([*flaky(100), *gaps * 5])
    assert found.worse == judge(flaky(100)).worse + 10  # a side without any run is no drop
    assert Tally(2, 2, 0, 2) in found.fallen


def test_the_order_of_runs_is_no_matter() -> None:
    passed = [*flaky(50), *[LOST] * 5]
    turned = [[query[run] for run in (2, 0, 1, 5, 3, 4)] for query in reversed(passed)]
    assert judge(turned) == judge(passed)


def test_where_nothing_flips_there_is_nothing_to_judge() -> None:
    patterns = count_patterns([(STEADY, 100)])
    assert judge_together({"check": patterns}, 3, 3) == {}
