"""The rows of the tables that every report shows: metrics and slices."""

from __future__ import annotations

from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import IMPROVED, WORSE, Significance
from pytest_kebab_eval.metrics import all_metrics

SLICE_METRICS = ("hit@5", "mrr", "recall@10_doc", "groundedness")


class MetricRow(NamedTuple):
    """One metric of a comparison."""

    name: str
    description: str
    lower_is_better: bool
    a: float | None
    b: float | None
    delta: float | None
    n_a: int
    n_b: int
    significance: Significance | None
    not_comparable: str | None
    spread_a: float | None = None  # the standard deviation between several runs of A
    spread_b: float | None = None

    @property
    def direction(self) -> int:
        """1 if B is significantly better, -1 if it is significantly worse, 0 if neither."""
        return {IMPROVED: 1, WORSE: -1}.get(self.conclusion, 0)

    @property
    def effect(self) -> str:
        """The same as a word."""
        return {1: "better", -1: "worse"}.get(self.direction, "same")

    @property
    def conclusion(self) -> str:
        """Whether the delta is significant, in words."""
        if self.not_comparable:
            return "not comparable"
        return self.significance.verdict if self.significance else "–"


def metric_rows(report: CompareReport) -> list[MetricRow]:
    """The metrics that either run has a value for; custom metrics come last."""
    b = report.aggregate_b.by_name()
    a = report.aggregate_a.by_name() if report.aggregate_a else {}
    deltas = report.deltas.by_name() if report.deltas else {}
    counts_a = report.aggregate_a.counts if report.aggregate_a else {}
    spread_a, spread_b = _spreads(report)
    known = {metric.name: metric.family for metric in all_metrics()}
    return [
        MetricRow(
            name=name,
            description=known[name].description if name in known else "a metric of your own",
            lower_is_better=name in known and known[name].lower_is_better,
            a=a.get(name),
            b=b.get(name),
            delta=deltas.get(name),
            n_a=counts_a.get(name, 0),
            n_b=report.aggregate_b.counts.get(name, 0),
            significance=report.significance.get(name),
            not_comparable=report.not_comparable.get(name),
            spread_a=spread_a.get(name),
            spread_b=spread_b.get(name),
        )
        for name in dict.fromkeys([*known, *b])
        if a.get(name) is not None or b.get(name) is not None
    ]


def _spreads(report: CompareReport) -> tuple[dict[str, float], dict[str, float]]:
    """By metric, how far the runs of A and of B are apart; nothing where each is one."""
    if not report.replicates:
        return {}, {}
    sides = (report.replicates.spread_a, report.replicates.spread_b)
    a, b = ({name: spread.deviation for name, spread in side.items()} for side in sides)
    return a, b


class SliceRow(NamedTuple):
    """One slice of a comparison; `values` has A, B and B - A for each of `SLICE_METRICS`."""

    name: str
    n: int
    values: tuple[tuple[float | None, float | None, float | None], ...]


def slice_rows(report: CompareReport) -> list[SliceRow]:
    """The slices of either run, by name."""
    a, b = report.aggregate_a, report.aggregate_b
    names = sorted({*(a.slices if a else ()), *b.slices})
    return [SliceRow(name, b.slice_counts.get(name, 0), _slice_values(report, name)) for name in names]


def _slice_values(
    report: CompareReport, name: str
) -> tuple[tuple[float | None, float | None, float | None], ...]:
    a, b, deltas = report.aggregate_a, report.aggregate_b, report.deltas
    return tuple(
        (
            a.value(metric, name) if a else None,
            b.value(metric, name),
            deltas.value(metric, name) if deltas else None,
        )
        for metric in SLICE_METRICS
    )
