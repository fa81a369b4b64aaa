"""The wording and figures that every report shares."""

from __future__ import annotations

from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import LEAST_P, Significance
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.model import ComparisonKind, QueryComparison

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

    name: str
    means: str
    lower_is_better: bool
    a: float | None
    b: float | None
    delta: float | None
    n_a: int
    n_b: int
    significance: Significance | None
    not_comparable: str | None

    @property
    def direction(self) -> int:
        """1 if B is better, -1 if it is worse, 0 if neither."""
        if not self.delta or self.not_comparable:
            return 0
        return 1 if (self.delta > 0) is not self.lower_is_better else -1

    @property
    def says(self) -> str:
        """What the delta is worth."""
        if self.not_comparable:
            return "not comparable"
        return self.significance.verdict if self.significance else "–"


def metric_rows(report: CompareReport) -> list[MetricRow]:
    """The metrics that were measured in either run, those of a user's own last."""
    b = report.aggregate_b.by_name()
    a = report.aggregate_a.by_name() if report.aggregate_a else {}
    deltas = report.deltas.by_name() if report.deltas else {}
    counts_a = report.aggregate_a.counts if report.aggregate_a else {}
    known = {metric.name: metric.family for metric in all_metrics()}
    return [
        MetricRow(
            name=name,
            means=known[name].description if name in known else "a metric of your own",
            lower_is_better=name in known and known[name].lower_is_better,
            a=a.get(name),
            b=b.get(name),
            delta=deltas.get(name),
            n_a=counts_a.get(name, 0),
            n_b=report.aggregate_b.counts.get(name, 0),
            significance=report.significance.get(name),
            not_comparable=report.not_comparable.get(name),
        )
        for name in dict.fromkeys([*known, *b])
        if a.get(name) is not None or b.get(name) is not None
    ]


def p_said(p: float) -> str:
    """A p value in words; the least there is stands for all below it."""
    return f"p = {p:g}" if p > LEAST_P else f"p <= {p:g}"


class SliceRow(NamedTuple):
    """One slice of a comparison, by a few metrics that most people want."""

    part: str
    n: int
    values: tuple[tuple[float | None, float | None, float | None], ...]  # A, B, B - A for each metric


SLICE_METRICS = ("hit@5", "mrr", "recall@10_doc", "groundedness")


def slice_rows(report: CompareReport) -> list[SliceRow]:
    """The slices of either run."""
    a, b, deltas = report.aggregate_a, report.aggregate_b, report.deltas
    return [
        SliceRow(
            part,
            b.slice_counts.get(part, 0),
            tuple(
                (
                    a.value(name, part) if a else None,
                    b.value(name, part),
                    deltas.value(name, part) if deltas else None,
                )
                for name in SLICE_METRICS
            ),
        )
        for part in sorted({*(a.slices if a else ()), *b.slices})
    ]


def lost_queries(report: CompareReport) -> list[QueryComparison]:
    """The queries on which B lost something, but for those whose loss is accepted (xfail)."""
    accepted = set(report.accepted)
    return [
        one
        for one in report.per_query
        if (one.checks or one.cause == "absent") and one.query_id not in accepted
    ]


def verdict(report: CompareReport) -> str:
    """The comparison in one sentence."""
    total, lost = len(report.per_query), len(lost_queries(report))
    failed = sum(not one.passed for one in report.gates)
    more = f" {counted(failed, 'gate')} failed." if failed else ""
    if report.accepted:
        more += f" The loss of {counted(len(report.accepted), 'query')} is accepted (xfail)."
    if report.unreadable:
        more += f" {counted(len(report.unreadable), 'result')} cannot be read."
    if report.run_a is None:
        errors = (
            f"{lost} of {counted(total, 'query')} errored."
            if lost
            else f"{counted(total, 'query')}, no errors."
        )
        return f"{errors}{more}"
    losses = report.count(ComparisonKind.LOSS)
    if lost:
        return f"B lost something on {lost} of {counted(total, 'query')}.{more}"
    if losses:
        return f"B lost nothing, but ranks {losses} of {counted(total, 'query')} worse.{more}"
    return f"B lost nothing that A had, over {counted(total, 'query')}.{more}"


def kinds_counted(report: CompareReport) -> str:
    """`2 wins, 1 loss, 4 draws, 1 regression`."""
    return ", ".join(counted(report.count(kind), kind.value) for kind in ComparisonKind)


def coverage(report: CompareReport) -> str | None:
    """What is not covered by both runs, if anything."""
    if report.deltas is None:
        return None
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
    if not parts and paired.deltas is None:
        return None
    return "; ".join(filter(None, [f"{counted(paired.queries, 'query')} in both runs", ", ".join(parts)]))


def matched(report: CompareReport) -> str:
    """How the hits were matched, such as `exact: chunk 7, document 1`."""
    if report.deltas is None:
        return report.aggregate_b.match
    counts = ", ".join(f"{by} {n}" for by, n in report.deltas.matched_by.items() if n)
    return f"{report.deltas.chunker_version_match}: {counts or 'nothing to match'}"


def valued(value: float | None) -> str:
    """A metric's value."""
    if value is None:
        return "–"
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"


def signed(delta: float | None) -> str:
    """A difference."""
    if delta is None:
        return "–"
    if delta == 0:
        return "0"
    return f"{delta:+.4f}" if abs(delta) < 100 else f"{delta:+.1f}"


def counted(number: int, noun: str) -> str:
    """`1 query`, `2 queries`."""
    plural = {"query": "queries", "loss": "losses"}.get(noun, f"{noun}s")
    return f"{number} {noun if number == 1 else plural}"
