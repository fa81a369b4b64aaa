"""The layout of the charts of `report.html` that compare A and B: metrics, ranks and slices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.reports.html import short
from pytest_kebab_eval.reports.html.query_index import SLICE_SHOWN, QueryIndex
from pytest_kebab_eval.reports.rows import SLICE_METRICS, MetricRow, SliceRow

# -- metrics -------------------------------------------------------------------------------------

# Shown where they have a value, as are those that a gate names and those that changed significantly.
_MAIN_METRICS = (
    *("hit@1", "hit@5", "hit@10", "mrr", "ndcg@10", "recall@10_doc", "precision@5_chunk"),
    *("groundedness", "citation_coverage", "refusal_correctness", "over_refusal_rate"),
    *("empty_result_rate", "error_rate"),
)
_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def drawn_rows(report: CompareReport, rows: Iterable[MetricRow]) -> list[MetricRow]:
    """The metrics that are drawn, all of them from 0 to 1."""
    rows = list(rows)
    changed = {row.name for row in rows if row.direction and "@" not in row.name}
    names = {*_MAIN_METRICS, *(gate.metric for gate in report.gates), *changed}
    return [
        row
        for row in rows
        if row.name in names and all(value is None or 0 <= value <= 1 for value in (row.a, row.b))
    ]


class Delta(Value, frozen=True):
    """A metric's change and its interval as positions on the common scale, in per cent of the width."""

    row: MetricRow
    drawn: float
    at: float
    low: float | None
    high: float | None


class Forest(Value, frozen=True):
    """The deltas with their intervals, on a scale from -limit to limit."""

    deltas: list[Delta]
    limit: float


def forest(rows: Iterable[MetricRow]) -> Forest | None:
    """The deltas of the metrics that are drawn."""
    changes: list[tuple[MetricRow, float, list[float]]] = []  # the delta and the ends of its interval
    for row in rows:
        tested = row.significance.change if row.significance else None
        drawn = tested if isinstance(tested, float) else row.delta  # what the interval is of
        if drawn is not None and row.significance and not row.not_comparable:
            ends = (row.significance.low, row.significance.high)
            changes.append((row, drawn, [end for end in ends if end is not None]))
    if not changes:
        return None
    # Room for every delta and most intervals; a few wide ones do not flatten the others.
    reaches = [max(map(abs, ends), default=0.0) for *_, ends in changes]
    most = max(abs(drawn) for _, drawn, _ in changes)
    room = max(most, min(max(reaches), 3 * _median(reaches)))
    limit = next(limit for limit in _LIMITS if min(room, 1.0) <= limit)

    def at(value: float) -> float:
        return 50 + 48 * min(max(value / limit, -1.04), 1.04)

    deltas = [
        Delta(
            row,
            drawn,
            at=at(drawn),
            low=at(ends[0]) if ends else None,
            high=at(ends[-1]) if ends else None,
        )
        for row, drawn, ends in changes
    ]
    return Forest(deltas, limit)


def _median(values: Sequence[float]) -> float:
    """The middle value; the module `statistics` would take 3 ms to load."""
    ordered, middle = sorted(values), len(values) // 2
    return (ordered[middle] + ordered[~middle]) / 2


# -- ranks, A against B --------------------------------------------------------------------------


class Flow(Value, frozen=True):
    """The queries that went from one level to another."""

    a: int
    b: int
    queries: int
    width: float
    effect: str


class SlopeLevel(NamedTuple):
    """A level of ranks, how far down it is drawn, and how many queries are on it in A and in B."""

    label: str
    y: int
    in_a: int
    in_b: int


class Slope(Value, frozen=True):
    """Every query's rank in A on the left and in B on the right."""

    levels: list[SlopeLevel]
    flows: list[Flow]  # the worst is drawn last, above the others
    moves: list[Flow]  # the largest changes, the worst first
    more_moves: int
    without_targets: int
    height: int


_STEP, _TOP = 25, 34
_MOVES_SHOWN = {"lost": 5, "worse": 3, "better": 3}
_EFFECTS = ("same", "better", "worse", "lost")


def slope(index: QueryIndex) -> Slope | None:
    """The chart of ranks; None where no query has targets."""
    if not index.flows:
        return None
    miss = len(index.levels) - 1
    largest = max(*index.flows.values(), 30)
    flows = [
        Flow(a, b, count, round(1.75 + 12 * math.sqrt(count / largest), 2), _flow_effect(a, b, miss))
        for (a, b), count in sorted(index.flows.items())
    ]
    moves = sorted(
        (flow for flow in flows if flow.a != flow.b), key=lambda flow: (-flow.queries, flow.a, flow.b)
    )
    shown = [
        flow
        for effect, count in _MOVES_SHOWN.items()
        for flow in itertools.islice((flow for flow in moves if flow.effect == effect), count)
    ]
    levels = [
        SlopeLevel(
            level.label,
            y=_TOP + _STEP * number + (12 if number == miss else 0),
            in_a=sum(flow.queries for flow in flows if flow.a == number),
            in_b=sum(flow.queries for flow in flows if flow.b == number),
        )
        for number, level in enumerate(index.levels)
    ]
    return Slope(
        levels=levels,
        flows=sorted(flows, key=lambda flow: _EFFECTS.index(flow.effect)),
        moves=shown,
        more_moves=sum(flow.queries for flow in moves) - sum(flow.queries for flow in shown),
        without_targets=index.without_targets(),
        height=levels[-1].y + 20,
    )


def _flow_effect(a: int, b: int, miss: int) -> str:
    if a == b:
        return "same"
    return "lost" if b == miss else "better" if b < a else "worse"


# -- slices --------------------------------------------------------------------------------------


class SliceMark(Value, frozen=True):
    """One slice of one metric: A's and B's values from 0 to 1."""

    value: str  # of the field that slices, such as `hard`
    queries: int
    a: float | None
    b: float | None
    delta: float | None


class SlicePanel(Value, frozen=True):
    """One metric over all slices, grouped by the field that slices."""

    metric: str
    groups: list[tuple[str, list[SliceMark]]]


_SLICES_SHOWN = 30


def slice_panels(rows: Sequence[SliceRow], index: QueryIndex) -> list[SlicePanel]:
    """A panel for each metric, all with the same slices; of many slices, those with the most queries."""
    by_size = sorted(rows, key=lambda row: (-index.slice_sizes[short(row.name, SLICE_SHOWN)], row.name))
    largest = by_size[:_SLICES_SHOWN]
    panels = []
    for column, metric in enumerate(SLICE_METRICS):
        groups: dict[str, list[SliceMark]] = {}
        for row in rows:
            a, b, delta = row.values[column]
            if row in largest and (a is not None or b is not None):
                name = short(row.name, SLICE_SHOWN)
                field, _, value = name.partition("=")
                groups.setdefault(field, []).append(SliceMark(value, index.slice_sizes[name], a, b, delta))
        if groups:
            panels.append(SlicePanel(metric, list(groups.items())))
    return panels
