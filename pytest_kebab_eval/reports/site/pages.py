"""The pages of a site: all suites, a suite, the trends of all its metrics. They have no script at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from pytest_kebab_eval.history import LAST_RUNS, drifts_of
from pytest_kebab_eval.history.drift import Drift
from pytest_kebab_eval.limits import RUNS_DRAWN
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.reports.first_bad import DOUBT_MEANING
from pytest_kebab_eval.reports.html import query_fragment, short, short_value
from pytest_kebab_eval.reports.html.page import page_environment
from pytest_kebab_eval.reports.html.time_charts import MAIN_TRENDS, share_below
from pytest_kebab_eval.reports.rows import each_once
from pytest_kebab_eval.reports.site.records import RunRecord, suite_directory
from pytest_kebab_eval.reports.site.suites import Suite
from pytest_kebab_eval.reports.wording import counted, drift_words
from pytest_kebab_eval.store.working_tree import WebRepository

CHANGED_SHOWN = 30
OPEN_SHOWN = 200
METRICS_IN_TABLE = 4
_TOP, _HEIGHT = 8, 60
_MISS, _DEEPEST = 14, 10  # of a strip: how far down a miss is, and the ranks that are told apart


def render_overview(suites: list[Suite], repository: WebRepository | None = None) -> str:
    """The page of all suites."""
    directories = {suite.name: quote(suite_directory(suite.name)) for suite in suites}
    return _render("index.html.jinja", repository, suites=suites, directories=directories)


def render_suite(suite: Suite, repository: WebRepository | None = None) -> str:
    """The page of a suite."""
    measured = {name for run in suite.runs for name in run.values}
    return _render(
        "suite.html.jinja",
        repository,
        suite=suite,
        trends=trends(suite, MAIN_TRENDS),
        columns=[name for name in MAIN_TRENDS if name in measured][:METRICS_IN_TABLE],
        failing_queries=[
            (queries[0].first_bad, queries)
            for _, group in groupby(suite.failing_queries[:OPEN_SHOWN], lambda query: query.first_bad.run_id)
            if (queries := [*group])
        ],
        more_failing=len(suite.failing_queries[OPEN_SHOWN:]),
        changed=suite.changed_queries[:CHANGED_SHOWN],
        strip=partial(strip, suite),
    )


def render_trends(suite: Suite, repository: WebRepository | None = None) -> str:
    """The page with the trends of all metrics of a suite."""
    return _render("trends.html.jinja", repository, suite=suite, trends=trends(suite))


def _render(template: str, repository: WebRepository | None, **values: Any) -> str:
    commit_url = repository.commit_url if repository else lambda commit: None
    return _environment().get_template(f"site/{template}").render(values, commit_url=commit_url)


@cache
def _environment() -> jinja2.Environment:
    environment = page_environment()
    here = Path(__file__).parent
    files = (here.with_name("html") / "report.css", here / "site.css")
    css = "\n".join(path.read_text(encoding="utf-8") for path in files)
    environment.globals.update(css=Markup(css), counted=counted, doubt_meaning=DOUBT_MEANING)  # noqa: S704  our own
    environment.filters["fragment"] = query_fragment
    return environment


# -- a metric over the runs ----------------------------------------------------------------------


class Point(NamedTuple):
    """A run's value; `x` in per cent of the width, `y` in pixels."""

    run: RunRecord
    value: float
    x: float
    y: float

    @property
    def words(self) -> str:
        """What the point is, for those who point at it."""
        parts = (short(self.run.run_id, 60), self.run.date, self.run.short_commit)
        return f"{' · '.join(part for part in parts if part)}: {short_value(self.value)}"


class Step(NamedTuple):
    """The change from a run to the next one that has the metric."""

    run: RunRecord
    change: float


class Chart(NamedTuple):
    """One metric over the runs, on a scale of its own."""

    name: str
    lower_is_better: bool
    points: tuple[Point, ...]
    line: str  # a path, in a box 100 wide and as high as the chart
    drift_line: str  # the part of it in which the metric drifts; empty where it does not
    drift: str  # in words
    least: float
    most: float
    worst: Step | None  # the largest step for the worse

    @property
    def changes(self) -> tuple[object, ...]:
        return tuple((point.run.run_id, point.value) for point in self.points)


