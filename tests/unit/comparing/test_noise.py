"""How often noise alone does what was seen, and what fails by it."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.checks import Tally, rank_tally
from pytest_kebab_eval.comparing.noise.control import (
    CheckNoise,
    RankNoise,
    control,
    largest_ratio,
    region,
)

ALPHA = 0.05
GONE = Tally(3, 3, 0, 3)


def noise(**counts: int) -> CheckNoise:
    """`noise(t3303=1)`: one query that passed in 3 of 3 runs of A, and in 0 of 3 of B."""
    return CheckNoise(Counter({_tally(name): count for name, count in counts.items()}))


def _tally(name: str) -> Tally:
    a, n_a, b, n_b = map(int, name[1:])
    return Tally(a, n_a, b, n_b)


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


def fails(checks: dict[str, CheckNoise], name: str, tally: Tally) -> bool:
    return control(checks)[name][tally] <= ALPHA


# -- a single query ------------------------------------------------------------------------------


def test_the_region_of_a_complete_loss_is_that_loss_alone() -> None:
    assert region(GONE).ways == ((3, 1),)  # all three of A pass, none of B


def test_the_region_holds_every_outcome_whose_rate_falls_as_much() -> None:
    # 5/5 → 1/5 falls by 0.8, as do 5 → 0 (one way, 5 passes), 4 → 0 (5 ways, 4 passes), 5 → 1 (5 ways, 6)
    assert region(Tally(5, 5, 1, 5)).ways == ((4, 5), (5, 1), (6, 5))


@given(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))),
    st.floats(0.01, 0.99),
)
def test_the_ratio_bounds_the_probability_at_every_rate(
    stats: Any, a: tuple[int, int], b: tuple[int, int], rate: float
) -> None:
    tally = Tally(*a, *b)
    if tally.drop <= 0:
        return
    as_bad = sum(
        stats.binom.pmf(x, tally.n_a, rate) * stats.binom.pmf(y, tally.n_b, rate)
        for x in range(tally.n_a + 1)
        for y in range(tally.n_b + 1)
        if x * tally.n_b - y * tally.n_a >= tally.drop
    )
    assert as_bad <= largest_ratio(region(tally), (1, 1)) * rate * (1 - rate) * (1 + 1e-9)


def test_of_three_runs_a_complete_loss_is_at_most_a_sixteenth_of_the_flip_rate() -> None:
    assert largest_ratio(region(GONE), (1, 1)) == pytest.approx(1 / 16)  # θ³(1-θ)³ / θ(1-θ), at θ = 1/2
    assert largest_ratio(region(GONE), (1, 2)) == pytest.approx(4 / 27)  # θ²(1-θ), at θ = 2/3


def test_a_bound_that_does_not_exist_is_infinite() -> None:
    assert (
        largest_ratio(region(Tally(1, 1, 0, 1)), (1, 2)) == math.inf
    )  # θ(1-θ) / θ(1-θ)² grows beyond all bounds


# -- a check -------------------------------------------------------------------------------------


def test_a_loss_among_steady_queries_is_as_likely_as_one_coin_makes_it() -> None:
    # The query itself may be a coin: 1/4 · 1/16 = 1/64, for one of 50 queries.
    check = noise(t3333=49, t3303=1)
    assert check.probabilities()[GONE] == pytest.approx(1 / 64 / 50)


def test_others_that_flip_make_a_loss_more_likely() -> None:
    # Two of 50 flip in A alone: 2/6 of the pairs there, 1/6 over both sides; and 1/4 for the query itself.
    check = noise(t3333=47, t2333=1, t1333=1, t3303=1)
    assert check.probabilities()[GONE] == pytest.approx((2 / 6 + 1 / 4) / 16 / 50)


def test_flips_that_are_rare_in_a_query_say_less_of_a_loss() -> None:
    # Where only one run of three fails, no query was seen to fail twice: 4/27 for the query itself, and
    # θ³(1-θ)³ is at most 4/27 of θ(1-θ)².
    check = noise(t3333=47, t2333=2, t3303=1)
    assert check.probabilities()[GONE] == pytest.approx((4 / 27) ** 2 / 50)


def test_two_runs_disagree_as_often_as_pairs_of_them_do() -> None:
    # One of three runs differs: 2 of its 3 pairs disagree; over both sides of 10 queries 2/3 · 1/20.
    assert noise(t3333=9, t2333=1).disagreement() == pytest.approx(2 / 60)


def test_without_two_runs_on_a_side_nothing_is_known() -> None:
    assert CheckNoise(Counter({Tally(1, 1, 0, 1): 3})).disagreement() is None


# -- all together --------------------------------------------------------------------------------


def test_where_runs_never_disagree_every_loss_fails() -> None:
    checks = {
        "retrieval": CheckNoise(Counter({Tally(2, 2, 2, 2): 9, Tally(2, 2, 0, 2): 1})),
        "answer": noise(t3333=9),
    }
    assert control(checks)["retrieval"] == {Tally(2, 2, 0, 2): 0.0}


def test_a_steady_check_beside_one_that_flips_still_fails_on_a_loss() -> None:
    flipping = noise(t3333=30, t2333=10, t3323=10)
    assert fails({"retrieval": noise(t3333=49, t3303=1), "answer": flipping}, "retrieval", GONE)


@pytest.mark.parametrize("runs", [2, 3, 4])
@pytest.mark.parametrize("others", [0, 1, 6])
def test_what_flips_elsewhere_does_not_excuse_a_check_on_which_runs_never_disagree(
    runs: int, others: int
) -> None:
    steady, gone = Tally(runs, runs, runs, runs), Tally(runs, runs, 0, runs)
    flipping = CheckNoise(Counter({steady: 49, Tally(runs - 1, runs, runs, runs): 1}))
    checks = {"retrieval": CheckNoise(Counter({steady: 49, gone: 1}))}
    checks |= {f"other {number}": flipping for number in range(others)}
    assert fails(checks, "retrieval", gone)


def test_what_other_queries_do_in_both_sides_does_not_fail() -> None:
    coins = Counter(
        {Tally(a, 3, b, 3): math.comb(3, a) * math.comb(3, b) for a in range(4) for b in range(4)}
    )
    assert not fails({"answer": CheckNoise(coins)}, "answer", GONE)  # one of 64, as coins do


def test_five_runs_tell_a_loss_from_a_few_flaky_queries_where_three_do_not() -> None:
    def check(runs: int) -> CheckNoise:
        half = runs // 2
        flaky = {Tally(half, runs, half, runs): 8}
        return CheckNoise(
            Counter({Tally(runs, runs, runs, runs): 91, Tally(runs, runs, 0, runs): 1, **flaky})
        )

    assert not fails({"answer": check(3)}, "answer", GONE)
    assert fails({"answer": check(5)}, "answer", Tally(5, 5, 0, 5))


def test_many_losses_fail_together_where_one_would_not() -> None:
    def check(lost: int) -> CheckNoise:
        return noise(t3333=480 - lost, t2313=20, t3303=lost)

    assert not fails({"answer": check(1)}, "answer", GONE)
    assert fails({"answer": check(30)}, "answer", GONE)


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 3)).map(lambda pair: Tally(pair[0], 3, pair[1], 3)),
        st.integers(1, 9),
        min_size=1,
    )
)
def test_the_limits_are_those_of_benjamini_and_hochberg(stats: Any, counts: dict[Tally, int]) -> None:
    check = CheckNoise(Counter(counts))
    found = control({"answer": check})["answer"]
    if check.is_steady:
        assert set(found.values()) <= {0.0}
        return
    worse = check.probabilities()
    each = [worse.get(tally, 1.0) for tally, count in counts.items() for _ in range(count)]
    adjusted = iter(stats.false_discovery_control(each))
    for tally, count in counts.items():
        limit, *_ = (next(adjusted) for _ in range(count))
        assert found.get(tally, limit) == pytest.approx(limit)


def test_a_check_that_nobody_fails_is_no_part_of_the_family() -> None:
    alone = {"answer": noise(t3333=40, t2323=9, t3303=1)}
    limit = control(alone)["answer"][GONE]
    assert control({**alone, "error": noise(t3333=50)})["answer"][GONE] == limit
    assert control({**alone, "citation": noise(t3333=49, t2333=1)})["answer"][GONE] == pytest.approx(
        2 * limit
    )


def test_noise_alone_seldom_fails_a_session() -> None:
    generator = random.Random(1)

    def session() -> bool:
        rates = [0.5] * 3 + [0.9] * 10 + [1.0] * 37
        passed = [[sum(generator.random() < rate for _ in range(3)) for _ in "ab"] for rate in rates]
        check = CheckNoise(Counter(Tally(a, 3, b, 3) for a, b in passed))
        return any(limit <= ALPHA for limit in control({"answer": check})["answer"].values())

    assert sum(session() for _ in range(400)) <= 30  # 20 expected at most; 30 or fewer in 99 % of such tests


# -- ranks ---------------------------------------------------------------------------------------


def test_a_rank_is_lost_where_every_run_of_b_ranks_below_every_run_of_a() -> None:
    assert rank_tally([1, 2], [3, 3, 4]) == Tally(2, 2, 0, 3, jitters=True)
    assert rank_tally([1, 3], [3, 4]).drop == 0
    assert rank_tally([3], [1, 1]) == Tally(0, 1, 2, 2)


def test_that_happens_once_in_as_many_choices_of_runs() -> None:
    ranks = Counter({rank_tally([1, 2, 1], [4, 5, 4]): 1, rank_tally([1, 2, 1], [1, 1, 1]): 4})
    found = RankNoise(ranks)
    assert found.probabilities() == {Tally(3, 3, 0, 3, jitters=True): 1 / 20}
    assert found.queries == 5


def test_ranks_that_are_the_same_in_every_run_are_no_part_of_the_family() -> None:
    assert RankNoise(Counter({rank_tally([1, 1], [1, 1]): 90, rank_tally([1, 1], [2, 2]): 1})).queries == 1
