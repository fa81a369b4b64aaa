"""The layout of the charts of a site: a metric over the runs, and the rank of a query over the runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from pytest_kebab_eval.limits import RUNS_DRAWN
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.reports.html.markup import short, short_value
from pytest_kebab_eval.reports.site.suites import Suite, SuiteRun

_TOP, _HEIGHT = 8, 60
_MISS, _DEEPEST = 14, 10  # of a strip: how far down a miss is, and the ranks that are told apart

# -- a metric over the runs ----------------------------------------------------------------------


class Point(NamedTuple):
    """A run's value; `x` in per cent of the width, `y` in pixels."""

    run: SuiteRun
    value: float
    x: float
    y: float

    @property
    def words(self) -> str:
        """What the point is, for those who point at it."""
        parts = (short(self.run.name, 60), self.run.date, self.run.commit)
        return f"{' · '.join(part for part in parts if part)}: {short_value(self.value)}"


class Step(NamedTuple):
    """The change from a run to the next one that has the metric."""

    run: SuiteRun
    change: float


class Chart(NamedTuple):
    """One metric over the runs, on a scale of its own."""

    metric: str
    lower_is_better: bool
    points: tuple[Point, ...]
    line: str  # a path, in a box 100 wide and as high as the chart
    least: float
    most: float
    worst: Step | None  # the largest step for the worse


class Trends(NamedTuple):
    """The metrics of a suite: those that changed, drawn, and those that did not."""

    charts: tuple[Chart, ...]
    unchanged: tuple[tuple[str, float, int], ...]  # metric, value, runs
    runs: tuple[SuiteRun, ...]  # that are drawn
    height: int = _TOP + _HEIGHT + 8


def trends(suite: Suite, wanted: Sequence[str] | None = None) -> Trends:
    """Every metric that any run has, or those that are wanted, over the last runs."""
    runs = [run for run in suite.runs if run.record.values and not run.record.of_other_golden][-RUNS_DRAWN:]
    lower = {metric.name for metric in all_metrics() if metric.family.lower_is_better}
    charts: list[Chart] = []
    unchanged: list[tuple[str, float, int]] = []
    for metric in _metrics(runs, wanted):
        points = tuple(_points(runs, metric))
        values = {point.value for point in points}
        if len(values) > 1:
            charts.append(_chart(metric, metric in lower, points))
        elif values:
            unchanged.append((metric, points[0].value, len(points)))
    return Trends(tuple(charts), tuple(unchanged), tuple(runs))


def _metrics(runs: Sequence[SuiteRun], wanted: Sequence[str] | None) -> list[str]:
    """The metrics of the runs in the usual order; custom ones come last."""
    measured = dict.fromkeys(name for run in runs for name in run.record.values)
    known = [metric.name for metric in all_metrics()]
    return [name for name in wanted or [*known, *sorted(set(measured) - set(known))] if name in measured]


def _points(runs: Sequence[SuiteRun], metric: str) -> Iterator[Point]:
    values = [run.record.values[metric] for run in runs if metric in run.record.values]
    least, most = min(values, default=0.0), max(values, default=0.0)
    for number, run in enumerate(runs):
        if metric in run.record.values:
            value = run.record.values[metric]
            share = (most - value) / (most - least) if most > least else 0.5
            x = round(1 + 98 * number / max(len(runs) - 1, 1), 2)
            yield Point(run, value, x, round(_TOP + _HEIGHT * share, 1))


def _chart(metric: str, lower_is_better: bool, points: tuple[Point, ...]) -> Chart:
    values = [point.value for point in points]
    return Chart(
        metric,
        lower_is_better,
        points,
        line="M" + "L".join(f"{point.x} {point.y}" for point in points),
        least=min(values),
        most=max(values),
        worst=_worst_step(points, -1 if lower_is_better else 1),
    )


def _worst_step(points: Sequence[Point], sign: int) -> Step | None:
    steps = [Step(after.run, after.value - before.value) for before, after in pairwise(points)]
    worst = min(steps, key=lambda step: sign * step.change)
    return worst if sign * worst.change < 0 else None


# -- a query over the runs -----------------------------------------------------------------------


class Strip(NamedTuple):
    """The rank of a query over the last runs, in a box 100 wide: where it is found, and where it is not."""

    found: str
    missed: str
    words: str
    height: int = _MISS + 4


def strip(suite: Suite, query_id: str) -> Strip:
    """Steps from run to run; the higher, the nearer to rank 1."""
    ranks = [state.rank for state in suite.states(query_id)][-RUNS_DRAWN:]
    width = 100 / max(len(ranks), 1)
    found, missed, at = "", "", 0
    for rank, alike in groupby(ranks):
        end = at + sum(1 for _ in alike)
        line = f"M{at * width:.2f} {_depth(rank):g}H{end * width:.2f}"
        found, missed, at = found + (line if rank else ""), missed + ("" if rank else line), end
    return Strip(found, missed, _in_words(ranks))


def _depth(rank: int | None) -> float:
    return _MISS if rank is None else 2 + min(rank, _DEEPEST) - 1


def _in_words(ranks: Sequence[int | None]) -> str:
    missed = sum(rank is None for rank in ranks)
    return f"found in {len(ranks) - missed} of {len(ranks)} runs"