class Trends(NamedTuple):
    """The metrics of a suite: those that changed, drawn, and those that did not."""

    charts: list[Chart]
    more: list[Chart]  # other cutoffs, and those that changed just as one of `charts` did
    unchanged: list[tuple[str, float, int]]  # metric, value, runs
    runs: list[RunRecord]  # that are drawn
    height: int = _TOP + _HEIGHT + 8


def trends(suite: Suite, wanted: Sequence[str] | None = None) -> Trends:
    """Every metric that any run has, or those that are wanted, over the last runs; custom metrics last."""
    runs = [run for run in suite.runs if run.values and not run.of_other_golden][-RUNS_DRAWN:]
    lower = {metric.name: metric.family.lower_is_better for metric in all_metrics()}
    measured = {name for run in runs for name in run.values}
    charts, unchanged = [], []
    metrics = wanted or [*lower, *sorted(measured - lower.keys())]
    newest = drifts_of([run.point for run in runs[-LAST_RUNS:]], metrics)
    drifts = {drift.metric: drift for found in newest.values() for drift in found}
    for metric in metrics:
        points = tuple(_points(runs, metric))
        if len({point.value for point in points}) > 1:
            charts.append(_chart(metric, lower.get(metric, False), points, drifts.get(metric)))
        elif points:
            unchanged.append((metric, points[0].value, len(points)))
    shown = charts if wanted else each_once(charts, MAIN_TRENDS)
    more = [chart for chart in charts if chart not in shown]
    return Trends(shown, more, unchanged, runs)


def _points(runs: Sequence[RunRecord], metric: str) -> Iterator[Point]:
    values = [run.values[metric] for run in runs if metric in run.values]
    least, most = min(values, default=0.0), max(values, default=0.0)
    for number, run in enumerate(runs):
        if metric in run.values:
            value = run.values[metric]
            x = round(1 + 98 * number / max(len(runs) - 1, 1), 2)
            yield Point(run, value, x, round(_TOP + _HEIGHT * share_below(value, least, most), 1))


def _chart(metric: str, lower_is_better: bool, points: tuple[Point, ...], drift: Drift | None) -> Chart:
    since = next((at for at, point in enumerate(points) if drift and point.run.run_id == drift.since), None)
    values = [point.value for point in points]
    sign = -1 if lower_is_better else 1
    steps = (Step(after.run, after.value - before.value) for before, after in pairwise(points))
    worst = min(steps, key=lambda step: sign * step.change)
    return Chart(
        metric,
        lower_is_better,
        points,
        line=_path(points),
        drift_line=_path(points[since:]) if since is not None else "",
        drift=drift_words(drift) if drift else "",
        least=min(values),
        most=max(values),
        worst=worst if sign * worst.change < 0 else None,
    )


def _path(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{point.x} {point.y}" for point in points)


# -- a query over the runs -----------------------------------------------------------------------


class Strip(NamedTuple):
    """The rank of a query over the last runs, in a box 100 wide: where it is found, and where it is not."""

    found: str
    missed: str
    words: str
    height: int = _MISS + 4


def strip(suite: Suite, query_id: str) -> Strip:
    """Steps from run to run; the higher, the nearer to rank 1."""
    ranks = suite.ranks(query_id)[-RUNS_DRAWN:]
    width = 100 / max(len(ranks), 1)
    found, missed, at = "", "", 0
    for rank, alike in groupby(ranks):
        end = at + sum(1 for _ in alike)
        depth = _MISS if rank is None else 2 + min(rank, _DEEPEST) - 1
        line = f"M{at * width:.2f} {depth:g}H{end * width:.2f}"
        found, missed, at = found + (line if rank else ""), missed + ("" if rank else line), end
    return Strip(found, missed, f"found in {len(ranks) - ranks.count(None)} of {len(ranks)} runs")
