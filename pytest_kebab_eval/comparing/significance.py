"""Paired tests: which deltas are more than noise, and when there are too few queries to tell.

The verdict is that of the test, and the interval is cut or stretched to agree with it on 0. Where values are
not yes or no, the interval of the mean must show a change, too: signs tell whether queries changed by luck,
but many small gains tell little of the mean, which a few large losses may outweigh. A verdict is of one
metric; what reports call worse is corrected for how many there are (`sure_of_many`).
"""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import msgspec

from pytest_kebab_eval.model import Value

Key = TypeVar("Key")
Counts = Counter[float]  # of the changes that are not 0

IMPROVED = "improved"
WORSE = "worse"
NO_EVIDENCE = "no evidence of change"
TOO_FEW = "too few queries to tell"

ALPHA = 0.05
Z = 1.959963984540054  # the normal quantile of 0.975
LEAST_P = 0.0001  # what a smaller p is shown as: never 0
_LEAST_YES_NO = 5  # changes, all one way, for mid-p < 0.05: 2^-5 = 0.031, but 2^-4 = 0.063
_LEAST_GRADED = 6  # the same for the sign flips: 2 · 2^-6 = 0.031, but 2 · 2^-5 = 0.063
_LEAST = 0.0001  # a bound as close to 0 as is shown


class Significance(Value, frozen=True):
    """What can be said of one metric's change over the queries that both runs have a value for.

    The interval is that of the mean change, at 95 %; `p` is two-sided."""

    n: int
    up: int
    down: int
    low: float | None
    high: float | None
    p: float | None
    verdict: str
    change: float | msgspec.UnsetType = msgspec.UNSET  # if the delta is of other queries, too


class Tested(NamedTuple):
    """What one test says, before anything is rounded."""

    p: float
    low: float
    high: float


