"""A report's numbers as rows: each metric, those in the summary, each slice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Protocol, TypeVar

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import BETTER, MAY_BE_CHANCE, WORSE, format_p
from pytest_kebab_eval.comparing.totals import IN_SUMMARY, Significance
from pytest_kebab_eval.metrics import Metric, all_metrics, is_metric
from pytest_kebab_eval.model import Value

_WITH_P = (BETTER, WORSE, MAY_BE_CHANCE)
SLICE_METRICS = ("hit@5", "mrr", "recall@10_doc", "groundedness")


# Where a name means something else to most people, what reports show; JSON and gates have the name.
_LABELS = {"groundedness": "answer rules"}


def metric_label(name: str) -> str:
    """What a metric is called where people read of it."""
    return _LABELS.get(name, name)


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
    spread_a: float | None  # the standard deviation between several runs of A
    spread_b: float | None

    @property
    def label(self) -> str:
        return metric_label(self.name)

    @property
    def direction(self) -> int:
        """1 if B is significantly better, -1 if it is significantly worse, 0 if neither."""
        verdict = self.significance.verdict if self.significance else ""
        return {BETTER: 1, WORSE: -1}.get(verdict, 0)

    @property
    def changes(self) -> tuple[object, ...] | None:
        """What tells its change from that of another metric; None if there is no test of it."""
        found = self.significance
        return (self.delta, found.n, found.up, found.down) if found else None

    @property
    def effect(self) -> str:
        return {1: "better", -1: "worse"}.get(self.direction, "same")

    @property
    def conclusion(self) -> str:
        """Whether the delta is more than chance, in words, and its p given how many metrics there are."""
        if self.not_comparable:
            return "not comparable"
        test = self.significance
        if test is None:
            return "–"
        return f"{test.verdict} ({format_p(test.p_holm)})" if test.verdict in _WITH_P else test.verdict

    @property
    def in_both(self) -> str:
        """The change that was tested, where it is not the delta: over the queries that both runs measured."""
        test = self.significance
        if test is None or not isinstance(test.change, float):
            return ""
        return f"{test.change:+.4f} over the {test.n} queries that both measured"


def metric_rows(report: CompareReport) -> list[MetricRow]:
    """The metrics that either run has a value for; custom metrics come last."""
    b = report.aggregate_b.values
    a = report.aggregate_a.values if report.aggregate_a else {}
    deltas = report.deltas.values if report.deltas else {}
    counts_a = report.aggregate_a.counts if report.aggregate_a else {}
    replicates = report.replicates or None
    spread_a, spread_b = (replicates.spread_a, replicates.spread_b) if replicates else ({}, {})
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
            spread_a=spread_a[name].deviation if name in spread_a else None,
            spread_b=spread_b[name].deviation if name in spread_b else None,
        )
        for name in dict.fromkeys([*known, *b])
        if a.get(name) is not None or b.get(name) is not None
    ]


def _always_listed(report: CompareReport) -> set[str]:
    return {*IN_SUMMARY, *(gate.metric for gate in report.gates)}


def summary_rows(report: CompareReport) -> list[MetricRow]:
    """Each thing that is measured once, and of what is not always listed only what changed."""
    wanted = _always_listed(report)
    return [row for row in each_once(metric_rows(report), wanted) if row.name in wanted or row.direction]


def changed_rows(report: CompareReport) -> list[MetricRow]:
    """The metrics of gates, those that changed for sure, and one of each other family that may have."""
    in_gates = {gate.metric for gate in report.gates}
    rows = each_once(metric_rows(report), _always_listed(report))
    first = [row for row in rows if row.name in in_gates]
    first += [row for row in rows if row.direction and row not in first]
    listed: dict[str, MetricRow] = {}
    for row in [*first, *(row for row in rows if row.delta and row.name in IN_SUMMARY)]:
        is_told = _is_share_of_hits(row, rows) or any(
            row.changes == other.changes is not None or _family(row.name) == _family(other.name)
            for other in listed.values()
        )
        if row.name in in_gates or not is_told:
            listed[row.name] = row
    return [row for row in rows if row.name in listed]


def _is_share_of_hits(row: MetricRow, rows: Iterable[MetricRow]) -> bool:
    """Whether a precision says no more than hit@5: with one passage a query it is a fifth of that."""
    hits = next((other.significance for other in rows if other.name == "hit@5"), None)
    own = row.significance
    is_precision = row.name == "precision@5_chunk"
    return bool(is_precision and hits and own and (own.n, own.up, own.down) == (hits.n, hits.up, hits.down))


def group_equal(rows: Iterable[MetricRow]) -> list[tuple[MetricRow, list[str]]]:
    """Each metric with the labels of all of its family that have its numbers, such as hit@5 and hit@k."""
    groups: dict[MetricRow, tuple[MetricRow, list[str]]] = {}
    for row in rows:
        numbers = row._replace(name=_family(row.name), description="")
        groups.setdefault(numbers, (row, []))[1].append(row.label)
    return [*groups.values()]


def shortlist(report: CompareReport, most: int) -> list[MetricRow]:
    """Of the summary no more than these: what gates ask for, then what changed, then the others."""
    rows = summary_rows(report)
    in_gates = {gate.metric: gate.passed for gate in sorted(report.gates, key=lambda gate: not gate.passed)}
    urgent = sorted(rows, key=lambda row: _urgency(row, in_gates))
    kept = {row.name for row in urgent[:most]}
    return [row for row in rows if row.name in kept]


def _urgency(row: MetricRow, in_gates: Mapping[str, bool]) -> int:
    """0 for a metric of a gate that failed, 1 of another gate, 2 if it changed for sure, 3 if perhaps."""
    if row.name in in_gates:
        return int(in_gates[row.name])
    return 2 if row.direction else 3 if row.delta else 4


class ChangedMetric(Protocol):
    """A metric, and what tells its changes from those of another, if anything."""

    @property
    def name(self) -> str: ...

    @property
    def changes(self) -> tuple[object, ...] | None: ...


_Changed = TypeVar("_Changed", bound=ChangedMetric)


def each_once(rows: Iterable[_Changed], wanted: Collection[str]) -> list[_Changed]:
    """The wanted metrics, and one of every other family unless its changes are those of another."""
    rows = [*rows]
    families = {_family(row.name) for row in rows if row.name in wanted}
    seen = {row.changes for row in rows if row.name in wanted} - {None}
    listed = []
    for row in rows:
        is_new = _family(row.name) not in families and row.changes not in seen and _stands_for_all(row.name)
        if row.name in wanted or is_new:
            listed.append(row)
        if is_new:
            families.add(_family(row.name))
            seen |= {row.changes} - {None}
    return listed


def _stands_for_all(name: str) -> bool:
    """Whether it is the one of its family that is listed: that with the cutoff 10, if it has one."""
    return "@" not in name or "@10" in name or not is_metric(name)


def _family(name: str) -> str:
    """`map` for `map@10` and for `map`; a metric that users add is a family by itself."""
    return Metric.parse(name).family.pattern.replace("@{k}", "") if is_metric(name) else name


class SliceRow(Value, frozen=True):
    """One slice of a comparison; `values` has A, B and B - A for each of `SLICE_METRICS`."""

    name: str
    n: int
    values: list[tuple[float | None, ...]]


def slice_rows(report: CompareReport) -> list[SliceRow]:
    """The slices of either run, by name."""
    a, b = report.aggregate_a, report.aggregate_b
    sides = [side.slices if side else {} for side in (a, b, report.deltas)]
    return [
        SliceRow(
            name,
            b.slice_counts.get(name, 0),
            [tuple(side.get(name, {}).get(metric) for side in sides) for metric in SLICE_METRICS],
        )
        for name in sorted({*sides[0], *sides[1]})
    ]
