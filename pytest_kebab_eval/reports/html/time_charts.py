"""The layout of the charts of `report.html` over time: latencies, and metrics from run to run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.reports.html import short, short_value
from pytest_kebab_eval.reports.rows import MetricRow

if TYPE_CHECKING:
    from pytest_kebab_eval.history import HistoryPoint

# -- latency -------------------------------------------------------------------------------------


class Tick(NamedTuple):
    """A mark on an axis, in per cent of its length."""

    at: float
    label: str


class Histogram(Value, frozen=True):
    """One run's share of queries in each bin, as heights in pixels."""

    letter: str
    bars: list[float]
    marks: list[Tick]  # the percentiles
    n: int


class Latency(Value, frozen=True):
    """The times of both runs in the same bins."""

    sides: list[Histogram]
    ticks: list[Tick]
    is_log: bool
    bar_height: int


_BINS = 30
_BAR_HEIGHT = 88


def latency_histograms(
    rows: Iterable[MetricRow], times_a: Sequence[float], times_b: Sequence[float]
) -> Latency | None:
    """The times of both runs; None where none was stored."""
    times = [*times_a, *times_b]
    if not times or max(times) == 0:
        return None
    scale = _time_scale(times)
    sides = [(letter, kept) for letter, kept in (("A", times_a), ("B", times_b)) if kept]
    bins = [_bins(kept, scale) for _, kept in sides]
    tallest = max(max(counts) / len(kept) for (_, kept), counts in zip(sides, bins, strict=True))
    percentiles = {row.name: {"A": row.a, "B": row.b} for row in rows}
    return Latency(
        sides=[
            Histogram(
                letter=letter,
                bars=[round(_BAR_HEIGHT * count / len(kept) / tallest, 2) for count in counts],
                marks=[
                    Tick(scale.at(time), f"{name} {_format_time(time)}")
                    for name in ("p50", "p95")
                    if (time := percentiles.get(f"latency_{name}_ms", {}).get(letter)) is not None
                ],
                n=len(kept),
            )
            for (letter, kept), counts in zip(sides, bins, strict=True)
        ],
        ticks=[Tick(scale.at(step), _format_time(step)) for step in scale.steps],
        is_log=scale.is_log,
        bar_height=_BAR_HEIGHT,
    )


class _Scale(Value, frozen=True):
    low: float
    high: float
    steps: list[float]
    is_log: bool

    def at(self, value: float) -> float:
        """Where the value is, in per cent of the width."""
        if self.is_log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)


def _time_scale(times: Sequence[float]) -> _Scale:
    """Logarithmic if the slowest query took at least ten times as long as the fastest."""
    low, high = max(min(times), 1.0), max(*times, 1.0)
    if high >= 10 * low:
        return _Scale(low, high, _log_steps(low, high), is_log=True)
    steps = _linear_steps(min(times), high)
    return _Scale(steps[0], steps[-1], steps, is_log=False)


def _bins(times: Sequence[float], scale: _Scale) -> list[int]:
    """How many queries are in each bin."""
    bins: Counter[int] = Counter()
    for time, count in Counter(times).items():  # many are alike
        bins[min(int(scale.at(time) / 100 * _BINS), _BINS - 1)] += count
    return [bins[number] for number in range(_BINS)]


def _linear_steps(low: float, high: float) -> list[float]:
    """Four to six round numbers, the first at or below `low`, the last at or above `high`."""
    rough = max(high - low, 1.0) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.floor(low / step)
    return [number * step for number in range(first, max(math.ceil(high / step), first + 1) + 1)]


def _log_steps(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, …; powers of ten alone if those are too many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    fine = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
    steps = [step for step in fine if low <= step <= high]
    return steps if len(steps) <= 7 else [10.0**power for power in powers if low <= 10.0**power <= high]


def _format_time(milliseconds: float) -> str:
    if milliseconds >= 10_000:
        return f"{milliseconds / 1000:,.0f} s"
    return f"{milliseconds / 1000:.3g} s" if milliseconds >= 1000 else f"{milliseconds:.3g} ms"


# -- history -------------------------------------------------------------------------------------


class TrendPoint(Value, frozen=True):
    """A run's value; A and B have their letter beside it."""

    x: float
    y: float
    words: str
    letter: str
    label_y: float


class Trend(Value, frozen=True):
    """One metric over the runs, on a scale of its own."""

    metric: str
    lower_is_better: bool
    points: tuple[TrendPoint, ...]
    least: float
    most: float
    shown: float  # of run B; of the newest run, if B is not among them


MAIN_TRENDS = (
    *("hit@5", "mrr", "recall@10_doc", "groundedness", "citation_coverage", "refusal_correctness"),
    *("error_rate", "latency_p95_ms"),
)
_TREND_TOP, _TREND_HEIGHT = 16, 52


def trend_charts(
    report: CompareReport, rows: Iterable[MetricRow], history: Sequence[HistoryPoint]
) -> list[Trend]:
    """The main metrics and those that gates name, if at least two runs have them."""
    lower = {row.name for row in rows if row.lower_is_better}
    trends = []
    metrics = [*dict.fromkeys([*MAIN_TRENDS, *(gate.metric for gate in report.gates)])]
    for metric in metrics:
        values = {run.run_id: run.values[metric] for run in history if metric in run.values}
        if len(values) >= 2:
            points = tuple(_trend_points(report, history, metric, values))
            least, most = min(values.values()), max(values.values())
            shown = values.get(report.run_b, [*values.values()][-1])
            trends.append(Trend(metric, metric in lower, points, least, most, shown))
    return trends


def _trend_points(
    report: CompareReport,
    history: Sequence[HistoryPoint],
    metric: str,
    values: dict[str, float],
) -> Iterator[TrendPoint]:
    least, most = min(values.values()), max(values.values())
    a, b = values.get(report.run_a or ""), values.get(report.run_b)
    b_above = b is not None and (a is None or b > a)
    for number, run in enumerate(history):
        if metric in run.values:
            value = run.values[metric]
            letter = "B" if run.run_id == report.run_b else "A" if run.run_id == report.run_a else ""
            label_above = (letter == "B") is b_above
            y = round(_TREND_TOP + _TREND_HEIGHT * share_below(value, least, most), 2)
            yield TrendPoint(
                x=2 + 96 * number / (len(history) - 1),
                y=y,
                words=f"{short(run.run_id, 60)} ({run.created_at[:10]}): {short_value(value)}",
                letter=letter,
                label_y=round(y + (-8 if label_above else 15), 2),
            )


def share_below(value: float, least: float, most: float) -> float:
    """How far below the largest value it is drawn, as a share of the height."""
    return (most - value) / (most - least) if most > least else 0.5