def paired_significance(
    changes: Sequence[float],
    n: int,
    *,
    yes_no: bool,
    lower_is_better: bool = False,
    max_value: float | None = 1.0,
    runs: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> Significance:
    """Judge the non-zero differences B − A among n paired queries; for a yes/no metric all are −1 or 1.

    `runs` are the values of A's runs and of B's, where a side has several: what differs between runs of one
    side is no change. The verdict goes by the rounded p, so that it agrees with what is shown.
    """
    if n == 0:
        return Significance(0, 0, 0, None, None, None, TOO_FEW)
    counts = Counter(changes)  # many are equal, and each is looked at once
    found = _over_queries(counts, n, max_value, yes_no=yes_no)
    if all(runs) and max(map(len, runs)) > 1:  # a side has none if no query that all runs have is measured
        found = _wider(found, _over_runs(*runs))
    mean = math.fsum(changes) / n
    p = max(round(found.p, 4), LEAST_P)
    if n < (_LEAST_YES_NO if yes_no else _LEAST_GRADED):
        verdict = TOO_FEW
    elif p >= ALPHA or (not yes_no and found.low <= 0 <= found.high):
        verdict = NO_EVIDENCE
    else:
        verdict = IMPROVED if (mean < 0) == lower_is_better else WORSE
    shown = 0.0 if verdict == NO_EVIDENCE or p >= ALPHA else mean
    low, high = _agreeing(found, shown, math.inf if max_value is None else max_value)
    return Significance(
        n,
        up=sum(count for change, count in counts.items() if change > 0),
        down=sum(count for change, count in counts.items() if change < 0),
        low=_rounded(low) if n >= 2 else None,
        high=_rounded(high) if n >= 2 else None,
        p=p,
        verdict=verdict,
    )


def sure_of_many(p_values: Mapping[Key, float]) -> set[Key]:
    """Those that are significant also given how many there are."""
    return {name for name, p in corrected(p_values).items() if p < ALPHA}


def corrected(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """The p of each of many tests, given how many there are, by Holm's procedure."""
    found: dict[Key, float] = {}
    largest = 0.0
    for tried, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, p_values[name] * (len(p_values) - tried))
        found[name] = min(largest, 1.0)
    return found


def _rounded(value: float) -> float:
    return round(value, 4) + 0.0  # −0.0 becomes 0.0


def _agreeing(found: Tested, shown: float, most: float) -> tuple[float, float]:
    """The interval, without 0 if a change is shown and with it if none is; no wider than values can be."""
    low, high = max(found.low, -most), min(found.high, most)
    if shown > 0:
        return max(low, _LEAST), max(high, _LEAST)
    if shown < 0:
        return min(low, -_LEAST), min(high, -_LEAST)
    return min(low, 0.0), max(high, 0.0)


def _over_queries(changes: Counts, n: int, max_value: float | None, *, yes_no: bool) -> Tested:
    if yes_no:
        up, down = changes[1.0], changes[-1.0]
        return Tested(_mid_p(up, down), *_bonett_price(up, down, n))
    most = max_value or max(map(abs, changes), default=0.0)
    return Tested(_sign_flip_p(tuple(sorted(changes.items()))), *_t_interval(changes, n, most))


# -- runs ----------------------------------------------------------------------------------------


def _wider(found: Tested, other: Tested) -> Tested:
    """What both tests allow to say."""
    return Tested(max(found.p, other.p), min(found.low, other.low), max(found.high, other.high))


def _over_runs(a: Sequence[float], b: Sequence[float]) -> Tested:
    """Welch's test of the runs' values; where a side is one run, with the spread of the other's."""
    change = math.fsum(b) / len(b) - math.fsum(a) / len(a)
    parts = [(variance_of(values) / len(values), len(values) - 1) for values in (a, b) if len(values) > 1]
    error = math.fsum(part for part, _ in parts)
    if len(parts) == 1:
        error *= 1 + max(len(a), len(b))
    if not error:  # runs of one side never differ
        return Tested(0.0 if change else 1.0, change, change)
    square = math.fsum(part for part, _ in parts) ** 2
    freedom = max(1, math.floor(square / math.fsum(part * part / free for part, free in parts)))
    error = math.sqrt(error)
    half = t_quantile(freedom) * error
    return Tested(student_p(change / error, freedom), change - half, change + half)


def variance_of(values: Sequence[float]) -> float:
    """The variance of two values or more."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def student_p(t: float, freedom: int) -> float:
    """How often Student's t is at least as far from 0, for a whole number of degrees of freedom."""
    angle = math.atan2(abs(t), math.sqrt(freedom))
    cosine = math.cos(angle)
    is_odd = freedom % 2
    term = total = cosine if is_odd else 1.0
    for step in range(2 + is_odd, freedom - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    total *= math.sin(angle)
    inside = 2 * (angle + (total if freedom > 1 else 0.0)) / math.pi if is_odd else total
    return max(0.0, 1 - inside)


def least_p(n: int, *, yes_no: bool) -> float:
    """The least p that n queries can have, rounded as it is shown: when all of them change the same way."""
    least = _mid_p(n, 0) if yes_no else min(2 * 0.5**n, 1.0)
    return max(round(least, 4), LEAST_P)


def least_p_over_runs(a: Sequence[float], runs_b: int, end: float) -> float:
    """The least p that runs of B can have beside these of A: when all of them have the value at the end."""
    least = _over_runs(a, [end] * runs_b).p if max(len(a), runs_b) > 1 else 0.0
    return max(round(least, 4), LEAST_P)


# -- yes/no metrics ------------------------------------------------------------------------------


def _mid_p(up: int, down: int) -> float:
    """McNemar's test, mid-p: 2 P(X < k) + P(X = k), X binomial over the changes, k the rarer way.

    In whole numbers up to 1,000 changes; beyond, in floats, good to 1e-6 up to a hundred million.
    """
    m, k = up + down, min(up, down)
    if m <= 1000:
        ways = math.comb(m, k)
        total = ways
        for j in range(k, 0, -1):
            ways = ways * j // (m - j + 1)
            total += 2 * ways
        return total / (1 << m)
    log_first = math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1) - m * math.log(2)
    relative, term = 1.0, 1.0
    for j in range(k, 0, -1):
        term *= j / (m - j + 1)
        relative += 2 * term
        if term < 1e-12 * relative:
            break
    return math.exp(log_first) * relative


def _bonett_price(up: int, down: int, n: int) -> tuple[float, float]:
    """Bonett and Price's interval: Wald's with one more change each way, so that it holds for few queries."""
    gained, lost = (up + 1) / (n + 2), (down + 1) / (n + 2)
    middle = gained - lost
    half = Z * math.sqrt((gained + lost - middle * middle) / (n + 2))
    return max(middle - half, -1.0), min(middle + half, 1.0)


# -- other metrics -------------------------------------------------------------------------------

_WORK = 2047  # partial sums made for each half: the signs of any 11 changes, or of 63 equal ones
_MOST_EXACT = 2 * 63
_FLIPS = 10_000
_MOST_SIMULATED = 64
_LARGEST = 10
_SEED = 20_240_229


@lru_cache(maxsize=64)  # of thirty metrics, half changed as another did
def _sign_flip_p(counted: tuple[tuple[float, int], ...]) -> float:
    """Randomisation test: how often random signs give a sum at least as far from 0 as the observed one.

    - Exact up to 22 changes, and for more where sizes repeat enough (up to 126 if all are equal).
    - Else, up to 64 changes: 10,000 flips, always the same ones; the error at p = 0.05 is about ±0.004.
    - Beyond: exact in the signs of the ten largest, which may dominate, and normal in the sum of the others;
      the error at p = 0.05 is below ±0.003, or ±0.02 where all sizes are equal but for a few per cent.
    """
    largest_first = sorted(changes := dict(counted), key=abs, reverse=True)
    signed = dict(zip(largest_first, _whole_numbers(largest_first), strict=True))
    sizes = [size for change in signed for size in [abs(signed[change])] * changes[change] if size]
    observed = abs(sum(signed[change] * count for change, count in changes.items()))
    bound = observed - len(sizes)  # sums that are equal may differ by half a unit per change, twice
    if bound <= 0:
        return 1.0
    even = _signed_sums(sizes[::2]) if len(sizes) <= _MOST_EXACT else None
    odd = even and _signed_sums(sizes[1::2])
    if even and odd:
        return _exact_p(even, odd, bound)
    if len(sizes) <= _MOST_SIMULATED:
        return _simulated_p(sizes, bound)
    return _approximate_p(sizes, observed)


def _whole_numbers(changes: Sequence[float]) -> list[int]:
    """The changes, largest first, on a grid some 2^-43 of it wide, where sums are exact in any order.

    The odd factor, lcm(1..16) · 5^3 without its twos, puts fractions with small denominators and decimals of
    four places exactly on the grid, so that 1/2 equals 1/3 + 1/6.
    """
    if not changes:
        return []
    scale = math.ldexp(9 * 5**4 * 7 * 11 * 13, 21 - math.frexp(changes[0])[1])
    return [round(change * scale) for change in changes]


def _signed_sums(sizes: Sequence[int]) -> dict[int, int] | None:
    """Every sum that signs can give, and in how many ways; None if that is too much work."""
    ways = {0: 1}
    work = 0
    for size in sizes:
        work += len(ways)
        if work > _WORK:
            return None
        grown: dict[int, int] = {}
        for total, count in ways.items():
            grown[total + size] = grown.get(total + size, 0) + count
            grown[total - size] = grown.get(total - size, 0) + count
        ways = grown
    return ways


def _exact_p(even: dict[int, int], odd: dict[int, int], bound: int) -> float:
    """How often the sum of both halves is at least the bound away from 0; each sign of it as often."""
    totals = sorted(odd)
    at_least = [*itertools.accumulate(map(odd.__getitem__, reversed(totals)), initial=0)][::-1]
    above = sum(count * at_least[bisect_left(totals, bound - total)] for total, count in even.items())
    return 2 * above / (at_least[0] * sum(even.values()))


def _simulated_p(sizes: Sequence[int], bound: int) -> float:
    """Eight signs at a time, looked up by a random byte; the observed signs count as one more flip."""
    width = -(-len(sizes) // 8)
    generator = random.Random(_SEED)  # noqa: S311 - must be reproducible, not secret
    signs = generator.getrandbits(8 * width * _FLIPS).to_bytes(width * _FLIPS, "little")
    columns = []
    for column in range(width):
        eight = [*sizes[8 * column : 8 * column + 8], *[0] * 7][:8]
        sums = [0]
        for size in eight:
            sums = [total - size for total in sums] + [total + size for total in sums]
        columns.append(map(sums.__getitem__, signs[column::width]))
    hits = sum(abs(total) >= bound for total in map(sum, zip(*columns, strict=True)))
    return (hits + 1) / (_FLIPS + 1)


def _approximate_p(sizes: Sequence[int], observed: int) -> float:
    """With half a step of the sums as continuity correction: it matters where the sizes are few and even."""
    largest = _signed_sums(sizes[:_LARGEST]) or {0: 1}
    others = Counter(sizes[_LARGEST:])
    deviation = math.sqrt(2 * sum(count * size * size for size, count in others.items()))
    edge = observed - math.gcd(*set(sizes))
    tails = math.fsum(count * math.erfc((edge - total) / deviation) for total, count in largest.items())
    return min(tails / (1 << _LARGEST), 1.0)


def _t_interval(changes: Counts, n: int, most: float) -> tuple[float, float]:
    """Student's interval over all n differences, and one more each way, as large as a change can be.

    So Bonett and Price do for yes/no metrics: an interval over few changes, or none, has a width that holds.
    """
    mean = math.fsum(change * count for change, count in changes.items()) / (n + 2)
    squares = math.fsum(count * (change - mean) ** 2 for change, count in changes.items())
    squares += (n - changes.total()) * mean**2 + 2 * (most * most + mean * mean)
    half = t_quantile(n + 1) * math.sqrt(squares / (n + 1) / (n + 2))
    return mean - half, mean + half


_T_QUANTILES = (
    *(12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836, 2.446911851, 2.364624252),
    *(2.306004135, 2.262157163, 2.228138852, 2.200985160, 2.178812830, 2.160368656, 2.144786688),
    *(2.131449546, 2.119905299, 2.109815578, 2.100922040, 2.093024054, 2.085963447),
)


def t_quantile(freedom: int) -> float:
    """Student's t at 0.975: tabled to 20 degrees of freedom, then Cornish and Fisher's series, to 2e-7."""
    if freedom <= len(_T_QUANTILES):
        return _T_QUANTILES[freedom - 1]
    z = Z
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
