"""The beta-binomial, held against SciPy."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.comparing.noise.control import BetaBinomial, Sides, fit

scipy = pytest.importorskip("scipy")  # its parts are imported by the tests that use them


def drawn(alpha: float, beta: float, runs: int, queries: int) -> Sides:
    generator = random.Random(1)
    rates = [generator.betavariate(alpha, beta) for _ in range(queries)]
    return Counter((sum(generator.random() < rate for _ in range(runs)), runs) for rate in rates)


def log_likelihood(sides: Sides, alpha: float, beta: float) -> float:
    """SciPy's, for passes in so many runs."""
    return math.fsum(
        count * scipy.stats.betabinom.logpmf(passes, runs, alpha, beta)
        for (passes, runs), count in sides.items()
    )


@given(
    st.floats(0.01, 50),
    st.floats(0.01, 50),
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
)
def test_one_order_of_runs_has_its_share_of_the_probability(
    alpha: float, beta: float, side: tuple[int, int]
) -> None:
    passes, runs = side
    expected = scipy.stats.betabinom.pmf(passes, runs, alpha, beta) / math.comb(runs, passes)
    assert BetaBinomial(alpha, beta).probability(runs, [(passes, 1)]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("alpha", "beta", "runs", "queries"),
    [(8, 1, 5, 300), (0.05, 0.02, 5, 300), (1, 1, 10, 50), (0.1, 0.3, 2, 60), (80, 4, 3, 300), (3, 3, 3, 12)],
)
def test_the_fit_is_as_likely_as_the_best_that_scipy_finds(
    alpha: float, beta: float, runs: int, queries: int
) -> None:
    sides = drawn(alpha, beta, runs, queries)
    found = fit(sides)
    best = scipy.optimize.minimize(
        lambda point: -log_likelihood(sides, math.exp(min(point[0], 14)), math.exp(min(point[1], 14))),
        [0.0, 0.0],
        method="Nelder-Mead",
        options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4_000},
    )
    assert log_likelihood(sides, *found) >= -best.fun - 1e-4


def test_sides_of_different_numbers_of_runs_are_fitted_together() -> None:
    sides = drawn(2, 1, 5, 200) + drawn(2, 1, 3, 200)
    found = fit(sides)
    higher = [
        log_likelihood(sides, found.alpha * by, found.beta * also)
        for by in (0.99, 1.01)
        for also in (1, 1.01)
    ]
    assert max(higher) < log_likelihood(sides, *found)


def test_two_runs_of_a_coin_disagree_half_the_time() -> None:
    coins: Sides = Counter({(1, 2): 500, (0, 2): 250, (2, 2): 250})
    found = fit(coins)
    assert found.probability(1, [(1, 1)]) == pytest.approx(0.5, abs=1e-6)
    assert found.probability(2, [(1, 2)]) == pytest.approx(0.5, abs=1e-4)
