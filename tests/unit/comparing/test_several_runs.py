"""What several runs a side tell of a check: by hand, by dealing out all runs, and against scipy."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.checks import rank_tally
from pytest_kebab_eval.comparing.several_runs import (
    JudgedCheck,
    Loss,
    Outcomes,
    Tally,
    count_tallies,
    disagreement,
    judge,
    largest_ratio,
    moment,
    over_queries,
    over_runs,
    reversed_rows,
)
from pytest_kebab_eval.comparing.significance import student_test

ALPHA = 0.05
GONE = Tally(3, 3, 0, 3)
LOST, GAINED, STEADY = [True] * 3 + [False] * 3, [False] * 3 + [True] * 3, [True] * 6

Passed = Sequence[Sequence["bool | None"]]  # for each query in the runs of A and then in those of B


def rows(passed: Passed, runs_a: int = 3) -> Counter[tuple[Outcomes, Outcomes]]:
    return Counter((tuple(query[:runs_a]), tuple(query[runs_a:])) for query in passed)


def judged(passed: Passed, runs_a: int = 3) -> JudgedCheck:
    return judge({"check": rows(passed, runs_a)})["check"]


def flaky(queries: int, runs: int = 6, seed: int = 1) -> list[list[bool]]:
    generator = random.Random(seed)
    rates = [generator.uniform(0.05, 0.95) for _ in range(queries)]
    return [[generator.random() < rate for _ in range(runs)] for rate in rates]


def fails(found: JudgedCheck) -> set[Tally]:
    return {tally for tally, loss in found.losses.items() if loss.alpha <= ALPHA}


@pytest.fixture(scope="module")
def stats() -> Any:
    return pytest.importorskip("scipy.stats")


# -- where runs never disagree ---------------------------------------------------------------------


def test_where_runs_never_disagree_every_loss_fails() -> None:
    assert judged([LOST, *[STEADY] * 9]).losses == {GONE: Loss(0.0)}
    assert judged([[True, False]], runs_a=1).losses == {Tally(1, 1, 0, 1): Loss(0.0)}


def test_where_nothing_moves_there_is_nothing_to_judge() -> None:
    assert judged([STEADY] * 9) == JudgedCheck({}, 0, 0, 1.0, 0.0)
    assert judge({"check": Counter()}) == {"check": JudgedCheck({}, 0, 0, 1.0, 0.0)}


@pytest.mark.parametrize("others", [0, 1, 6])
def test_what_flips_elsewhere_does_not_excuse_a_check_on_which_runs_never_disagree(others: int) -> None:
    checks = {f"other {number}": rows([*flaky(20), *[STEADY] * 30]) for number in range(others)}
    found = judge({"retrieval": rows([LOST, *[STEADY] * 49]), **checks})
    assert found["retrieval"].losses == {GONE: Loss(0.0)}


# -- single queries --------------------------------------------------------------------------------


@given(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n - 1), st.just(n))),
    st.integers(1, 99),
)
def test_the_ratio_bounds_the_probability_at_every_rate(
    stats: Any, a: tuple[int, int], b: tuple[int, int], percent: int
) -> None:
    tally, rate = Tally(*a, *b), percent / 100
    if tally.drop <= 0:
        return
    as_bad = sum(
        stats.binom.pmf(x, tally.n_a, rate) * stats.binom.pmf(y, tally.n_b, rate)
        for x in range(tally.n_a + 1)
        for y in range(tally.n_b + 1)
        if x * tally.n_b - y * tally.n_a >= tally.drop
    )
    assert as_bad <= largest_ratio(tally, (1, 1)) * rate * (1 - rate) * (1 + 1e-9)


def test_of_three_runs_a_complete_loss_is_at_most_a_sixteenth_of_the_flip_rate() -> None:
    assert largest_ratio(GONE, (1, 1)) == pytest.approx(1 / 16)  # r³ (1 - r)³ / r (1 - r), at r = 1/2
    assert largest_ratio(GONE, (1, 2)) == pytest.approx(4 / 27, abs=1e-4)  # r² (1 - r), at r = 2/3
    assert largest_ratio(Tally(1, 1, 0, 1), (1, 2)) == math.inf


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("powers", [(1, 1), (2, 1), (1, 3)])
def test_what_a_query_shows_of_its_rate_has_no_bias(stats: Any, rate: float, powers: tuple[int, int]) -> None:
    mean = math.fsum(
        stats.binom.pmf(a, 5, rate) * stats.binom.pmf(b, 4, rate) * moment(Tally(a, 5, b, 4), powers)
        for a in range(6)
        for b in range(5)
    )
    assert mean == pytest.approx(rate ** powers[0] * (1 - rate) ** powers[1])


def test_a_loss_among_flaky_queries_is_as_likely_as_one_coin_and_they_make_it() -> None:
    # Two of 50 flip in A alone: r (1 - r) is 2/6 of them there, 1/6 over both sides; and 1/4 for the query
    # itself, times 1/16. Half of alpha is for single queries.
    one, two = [True, True, False, *[True] * 3], [True, False, False, *[True] * 3]
    found = judged([one, two, LOST, *[STEADY] * 47])
    assert found.losses[GONE].alpha == pytest.approx(2 * (2 / 6 + 1 / 4) / 16)
    assert fails(found) == set()


def test_queries_that_were_lost_alike_share_what_noise_explains() -> None:
    coins = [[bool(way >> run & 1) for run in range(6)] for way in range(64)]
    assert fails(judged(coins)) == set()  # one of 64 is lost, as coins do
    assert GONE in fails(judged([*flaky(20), *[STEADY] * 450, *[LOST] * 30]))


def test_five_runs_tell_a_loss_from_a_few_flaky_queries_where_three_do_not() -> None:
    def found(runs: int) -> set[Tally]:
        lost = [True] * runs + [False] * runs
        return fails(judged([*flaky(20, 2 * runs), lost, *[[True] * 2 * runs] * 79], runs))

    assert found(3) == set()
    assert found(5) == {Tally(5, 5, 0, 5)}


def test_the_alpha_of_each_check_is_its_share() -> None:
    found = rows([[True, True, False, *[True] * 3], LOST, *[STEADY] * 48])
    alone = judge({"answer": found})["answer"].losses[GONE].alpha
    steady = judge({"answer": found, "error": rows([STEADY] * 50)})["answer"].losses[GONE].alpha
    flips = judge({"answer": found, "error": rows([*flaky(5), STEADY])})["answer"].losses[GONE].alpha
    assert (steady, flips) == pytest.approx((alone, 2 * alone))


def test_an_accepted_loss_is_judged_and_is_no_evidence() -> None:
    evidence = rows([*flaky(6), *[STEADY] * 40])
    accepted = judge({"check": evidence | Counter()})["check"]
    with_it = judge({"check": {**evidence, (tuple(LOST[:3]), tuple(LOST[3:])): 0}})["check"]
    assert GONE not in accepted.losses
    assert with_it.losses[GONE].alpha > 0
    assert (with_it.together, with_it.worse) == (accepted.together, accepted.worse)


# -- the session -----------------------------------------------------------------------------------


def test_ten_full_losses_beside_a_hundred_flaky_queries_are_no_noise() -> None:
    found = judged([*flaky(100), *[LOST] * 10, *[STEADY] * 390])
    assert found.together < 0.01
    assert fails(found) == {GONE}
    assert found.losses[GONE][1:] == (10, 1)


def test_as_many_gains_as_losses_are_noise() -> None:
    assert judged([*flaky(100), *[LOST] * 10, *[GAINED] * 10]).together > 0.5


def test_gains_are_drops_of_the_reverse() -> None:
    gained = rows([*flaky(100), *[GAINED] * 10])
    assert judge({"check": gained})["check"].together > 0.5
    assert judge({"check": reversed_rows(gained)})["check"].together < 0.01


def test_many_small_drops_are_seen_though_no_query_fell_far() -> None:
    # 60 queries that fall from five of five to three of five, with nothing that gains
    ways = [[run in chosen for run in range(5)] for chosen in combinations(range(5), 3)]
    found = judged([*flaky(20, 10), *[[*[True] * 5, *way] for way in ways for _ in range(6)]], 5)
    assert found.together < 0.05
    assert found.worse >= 60 > found.better
    assert Tally(5, 5, 3, 5) in fails(found)


@pytest.mark.parametrize("down", [{3}, {3, 4}, {0, 3, 4}, {0, 1, 3, 4, 5}])
def test_a_shard_that_some_runs_lack_is_noise(down: set[int]) -> None:
    shard = [run not in down for run in range(6)]
    assert fails(judged([*flaky(20), *[shard] * 20, *[STEADY] * 60])) == set()
    assert fails(judged([*[shard] * 20, *[STEADY] * 480])) == set()


def test_a_shard_that_half_of_ten_runs_lack_is_noise() -> None:
    shard = [run not in {1, 5, 6, 8, 9} for run in range(10)]
    assert fails(judged([*flaky(20, 10), *[shard] * 20], 5)) == set()


# -- how often, exactly ----------------------------------------------------------------------------


@given(
    st.lists(st.tuples(*[st.booleans()] * 4), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from([1, 3]),
)
def test_over_queries_it_is_as_often_as_dealing_out_all_runs_says(
    passed: list[tuple[bool, ...]], runs_a: int, power: int
) -> None:
    seen = total(passed, [tuple(range(runs_a))] * len(passed), power)
    every = [*product([*combinations(range(4), runs_a)], repeat=len(passed))]
    as_large = sum(total(passed, way, power) >= seen - 1e-9 for way in every) / len(every)
    found = over_queries(count_tallies(rows(passed, runs_a)), power)
    assert found == pytest.approx(as_large if seen > 1e-9 else 1.0)


def total(passed: Sequence[Sequence[bool]], chosen: Sequence[Sequence[int]], power: int) -> float:
    """The sum of the powers of the drops, if these had been the runs of A for each query."""
    drops = []
    for query, of_a in zip(passed, chosen, strict=True):
        a = [query[run] for run in of_a]
        b = [query[run] for run in range(len(query)) if run not in of_a]
        drops.append((sum(a) / len(a) - sum(b) / len(b)) ** power)
    return math.fsum(drops)


def test_many_flaky_queries_are_dealt_out_as_a_simulation_says() -> None:
    passed = [*flaky(60, 6, seed=5), *[LOST] * 2]
    tallies, generator, counts = count_tallies(rows(passed)), random.Random(2), Counter[int]()
    seen = {power: total(passed, [(0, 1, 2)] * len(passed), power) for power in (1, 3)}
    for _ in range(600):
        chosen = [generator.sample(range(6), 3) for _ in passed]
        for power, least in seen.items():
            counts[power] += total(passed, chosen, power) >= least - 1e-9
    for power, n in counts.items():
        assert over_queries(tallies, power) == pytest.approx(n / 600, abs=0.03)


@pytest.mark.parametrize(("runs_a", "runs_b"), [(3, 3), (2, 2), (1, 4), (3, 1), (2, 4), (5, 5)])
def test_over_runs_the_sum_of_drops_is_nearly_students_test_of_the_runs_means(
    runs_a: int, runs_b: int
) -> None:
    passed = [*flaky(40, runs_a + runs_b, seed=8), *[[True] * runs_a + [False] * runs_b] * 12]
    means = [sum(query[run] for query in passed) / len(passed) for run in range(runs_a + runs_b)]
    expected = student_test(means[:runs_a], means[runs_a:]).p / 2
    assert over_runs(rows(passed, runs_a))[1] == pytest.approx(
        expected, rel=0.1 if runs_a != runs_b else 1e-6
    )


# -- ranks -----------------------------------------------------------------------------------------


def test_a_rank_is_lost_where_every_run_of_b_ranks_below_every_run_of_a() -> None:
    assert rank_tally([1, 2], [3, 3, 4]) == Tally(2, 2, 0, 3, jitters=True)
    assert rank_tally([1, 3], [3, 4]).drop == 0
    assert rank_tally([3], [1, 1]) == Tally(0, 1, 2, 2)


def test_ranks_fall_as_often_as_there_are_choices_of_runs() -> None:
    fell, jitter = rank_tally([1, 2, 1], [4, 5, 4]), rank_tally([1, 2, 1], [1, 1, 1])
    still = rank_tally([1, 1, 1], [1, 1, 1])
    ranks = Counter({fell: 1, jitter: 4, still: 90})
    assert judge({}, {"loss": ranks})["loss"].losses == {fell: Loss(2 * 5 / 20)}
    # as many fell as five queries would in two hundred sessions
    many = Counter({fell: 10, jitter: 4})
    assert judge({}, {"loss": many})["loss"].losses[fell].alpha == pytest.approx(2 * 14 / 20 / 10)


def test_where_ranks_never_differ_within_a_side_a_worse_one_is_a_loss() -> None:
    fell = rank_tally([1, 1], [2, 2])
    assert judge({}, {"loss": Counter({fell: 1})})["loss"].losses == {fell: Loss(0.0)}


# -- few runs, and not as many on each side --------------------------------------------------------


@pytest.mark.parametrize(("runs_a", "runs_b"), [(5, 1), (1, 3), (1, 1)])
def test_few_runs_are_no_alarm_where_nothing_changed(runs_a: int, runs_b: int) -> None:
    steady = runs_a + runs_b == 2  # one run a side never disagrees with itself, and anything is a loss
    runs = runs_a + runs_b
    alarms = sum(bool(fails(judged(flaky(100, runs, seed), runs_a))) for seed in range(100))
    assert alarms == 100 if steady else alarms <= 5


def test_a_query_that_some_runs_lack_counts_by_those_that_have_it() -> None:
    yes, no = True, False
    gaps = [[yes, None, yes, no, no, None], [None, yes, yes, None, no, no], [yes, yes, yes, *[None] * 3]]
    found = judged([*flaky(100), *gaps * 5])
    assert found.worse == judged(flaky(100)).worse + 10  # a side without any run is no drop
    assert Tally(2, 2, 0, 2) in fails(found)


@given(st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False), st.integers(0, 99))
def test_the_order_of_runs_and_queries_is_no_matter(
    runs_a: int, runs_b: int, shuffler: Any, seed: int
) -> None:
    generator = random.Random(seed)
    passed: list[list[bool | None]] = [[*query] for query in flaky(12, runs_a + runs_b, seed)]
    passed[0][generator.randrange(runs_a + runs_b)] = None
    a, b = [*range(runs_a)], [*range(runs_a, runs_a + runs_b)]
    for shuffled in (a, b):
        shuffler.shuffle(shuffled)
    turned = [[query[run] for run in (*a, *b)] for query in passed]
    shuffler.shuffle(turned)
    assert judged(turned, runs_a) == judged(passed, runs_a)


def test_with_many_runs_a_side_the_order_is_no_matter_either() -> None:
    passed = [*flaky(30, 20), *[[True] * 10 + [False] * 10] * 2]
    order = [*range(9, -1, -1), *range(12, 20), 10, 11]
    assert judged([[query[run] for run in order] for query in passed], 10) == judged(passed, 10)


# -- how often checks flip -------------------------------------------------------------------------


def test_two_runs_disagree_as_often_as_pairs_of_them_do() -> None:
    # One of three runs differs: 2 of its 3 pairs disagree; over both sides of 10 queries 2/3 · 1/20.
    counts = count_tallies(rows([[True, True, False, *[True] * 3], *[STEADY] * 9]))
    assert disagreement(counts) == pytest.approx(2 / 60)
    assert disagreement(Counter({Tally(1, 1, 0, 1): 3})) is None
