"""How likely each run, or each commit, is to be the first bad one, where luck has a part.

A query may fail now and then before it is lost, and pass now and then afterwards. `benchmarks/over_time.py`
shows how often what is said here is right; the numbers below were chosen by it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, groupby, pairwise

from pytest_kebab_eval.model import Value

# -- runs that are stored ------------------------------------------------------------------------

LIMIT = 4.0  # log units by which a split must beat no split: 5 % of coins that never changed get there
RULED_OUT = 3.2  # log units below the best: the true run is within them in 90 % of histories
_RECOVERY = 4.5  # log units that each further part must bring, for a query that was found again


class ChangePoint(Value, frozen=True):
    """The most likely first bad run, by its number among those that tell."""

    at: int
    candidates: tuple[int, ...]  # those that cannot be ruled out, with the most likely one
    sureness: float  # its share of the likelihood of all
    before: tuple[int, int]  # passed, of how many runs, since the query was found again for good
    after: tuple[int, int]
    is_clear: bool  # more likely than no change at all

    @property
    def flips(self) -> bool:
        """Whether luck may have a part: a run fails before the change, or passes after it."""
        return self.before[0] < self.before[1] or self.after[0] > 0


def find_change(passed: Sequence[bool]) -> ChangePoint | None:
    """The change for the worse that the runs, the oldest first, end with; None if there is none at all.

    The first bad run is the one that splits them into two with the largest likelihood, each part with a rate
    of its own, the later the lower.
    """
    if all(passed):  # as most queries are
        return None
    start = _last_recovery(passed)
    runs, total = len(passed) - start, sum(passed[start:])
    splits = {}
    for number, good in enumerate(accumulate(passed[start:-1]), 1):
        if good * (runs - number) > (total - good) * number:  # the rate is lower afterwards
            splits[number] = _best_fit(good, number) + _best_fit(total - good, runs - number)
    if not splits:
        return None
    at = max(splits, key=lambda number: (splits[number], number))
    best, kept = splits[at], sum(passed[start : start + at])
    return ChangePoint(
        start + at,
        tuple(start + number for number, fit in splits.items() if fit >= best - RULED_OUT),
        1 / math.fsum(math.exp(fit - best) for fit in splits.values()),
        (kept, at),
        (total - kept, runs - at),
        # Where nothing flips there is no luck to be seen, however few the runs are.
        is_clear=kept == at == total or best - _best_fit(total, runs) > LIMIT,
    )


def _best_fit(passed: int, runs: int) -> float:
    """The logarithm of the likelihood of runs that pass at the rate seen."""
    failed = runs - passed
    fit = passed * math.log(passed / runs) if passed else 0.0
    return fit + (failed * math.log(failed / runs) if failed else 0.0)


def _last_recovery(passed: Sequence[bool]) -> int:
    """The first run after which no rate rises again: the parts that fit best, each paying for itself."""
    blocks = [(is_passed, sum(1 for _ in alike)) for is_passed, alike in groupby(passed)]
    if len(blocks) <= 2:  # nothing flips
        return blocks[0][1] if len(blocks) == 2 and not blocks[0][0] else 0
    runs = [0, *accumulate(length for _, length in blocks)]
    good = [0, *accumulate(length * is_passed for is_passed, length in blocks)]
    costs, cuts = [-_RECOVERY], [0]
    for end in range(1, len(runs)):
        cost, cut = min(
            (costs[cut] + _RECOVERY - _best_fit(good[end] - good[cut], runs[end] - runs[cut]), cut)
            for cut in range(end)
        )
        costs.append(cost)
        cuts.append(cut)
    chosen = [len(blocks)]
    while chosen[-1]:
        chosen.append(cuts[chosen[-1]])
    chosen.reverse()
    rates = [(good[end] - good[cut]) / (runs[end] - runs[cut]) for cut, end in pairwise(chosen)]
    rises = [cut for cut, (before, after) in zip(chosen[1:], pairwise(rates), strict=False) if after > before]
    return runs[rises[-1]] if rises else 0


# -- commits of which more runs can be recorded ---------------------------------------------------

SURE = 0.95
# What is thought of the rates before any run, as if so many had passed and failed: pessimistic, so that one
# run is never enough. What is seen soon outweighs it.
_BEFORE, _AFTER = (4.5, 0.5), (0.8, 3.2)
_UNCHANGED = (1.0, 1.0)
_FLAKY = 0.3  # the probability that no commit lost it, before any run
_WORTH_ASKING = 0.01  # a commit is asked if it may tell these apart: at least so likely, either way


class CommitOdds:
    """The commits 1 to `last`, of which one is the first bad one, unless the check is flaky.

    Commit 0 is that of the good run; the bad run is of the last. The odds are those of Bayes: the rates
    before and since are unknown, and every value of them is weighed by how likely it makes the runs seen. A
    commit is asked `repeat` times at most, and all together that many times as often as halving would.
    """

    def __init__(self, last: int, repeat: int) -> None:
        self.last = last
        self._repeat = repeat
        self._to_ask = repeat * max(1, math.ceil(math.log2(max(last, 1))))
        self._passed: Counter[int] = Counter()
        self._failed: Counter[int] = Counter()
        self._skipped: set[int] = set()

    def learn(self, at: int, *, passed: bool) -> None:
        """A run of a commit passed, or failed."""
        (self._passed if passed else self._failed)[at] += 1
        self.__dict__.pop("_odds", None)

    def skip(self, at: int) -> None:
        """The commit cannot tell."""
        self._skipped.add(at)

    def runs(self, at: int) -> int:
        return self._passed[at] + self._failed[at]

    @cached_property
    def _odds(self) -> tuple[float, list[float]]:
        """The probability that no commit lost it, and those of the commits from 1 on."""
        passed = [*accumulate(self._passed[at] for at in range(self.last + 1))]
        failed = [*accumulate(self._failed[at] for at in range(self.last + 1))]
        fits = [_mean_fit(passed[-1], failed[-1], _UNCHANGED) + math.log(_FLAKY)]
        for at in range(1, self.last + 1):
            before = _mean_fit(passed[at - 1], failed[at - 1], _BEFORE)
            after = _mean_fit(passed[-1] - passed[at - 1], failed[-1] - failed[at - 1], _AFTER)
            fits.append(before + after + math.log((1 - _FLAKY) / self.last))
        best = max(fits)
        weights = [math.exp(fit - best) for fit in fits]
        total = math.fsum(weights)
        flaky, *odds = (weight / total for weight in weights)
        return flaky, odds

    @property
    def flaky(self) -> float:
        """The probability that no commit lost it: it flips all along."""
        return self._odds[0]

    @property
    def sureness(self) -> float:
        """The probability of the most likely commit."""
        return max(self._odds[1])

    @property
    def candidates(self) -> tuple[int, ...]:
        """The commits, as few as can be, of which one is the first bad one by 95 %, if any is."""
        odds = dict(enumerate(self._odds[1], 1))
        chosen, known = [], 0.0
        for at in sorted(odds, key=lambda at: (-odds[at], at)):
            if known >= SURE * (1 - self.flaky):
                break
            chosen.append(at)
            known += odds[at]
        return tuple(sorted(chosen))

    @property
    def best(self) -> int:
        return 1 + self._odds[1].index(self.sureness)

    def ask(self) -> int | None:
        """The commit to ask, which halves what is likely; None if it is known, or none may tell more."""
        if self.sureness >= SURE or self.flaky >= SURE or not self._to_ask:
            return None
        below = dict(enumerate(accumulate(self._odds[1]), 1))
        may_tell = [
            at
            for at in range(1, self.last)
            if at not in self._skipped and self.runs(at) < self._repeat
            if min(below[at], 1 - self.flaky - below[at]) >= _WORTH_ASKING
        ]
        if not may_tell:
            return None
        self._to_ask -= 1
        return min(may_tell, key=lambda at: (abs(below[at] - (1 - self.flaky) / 2), at))


def _mean_fit(passed: int, failed: int, thought: tuple[float, float]) -> float:
    """The logarithm of the likelihood of such runs, averaged over the rates (a beta distribution)."""
    a, b = thought
    return (
        math.lgamma(passed + a)
        + math.lgamma(failed + b)
        - math.lgamma(passed + failed + a + b)
        + math.lgamma(a + b)
        - math.lgamma(a)
        - math.lgamma(b)
    )
