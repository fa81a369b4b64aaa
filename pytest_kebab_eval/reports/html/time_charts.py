"""The layout of the charts of `report.html` over time: latencies, and metrics from run to run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.reports.html.query_index import Digest
from pytest_kebab_eval.reports.html.text import figure, short
from pytest_kebab_eval.reports.wording import metric_rows

# -- latency -------------------------------------------------------------------------------------


class Tick(NamedTuple):
    """A mark on an axis, in per cent of its length."""

    at: float
    label: str


class Histogram(NamedTuple):
    """One run's share of queries in each bin, as heights in pixels."""

    letter: str
    bars: tuple[float, ...]
    marks: tuple[Tick, ...]  # the percentiles
    largest: float
    n: int


class Latency(NamedTuple):
    """The times of both runs in the same bins."""

    sides: tuple[Histogram, ...]
    ticks: tuple[Tick, ...]
    is_log: bool
    bar_height: int


_BINS = 30
_BAR_HEIGHT = 88


def latency_histograms(report: CompareReport, digest: Digest) -> Latency | None:
    """On a logarithmic scale where the slowest query took ten times as long as the fastest, or more."""
    every = [*digest.latencies[0], *digest.latencies[1]]
    if not every or max(every) == 0:
        return None
    low, high = max(min(every), 1.0), max(*every, 1.0)
    is_log = high >= 10 * low
    steps = _log_steps(low, high) if is_log else _linear_steps(min(every), high)
    if not is_log:
        low, high = steps[0], steps[-1]

    def at(value: float) -> float:
        if is_log:
            share = math.log(max(value, low) / low) / math.log(high / low)
        else:
            share = (value - low) / (high - low)
        return 100 * min(max(share, 0.0), 1.0)

    binned = [
        (letter, times, aggregate, Counter(min(int(at(one) / 100 * _BINS), _BINS - 1) for one in times))
        for letter, times, aggregate in zip(
            "AB", digest.latencies, (report.aggregate_a, report.aggregate_b), strict=True
        )
        if times and aggregate
    ]
    tallest = max(count / len(times) for _, times, _, bins in binned for count in bins.values())
    sides = []
    for letter, times, aggregate, bins in binned:
        heights = (_BAR_HEIGHT * bins[number] / len(times) / tallest for number in range(_BINS))
        percentiles = ((name, aggregate.value(f"latency_{name}_ms")) for name in ("p50", "p95"))
        marks = tuple(
            Tick(at(value), f"{name} {_time(value)}") for name, value in percentiles if value is not None
        )
        sides.append(
            Histogram(letter, tuple(round(one, 2) for one in heights), marks, max(times), len(times))
        )
    return Latency(tuple(sides), tuple(Tick(at(one), _time(one)) for one in steps), is_log, _BAR_HEIGHT)


def _linear_steps(low: float, high: float) -> list[float]:
    """Four to six round numbers around the two."""
    rough = max(high - low, 1.0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.floor(low / step)
    return [number * step for number in range(first, max(math.ceil(high / step), first + 1) + 1)]


def _log_steps(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, …; or powers of ten alone, where those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    steps = [one for one in fine if low <= one <= high]
    return steps if len(steps) <= 7 else [10.0**power for power in powers if low <= 10.0**power <= high]


def _time(milliseconds: float) -> str:
    if milliseconds >= 10_000:
        return f"{milliseconds / 1000:,.0f} s"
    return f"{milliseconds / 1000:.3g} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"


# -- history -------------------------------------------------------------------------------------


class TrendPoint(NamedTuple):
    """A run's value; A and B have their letter beside it."""

    x: float
    y: float
    words: str
    letter: str
    label_y: float


class Trend(NamedTuple):
    """One metric over the runs, on a scale of its own."""

    metric: str
    lower_is_better: bool
    points: tuple[TrendPoint, ...]
    least: float
    most: float
    last: float


_TRENDS = (
    "hit@5",
    "mrr",
    "recall@10_doc",
    "groundedness",
    "citation_coverage",
    "refusal_correctness",
    "error_rate",
    "latency_p95_ms",
)
_TREND_TOP, _TREND_HEIGHT = 16, 52


def trend_charts(report: CompareReport, history: Sequence[HistoryPoint]) -> list[Trend]:
    """The metrics that most people want and those of the gates, where at least two runs have them."""
    gated = [gate.metric for gate in report.gates]
    lower = {row.name for row in metric_rows(report) if row.lower_is_better}
    trends = []
    for metric in dict.fromkeys([*_TRENDS, *gated]):
        values = [one.values[metric] for one in history if metric in one.values]
        if len(values) >= 2:
            points = tuple(_trend_points(report, history, metric, min(values), max(values)))
            trends.append(Trend(metric, metric in lower, points, min(values), max(values), values[-1]))
    return trends


def _trend_points(
    report: CompareReport, history: Sequence[HistoryPoint], metric: str, least: float, most: float
) -> Iterator[TrendPoint]:
    def y(value: float) -> float:
        share = (most - value) / (most - least) if most > least else 0.5
        return round(_TREND_TOP + _TREND_HEIGHT * share, 2)

    marked = {one.run_id: one.values[metric] for one in history if metric in one.values}
    a, b = (marked.get(run_id) if run_id else None for run_id in (report.run_a, report.run_b))
    b_above = b is not None and (a is None or b > a)
    for number, one in enumerate(history):
        if metric in one.values:
            value = one.values[metric]
            letter = "B" if one.run_id == report.run_b else "A" if one.run_id == report.run_a else ""
            above = (letter == "B") is b_above
            yield TrendPoint(
                2 + 96 * number / (len(history) - 1),
                y(value),
                f"{short(one.run_id, 60)} ({one.created_at[:10]}): {figure(value)}",
                letter,
                round(y(value) + (-8 if above else 15), 2),
            )
