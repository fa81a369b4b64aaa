"""What is counted of the comparison itself, over all queries and each slice: `regressions`, `overlap@5`, …"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from pytest_kebab_eval.comparing.movement import Movement, movement_metric
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, Value
from pytest_kebab_eval.scoring.aggregates import reduce
from pytest_kebab_eval.scoring.scorecard import Scorecard

COUNTS = ("regressions", "losses", "wins", "failed")
_KINDS = {
    ComparisonKind.REGRESSION: "regressions",
    ComparisonKind.LOSS: "losses",
    ComparisonKind.WIN: "wins",
}

Numbers = dict[str, int | float]  # counts are whole, also after a trip to a worker of xdist


class ComparisonCounts(Value, frozen=True):
    """Counts and movement, over all compared queries and over each slice."""

    queries: int
    values: Numbers  # a metric that nothing was measured of is not there
    slices: dict[str, Numbers]
    slice_queries: dict[str, int]
    checks: tuple[str, ...] = ()  # those that make a query count as failed

    def value(self, metric: str, part: str | None = None) -> float | None:
        """A count or a mean; None if nothing was compared."""
        values = self.values if part is None else self.slices.get(part, {})
        return values.get(metric)

    def compared(self, part: str | None = None) -> int:
        """How many queries were compared."""
        return self.queries if part is None else self.slice_queries.get(part, 0)


def is_comparison_metric(name: str) -> bool:
    """Whether a name is of the comparison, rather than of one run."""
    if name in COUNTS:
        return True
    try:
        movement_metric(name)
    except KeyError:
        return False
    return True


def count_comparison(
    comparisons: Iterable[QueryComparison], b: Scorecard, movement: Movement, checks: Collection[str]
) -> ComparisonCounts:
    """Count kinds and failures; a query failed if it lost one of the checks, or B has no result for it."""
    wanted = frozenset(checks)
    alike = Counter(
        (
            comparison.kind,
            comparison.cause == "absent" or not wanted.isdisjoint(comparison.checks),
            b.slices_of(comparison.query_id),
        )
        for comparison in comparisons
    )
    totals: dict[str | None, Counter[str]] = {None: Counter()}
    for (kind, failed, parts), count in alike.items():
        words = ["queries", *([_KINDS[kind]] if kind in _KINDS else []), *(["failed"] if failed else [])]
        for part in (None, *parts):
            totals.setdefault(part, Counter()).update(dict.fromkeys(words, count))
    slices = sorted(part for part in totals if part is not None)
    return ComparisonCounts(
        queries=totals[None]["queries"],
        values=_numbers(totals[None], movement, None),
        slices={part: _numbers(totals[part], movement, part) for part in slices},
        slice_queries={part: totals[part]["queries"] for part in slices},
        checks=tuple(sorted(wanted)),
    )


def _numbers(counts: Counter[str], movement: Movement, part: str | None) -> Numbers:
    numbers: Numbers = {name: counts[name] for name in COUNTS} if counts["queries"] else {}
    rows = movement.card.part(part)
    for metric in movement.card.metrics:
        value = reduce(metric, rows).value
        if value is not None:
            numbers[metric.name] = value
    return numbers
