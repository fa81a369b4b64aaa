"""Whether drops that might each be noise can all together be: a check of a session, as a whole.

If nothing changed, any of the runs that a query has may have been those of A, so gains are as likely as
drops. How much was lost is the sum of the drops of the queries' rates, and that of their cubes, in which a
query that was lost entirely counts as much as 27 that fell by a third. How often noise alone makes it so
large is the greater of two answers:

- Over queries: the runs of each query are dealt out anew, for each on its own. The probability of a sum as
  large is never made too small.
- Over runs: whole runs are dealt out anew, since what the queries of a run share (a shard that is down, an
  index build) is no change. With few runs there are few ways to do so; the sum is then held against those of
  the other ways by Student's t.

The queries that fell furthest fail, as many as noise does not explain.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple, TypeVar

from pytest_kebab_eval.comparing.checks import Check, Limit, Tallies, Tally
from pytest_kebab_eval.comparing.noise.control import CheckNoise, RankNoise, control, family_of
from pytest_kebab_eval.comparing.significance import student_p

_POWERS = (1, 3)  # of the drops that are added up
_FEW_WAYS = 42  # to deal out the runs: with fewer, none is rare enough; four a side have 70
_MOST_WAYS = 252  # as with five a side; of more, so many are drawn
_SEED = 20_240_229
_STEPS = 30
_UNITS = 1 << 40
_ROUNDING = 1e-9


class Pattern(NamedTuple):
    """In which runs a query passed, and which have it: a bit for each, those of A first."""

    passed: int
    known: int

    def tally(self, of_a: int) -> Tally:
        """How often it passed, given the bits of A's runs."""
        passed, known = self
        in_a, in_b = known & of_a, known & ~of_a
        return Tally(
            (passed & in_a).bit_count(), in_a.bit_count(), (passed & in_b).bit_count(), in_b.bit_count()
        )


Patterns = Counter[Pattern]  # how many queries have it
Key = TypeVar("Key")


def count_patterns(queries: Iterable[tuple[Sequence[bool | None], int]]) -> Patterns:
    """Of the outcomes in all runs, None where a run has none, and how many queries have them."""
    counted = Patterns()
    for outcomes, count in queries:
        passed = known = 0
        for number, outcome in enumerate(outcomes):
            if outcome is not None:
                known |= 1 << number
                passed |= outcome << number
        counted[Pattern(passed, known)] += count
    return counted


def reversed_patterns(patterns: Patterns) -> Patterns:
    """The same with failing for passing, so that a gain is a drop."""
    return Counter({Pattern(known & ~passed, known): count for (passed, known), count in patterns.items()})


def count_tallies(patterns: Patterns, of_a: int) -> Tallies:
    """How often queries passed, given the bits of A's runs; not those that a side has no run of."""
    tallies: Tallies = Counter()
    for pattern, count in patterns.items():
        tally = pattern.tally(of_a)
        if tally.n_a and tally.n_b:
            tallies[tally] += count
    return tallies


class Together(NamedTuple):
    """What all queries of a check come to."""

    alpha: float  # the smallest at which the session fails by it
    worse: int  # queries whose rate fell
    better: int
    fallen: frozenset[Tally]  # those that fail with it: they fell furthest
    fell: int  # queries that did
    rose: int  # and queries that rose as far


def judge_together(
    checks: Mapping[Key, Patterns], runs_a: int, runs_b: int, *, simulated: bool = False
) -> dict[Key, Together]:
    """Judge each check, corrected for how many of them there are.

    In simulated runs queries share nothing, and where there are many of these nobody need look for it.
    """
    found = {name: _Sums(patterns, (1 << runs_a) - 1) for name, patterns in checks.items()}
    flipping = {name: sums for name, sums in found.items() if sums.flip}
    tests = 2 * len(flipping) * len(_POWERS)  # half of alpha is for the session
    alphas = {
        (name, power): min(1.0, tests * sums.over_queries(power))
        for name, sums in flipping.items()
        for power in _POWERS
    }
    runs = _Runs(runs_a, runs_b)
    # Dealing out runs takes longer, and is not needed where the first answer is noise.
    if min(alphas.values(), default=1.0) < 1 and (runs.are_few or not simulated):
        by_runs = runs.few(flipping) if runs.are_few else runs.many(flipping)
        alphas = {key: max(alpha, min(1.0, 2 * by_runs[key])) for key, alpha in alphas.items()}
    return {
        name: sums.judge(min(alphas[name, power] for power in _POWERS)) for name, sums in flipping.items()
    }


