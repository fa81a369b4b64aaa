"""How likely each commit is to be the first bad one, given runs that pass or fail by luck as well."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property
from itertools import accumulate

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
        fits = [_fit(passed[-1], failed[-1], _UNCHANGED) + math.log(_FLAKY)]
        for at in range(1, self.last + 1):
            before = _fit(passed[at - 1], failed[at - 1], _BEFORE)
            after = _fit(passed[-1] - passed[at - 1], failed[-1] - failed[at - 1], _AFTER)
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


def _fit(passed: int, failed: int, thought: tuple[float, float]) -> float:
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
