"""How likely each run is to be the first bad one, where luck has a part.

A query may fail now and then before it is lost, and pass now and then afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


SURE = 0.95
