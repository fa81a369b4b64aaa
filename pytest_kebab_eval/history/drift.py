"""Where a metric drifts: many small steps for the worse, each within the noise, that together are not.

A one-sided CUSUM over the paired changes from run to run finds where the metric began to fall. The noise of
a run is in two changes, with both signs, and leaves their sum again; so that sum, paired query by query
between the two ends, is what is held against its spread. Of suites that do not change, at most 5 % are said
to drift within 30 runs; `benchmarks/over_time.py` shows it, and the numbers below were chosen by it.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from pytest_kebab_eval.comparing.significance import paired_significance, sure_of_many
from pytest_kebab_eval.metrics.ranking import MRR_DEPTH
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.scorecard import Scorecard

_LIMIT = 3.55  # spreads that a fall of many queries must exceed; of few, less: see `StepChanges.limit`
_FEW = 13
_REFERENCE = 0.1  # spreads of a step that do not count as a fall

# -- how a query did, in a number: the rank of its first correct hit, or one of these --------------

NOT_FOUND, ERRORED = 0, -1
NO_TARGETS, ERRORED_WITHOUT_TARGETS = -2, -3

Ranks = Mapping[str, int]  # of the queries that a run has a result for


def rank_number(rank: int | None, *, errored: bool, has_targets: bool) -> int:
    """How a query did, for all metrics that can be followed."""
    if not has_targets:
        return ERRORED_WITHOUT_TARGETS if errored else NO_TARGETS
    return ERRORED if errored else rank or NOT_FOUND


def ranks_of(card: Scorecard) -> dict[str, int]:
    """How the queries of a scored run did."""
    return {
        query_id: rank_number(
            score.first, errored=score.facts.errored, has_targets=score.facts.targets.has_chunk_targets
        )
        for query_id, score in zip(card.query_ids(), card.scores_in_order(), strict=True)
    }


class Followed(Value, frozen=True):
    """A metric that follows from the first correct rank, or from an error."""

    value: Callable[[int], float | None]
    yes_no: bool = True
    lower_is_better: bool = False


def followed_metric(metric: str) -> Followed | None:
    """How a metric is followed; None if it cannot be."""
    if found := re.fullmatch(r"hit@(\d{1,6})", metric):
        k = int(found[1])
        return Followed(lambda rank: float(0 < rank <= k) if rank > NO_TARGETS else None)
    if metric == "mrr":
        return Followed(
            lambda rank: (1 / rank if 0 < rank <= MRR_DEPTH else 0.0) if rank > NO_TARGETS else None,
            yes_no=False,
        )
    if metric == "error_rate":
        errors = (ERRORED, ERRORED_WITHOUT_TARGETS)
        return Followed(lambda rank: float(rank in errors), lower_is_better=True)
    return None


# -- changes between two runs ------------------------------------------------------------------------


class StepChanges(Value, frozen=True):
    """The changes for the worse of a metric, over the queries that two runs have."""

    total: float
    squares: float
    n: int

    @property
    def mean(self) -> float:
        return self.total / self.n if self.n else 0.0

    @property
    def spread(self) -> float:
        """The standard error of the mean if changes are as likely each way, with one more each way.

        Without those two, a few queries that all fell would be beyond all noise.
        """
        return math.sqrt(self.squares + 2) / self.n if self.n else math.inf

    @property
    def limit(self) -> float:
        """What the mean exceeds by chance, in at most 5 % of 30 runs: found by simulation for 10 to 1,500."""
        return _LIMIT * math.sqrt(self.n / (self.n + _FEW)) * self.spread if self.n else math.inf


class RankPairs:
    """Runs in order of time; what two of them have in common is counted once for all metrics."""

    def __init__(self, runs: Sequence[Ranks]) -> None:
        self.runs = runs
        self._known: dict[tuple[int, int], Counter[tuple[int, int]]] = {}

    def between(self, a: int, b: int) -> Counter[tuple[int, int]]:
        """How many queries have which numbers in the two runs."""
        if (a, b) not in self._known:
            before, after = self.runs[a], self.runs[b]
            both = [query_id for query_id in before if query_id in after]
            pairs = zip(map(before.__getitem__, both), map(after.__getitem__, both), strict=True)
            self._known[a, b] = Counter(pairs)
        return self._known[a, b]

    def changes(self, metric: Followed, a: int, b: int) -> StepChanges:
        sign = 1 if metric.lower_is_better else -1
        found = self._differences(metric, a, b)
        return StepChanges(
            sign * math.fsum(difference * count for difference, count in found),
            math.fsum(difference * difference * count for difference, count in found),
            sum(count for _, count in found),
        )

    def p_value(self, metric: Followed, a: int, b: int) -> float:
        """How likely luck alone is to change the metric so much between the two runs, either way."""
        found = self._differences(metric, a, b)
        changes = [difference for difference, count in found if difference for _ in range(count)]
        n = sum(count for _, count in found)
        tested = paired_significance(changes, n, yes_no=metric.yes_no, lower_is_better=metric.lower_is_better)
        return 1.0 if tested.p is None else tested.p

    def _differences(self, metric: Followed, a: int, b: int) -> list[tuple[float, int]]:
        """What changed from a run to another, and in how many queries."""
        values = (
            (metric.value(before), metric.value(after), count)
            for (before, after), count in self.between(a, b).items()
        )
        return [
            (last - first, count) for first, last, count in values if first is not None and last is not None
        ]


# -- drift -------------------------------------------------------------------------------------------


class Fall(Value, frozen=True):
    """How far a metric is down in a run, since where it began to fall."""

    start: int  # the run before the first that was worse
    changes: StepChanges

    @property
    def is_drift(self) -> bool:
        return self.changes.mean > self.changes.limit


def falls(pairs: RankPairs, metric: Followed) -> Iterator[Fall]:
    """The fall in each run after the first."""
    level, start = 0.0, 0
    for run in range(1, len(pairs.runs)):
        step = pairs.changes(metric, run - 1, run)
        level += step.mean - (_REFERENCE * step.spread if step.n else 0.0)
        if level <= 0:
            level, start = 0.0, run
        yield Fall(start, pairs.changes(metric, start, run) if start < run else StepChanges(0.0, 0.0, 0))


class Drift(Value, frozen=True):
    """A metric that is worse in the newest run than it was, by more than noise."""

    metric: str
    change: float  # from the run where it began to the newest, paired
    since: str  # the run where it began: the last one before it got worse
    runs: int  # since then
    worst_run: str = ""  # of the steps that are significant and last, the one of which most is left
    worst_run_before: str = ""
    worst_change: float | None = None  # what is left of it in every run since

    @property
    def is_step(self) -> bool:
        """Whether one step explains at least half of it."""
        return self.worst_change is not None and abs(self.worst_change) >= abs(self.change) / 2


def find_drifts(runs: Mapping[str, Ranks], metrics: Sequence[str]) -> list[Drift]:
    """Of these metrics, those that drift; followed are `hit@k`, `mrr` and `error_rate`.

    The runs are by their ids, the oldest first; those without results are left out.
    """
    kept = {run_id: ranks for run_id, ranks in runs.items() if ranks}
    names, pairs = [*kept], RankPairs([*kept.values()])
    found = []
    for metric in metrics:
        followed = followed_metric(metric)
        newest = deque(falls(pairs, followed), maxlen=1) if followed else ()
        found += [
            _drift(metric, followed, fall, names, pairs) for fall in newest if followed and fall.is_drift
        ]
    return found


def _drift(metric: str, followed: Followed, fall: Fall, names: Sequence[str], pairs: RankPairs) -> Drift:
    sign = 1 if followed.lower_is_better else -1
    steps = _lasting_steps(followed, fall, pairs)
    since = (names[fall.start], len(names) - 1 - fall.start)
    drift = Drift(metric, round(sign * fall.changes.mean, 4), *since)
    if not steps:
        return drift
    worst = max(sorted(steps), key=steps.__getitem__)
    return msgspec.structs.replace(
        drift,
        worst_run=names[worst],
        worst_run_before=names[worst - 1],
        worst_change=round(sign * steps[worst], 4),
    )


def _lasting_steps(followed: Followed, fall: Fall, pairs: RankPairs) -> dict[int, float]:
    """What each significant step for the worse took for good, by its run; never more than the fall.

    How many steps were looked at is corrected for. A step that is half made up for in any run since, such as
    an outage, explains nothing.
    """
    runs = range(fall.start + 1, len(pairs.runs))
    found = {}
    for run in sure_of_many({run: pairs.p_value(followed, run - 1, run) for run in runs}):
        step = pairs.changes(followed, run - 1, run).mean
        left = min(pairs.changes(followed, run - 1, later).mean for later in range(run, len(pairs.runs)))
        if left > 0 and left >= step / 2:
            found[run] = min(left, fall.changes.mean)
    return found
