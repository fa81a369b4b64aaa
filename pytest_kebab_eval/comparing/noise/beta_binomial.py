"""The beta-binomial: passes of queries whose rates of passing follow a beta; fitted in plain Python."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from operator import mul
from typing import NamedTuple

Sides = Counter[tuple[int, int]]  # how many queries passed so often in so many runs

_MOST_STEPS = 200
_LONGEST_STEP = 2.0  # in the logarithm of a parameter
_LIMITS = (-14.0, 14.0)  # of that logarithm: beyond e^14, all rates are as good as one
_NEAR = 1e-10


class BetaBinomial(NamedTuple):
    """Rates of passing that follow a beta with these parameters."""

    alpha: float
    beta: float

    def probability(self, runs: int, ways: Iterable[tuple[int, int]]) -> float:
        """Of outcomes of so many runs, given in how many ways each number of passes is one of them."""
        alpha, beta = self
        up, down = _rising(alpha, runs), _rising(beta, runs)
        whole = _rising(alpha + beta, runs)[-1]
        return math.fsum(count * (up[passes] * down[runs - passes] / whole) for passes, count in ways)


def _rising(first: float, steps: int) -> list[float]:
    """1, first, first (first + 1), …: the products of 0 to so many numbers, each larger by one."""
    return [*accumulate((first + step for step in range(steps)), mul, initial=1.0)]


def fit(sides: Sides) -> BetaBinomial:
    """The most likely beta-binomial: Newton's method in the logarithms of its parameters."""
    likelihood = _Likelihood(sides)
    point = _start(sides)
    value = likelihood.value(*point)
    for _ in range(_MOST_STEPS):
        step = likelihood.step(*point)
        moved, better = point, value
        while max(map(abs, step)) > _NEAR:
            moved = _within_limits(point[0] + step[0]), _within_limits(point[1] + step[1])
            better = likelihood.value(*moved)
            if better > value:
                break
            step = (step[0] / 2, step[1] / 2)
        if better <= value:
            break
        point, value = moved, better
    return BetaBinomial(*map(math.exp, point))


def _within_limits(at: float) -> float:
    return min(max(at, _LIMITS[0]), _LIMITS[1])


def _start(sides: Sides) -> tuple[float, float]:
    """The logarithms of parameters with the mean that was seen."""
    passes = sum(count * passed for (passed, _), count in sides.items())
    runs = sum(count * of for (_, of), count in sides.items())
    mean = (passes + 0.5) / (runs + 1)
    return math.log(mean), math.log(1 - mean)


class _Likelihood:
    """The log likelihood of the logarithms of alpha and beta.

    It is a sum of log(alpha + i), log(beta + i) and -log(alpha + beta + i), each as often as queries have
    more than i passes, failures or runs.
    """

    def __init__(self, sides: Sides) -> None:
        longest = max((runs for _, runs in sides), default=0)
        self._passes = [sum(n for (passed, _), n in sides.items() if passed > i) for i in range(longest)]
        self._failures = [
            sum(n for (passed, runs), n in sides.items() if runs - passed > i) for i in range(longest)
        ]
        self._runs = [sum(n for (_, runs), n in sides.items() if runs > i) for i in range(longest)]

    def value(self, log_alpha: float, log_beta: float) -> float:
        alpha, beta = math.exp(log_alpha), math.exp(log_beta)
        sums = ((1, self._passes, alpha), (1, self._failures, beta), (-1, self._runs, alpha + beta))
        return math.fsum(
            sign * n * math.log(at + i) for sign, counts, at in sums for i, n in enumerate(counts)
        )

    def step(self, log_alpha: float, log_beta: float) -> tuple[float, float]:
        """Newton's step; up the slope where that would lead down. No step is longer than the longest."""
        alpha, beta = math.exp(log_alpha), math.exp(log_beta)
        both, both_2 = _slopes(self._runs, alpha + beta)
        ups, ups_2 = _slopes(self._passes, alpha)
        downs, downs_2 = _slopes(self._failures, beta)
        slope = alpha * (ups - both), beta * (downs - both)
        bend_a = alpha * alpha * (both_2 - ups_2) + slope[0]
        bend_b = beta * beta * (both_2 - downs_2) + slope[1]
        cross = alpha * beta * both_2
        area = bend_a * bend_b - cross * cross
        if bend_a < 0 and area > 0:
            step = (
                (cross * slope[1] - bend_b * slope[0]) / area,
                (cross * slope[0] - bend_a * slope[1]) / area,
            )
        else:
            step = slope
        longest = max(map(abs, step))
        scale = min(1.0, _LONGEST_STEP / longest) if longest else 1.0
        return step[0] * scale, step[1] * scale


def _slopes(counts: Sequence[int], at: float) -> tuple[float, float]:
    """The sums of n / (at + i) and of n / (at + i)²."""
    first = math.fsum(n / (at + i) for i, n in enumerate(counts))
    return first, math.fsum(n / (at + i) ** 2 for i, n in enumerate(counts))
