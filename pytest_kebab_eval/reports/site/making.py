"""One run of the site: its metrics, its comparison with the run before it, and the report of that."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history import HistoryPoint, history_point
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reading import score_run
from pytest_kebab_eval.reports.context import report_context
from pytest_kebab_eval.reports.publishing import ReportSource, render
from pytest_kebab_eval.reports.site.directory import SiteDirectory
from pytest_kebab_eval.reports.site.plan import PlannedRun
from pytest_kebab_eval.reports.site.records import (
    ComparisonRecord,
    RunRecord,
    comparison_record,
    passed_queries,
    read_record,
    record_json,
)
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import open_database


class RunMaker:
    """Makes records and reports; `basis` is a hash of what they all depend on."""

    def __init__(self, settings: Settings, golden: GoldenSet, basis: str, directory: SiteDirectory) -> None:
        self._settings = settings
        self._golden = golden
        self._basis = basis
        self._directory = directory

    def kept(self, planned: PlannedRun) -> RunRecord | None:
        """The record of an earlier call, if all of it is still right."""
        record = self._read(planned)
        if record is None or record.key != planned.key(self._basis):
            return None
        is_whole = not planned.results or self._kept_comparison(planned, record)
        return record if is_whole else None

    def make(self, planned: PlannedRun, trend: Sequence[HistoryPoint]) -> RunRecord:
        """The record and the report of a run; `trend` has the runs before it, the oldest first.

        A record with an error is not written, so that the next call tries again.
        """
        errors: list[str] = []
        point, passed = self._score(planned, errors)
        comparison = self._kept_comparison(planned, self._read(planned))
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
            of_other_golden=point.of_other_golden,
            comparison=comparison,
            error="; ".join(errors) or None,
        )
        if not errors:
            self._directory.update(planned.record_file, record_json(record))
        return record

    def _read(self, planned: PlannedRun) -> RunRecord | None:
        name = planned.record_file
        return read_record(self._directory.path / name) if self._directory.has(name) else None

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
        settings, briefs = self._settings_of(planned), Briefs()
        try:
            inputs = find_inputs(settings, golden=self._golden)
            report = evaluate(settings, inputs, observer=briefs).report
        except InputError as error:
            errors.append(str(error))
            return None
        context = report_context(report, inputs.golden.queries)
        source = ReportSource(settings, inputs, report, context, briefs, trend)
        self._directory.write(planned.report_file, render("html", source, errors))
        return comparison_record(planned.comparison_key(self._basis), report)

    def _settings_of(self, planned: PlannedRun) -> Settings:
        """The settings of its comparison; the first run of a suite is judged alone, without gates."""
        settings = self._settings._replace(run_b=planned.run.run_id, suite=None)
        if planned.before is None:
            return settings._replace(run_a=None, gates=())
        return settings._replace(run_a=planned.before.run.run_id)
