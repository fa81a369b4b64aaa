"""How often noise alone does what was seen: per check, learnt from replicates over all queries.

Each query passes a check with a rate of its own, in every run alike, unless something changed between A and
B. How these rates are spread over the queries is learnt from runs of the same side, where nothing changed:

- A beta-binomial is fitted to the passes of each side. Under it, the probability of a drop is known.
- Rates need not follow a beta: a few queries may be coin flips, and all others steady. So the same is bounded
  for whatever the spread: P(drop) = E[P(drop | rate)] <= E[rate^j (1 - rate)^l] · max P(drop | rate) /
  (rate^j (1 - rate)^l). The first factor can be estimated without bias; the second is a fixed number.

The larger of the two is a query's probability. The query itself counts as if both sides were one, since
that is what is tested. `control` then has Benjamini and Hochberg's procedure decide, over all checks.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import mul
from typing import NamedTuple, TypeVar

from pytest_kebab_eval.comparing.checks import Tallies, Tally

_POWERS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1))  # j and l of the bounds; a side needs j + l runs
_GRID = 64


class CheckNoise:
    """How much a check flips without any change, and what follows for the queries that did worse."""

    def __init__(self, tallies: Tallies) -> None:
        self.tallies = tallies
        self.queries = tallies.total()  # that could fail
        self.is_steady = not any(tally.flips for tally in tallies)  # runs of one side never disagree
        # Some query passes in one run and fails in another, of whatever side.
        self.could_fail = any(0 < tally.a + tally.b < tally.n_a + tally.n_b for tally in tallies)
        self._means = [mean for powers in _POWERS if (mean := _Mean.of(powers, tallies)).queries]
        self._known: dict[Region, float] = {}

    @cached_property
    def fitted(self) -> BetaBinomial | None:
        """The beta-binomial of this check; None where nothing flips."""
        return None if self.is_steady else fit(sides_of(self.tallies))

    def disagreement(self) -> float | None:
        """How often two runs of one side disagree on a query; None if no side has two runs."""
        flips = next((mean for mean in self._means if mean.powers == (1, 1)), None)
        return 2 * flips.total / flips.queries if flips else None

    def probabilities(self) -> dict[Tally, float]:
        """How often noise alone makes a query do as badly, for each way in which one did worse."""
        return {tally: self.probability(tally) for tally in self.tallies if tally.drop > 0}

    def probability(self, tally: Tally) -> float:
        """How often noise alone makes a query do as badly as this."""
        outcomes = region(tally)
        # Each bound holds whatever the spread of the rates, so the least does.
        bounds = (mean.if_flakiest(tally) * largest_ratio(outcomes, mean.powers) for mean in self._means)
        return min(1.0, max(self._by_beta(outcomes), min(bounds, default=1.0)))

    def _by_beta(self, outcomes: Region) -> float:
        if outcomes not in self._known:
            fitted = self.fitted
            self._known[outcomes] = fitted.probability(*outcomes) if fitted else 0.0
        return self._known[outcomes]


class _Mean(NamedTuple):
    """E[rate^j (1 - rate)^l] from runs of one side at a time: the sum, and over how many queries."""

    powers: tuple[int, int]
    total: float
    queries: int

    @classmethod
    def of(cls, powers: tuple[int, int], tallies: Tallies) -> _Mean:
        found = [
            (mean, count) for tally, count in tallies.items() if (mean := _within(tally, powers)) is not None
        ]
        return cls(powers, math.fsum(mean * count for mean, count in found), sum(count for _, count in found))

    def if_flakiest(self, tally: Tally) -> float:
        """The mean if this query were as flaky as a query can be; nothing else is known of it."""
        j, k = self.powers
        own = _within(tally, self.powers) or 0.0
        most = math.pow(j / (j + k), j) * math.pow(k / (j + k), k)
        return (max(self.total - own, 0.0) + most) / self.queries


def sides_of(tallies: Tallies) -> Sides:
    """How often a query passed in one side's runs, and in how many runs: each side of each query."""
    sides: Sides = Counter()
    for tally, count in tallies.items():
        sides[tally.a, tally.n_a] += count
        sides[tally.b, tally.n_b] += count
    return sides


@lru_cache(maxsize=10_000)
def _within(tally: Tally, powers: tuple[int, int]) -> float | None:
    """The estimate of one query, from runs of one side at a time; None if neither has enough runs."""
    sides = [(tally.a, tally.n_a), (tally.b, tally.n_b)]
    found = [_unbiased(passes, runs, powers) for passes, runs in sides if runs >= sum(powers)]
    return math.fsum(found) / len(found) if found else None


