"""Which deltas of metrics are more than chance. Standard library only.

`paired_test` judges one metric by how its queries changed, and, where a side has several runs, by how the
runs of one side differ. `verdicts` corrects for how many metrics are looked at (Holm), and goes by p alone:
the 95 % interval stands beside it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

Key = TypeVar("Key")

ALPHA = 0.05
BETTER = "better"
WORSE = "worse"
MAY_BE_CHANCE = "may be chance"
TOO_FEW = "too few queries"

LEAST_P = 0.0001  # what a smaller p is shown as: never 0
_Z = 1.959963984540054  # the normal quantile of 0.975
_HALF = 0.5
_MOST_SUMS = 512
_MOST_STEPS = 8_000


class PairedTest(NamedTuple):
    """What one test says of a metric's change; the interval is that of the mean change, at 95 %."""

    n: int  # queries that both sides have a value for
    up: int
    down: int
    change: float  # the mean
    p: float | None  # two-sided, rounded; None without queries
    low: float | None  # None with fewer than two
    high: float | None
    is_enough: bool = False  # whether any outcome over as many queries has a p of 0.05


class MetricVerdict(NamedTuple):
    """What is said of a metric, and its p given how many metrics there are."""

    verdict: str
    p: float


def paired_test(
    changes: Sequence[float],
    n: int,
    *,
    yes_no: bool,
    max_value: float | None = 1.0,
    runs: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> PairedTest:
    """Test the non-zero changes B - A among n paired queries; of a yes/no metric all are -1 or 1.

    `runs` are the metric's values in A's runs and in B's where a side has several. The larger p counts.
    """
    if n == 0:
        return PairedTest(0, 0, 0, 0.0, None, None, None)
    counts = Counter(changes)
    up, down = (sum(k for c, k in counts.items() if sign * c > 0) for sign in (1, -1))
    p = mid_p(up, down) if yes_no else sign_flip_p(tuple(sorted(counts.items())))
    most = 1.0 if yes_no else max_value or max(map(abs, counts), default=0.0)
    low, high = _interval(counts, n, most)
    if all(runs) and max(map(len, runs)) > 1:
        over_runs = student_test(*runs)
        p, low, high = max(p, over_runs.p), min(low, over_runs.low), max(high, over_runs.high)
    limit = max_value or math.inf
    low, high = max(low, -limit), min(high, limit)
    found = PairedTest(
        n, up, down, math.fsum(changes) / n, shown_p(p), None, None, least_p(n, yes_no=yes_no) <= ALPHA
    )
    return found._replace(low=_rounded(low), high=_rounded(high)) if n >= 2 else found


def verdicts(
    tests: Mapping[str, PairedTest],
    together: Collection[str],
    lower_is_better: Collection[str],
) -> dict[str, MetricVerdict]:
    """Judge each metric by its p after Holm over those that are judged together; any other, as one more.

    A metric of too few queries cannot be told from chance whatever they do, and is not counted.
    """
    p_values = {name: test.p for name, test in tests.items() if test.p is not None and test.is_enough}
    listed = {name: p for name, p in p_values.items() if name in together}
    of_listed = holm(listed)
    found = {}
    for name, test in tests.items():
        if name not in p_values:
            found[name] = MetricVerdict(TOO_FEW, 1.0 if test.p is None else test.p)
            continue
        p = of_listed[name] if name in listed else holm({**listed, name: p_values[name]})[name]
        is_good = (test.change < 0) == (name in lower_is_better)
        found[name] = MetricVerdict(MAY_BE_CHANCE if p > ALPHA else BETTER if is_good else WORSE, p)
    return found


def holm(p_values: Mapping[Key, float]) -> dict[Key, float]:
    """The p of each of many tests, given how many there are."""
    found: dict[Key, float] = {}
    largest = 0.0
    for tried, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        largest = max(largest, p_values[name] * (len(p_values) - tried))
        found[name] = min(round(largest, 4), 1.0)
    return found


def least_p(n: int, *, yes_no: bool) -> float:
    """The least p that n queries can have: when all of them change the same way."""
    return shown_p(min(1.0, _HALF**n if yes_no else 2 * _HALF**n))


def shown_p(p: float) -> float:
    """As it is shown and judged."""
    return min(1.0, max(round(p, 4), LEAST_P))


def format_p(p: float) -> str:
    """`p = 0.04`; the smallest p that is shown stands for all smaller ones."""
    return f"p = {p:g}" if p > LEAST_P else f"p <= {p:g}"


def _rounded(value: float) -> float:
    return round(value, 4) + 0.0  # -0.0 becomes 0.0


# -- over queries --------------------------------------------------------------------------------


def mid_p(up: int, down: int) -> float:
    """McNemar's test, mid-p: 2 P(X < k) + P(X = k), X binomial over the changes, k the rarer way."""
    changed, k = up + down, min(up, down)
    log_first = math.lgamma(changed + 1) - math.lgamma(k + 1) - math.lgamma(changed - k + 1)
    relative = term = 1.0
    for j in range(k, 0, -1):
        term *= j / (changed - j + 1)
        relative += 2 * term
        if term < 1e-17 * relative:
            break
    return min(1.0, math.exp(log_first - changed * math.log(2)) * relative)


@lru_cache(maxsize=64)  # of thirty metrics, half changed as another did
def sign_flip_p(counted: tuple[tuple[float, int], ...]) -> float:
    """How often random signs of the changes give a sum at least as far from 0; each change has a count."""
    sizes = Counter[int]()
    seen = 0
    scale = _grid(max((abs(change) for change, _ in counted), default=0.0))
    for change, n in counted:
        size = round(change * scale)
        sizes[abs(size)] += n
        seen += n * size
    flips = sum(n for size, n in sizes.items() if size)
    bound = abs(seen) - flips  # sums that are equal may differ by half a unit per change, twice
    parts = [(((-size, _HALF), (size, _HALF)), n) for size, n in sizes.items() if size]
    return 1.0 if bound <= 0 else min(1.0, 2 * tail_p(parts, bound))


def _grid(largest: float) -> float:
    """What changes are multiplied by to be whole, so that 1/2 equals 1/3 + 1/6.

    The odd factor, lcm(1..16) · 5^3 without its twos, puts fractions with small denominators and decimals of
    four places exactly on the grid.
    """
    return math.ldexp(9 * 5**4 * 7 * 11 * 13, 21 - math.frexp(largest)[1]) if largest else 1.0


def _interval(counts: Counter[float], n: int, most: float) -> tuple[float, float]:
    """Bonett and Price's: Wald's with one more change each way, as large as a change can be."""
    mean = math.fsum(change * k for change, k in counts.items()) / (n + 2)
    squares = math.fsum(k * change * change for change, k in counts.items()) + 2 * most * most
    half = _Z * math.sqrt((squares / (n + 2) - mean * mean) / (n + 2))
    return mean - half, mean + half


# -- over runs -----------------------------------------------------------------------------------


class OverRuns(NamedTuple):
    """A test of the values of runs, two-sided, and the interval of B's mean less A's."""

    p: float
    low: float
    high: float


def student_test(a: Sequence[float], b: Sequence[float]) -> OverRuns:
    """Student's test of two samples with the same spread; one of them may be a single value."""
    mean_a, mean_b = math.fsum(a) / len(a), math.fsum(b) / len(b)
    freedom, change = len(a) + len(b) - 2, mean_b - mean_a
    squares = math.fsum([*((x - mean_a) ** 2 for x in a), *((x - mean_b) ** 2 for x in b)])
    if squares < 1e-18:  # runs of one side never differ
        return OverRuns(0.0 if abs(change) > 1e-9 else 1.0, change, change)
    error = math.sqrt(squares / freedom * (1 / len(a) + 1 / len(b)))
    half = t_quantile(freedom) * error
    return OverRuns(2 * t_tail(abs(change) / error, freedom), change - half, change + half)


def t_tail(t: float, freedom: int) -> float:
    """P(T >= t) for Student's T and t >= 0, by Abramowitz and Stegun 26.7.3 and 26.7.4."""
    angle, is_odd = math.atan2(t, math.sqrt(freedom)), freedom % 2
    term = total = math.cos(angle) if is_odd else 1.0
    for step in range(2 + is_odd, freedom - 1, 2):
        term *= math.cos(angle) ** 2 * (step - 1) / step
        total += term
    total *= math.sin(angle)
    inside = 2 * (angle + (total if freedom > 1 else 0.0)) / math.pi if is_odd else total
    return max(0.0, (1 - inside) / 2)


@lru_cache(maxsize=64)
def t_quantile(freedom: int) -> float:
    """Student's t at 0.975, by bisection."""
    low, high = 0.0, 16.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tail(middle, freedom) > 0.025 else (low, middle)
    return high


# -- sums of independent parts -------------------------------------------------------------------

Part = tuple[tuple[int, float], ...]  # values, and how likely each is


def tail_p(parts: Iterable[tuple[Part, int]], seen: int) -> float:
    """P(sum >= seen) of independent whole numbers, each given with how many there are of its kind.

    Exact for the parts that vary most, as long as their sums are few, which are all where sums are equal
    often or parts are few; then Edgeworth's series of the sum of the others, with half a step of them.
    """
    moments = [(_cumulants(part), part, n) for part, n in parts]
    moments.sort(key=lambda found: (found[0][1], found[1]), reverse=True)
    sums, steps = {0: 1.0}, 0
    rest: list[tuple[tuple[float, ...], Part, int]] = []
    for cumulants, part, n in moments:
        done = 0
        while done < n and not rest and len(sums) * len(part) <= 2 * _MOST_SUMS and steps < _MOST_STEPS:
            steps += len(sums) * len(part)
            sums = _added(sums, part)
            done += 1
        if done < n:
            rest.append((cumulants, part, n - done))
    if not rest:
        return math.fsum(p for total, p in sums.items() if total >= seen)
    mean, variance, third, fourth = (
        math.fsum(n * cumulants[order] for cumulants, _, n in rest) for order in range(4)
    )
    deviation = math.sqrt(variance)
    skew, excess = third / deviation**3, fourth / variance**2
    step = math.gcd(*(value - part[0][0] for _, part, _ in rest for value, _ in part))
    least, most = (sum(n * end(value for value, _ in part) for _, part, n in rest) for end in (min, max))

    def above(needed: float) -> float:
        if needed <= least or needed > most:
            return float(needed <= least)
        reached = needed + (least - needed) % step  # the first sum of the others that is enough
        return _edgeworth((reached - step / 2 - mean) / deviation, skew, excess)

    return min(1.0, math.fsum(p * above(seen - total) for total, p in sums.items()))


def _added(sums: Mapping[int, float], part: Part) -> dict[int, float]:
    grown: dict[int, float] = {}
    for value, p in part:
        for total, q in sums.items():
            grown[total + value] = grown.get(total + value, 0.0) + p * q
    return grown


def _cumulants(part: Part) -> tuple[float, float, float, float]:
    """The first four: mean, variance, and those that tell skewness and tails."""
    mean = sum([p * value for value, p in part])
    second = third = fourth = 0.0
    for value, p in part:
        off = value - mean
        square = off * off
        second, third, fourth = second + p * square, third + p * square * off, fourth + p * square * square
    return mean, second, third, fourth - 3 * second * second


def _edgeworth(z: float, skew: float, excess: float) -> float:
    """P(Z >= z) of what is nearly normal, with its skewness and excess kurtosis."""
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    he2, he3, he5 = z * z - 1, z**3 - 3 * z, z**5 - 10 * z**3 + 15 * z
    found = math.erfc(z / math.sqrt(2)) / 2
    found += density * (skew * he2 / 6 + excess * he3 / 24 + skew * skew * he5 / 72)
    return min(1.0, max(0.0, found))
