"""A database of runs -> the files of a site: records and reports that are missing, then the pages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.comparing.gate_grammar import parse_gate
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.files import exists
from pytest_kebab_eval.golden import GoldenSet, load_golden_set, lock_path
from pytest_kebab_eval.history import LAST_RUNS, HistoryPoint, history_point
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.metrics import all_names
from pytest_kebab_eval.reading import score_run
from pytest_kebab_eval.reports.as_markdown import FAILURE_COLUMNS, report_context
from pytest_kebab_eval.reports.failures import FailedQuery
from pytest_kebab_eval.reports.publishing import ReportSource, ShownEvidence, render
from pytest_kebab_eval.reports.site.directory import NO_JEKYLL, SiteBasis, SiteDirectory
from pytest_kebab_eval.reports.site.pages import render_overview, render_suite, render_trends
from pytest_kebab_eval.reports.site.records import (
    FAILURES_KEPT,
    ComparisonRecord,
    PlannedRun,
    RunRecord,
    comparison_record,
    fingerprint,
    passed_queries,
    plan_runs,
    suite_pages,
)
from pytest_kebab_eval.reports.site.suites import Suite
from pytest_kebab_eval.reports.wording import counted, failed_queries
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import check_suite, open_database
from pytest_kebab_eval.store.working_tree import find_repository
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.progress import Advancing, Progress

OVERVIEW = "index.html"
_NAMED = 5  # queries, in a sentence
_WITHOUT_EFFECT = {  # on a report
    *("run_a", "run_b", "db_a", "db_b", "golden", "suite", "if_no_baseline"),
    *("runs_dir", "store", "html", "snapshot"),
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
        self._runs = [planned for runs in self._plan.values() for planned in runs]
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

    def build(self) -> Built:
        """Make what is missing, write the pages that differ, remove what is no longer needed."""
        names = set(self._names())
        self._directory.start(self._basis, names)
        missing: dict[str, PlannedRun] = {}
        for planned in self._runs:
            record = self._directory.read(planned.record_file, RunRecord)
            if record and self._maker.is_whole(planned, record):
                self._records[planned.run.run_id] = record
            else:
                missing[planned.run.run_id] = planned
        with Progress("comparing", len(missing)) as progress:
            for run_id, planned in Advancing(missing.items(), progress):
                self._records[run_id] = self._maker.make(planned, self._trend(planned))
        suites = [
            Suite(name, tuple(self._records[planned.run.run_id] for planned in runs), self._golden)
            for name, runs in self._plan.items()
        ]
        repository = find_repository()
        for suite in suites:
            main, trends = suite_pages(suite.name)
            self._directory.update(main, render_suite(suite, repository))
            self._directory.update(trends, render_trends(suite, repository))
        self._directory.update(OVERVIEW, render_overview(suites, repository))
        self._directory.update(NO_JEKYLL, "")
        not_made = {
            planned.report_file
            for planned in self._runs
            if self._records[planned.run.run_id].comparison is None
        }
        self._directory.finish(self._basis, names, not_made)
        errors = [*self._left_out(), *self._directory.errors]
        return Built(len(suites), len(self._records), len(missing), self._directory.written, errors)

    def _names(self) -> Iterator[str]:
        yield from (OVERVIEW, NO_JEKYLL)
        for name in self._plan:
            yield from suite_pages(name)
        for planned in self._runs:
            yield planned.record_file
            if planned.results:
                yield planned.report_file

    def _trend(self, planned: PlannedRun) -> list[HistoryPoint]:
        """The runs before this one, as many as a report shows."""
        earlier = takewhile(lambda run: run is not planned, self._plan[planned.run.suite])
        suite = planned.run.suite
        points = [self._records[run.run.run_id].point._replace(suite=suite) for run in earlier]
        return [point for point in points[1 - LAST_RUNS :] if point.values and not point.of_other_golden]

    def _left_out(self) -> Iterator[str]:
        """What went wrong, a sentence a run."""
        for planned in self._runs:
            record = self._records[planned.run.run_id]
            name = f"run {printable(record.run_id)}"
            if record.error:
                yield f"{name}: {record.error}"
            unreadable = record.comparison.unreadable if record.comparison else ()
            if unreadable:
                ids = ", ".join(brief(query_id) for query_id in unreadable[:_NAMED])
                more = ", …" if len(unreadable) > _NAMED else ""
                yield f"{name}: {counted(len(unreadable), 'result')} cannot be read ({ids}{more})"


# -- what every page depends on ------------------------------------------------------------------


def _basis(settings: Settings) -> SiteBasis:
    values = {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in settings._asdict().items()
        if name not in _WITHOUT_EFFECT
    }
    content = hashlib.sha256()
    for path in (settings.golden, lock_path(settings.golden)):
        data = path.read_bytes() if exists(path) else b""
        content.update(b"%d\n%b" % (len(data), data))
    try:
        ours = version("pytest-kebab-eval")
    except PackageNotFoundError:  # run from its source
        ours = "unknown"
    return SiteBasis(ours, content.hexdigest(), fingerprint([dict(sorted(values.items()))]))


# -- one run -------------------------------------------------------------------------------------


class RunMaker:
    """Makes records and reports; `basis` is a hash of what they all depend on."""

    def __init__(self, settings: Settings, golden: GoldenSet, basis: str, directory: SiteDirectory) -> None:
        self._settings = settings
        self._golden = golden
        self._basis = basis
        self._directory = directory

    def is_whole(self, planned: PlannedRun, record: RunRecord) -> bool:
        """Whether all of a record is still right, and its report is there."""
        is_compared = not planned.results or self._kept_comparison(planned, record) is not None
        return is_compared and record.key == planned.key(self._basis)

    def make(self, planned: PlannedRun, trend: Sequence[HistoryPoint]) -> RunRecord:
        """The record and the report of a run; `trend` has the runs before it, the oldest first.

        A record with an error is not written, so that the next call tries again.
        """
        errors: list[str] = []
        point, passed = self._score(planned, errors)
        known = self._directory.read(planned.record_file, RunRecord)
        comparison = self._kept_comparison(planned, known)
        if comparison is None and planned.results and not errors:
            comparison = self._compare(planned, [*trend, point], errors)
        record = RunRecord(
            key=planned.key(self._basis),
            run_id=planned.run.run_id,
            created_at=planned.run.created_at,
            commit=planned.run.commit_hash,
            results=planned.results,
            values=point.values,
            passed=passed,
            ranks=dict(point.ranks or {}),
            of_other_golden=point.of_other_golden,
            comparison=comparison,
            error="; ".join(errors) or None,
        )
        if not errors:
            self._directory.keep(planned.record_file, record)
        return record

    def _kept_comparison(self, planned: PlannedRun, record: RunRecord | None) -> ComparisonRecord | None:
        comparison = record.comparison if record else None
        if comparison is None or comparison.key != planned.comparison_key(self._basis):
            return None
        return comparison if self._directory.has(planned.report_file) else None

    def _score(
        self, planned: PlannedRun, errors: list[str]
    ) -> tuple[HistoryPoint, dict[str, tuple[str, ...]]]:
        """The run's metrics, and the queries that pass each check; nothing if it cannot be read."""
        run = planned.run
        try:
            with open_database(self._settings.db_b) as database:
                if not planned.results:
                    return history_point(database, run, self._golden), {}
                card = score_run(database, database.with_config(run), self._golden)
                passed = passed_queries(card, self._golden, self._settings.compare_k)
                return history_point(database, run, self._golden, card), passed
        except InputError as error:
            errors.append(str(error))
            return HistoryPoint(run.run_id, run.created_at, {}), {}

    def _compare(
        self, planned: PlannedRun, trend: Sequence[HistoryPoint], errors: list[str]
    ) -> ComparisonRecord | None:
        """Compare and write the report; None if that is not possible."""
        run_a = planned.before.run.run_id if planned.before else None
        settings = self._settings._replace(run_a=run_a, run_b=planned.run.run_id, suite=None)
        if run_a is None:  # the first run of a suite is judged alone, without gates
            settings = settings._replace(gates=())
        briefs = Briefs()
        try:
            inputs = find_inputs(settings, golden=self._golden)
            report = evaluate(settings, inputs, observer=briefs).report
        except InputError as error:
            errors.append(str(error))
            return None
        context = report_context(report, inputs.golden.queries)
        source = ReportSource(settings, inputs, report, context, briefs, trend, is_one_of_many=True)
        self._directory.write(planned.report_file, render("html", source, errors))
        return comparison_record(planned.comparison_key(self._basis), report, _failures(source, briefs))


def _failures(source: ReportSource, briefs: Briefs) -> Iterator[FailedQuery]:
    """The first failed queries, with what is known of why."""
    comparisons = {query.query_id: query for query in failed_queries(source.report)[:FAILURES_KEPT]}
    queries = [query for query in source.inputs.golden.queries if query.id in comparisons]
    shown = ShownEvidence(source.settings, source.inputs, source.report, briefs.matcher)
    for query, evidence in shown.read(queries):
        yield FailedQuery(query, comparisons[query.id], evidence, FAILURE_COLUMNS)
