"""The wording and figures that every report shares."""

from __future__ import annotations

from typing import NamedTuple

from pytest_kebab_eval.comparison import CompareReport
from pytest_kebab_eval.metrics import Metric, all_metrics
from pytest_kebab_eval.model import ComparisonKind

CAUSES = {
    "absent": "run B has no result for this query",
    "errored": "run B errored on this query",
    "empty": "run B found nothing at all",
    "below_cutoff": "it is there, but too far down",
    "wrong_chunk": "the right document, but another part of it",
    "gone": "it is not in what run B stored",
    "not_cited": "the answer's citations no longer lead to a chunk",
    "answer_rule": "the answer breaks a rule of the golden file",
}


class MetricRow(NamedTuple):
    """One metric of a comparison."""

    metric: Metric
    a: float | None
    b: float | None
    delta: float | None
    n_a: int
    n_b: int

    @property
    def direction(self) -> int:
        """1 if B is better, -1 if it is worse, 0 if neither."""
        if not self.delta:
            return 0
        return 1 if (self.delta > 0) is not self.metric.lower_is_better else -1


def metric_rows(report: CompareReport) -> list[MetricRow]:
    """The metrics that were measured in either run."""
    a, b = report.aggregate_a.by_name(), report.aggregate_b.by_name()
    deltas = report.deltas.by_name()
    counts_a, counts_b = report.aggregate_a.counts, report.aggregate_b.counts
    return [
        MetricRow(one, a[one.name], b[one.name], deltas[one.name], counts_a[one.name], counts_b[one.name])
        for one in all_metrics()
        if a[one.name] is not None or b[one.name] is not None
    ]


def verdict(report: CompareReport) -> str:
    """The comparison in one sentence."""
    lost = [one for one in report.per_query if one.checks or one.cause == "absent"]
    total = len(report.per_query)
    if lost:
        return f"B lost something on {_counted(len(lost), 'query')} of {total}."
    losses = report.count(ComparisonKind.LOSS)
    if losses:
        return f"B lost nothing, but ranks {_counted(losses, 'query')} of {total} worse."
    return f"B lost nothing that A had, over {_counted(total, 'query')}."


def kinds_counted(report: CompareReport) -> str:
    """`2 wins, 1 loss, 4 draws, 1 regression`."""
    return ", ".join(_counted(report.count(kind), kind.value) for kind in ComparisonKind)


def coverage(report: CompareReport) -> str | None:
    """What is not covered by both runs, if anything."""
    paired = report.deltas.paired
    parts = [
        f"{name} lacks {absent} of the golden queries"
        for name, absent in (("A", paired.absent_a), ("B", paired.absent_b))
        if absent
    ]
    parts += [
        f"{errored} errored in {name}"
        for name, errored in (("A", paired.errored_a), ("B", paired.errored_b))
        if errored
    ]
    return f"{paired.queries} queries are in both runs; {', '.join(parts)}" if parts else None


def matched(report: CompareReport) -> str:
    """How the hits were matched, such as `exact: chunk 7, document 1`."""
    counts = ", ".join(f"{by} {n}" for by, n in report.deltas.matched_by.items() if n)
    return f"{report.deltas.chunker_version_match}: {counts or 'nothing to match'}"


def valued(value: float | None) -> str:
    """A metric's value."""
    return "–" if value is None else f"{value:.4f}"


def signed(delta: float | None) -> str:
    """A difference."""
    if delta is None:
        return "–"
    return "0" if delta == 0 else f"{delta:+.4f}"


def _counted(number: int, noun: str) -> str:
    plural = {"query": "queries", "loss": "losses"}.get(noun, f"{noun}s")
    return f"{number} {noun if number == 1 else plural}"
