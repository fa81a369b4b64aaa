"""The layout of the charts of `report.html` that compare A and B: metrics, ranks and slices."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.significance import IMPROVED, WORSE
from pytest_kebab_eval.reports.html.query_index import Digest
from pytest_kebab_eval.reports.html.text import short
from pytest_kebab_eval.reports.wording import SLICE_METRICS, MetricRow, slice_rows

# -- metrics -------------------------------------------------------------------------------------


def mood_of(delta: float | None, lower_is_better: bool = False) -> str:
    """Whether a change is for the better."""
    if not delta:
        return "same"
    return "better" if (delta > 0) is not lower_is_better else "worse"


_HEADLINE = (
    "hit@1",
    "hit@5",
    "hit@10",
    "mrr",
    "ndcg@10",
    "recall@10_doc",
    "precision@5_chunk",
    "groundedness",
    "citation_coverage",
    "refusal_correctness",
    "over_refusal_rate",
    "empty_result_rate",
    "error_rate",
)


def _headline(report: CompareReport, rows: Iterable[MetricRow]) -> set[str]:
    """The metrics that most people want, those that gates are on, and those that surely changed."""
    changed = {row.name for row in rows if row.says in (IMPROVED, WORSE) and "@" not in row.name}
    return {*_HEADLINE, *(gate.metric for gate in report.gates), *changed}


def _is_share(row: MetricRow) -> bool:
    return all(value is None or 0 <= value <= 1 for value in (row.a, row.b))


def bars(report: CompareReport, rows: Sequence[MetricRow]) -> list[MetricRow]:
    """The metrics that are drawn as bars from 0 to 1."""
    wanted = _headline(report, rows)
    return [row for row in rows if row.name in wanted and _is_share(row)]


class Delta(NamedTuple):
    """One metric's change on a common scale, in per cent of the width; hollow if it may be noise."""

    row: MetricRow
    delta: float
    at: float
    low: float | None
    high: float | None
    mood: str
    sure: bool


class Forest(NamedTuple):
    """The deltas with their intervals, on a scale from -limit to limit."""

    deltas: tuple[Delta, ...]
    limit: float
    paired: bool


_LIMITS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)


def forest(report: CompareReport, rows: Iterable[MetricRow]) -> Forest | None:
    """Where the runs do not cover the same queries, the deltas over the shared ones, as the intervals are."""
    rows = list(rows)
    wanted = _headline(report, rows)
    paired = report.deltas.paired.deltas if report.deltas else None
    chosen = []
    for row in rows:
        delta = paired.get(row.name) if paired else row.delta
        if row.name in wanted and delta is not None and row.significance and not row.not_comparable:
            ends = [one for one in (row.significance.low, row.significance.high) if one is not None]
            if _is_share(row):
                chosen.append((row, delta, ends))
    if not chosen:
        return None
    limit = _limit([(delta, max(map(abs, ends), default=0.0)) for _, delta, ends in chosen])

    def at(value: float) -> float:
        return 50 + 48 * min(max(value / limit, -1.04), 1.04)

    return Forest(
        tuple(
            Delta(
                row,
                delta,
                at(delta),
                at(ends[0]) if ends else None,
                at(ends[-1]) if ends else None,
                mood_of(delta, row.lower_is_better),
                row.says in (IMPROVED, WORSE),
            )
            for row, delta, ends in chosen
        ),
        limit,
        paired is not None,
    )


def _limit(reaches: Sequence[tuple[float, float]]) -> float:
    """Room for every delta and most intervals: that of a few queries does not flatten all others."""
    intervals = [reach for _, reach in reaches]
    room = max(
        *(abs(delta) for delta, _ in reaches), min(max(intervals), 3 * statistics.median(intervals)), 0
    )
    return next(one for one in _LIMITS if min(room, 1.0) <= one)


# -- ranks, A against B --------------------------------------------------------------------------


class Flow(NamedTuple):
    """The queries that went from one level to another."""

    a: int
    b: int
    queries: int
    width: float
    mood: str


class Slope(NamedTuple):
    """Every query's rank in A on the left and in B on the right."""

    levels: tuple[tuple[str, int, int, int], ...]  # label, height, how many in A and in B
    flows: tuple[Flow, ...]  # what matters most is drawn last
    moves: tuple[Flow, ...]  # the largest changes, the worst first
    more_moves: int
    without_targets: int
    height: int

    def y(self, level: int) -> int:
        """How far down a level is."""
        return self.levels[level][1]


_STEP, _TOP = 25, 34
_MOVES_SHOWN = {"lost": 5, "worse": 3, "better": 3}
_MOODS = ("same", "better", "worse", "lost")


def slope(digest: Digest) -> Slope | None:
    """None where no query has anything to find."""
    if not digest.flows:
        return None
    miss = len(digest.levels) - 1
    most = max(digest.flows.values())
    flows = [
        Flow(a, b, count, round(1.75 + 12 * math.sqrt(count / max(most, 30)), 2), _flow_mood(a, b, miss))
        for (a, b), count in sorted(digest.flows.items())
    ]
    moves = sorted(
        (one for one in flows if one.a != one.b),
        key=lambda one: (-_MOODS.index(one.mood), -one.queries, one.a, one.b),
    )
    shown = tuple(
        one
        for mood, most_shown in _MOVES_SHOWN.items()
        for one in itertools.islice((one for one in moves if one.mood == mood), most_shown)
    )
    heights = [_TOP + _STEP * number + (12 if number == miss else 0) for number in range(miss + 1)]
    return Slope(
        levels=tuple(
            (
                level.label,
                heights[number],
                sum(one.queries for one in flows if one.a == number),
                sum(one.queries for one in flows if one.b == number),
            )
            for number, level in enumerate(digest.levels)
        ),
        flows=tuple(sorted(flows, key=lambda one: _MOODS.index(one.mood))),
        moves=shown,
        more_moves=sum(one.queries for one in moves) - sum(one.queries for one in shown),
        without_targets=sum("flow" not in row and row["kind"] != "none" for row in digest.rows),
        height=heights[-1] + 20,
    )


def _flow_mood(a: int, b: int, miss: int) -> str:
    if a == b:
        return "same"
    if b == miss:
        return "lost"
    return "better" if b < a else "worse"


# -- slices --------------------------------------------------------------------------------------


class SliceMark(NamedTuple):
    """One slice of one metric: A's and B's values from 0 to 1."""

    part: str
    queries: int
    a: float | None
    b: float | None
    delta: float | None


class SlicePanel(NamedTuple):
    """One metric over all slices."""

    metric: str
    groups: tuple[tuple[str, tuple[SliceMark, ...]], ...]


_SLICES_SHOWN = 30


def slice_panels(report: CompareReport, digest: Digest) -> list[SlicePanel]:
    """A panel a metric, each with the same slices: those with the most queries, where there are many."""
    rows = slice_rows(report)
    largest = sorted(rows, key=lambda row: (-digest.slices[short(row.part, 80)], row.part))[:_SLICES_SHOWN]
    rows = [row for row in rows if row in largest]
    panels = []
    for column, metric in enumerate(SLICE_METRICS):
        groups: dict[str, list[SliceMark]] = {}
        for row in rows:
            a, b, delta = row.values[column]
            if a is not None or b is not None:
                part = short(row.part, 80)
                name, _, value = part.partition("=")
                groups.setdefault(name, []).append(SliceMark(value, digest.slices[part], a, b, delta))
        if groups:
            panels.append(SlicePanel(metric, tuple((name, tuple(marks)) for name, marks in groups.items())))
    return panels