class _Sums:
    """The drops of one check, and what they could have been."""

    def __init__(self, patterns: Patterns, of_a: int) -> None:
        flipping = (
            (pattern, n) for pattern, n in patterns.items() if n and 0 < pattern.passed < pattern.known
        )
        self.flip = Counter(dict(flipping))
        self._tallies = count_tallies(self.flip, of_a)

    def judge(self, alpha: float) -> Together:
        worse = sum(n for tally, n in self._tallies.items() if tally.drop > 0)
        better = sum(n for tally, n in self._tallies.items() if tally.drop < 0)
        return Together(alpha, worse, better, *self._fallen())

    def over_queries(self, power: int) -> float:
        """By Bahadur and Rao's approximation, as if sums came in steps of 1, which makes it larger.

        Never more than Chernoff's bound: the mean of exp(x (sum - total)), with the x that makes it least.
        """
        total = math.fsum(n * _power(tally, power) for tally, n in self._tallies.items())
        if total <= 0:
            return 1.0
        alike = Counter[tuple[int, int, int]]()
        for tally, n in self._tallies.items():
            alike[tally.n_a, tally.n_b, tally.a + tally.b] += n
        dealt = [(_dealt(*runs, power), n) for runs, n in alike.items()]
        low, high = 0.0, 1.0
        while high < 1e6 and _slope(dealt, high) < total:
            high *= 2
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if _slope(dealt, middle) < total else (low, middle)
        bound = math.exp(min(0.0, _log_mean(dealt, low) - low * total))
        width = math.sqrt(2 * math.pi * _spread(dealt, low)) * -math.expm1(-low)
        return bound / max(1.0, width)

    def sum_if(self, of_a: int, power: int) -> int:
        """The sum if these had been the runs of A, in whole units, so that no order changes it."""
        total = 0
        for (known, passes), alike in self._alike.items():
            n_a = (known & of_a).bit_count()
            steps = _in_units(n_a, known.bit_count() - n_a, passes, power)
            total += sum([n * steps[(passed & of_a).bit_count()] for passed, n in alike])
        return total

    @cached_property
    def _alike(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The patterns by the runs that have the query and how many it passed."""
        alike: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for (passed, known), n in self.flip.items():
            alike.setdefault((known, passed.bit_count()), []).append((passed, n))
        return alike

    def _fallen(self) -> tuple[frozenset[Tally], int, int]:
        """The largest drops, as many as noise does not explain; how many, and how many rose as far.

        Queries that fell as far as one of them are among them.
        """
        expected: list[tuple[float, float]] = []
        seen: dict[float, list[Tally]] = {}
        for tally, n in self._tallies.items():
            for drop, probability in _dealt(tally.n_a, tally.n_b, tally.a + tally.b, 1):
                expected.append((drop, n * probability))
            seen.setdefault(_power(tally, 1), []).append(tally)
        steps, excesses, fallen, fell = [], [0.0], frozenset[Tally](), 0
        for size in sorted((drop for drop in seen if drop > 0), reverse=True):
            fallen |= frozenset(seen[size])
            fell += sum(self._tallies[tally] for tally in seen[size])
            rose = sum(n for tally, n in self._tallies.items() if _power(tally, 1) <= -size)
            steps.append((fallen, fell, rose))
            excesses.append(fell - math.fsum(n for drop, n in expected if drop >= size))
        return next((step for step in steps if step[1] >= max(excesses)), (frozenset(), 0, 0))


class _Runs:
    """Deals out whole runs, for all checks alike."""

    def __init__(self, runs_a: int, runs_b: int) -> None:
        self._a, self._b = runs_a, runs_b
        self._of_a = (1 << runs_a) - 1
        self._ways = math.comb(runs_a + runs_b, runs_a)
        self.are_few = self._ways < _FEW_WAYS

    def few(self, checks: Mapping[Key, _Sums]) -> dict[tuple[Key, int], float]:
        """The sums over the root mean square of those of the other ways, by Student's t; times the checks.

        What was seen is part of another way's sum, by how many of A's runs that has; it is taken out.
        """
        found = {}
        for name, sums in checks.items():
            for power in _POWERS:
                seen = sums.sum_if(self._of_a, power)
                squares = []
                for of_a in self._other_ways():
                    share = self._share_of(of_a)
                    rest = sums.sum_if(of_a, power) - seen * share**power
                    squares.append(rest * rest / (1 - share * share))
                deviation = math.sqrt(math.fsum(squares) / len(squares))
                freedom = self._a + self._b - 2 if power == 1 else self._freedom_of_cubes(len(squares))
                p = student_p(seen / deviation, freedom) / 2 if deviation else 0.0  # runs share nothing
                found[name, power] = len(checks) * p if seen > 0 else 1.0
        return found

    def _freedom_of_cubes(self, others: int) -> int:
        """A sum tells no more than its runs, but cubes differ from way to way; so many by simulation."""
        return max(1, min(others // 2, 2 * (self._a + self._b - 2)))

    def _share_of(self, of_a: int) -> float:
        """How much of a change between the sides is one between these runs and the others."""
        same = (of_a & self._of_a).bit_count()
        return same / self._a - (self._a - same) / self._b

    def many(self, checks: Mapping[Key, _Sums]) -> dict[tuple[Key, int], float]:
        """The share of ways in which any sum of any check is as large, each in units of its spread."""
        others = [*self._other_ways()]
        seen: dict[tuple[Key, int], float] = {}
        largest = [-math.inf] * len(others)
        for name, sums in checks.items():
            for power in _POWERS:
                found = [sums.sum_if(of_a, power) for of_a in others]
                spread = math.sqrt(sum(other * other for other in found) / len(found)) or 1.0
                seen[name, power] = sums.sum_if(self._of_a, power) / spread
                largest = [max(most, other / spread) for most, other in zip(largest, found, strict=True)]
        return {
            key: (1 + sum(most >= own * (1 - _ROUNDING) for most in largest)) / (1 + len(largest))
            for key, own in seen.items()
        }

    def _other_ways(self) -> Iterator[int]:
        """The other ways to choose A's runs; not the one seen, nor that with both sides exchanged."""
        every = range(self._a + self._b)
        seen = {self._of_a, self._of_a << self._b if self._a == self._b else self._of_a}
        if self._ways <= _MOST_WAYS:
            chosen: Iterable[Iterable[int]] = combinations(every, self._a)
        else:
            generator = random.Random(_SEED)  # noqa: S311 - must be reproducible, not secret
            chosen = (generator.sample(every, self._a) for _ in range(_MOST_WAYS))
        for numbers in chosen:
            of_a = sum(1 << number for number in numbers)
            if of_a not in seen:
                yield of_a


@lru_cache(maxsize=10_000)
def _power(tally: Tally, power: int) -> float:
    """The drop of the rate to a power, its sign kept; 0 if a side has no run."""
    runs = tally.n_a * tally.n_b
    return (tally.drop / runs) ** power if runs else 0.0


@lru_cache(maxsize=10_000)
def _dealt(n_a: int, n_b: int, passes: int, power: int) -> tuple[tuple[float, float], ...]:
    """The powers of the drop, with their probabilities, if so many passes are dealt out to the runs."""
    ways = math.comb(n_a + n_b, passes)
    return tuple(
        (_power(Tally(a, n_a, passes - a, n_b), power), math.comb(n_a, a) * math.comb(n_b, passes - a) / ways)
        for a in range(max(0, passes - n_b), min(n_a, passes) + 1)
    )


@lru_cache(maxsize=10_000)
def _in_units(n_a: int, n_b: int, passes: int, power: int) -> tuple[int, ...]:
    """The powers of the drop for every number of passes in A's runs."""
    return tuple(
        round(_UNITS * _power(Tally(a, n_a, passes - a, n_b), power)) if 0 <= passes - a <= n_b else 0
        for a in range(n_a + 1)
    )


Dealt = list[tuple[tuple[tuple[float, float], ...], int]]  # and how many queries


def _log_mean(dealt: Dealt, x: float) -> float:
    """The logarithm of the mean of exp(x · sum)."""
    return math.fsum(
        n
        * (
            x * drops[-1][0]
            + math.log(math.fsum(p * math.exp(x * (drop - drops[-1][0])) for drop, p in drops))
        )
        for drops, n in dealt
    )


def _slope(dealt: Dealt, x: float) -> float:
    """The first derivative of the same: the mean of the sum where large ones are exp(x · sum) as likely."""
    return math.fsum(n * _moments(drops, x)[0] for drops, n in dealt)


def _spread(dealt: Dealt, x: float) -> float:
    """The second: its variance."""
    return math.fsum(n * _moments(drops, x)[1] for drops, n in dealt)


def _moments(drops: Sequence[tuple[float, float]], x: float) -> tuple[float, float]:
    """Mean and variance of a drop, where a drop is exp(x · drop) as likely."""
    most = drops[-1][0]
    weights = [p * math.exp(x * (drop - most)) for drop, p in drops]
    whole = math.fsum(weights)
    mean = math.fsum(weight * drop for weight, (drop, _) in zip(weights, drops, strict=True)) / whole
    square = math.fsum(weight * drop * drop for weight, (drop, _) in zip(weights, drops, strict=True)) / whole
    return mean, max(0.0, square - mean * mean)


# -- from which alpha on a drop fails: on its own, or together with others; half of alpha is for each --------


class CheckLimits(NamedTuple):
    """What noise explains of a check."""

    noise: CheckNoise | RankNoise
    limits: Mapping[Tally, Limit]  # of each way in which queries did worse
    together: Together | None  # None: runs of one side never disagree on it, or it is about ranks
    single: float  # the alpha from which on a query fails that is lost in all runs, and is the only one


def find_limits(
    checks: Mapping[Check, Patterns],
    ranks: Mapping[Check, Tallies],
    runs_a: int,
    runs_b: int,
    *,
    others: int = 0,
    simulated: bool = False,
) -> dict[Check, CheckLimits]:
    """Of all checks that are judged together; `others` are queries of further ones, which lost nothing."""
    of_a = (1 << runs_a) - 1
    noises: dict[Check, CheckNoise | RankNoise] = {
        check: CheckNoise(count_tallies(found, of_a)) for check, found in checks.items()
    }
    noises |= {check: RankNoise(tallies) for check, tallies in ranks.items()}
    alone = control(noises, others)
    flipping = {check: found for check, found in checks.items() if not noises[check].is_steady}
    together = judge_together(flipping, runs_a, runs_b, simulated=simulated)
    lost, family = Tally(runs_a, runs_a, 0, runs_b), others + family_of(noises)
    return {
        check: CheckLimits(
            noise,
            {tally: _limit(tally, alpha, together.get(check)) for tally, alpha in alone[check].items()},
            together.get(check),
            0.0 if noise.is_steady else min(1.0, 2 * family * noise.probability(lost)),
        )
        for check, noise in noises.items()
    }


def _limit(tally: Tally, alone: float, together: Together | None) -> Limit:
    if together and tally in together.fallen and together.alpha < 2 * alone:
        return Limit(together.alpha, together.fell, together.rose)
    return Limit(min(1.0, 2 * alone))
