"""A database of runs -> the files of a site: records and reports that are missing, then the pages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.comparing.gates import parse_gate
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.golden import load_golden_set, lock_path
from pytest_kebab_eval.history import LAST_RUNS, HistoryPoint
from pytest_kebab_eval.metrics import all_names
from pytest_kebab_eval.reports.site.directory import NO_JEKYLL, Basis, SiteDirectory
from pytest_kebab_eval.reports.site.making import RunMaker
from pytest_kebab_eval.reports.site.pages import render_overview, render_suite, render_trends
from pytest_kebab_eval.reports.site.plan import PlannedRun, plan_runs, suite_pages
from pytest_kebab_eval.reports.site.records import RunRecord, fingerprint
from pytest_kebab_eval.reports.site.suites import Suite, SuiteRun
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import check_suite, open_database
from pytest_kebab_eval.text import brief, printable

Progress = Callable[[list[str]], AbstractContextManager[Iterable[str]]]

OVERVIEW = "index.html"
_NAMED = 5  # queries, in a sentence
_WITHOUT_EFFECT = {  # on a report
    "run_a",
    "run_b",
    "db_a",
    "db_b",
    "golden",
    "suite",
    "if_no_baseline",
    "runs_dir",
    "store",
    "html",
    "annotations",
    "snapshot",
}
_WHY_ANEW = {
    "golden": "the golden file or its lock file has changed",
    "settings": "the options are others",
    "version": "the site was made by another version of pytest-kebab-eval",
    "format": "the site was made by another version of pytest-kebab-eval",
}


class Built(NamedTuple):
    """What was done, and what was left out."""

    suites: int
    runs: int
    made: int  # runs whose record or report was made or made anew
    files: int  # written
    errors: list[str]


class SiteBuilder:
    """Makes the site of a database in a directory; all that can be wrong with the input is found first."""

    def __init__(self, path: Path, settings: Settings) -> None:
        for gate in settings.gates:
            parse_gate(gate, all_names())
        self._golden = load_golden_set(settings.golden)
        self._basis = _basis(settings)
        self._directory = SiteDirectory(path)
        with open_database(settings.db_b) as database:
            check_suite(database, settings.suite)
            self._plan = plan_runs(database, settings.suite)
        self._maker = RunMaker(settings, self._golden, fingerprint([self._basis]), self._directory)
        self._records: dict[str, RunRecord] = {}

    @property
    def why_anew(self) -> str | None:
        """Why nothing can be kept of the site that is there; None if it can, or if there is none."""
        old, new = self._directory.basis, self._basis
        if old is None:
            return None
        changed = (name for name in _WHY_ANEW if getattr(old, name) != getattr(new, name))
        return next((_WHY_ANEW[name] for name in changed), None)

    def build(self, progress: Progress) -> Built:
        """Make what is missing, write the pages that differ, remove what is no longer needed."""
        names = set(self._names())
        self._directory.start(self._basis, names)
        missing = self._load_kept()
        with progress(list(missing)) as run_ids:
            for run_id in run_ids:
                self._records[run_id] = self._maker.make(missing[run_id], self._trend(missing[run_id]))
        suites = [self._suite(name) for name in self._plan]
        self._write_pages(suites)
        self._directory.finish(self._basis, names, set(self._reports_not_made()))
        errors = [*self._left_out(), *self._directory.errors]
        return Built(len(suites), len(self._records), len(missing), self._directory.written, errors)

    def _load_kept(self) -> dict[str, PlannedRun]:
        """Read the records that can be kept; the runs without one are returned."""
        missing = {}
        for planned in self._runs():
            record = self._maker.kept(planned)
            if record is None:
                missing[planned.run.run_id] = planned
            else:
                self._records[planned.run.run_id] = record
        return missing

    def _runs(self) -> Iterator[PlannedRun]:
        for runs in self._plan.values():
            yield from runs

    def _names(self) -> Iterator[str]:
        """The files of the site."""
        yield from (OVERVIEW, NO_JEKYLL)
        for name in self._plan:
            yield from suite_pages(name)
        for planned in self._runs():
            yield planned.record_file
            if planned.results:
                yield planned.report_file

    def _reports_not_made(self) -> Iterator[str]:
        for planned in self._runs():
            if self._records[planned.run.run_id].comparison is None:
                yield planned.report_file

    def _trend(self, planned: PlannedRun) -> list[HistoryPoint]:
        """The runs before this one, as many as a report shows."""
        points = []
        for earlier in self._plan[planned.run.suite]:
            if earlier is planned:
                break
            points.append(self._records[earlier.run.run_id].point)
        return [point for point in points[1 - LAST_RUNS :] if point.values and not point.of_other_golden]

    # -- pages -----------------------------------------------------------------------------------

    def _suite(self, name: str) -> Suite:
        runs = [SuiteRun(planned, self._records[planned.run.run_id]) for planned in self._plan[name]]
        return Suite(name, tuple(runs), self._golden)

    def _write_pages(self, suites: list[Suite]) -> None:
        for suite in suites:
            main, trends = suite_pages(suite.name)
            self._directory.update(main, render_suite(suite))
            self._directory.update(trends, render_trends(suite))
        self._directory.update(OVERVIEW, render_overview(suites))
        self._directory.update(NO_JEKYLL, "")

    def _left_out(self) -> Iterator[str]:
        """What went wrong, a sentence a run."""
        for planned in self._runs():
            record = self._records[planned.run.run_id]
            name = f"run {printable(record.run_id)}"
            if record.error:
                yield f"{name}: {record.error}"
            unreadable = record.comparison.unreadable if record.comparison else ()
            if unreadable:
                ids = ", ".join(brief(query_id) for query_id in unreadable[:_NAMED])
                more = ", …" if len(unreadable) > _NAMED else ""
                yield f"{name}: {counted(len(unreadable), 'result')} cannot be read ({ids}{more})"


def _basis(settings: Settings) -> Basis:
    values = {name: value for name, value in settings._asdict().items() if name not in _WITHOUT_EFFECT}
    return Basis(
        version=_version(),
        golden=_content_hash(settings.golden),
        settings=fingerprint([{name: _in_order(value) for name, value in sorted(values.items())}]),
    )


def _in_order(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _content_hash(golden: Path) -> str:
    """Of the golden file and the lock file beside it."""
    content = hashlib.sha256()
    for path in (golden, lock_path(golden)):
        data = path.read_bytes() if exists(path) else b""
        content.update(b"%d\n%b" % (len(data), data))
    return content.hexdigest()


def _version() -> str:
    try:
        return version("pytest-kebab-eval")
    except PackageNotFoundError:  # run from its source
        return "unknown"