@lru_cache(maxsize=10_000)
def _unbiased(passes: int, runs: int, powers: tuple[int, int]) -> float:
    """Of rate^j (1 - rate)^l: the share of the choices of j and l runs in which j pass and l fail."""
    j, k = powers
    ways = math.comb(runs, j) * math.comb(runs - j, k)
    return math.comb(passes, j) * math.comb(runs - passes, k) / ways


# -- the beta-binomial: passes of queries whose rates follow a beta, fitted in plain Python -----------------

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


# -- what is at least as bad ---------------------------------------------------------------------


class Region(NamedTuple):
    """The outcomes that are at least as bad as one: in how many ways for each number of passes in total."""

    runs: int
    ways: tuple[tuple[int, int], ...]


def region(tally: Tally) -> Region:
    """The outcomes of as many runs whose rate falls at least as much."""
    return _region(tally.n_a, tally.n_b, tally.drop)


@lru_cache(maxsize=10_000)
def _region(n_a: int, n_b: int, drop: int) -> Region:
    ways: Counter[int] = Counter()
    for a in range(n_a + 1):
        for b in range(n_b + 1):
            if a * n_b - b * n_a >= drop:
                ways[a + b] += math.comb(n_a, a) * math.comb(n_b, b)
    return Region(n_a + n_b, tuple(sorted(ways.items())))


@lru_cache(maxsize=10_000)
def largest_ratio(outcomes: Region, powers: tuple[int, int]) -> float:
    """The most that P(outcomes | rate) / (rate^j (1 - rate)^l) can be; infinite if it has no bound."""
    runs, ways = outcomes
    j, k = powers
    if any(passes < j or runs - passes < k for passes, _ in ways):
        return math.inf
    terms = [(count, passes - j, runs - passes - k) for passes, count in ways]

    def ratio(rate: float) -> float:
        return math.fsum(count * rate**up * (1 - rate) ** down for count, up, down in terms)

    best = max(range(_GRID + 1), key=lambda step: ratio(step / _GRID))
    return ratio(_peak(ratio, max(best - 1, 0) / _GRID, min(best + 1, _GRID) / _GRID))


def _peak(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function with one peak between two numbers has it, by ternary search."""
    for _ in range(40):
        third = (high - low) / 3
        if function(low + third) < function(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2


# -- ranks ---------------------------------------------------------------------------------------


class RankNoise:
    """Ranks are not yes or no: B is worse if its best rank is below A's worst, by exact permutation.

    If nothing changed, any choice of the runs may be those of A, so that happens once in as many as there are
    choices. Queries whose rank is the same in all runs cannot be worse, and are no part of the family.
    """

    def __init__(self, tallies: Tallies) -> None:
        self.tallies = Counter(
            {tally: count for tally, count in tallies.items() if tally.flips or tally.drop}
        )
        self.queries = self.tallies.total()
        self.is_steady = not any(tally.flips for tally in tallies)
        self.could_fail = bool(self.queries)

    def probabilities(self) -> dict[Tally, float]:
        """Once in as many times as there are choices of A's runs."""
        worse = [tally for tally in self.tallies if tally.drop == tally.n_a * tally.n_b]
        return {tally: self.probability(tally) for tally in worse}

    def probability(self, tally: Tally) -> float:
        return 1 / math.comb(tally.n_a + tally.n_b, tally.n_a)


# -- all queries together ------------------------------------------------------------------------


Key = TypeVar("Key")


def control(checks: Mapping[Key, CheckNoise | RankNoise], others: int = 0) -> dict[Key, dict[Tally, float]]:
    """For each check and each way in which a query did worse, the smallest alpha at which that fails.

    Benjamini and Hochberg's procedure over all queries and checks that flip: where nothing changed, a session
    fails at most as often as alpha says. A check that never flips has no noise that could explain a drop.
    `others` are queries of further checks that flip, and lost nothing.
    """
    found = {name: check.probabilities() for name, check in checks.items()}
    by_probability: Counter[float] = Counter()
    for name, worse in found.items():
        for tally, probability in worse.items() if not checks[name].is_steady else ():
            by_probability[probability] += checks[name].tallies[tally]
    limits = _limits(by_probability, others + family_of(checks))
    return {
        name: {tally: 0.0 if checks[name].is_steady else limits[p] for tally, p in worse.items()}
        for name, worse in found.items()
    }


def family_of(checks: Mapping[Key, CheckNoise | RankNoise]) -> int:
    """How many queries and checks noise could fail."""
    return sum(check.queries for check in checks.values() if check.could_fail and not check.is_steady)


def _limits(counts: Counter[float], family: int) -> dict[float, float]:
    """For each probability the alpha from which on it is rejected, none being more than a larger one's."""
    limits: dict[float, float] = {}
    least, at_most = 1.0, counts.total()
    for probability in sorted(counts, reverse=True):
        least = min(least, probability * family / max(at_most, 1))
        limits[probability] = least
        at_most -= counts[probability]
    return limits
