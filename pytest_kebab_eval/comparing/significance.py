"""Paired tests: which deltas are more than noise, and when there are too few queries to tell.

The verdict follows the test alone. At the margin the interval, which rests on another approximation, may say
otherwise. Nothing is corrected for how many metrics are looked at: of twenty that did not change, expect one
below 0.05.
"""

from __future__ import annotations

import itertools
import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from pytest_kebab_eval.model import Value

Counts = Counter[float]  # of the changes that are not 0

IMPROVED = "improved"
WORSE = "worse"
NO_EVIDENCE = "no evidence of change"
TOO_FEW = "too few queries to tell"

_ALPHA = 0.05
_Z = 1.959963984540054  # the normal quantile of 0.975
LEAST_P = 0.0001  # what a smaller p is shown as: never 0
_LEAST_YES_NO = 5  # changes, all one way, for mid-p < 0.05: 2^-5 = 0.031, but 2^-4 = 0.063
_LEAST_GRADED = 6  # the same for the sign flips: 2 · 2^-6 = 0.031, but 2 · 2^-5 = 0.063


class Significance(Value, frozen=True):
    """What can be said of one metric's change over the queries that both runs have a value for.

    The interval is that of the mean change, at 95 %; `p` is two-sided. `smallest` is the smallest mean change
    that this many queries could have shown: for yes/no metrics at best, with five changes all one way, for
    others given the changes seen; None if none could have been shown, or there is nothing to judge it by.
    """

    n: int
    up: int
    down: int
    low: float | None
    high: float | None
    p: float | None
    smallest: float | None
    verdict: str


def paired_significance(
    changes: Sequence[float], n: int, *, yes_no: bool, lower_is_better: bool = False
) -> Significance:
    """Judge the non-zero differences B − A among n paired queries; for a yes/no metric all are −1 or 1.

    The verdict and the bound on `smallest` go by the rounded p, so that they agree with what is shown.
    """
    if n == 0:
        return Significance(0, 0, 0, None, None, None, None, TOO_FEW)
    counts = Counter(changes)  # many are equal, and each is looked at once
    up = sum(count for change, count in counts.items() if change > 0)
    down = sum(count for change, count in counts.items() if change < 0)
    mean = math.fsum(changes) / n
    p = max(round(_mid_p(up, down) if yes_no else _sign_flip_p(counts), 4), LEAST_P)
    low = high = smallest = None
    if n >= 2:
        low, high = _bonett_price(up, down, n) if yes_no else _t_interval(counts, mean, n)
    enough = n >= (_LEAST_YES_NO if yes_no else _LEAST_GRADED)
    if enough and (yes_no or changes):
        smallest = _LEAST_YES_NO / n if yes_no else _smallest_graded(counts, n)
        if p < _ALPHA:  # what was shown could be shown
            smallest = min(smallest, abs(mean))
    if not enough:
        verdict = TOO_FEW
    elif p >= _ALPHA:
        verdict = NO_EVIDENCE
    else:
        verdict = IMPROVED if (mean < 0) == lower_is_better else WORSE
    return Significance(n, up, down, _rounded(low), _rounded(high), p, _rounded(smallest), verdict)


def least_p(n: int, *, yes_no: bool) -> float:
    """The least p that n queries can have, rounded as it is shown: when all of them change the same way."""
    least = _mid_p(n, 0) if yes_no else min(2 * 0.5**n, 1.0)
    return max(round(least, 4), LEAST_P)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4) + 0.0  # −0.0 becomes 0.0


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
    half = _Z * math.sqrt((gained + lost - middle * middle) / (n + 2))
    return max(middle - half, -1.0), min(middle + half, 1.0)


# -- other metrics -------------------------------------------------------------------------------

_WORK = 2047  # partial sums made for each half: the signs of any 11 changes, or of 63 equal ones
_MOST_EXACT = 2 * 63
_FLIPS = 10_000
_MOST_SIMULATED = 64
_LARGEST = 10
_SEED = 20_240_229


def _sign_flip_p(changes: Counts) -> float:
    """Randomisation test: how often random signs give a sum at least as far from 0 as the observed one.

    - Exact up to 22 changes, and for more where sizes repeat enough (up to 126 if all are equal).
    - Else, up to 64 changes: 10,000 flips, always the same ones; the error at p = 0.05 is about ±0.004.
    - Beyond: exact in the signs of the ten largest, which may dominate, and normal in the sum of the others;
      the error at p = 0.05 is below ±0.003, or ±0.02 where all sizes are equal but for a few per cent.
    """
    largest_first = sorted(changes, key=abs, reverse=True)
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


def _t_interval(changes: Counts, mean: float, n: int) -> tuple[float, float]:
    """Student's interval over all n differences, zeros included; a single point if nothing changed."""
    squares = math.fsum(count * (change - mean) ** 2 for change, count in changes.items())
    squares += (n - changes.total()) * mean**2
    half = _t_quantile(n - 1) * math.sqrt(squares / (n - 1) / n)
    return mean - half, mean + half


def _smallest_graded(changes: Counts, n: int) -> float:
    """The mean change at which the test turns, given how much the queries were seen to change.

    That is 1.96 standard deviations of the flipped sum, but at least six changes of average size, all one
    way, over n. A graded change has no unit of its own, so without any change there is nothing to go by.
    """
    deviation = math.sqrt(math.fsum(count * change * change for change, count in changes.items()))
    average = math.fsum(count * abs(change) for change, count in changes.items()) / changes.total()
    return max(_Z * deviation, _LEAST_GRADED * average) / n


_T_QUANTILES = (
    *(12.706204736, 4.302652730, 3.182446305, 2.776445105, 2.570581836),
    *(2.446911851, 2.364624252, 2.306004135, 2.262157163, 2.228138852),
    *(2.200985160, 2.178812830, 2.160368656, 2.144786688, 2.131449546),
    *(2.119905299, 2.109815578, 2.100922040, 2.093024054, 2.085963447),
)


def _t_quantile(freedom: int) -> float:
    """Student's t at 0.975: tabled to 20 degrees of freedom, then Cornish and Fisher's series, to 2e-7."""
    if freedom <= len(_T_QUANTILES):
        return _T_QUANTILES[freedom - 1]
    z = _Z
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / freedom**power for power, term in enumerate(terms))
