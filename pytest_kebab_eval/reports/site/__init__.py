"""`kebab-eval site`: one page of all runs, with trends of the main metrics, that links to their reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import write_whole
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history import HistoryPoint, history
from pytest_kebab_eval.limits import RUNS_DRAWN
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reports.html import short, short_value
from pytest_kebab_eval.reports.html.page import page_environment
from pytest_kebab_eval.reports.html.time_charts import MAIN_TRENDS, share_below
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.store import Address, open_database, whole_runs
from pytest_kebab_eval.store.working_tree import find_repository
from pytest_kebab_eval.text import file_name, marked_file_name, printable, shown_path

PAGE = "index.html"
_MARK = b'<meta name="generator" content="kebab-eval site">'  # near the beginning of a page of ours
_TO_IGNORE = ("CNAME",)  # beside hidden files such as .git: what a branch for GitHub Pages may have
_COMMIT_SHOWN = 12
_TOP, _HEIGHT = 8, 60


class SiteRun(NamedTuple):
    """A run on the page."""

    run: Run
    point: HistoryPoint
    report: str | None  # its address from the page

    @property
    def run_id(self) -> str:
        return self.run.run_id

    @property
    def short_commit(self) -> str | None:
        return short(self.run.commit_hash, 60)[:_COMMIT_SHOWN] if self.run.commit_hash else None

    @property
    def date(self) -> str:
        """To the minute: many runs may be of one day."""
        return short(self.run.created_at[:16].replace("T", " "))


class SitePoint(NamedTuple):
    """A run's value; `x` in per cent of the width, `y` in pixels."""

    run: SiteRun
    value: float
    x: float
    y: float

    @property
    def words(self) -> str:
        """What the point is, for those who point at it."""
        parts = (short(self.run.run_id, 60), self.run.date, self.run.short_commit)
        return f"{' · '.join(part for part in parts if part)}: {short_value(self.value)}"


class Chart(NamedTuple):
    """A metric over the runs, on a scale of its own."""

    name: str
    lower_is_better: bool
    points: tuple[SitePoint, ...]
    least: float
    most: float
    height: int = _TOP + _HEIGHT + 8

    @property
    def line(self) -> str:
        """A path, in a box 100 wide and as high as the chart."""
        return "M" + "L".join(f"{point.x} {point.y}" for point in self.points)


class Suite(NamedTuple):
    """The runs of a suite, the oldest first."""

    name: str
    runs: list[SiteRun]

    @property
    def title(self) -> str:
        return self.name or "(no suite)"

    @property
    def metrics(self) -> list[str]:
        """The main metrics that any run has."""
        measured = {name for run in self.runs for name in run.point.values}
        return [name for name in MAIN_TRENDS if name in measured]

    @property
    def has_other_golden(self) -> bool:
        return any(run.point.of_other_golden for run in self.runs)

    def charts(self) -> list[Chart]:
        """The main metrics that changed, over the last runs."""
        drawn = [run for run in self.runs if run.point.values and not run.point.of_other_golden][-RUNS_DRAWN:]
        lower = {metric.name for metric in all_metrics() if metric.family.lower_is_better}
        return [chart for name in self.metrics if (chart := _chart(name, name in lower, drawn))]


def _chart(name: str, lower_is_better: bool, runs: Sequence[SiteRun]) -> Chart | None:
    values = {run.point.values[name] for run in runs if name in run.point.values}
    if len(values) < 2:
        return None
    least, most = min(values), max(values)
    return Chart(name, lower_is_better, tuple(_points(name, runs, least, most)), least, most)


def _points(name: str, runs: Sequence[SiteRun], least: float, most: float) -> Iterator[SitePoint]:
    for number, run in enumerate(runs):
        if name in run.point.values:
            value = run.point.values[name]
            x = round(1 + 98 * number / (len(runs) - 1), 2)
            yield SitePoint(run, value, x, round(_TOP + _HEIGHT * share_below(value, least, most), 1))


def write_site(directory: Path, address: Address, golden: GoldenSet, suite: str | None = None) -> int:
    """Write the page of all runs, or of those of a suite, into the directory of their reports.

    Returns how many runs it has. A directory with other files is refused.
    """
    _check_directory(directory)
    points = history(address, golden, suite, last=None)
    with open_database(address) as database:
        found = {run.run_id: run for run in whole_runs(database, suite)}
    runs = [SiteRun(found[point.run_id], point, _report_of(directory, point.run_id)) for point in points]
    path = directory / PAGE
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_whole(path, [_render(_by_suite(runs))], follow_link=False)
    except OSError as error:
        raise StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}") from None
    return len(runs)


def _check_directory(directory: Path) -> None:
    """Refuse a directory that has files, but for a page that was written here."""
    try:
        files = sorted(entry.name for entry in directory.iterdir() if not entry.is_dir())
        page = (directory / PAGE).read_bytes()[:1000] if PAGE in files else b""
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{shown_path(directory)} cannot be used for a site: {error.strerror}") from None
    others = [name for name in files if not name.startswith(".") and name not in (*_TO_IGNORE, PAGE)]
    if PAGE in files and _MARK not in page:
        others.insert(0, PAGE)
    if others:
        raise InputError(
            f"{shown_path(directory)} has files that kebab-eval site did not write, such as"
            f" {printable(others[0])}; name the directory of the reports, or a new one"
        )


def _report_of(directory: Path, run_id: str) -> str | None:
    """Where the run's report is, from the page; None if it is not in the directory."""
    for name in (marked_file_name(run_id), file_name(run_id)):
        if (directory / name / "report.html").is_file():
            return f"{quote(name)}/report.html"
    return None


def _by_suite(runs: Iterable[SiteRun]) -> list[Suite]:
    in_order = sorted(runs, key=lambda run: run.run.suite)  # stable: those of a suite stay in order of time
    return [Suite(name, list(of_suite)) for name, of_suite in groupby(in_order, lambda run: run.run.suite)]


def _render(suites: list[Suite]) -> str:
    repository = find_repository()
    commit_url = repository.commit_url if repository else lambda commit: None
    template = _environment().get_template("site/index.html.jinja")
    return template.render(suites=suites, commit_url=commit_url)


@cache
def _environment() -> jinja2.Environment:
    environment = page_environment()
    here = Path(__file__).parent
    files = (here.with_name("html") / "report.css", here / "site.css")
    css = "\n".join(path.read_text(encoding="utf-8") for path in files)
    environment.globals.update(css=Markup(css), counted=counted)  # noqa: S704  our own
    return environment
