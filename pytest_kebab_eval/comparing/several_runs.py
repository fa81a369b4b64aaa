"""What several runs a side tell of a check: single queries, and all together. Standard library only.

Each query passes a check with a rate r of its own, on both sides alike if nothing changed.

Single queries. S, the sum of r (1 - r) over the queries, is estimated without bias from runs of one side.
Whatever the rates, noise loses at most S · max P(outcome | r) / (r (1 - r)) queries as badly as one was: an
expected number E. k queries did so; they fail if E / k is small (Benjamini and Hochberg), and the runs
differ in them by Student's t.

The session. If nothing changed, the passes of a query may be dealt out to its runs in any way: so often is
the sum of the drops as large. And the runs' totals must differ by Student's t, since what the queries of a
run share is no change. If the larger p of the two is small, the session fails, and its largest drops do.

Each half has half of alpha, and each check that flips its share of that. Where runs of one side never
disagree, a drop is a loss.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, TypeVar

from pytest_kebab_eval.comparing.significance import Part, t_tail, tail_p

Key = TypeVar("Key", bound=Hashable)
Outcomes = tuple["bool | None", ...]  # of a query in the runs of one side; None: it does not apply there
Rows = Mapping[tuple[Outcomes, Outcomes], int]  # A's and B's, and of how many queries

_MOMENTS = ((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1))  # powers of r and of 1 - r
_GRID = 100
_POWERS = (1, 3)  # of the drops that are added up: a query that is lost counts as 27 that fell by a third
_ROUNDING = 1e-9
_EXPLAINED = 0.4  # of the drops that are listed, at most
_MOST_WAYS = 252  # to choose A's runs, as with five a side


class Tally(NamedTuple):
    """How often a query passed a check: in `a` of `n_a` runs of A, and in `b` of `n_b` of B."""

    a: int
    n_a: int
    b: int
    n_b: int
    jitters: bool = False  # runs of one side disagree in what is counted as one

    @property
    def drop(self) -> int:
        """How much the rate fell, in units of 1 / (n_a · n_b)."""
        return self.a * self.n_b - self.b * self.n_a

    @property
    def size(self) -> float:
        """How much the rate fell."""
        return self.drop / (self.n_a * self.n_b)

    @property
    def flips(self) -> bool:
        """Whether runs of one side disagree."""
        return self.jitters or 0 < self.a < self.n_a or 0 < self.b < self.n_b

    @property
    def moves(self) -> bool:
        """Whether some runs of either side pass, and some fail."""
        return bool(self.n_a and self.n_b) and 0 < self.a + self.b < self.n_a + self.n_b

    def reversed(self) -> Tally:
        """The same with failing for passing, so that a gain is a drop."""
        return Tally(self.n_a - self.a, self.n_a, self.n_b - self.b, self.n_b, self.jitters)


class Loss(NamedTuple):
    """From which alpha on a drop is lost: on its own, or as one of several queries."""

    alpha: float
    one_of: int | None = None  # that fell as far
    rose: int | None = None  # how many rose as far


class JudgedCheck(NamedTuple):
    """What became of a check."""

    losses: Mapping[Tally, Loss]  # of each way in which queries did worse
    worse: int
    better: int
    together: float  # the alpha from which on the session fails
    alone: float  # the alpha from which on a query fails that alone is lost, in all runs


def judge(
    checks: Mapping[Key, Rows], ranks: Mapping[Key, Counter[Tally]] | None = None
) -> dict[Key, JudgedCheck]:
    """Judge all checks that are looked at together, and those by `ranks`.

    Rows of no query are judged by what the others show, and are no evidence.
    """
    counted = {name: count_tallies(rows) for name, rows in checks.items()} | dict(ranks or {})
    looked_at = sum(map(_can_flip, counted.values()))
    return {
        name: _judge_check(checks[name], counts, looked_at)
        if name in checks
        else _judge_ranks(counts, looked_at)
        for name, counts in counted.items()
    }


def _can_flip(counts: Counter[Tally]) -> bool:
    return any(n and tally.flips for tally, n in counts.items())


def reversed_rows(rows: Rows) -> Rows:
    """The same with failing for passing, so that a gain is a drop."""
    turned: dict[bool | None, bool | None] = {True: False, False: True, None: None}
    return {
        (tuple(turned[passed] for passed in a), tuple(turned[passed] for passed in b)): n
        for (a, b), n in rows.items()
    }


def count_tallies(rows: Rows) -> Counter[Tally]:
    """How many queries have each tally; those that a side has no run of are left out."""
    counts: Counter[Tally] = Counter()
    for row, n in rows.items():
        tally = tally_of(row)
        if tally.n_a and tally.n_b:
            counts[tally] += n
    return counts


def tally_of(row: tuple[Outcomes, Outcomes]) -> Tally:
    """How often a query passed."""
    a, b = row
    return Tally(a.count(True), len(a) - a.count(None), b.count(True), len(b) - b.count(None))


def disagreement(counts: Counter[Tally]) -> float | None:
    """How often two runs of one side disagree on a query; None if no side has two."""
    known = Counter({tally: n for tally, n in counts.items() if max(tally.n_a, tally.n_b) > 1})
    queries = known.total()
    return (
        2 * math.fsum(n * moment(tally, (1, 1)) for tally, n in known.items()) / queries if queries else None
    )


def _judge_check(rows: Rows, counts: Counter[Tally], looked_at: int) -> JudgedCheck:
    fell = [tally for tally in counts if tally.drop > 0]
    worse, better = _moved(counts)
    noise, times = _Noise(counts), 2 * max(1, looked_at)
    if not _can_flip(counts):  # but for what is no evidence
        found = {tally: min(1.0, times * noise.bound(tally)) if tally.flips else 0.0 for tally in fell}
        return JudgedCheck({tally: Loss(alpha) for tally, alpha in found.items()}, worse, better, 1.0, 0.0)
    single = noise.expected(rows)
    together = min(1.0, times * session_p(rows)) if worse else 1.0
    listed, as_far, rose = _listed(counts)
    losses = {}
    for tally in fell:
        losses[tally] = Loss(min(1.0, times * single[tally]))
        if tally.size >= listed and together < losses[tally].alpha:
            losses[tally] = Loss(together, as_far, rose)
    a, b = next(iter(rows))
    gone = Tally(len(a), len(a), 0, len(b))
    return JudgedCheck(losses, worse, better, together, min(1.0, times * noise.bound(gone)))


def _moved(counts: Counter[Tally]) -> tuple[int, int]:
    """How many queries did worse, and how many better."""
    worse, better = (sum(n for t, n in counts.items() if sign * t.drop > 0) for sign in (1, -1))
    return worse, better


def _judge_ranks(counts: Counter[Tally], looked_at: int) -> JudgedCheck:
    """Ranks are not yes or no: B is worse if its best rank is below A's worst.

    If nothing changed, any choice of the runs may be those of A, so that this happens once in as many.
    """
    fell = [tally for tally in counts if tally.drop == tally.n_a * tally.n_b]
    worse, better = _moved(counts)
    if not _can_flip(counts):
        return JudgedCheck(dict.fromkeys(fell, Loss(0.0)), worse, better, 1.0, 0.0)
    times = 2 * looked_at
    moved = [(tally, n) for tally, n in counts.items() if tally.flips or tally.drop]
    expected = times * math.fsum(n / math.comb(tally.n_a + tally.n_b, tally.n_a) for tally, n in moved)
    loss = Loss(min(1.0, expected / max(1, sum(counts[tally] for tally in fell))))
    return JudgedCheck(dict.fromkeys(fell, loss), worse, better, 1.0, min(1.0, expected))


def _listed(counts: Counter[Tally]) -> tuple[float, int, int]:
    """From which size on drops are listed, and how many fell and rose as far.

    The largest, and more until as many are listed as dealing out the passes does not explain, and as long as
    it explains few of them.
    """
    dealt = [
        (other.size, n * p)
        for tally, n in counts.items()
        for other, p in _deals(tally.n_a, tally.n_b, tally.a + tally.b)
    ]
    steps: list[tuple[float, int, int]] = []
    unexplained = 0.0
    for size in sorted({tally.size for tally, n in counts.items() if n and tally.drop > 0}, reverse=True):
        least = size - _ROUNDING
        fell, rose = (sum(n for t, n in counts.items() if sign * t.size >= least) for sign in (1, -1))
        by_chance = math.fsum(n for other, n in dealt if other >= least)
        unexplained = max(unexplained, fell - by_chance)
        if not steps or by_chance <= _EXPLAINED * fell:
            steps.append((least, fell, rose))
    return next((step for step in steps if step[1] >= unexplained), steps[-1] if steps else (math.inf, 0, 0))


# -- single queries ------------------------------------------------------------------------------


class _Noise:
    """How much a check flips, over all queries."""

    def __init__(self, counts: Counter[Tally]) -> None:
        self._counts = counts
        self._sums = {
            powers: math.fsum(n * moment(tally, powers) for tally, n in counts.items())
            for powers in _MOMENTS
            if any(n and max(tally.n_a, tally.n_b) >= sum(powers) for tally, n in counts.items())
        }

    def bound(self, tally: Tally) -> float:
        """How many queries noise alone would lose as badly; this one counts as flaky as can be."""
        bounds = []
        for powers, whole in self._sums.items():
            others = whole - moment(tally, powers) if self._counts[tally] else whole
            bounds.append((max(0.0, others) + peak(powers)) * largest_ratio(tally, powers))
        return min(bounds, default=math.inf)

    def expected(self, rows: Rows) -> dict[Tally, float]:
        """The same for each one that was lost as badly: Benjamini and Hochberg's step up.

        Those that were must differ by runs, too: what flips together was counted as if each flipped alone.
        """
        fell = {row: tally for row in rows if (tally := tally_of(row)).moves and tally.drop > 0}
        bounds = {tally: self.bound(tally) for tally in {*fell.values()}}
        found, least = {}, 1.0
        for tally in sorted(bounds, key=lambda tally: (bounds[tally], tally), reverse=True):
            as_bad = {row: rows[row] for row, other in fell.items() if bounds[other] <= bounds[tally]}
            seen = sum(as_bad.values())
            share = bounds[tally] / max(1, seen)
            if share < least:
                least = min(least, max(share, over_runs(as_bad if seen else dict.fromkeys(as_bad, 1))[1]))
            found[tally] = least
        return found


@lru_cache(maxsize=10_000)
def moment(tally: Tally, powers: tuple[int, int]) -> float:
    """r^j (1 - r)^k without bias: of the choices of j and k runs of a side, those where j pass and k fail."""
    j, k = powers
    sides = [
        math.comb(passed, j) * math.comb(runs - passed, k) / (math.comb(runs, j) * math.comb(runs - j, k))
        for passed, runs in ((tally.a, tally.n_a), (tally.b, tally.n_b))
        if runs >= j + k
    ]
    return math.fsum(sides) / len(sides) if sides else peak(powers)


def peak(powers: tuple[int, int]) -> float:
    """The most that r^j (1 - r)^k can be."""
    j, k = powers
    return math.pow(j / (j + k), j) * math.pow(k / (j + k), k)


@lru_cache(maxsize=10_000)
def largest_ratio(tally: Tally, powers: tuple[int, int]) -> float:
    """The most that P(falls as much | r) / (r^j (1 - r)^k) can be; infinite if it has no bound."""
    (j, k), n = powers, tally.n_a + tally.n_b
    ways: Counter[int] = Counter()
    for a in range(tally.n_a + 1):
        for b in range(tally.n_b + 1):
            if a * tally.n_b - b * tally.n_a >= tally.drop:
                ways[a + b] += math.comb(tally.n_a, a) * math.comb(tally.n_b, b)
    if any(passed < j or n - passed < k for passed in ways):
        return math.inf
    rates = [step / _GRID for step in range(_GRID + 1)]
    return max(sum(w * r ** (s - j) * (1 - r) ** (n - s - k) for s, w in ways.items()) for r in rates)


# -- the session ---------------------------------------------------------------------------------


def session_p(rows: Rows) -> float:
    """How often noise makes the drops, or their cubes, add up to as much."""
    moved = {row: n for row, n in rows.items() if n and tally_of(row).moves}
    if not moved:
        return 1.0
    counts, of_runs = count_tallies(moved), over_runs(moved)
    return min(max(len(_POWERS) * over_queries(counts, power), of_runs[power]) for power in _POWERS)


def over_queries(counts: Counter[Tally], power: int) -> float:
    """How often the powers of the drops add up to as much if the passes of each query are dealt out anew."""
    unit = math.lcm(*(tally.n_a * tally.n_b for tally in counts))
    seen = sum(n * _scaled(tally, unit, power) for tally, n in counts.items())
    if seen <= 0:
        return 1.0
    alike: Counter[tuple[int, int, int]] = Counter()
    for tally, n in counts.items():
        alike[tally.n_a, tally.n_b, tally.a + tally.b] += n
    return tail_p([(_dealt(*runs, unit, power), n) for runs, n in alike.items()], seen)


def _scaled(tally: Tally, unit: int, power: int) -> int:
    """A power of the drop, in whole numbers, whose sums are the same in any order."""
    scaled = tally.drop * (unit // (tally.n_a * tally.n_b))
    return scaled if power == 1 else scaled * scaled * scaled


@lru_cache(maxsize=10_000)
def _dealt(n_a: int, n_b: int, passes: int, unit: int, power: int) -> Part:
    """The powers of the drop, and how likely each is, if so many passes are dealt out to the runs."""
    return tuple((_scaled(tally, unit, power), p) for tally, p in _deals(n_a, n_b, passes))


@lru_cache(maxsize=10_000)
def _deals(n_a: int, n_b: int, passes: int) -> tuple[tuple[Tally, float], ...]:
    """What dealing out so many passes can give, and how likely each is."""
    ways = math.comb(n_a + n_b, passes)
    tallies = [Tally(a, n_a, passes - a, n_b) for a in range(max(0, passes - n_b), min(n_a, passes) + 1)]
    return tuple((t, math.comb(n_a, t.a) * math.comb(n_b, t.b) / ways) for t in tallies)


def over_runs(moved: Rows) -> dict[int, float]:
    """The same sums against those of other ways to choose A's runs, by Student's t.

    What was seen is part of another way's sum, by how many of A's runs that has; it is taken out.
    """
    a, b = next(iter(moved))
    k_a, k_b = len(a), len(b)
    sums = _sums_by_way(moved)
    seen = sums((1 << k_a) - 1)
    squares: dict[int, list[float]] = {power: [] for power in _POWERS}
    for of_a, kept in _other_ways(k_a, k_b):
        share = kept / k_a - (k_a - kept) / k_b
        for power, found in sums(of_a).items():
            rest = found - seen[power] * share**power
            squares[power].append(rest * rest / (1 - share * share))
    freedom = max(1, k_a + k_b - 2)
    others = math.comb(k_a + k_b, k_a) - 1 - (k_a == k_b)
    degrees = {1: freedom, 3: max(1, min(others // 2, 2 * freedom))}  # cubes differ more from way to way
    return {power: _t_p(seen[power], squares[power], degrees[power]) for power in _POWERS}


def _t_p(seen: int, squares: list[float], freedom: int) -> float:
    spread = math.sqrt(math.fsum(squares) / len(squares)) if squares else 0.0
    if seen <= 0:
        return 1.0
    return t_tail(seen / spread, freedom) if spread else 0.0


def _other_ways(k_a: int, k_b: int) -> Iterator[tuple[int, int]]:
    """Other choices of A's runs, as bits, and how many of A's they keep.

    First those that exchange one run, then two, until there are many; not those with the sides exchanged,
    whose sums are the same but for the sign.
    """
    ways = 0
    for exchanged in range(1, (k_a // 2 if k_a == k_b else min(k_a, k_b)) + 1):
        ways += math.comb(k_a, exchanged) * math.comb(k_b, exchanged)
        if exchanged > 1 and ways > _MOST_WAYS:
            return
        for kept in combinations(range(k_a), k_a - exchanged):
            for taken in combinations(range(k_a, k_a + k_b), exchanged):
                yield sum(1 << run for run in (*kept, *taken)), k_a - exchanged


def _sums_by_way(moved: Rows) -> Callable[[int], dict[int, int]]:
    """The sums of the powers of the drops, if the runs with these bits had been A's."""
    alike: dict[tuple[int, int], Counter[int]] = {}  # by the runs that have a query, and its passes
    for (a, b), n in moved.items():
        runs = (*a, *b)
        known = sum(1 << run for run, passed in enumerate(runs) if passed is not None)
        bits = sum(1 << run for run, passed in enumerate(runs) if passed)
        alike.setdefault((known, bits.bit_count()), Counter())[bits] += n
    unit = math.lcm(*range(1, len(a) + 1)) * math.lcm(*range(1, len(b) + 1))

    def sums(of_a: int) -> dict[int, int]:
        totals = dict.fromkeys(_POWERS, 0)
        for (known, passes), queries in alike.items():
            n_a = (known & of_a).bit_count()
            n_b = known.bit_count() - n_a
            counts: Counter[int] = Counter()
            for bits, n in queries.items():
                counts[(bits & of_a).bit_count()] += n
            for in_a, n in counts.items() if n_a and n_b else ():
                tally = Tally(in_a, n_a, passes - in_a, n_b)
                for power in _POWERS:
                    totals[power] += n * _scaled(tally, unit, power)
        return totals

    return sums
