"""A pytest session that judges a comparison: the plugins that are registered where a run is named."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.evaluate import Evaluation
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.model import GoldenQuery, QueryComparison
from pytest_kebab_eval.plugin.allure import AllureResults, uses_allure
from pytest_kebab_eval.plugin.command_line import reason_left_out
from pytest_kebab_eval.plugin.evaluation_source import (
    EvaluationSource,
    OwnEvaluation,
    received_evaluation,
)
from pytest_kebab_eval.plugin.exit_status import ExitStatus
from pytest_kebab_eval.plugin.failures import FailureReports
from pytest_kebab_eval.plugin.fast_path import FastPath, will_run_items
from pytest_kebab_eval.plugin.golden_file import GoldenFile, gate_name, item_name
from pytest_kebab_eval.plugin.items import QueryItem
from pytest_kebab_eval.plugin.parcels import send_environment
from pytest_kebab_eval.plugin.reported_outcomes import ReportedOutcomes
from pytest_kebab_eval.plugin.selection import LeftOut, Selection
from pytest_kebab_eval.plugin.snapshot import has_syrupy, is_snapshot_compared
from pytest_kebab_eval.plugin.terminal import TerminalSummary
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.reports.context import check_sections, report_context
from pytest_kebab_eval.reports.publishing import Published, publish
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import brief, safe_lines

_INTERRUPTED = pytest.ExitCode.INTERRUPTED
_BROKEN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


def start_session(config: pytest.Config, sources: Sources) -> KebabSession:
    """Register what a session that judges consists of; on a worker of xdist, only what runs items."""
    with usage_errors():
        settings = resolve(sources)
    own = OwnEvaluation(config, settings)
    session = KebabSession(config, settings, received_evaluation(config, settings) or own)
    config.pluginmanager.register(session, "kebab-eval-session")
    register_selection(session)
    register_results(config)
    FastPath(config, settings.golden.absolute()).register()
    if not hasattr(config, "workerinput"):
        register_controller(session, own)
    return session


def register_results(config: pytest.Config) -> None:
    """Register what shows failures to others, here and on workers."""
    config.pluginmanager.register(FailureReports(), "kebab-eval-failures")
    if uses_allure(config):
        config.pluginmanager.register(AllureResults(), "kebab-eval-allure")


def register_selection(session: KebabSession) -> None:
    """Register what follows which items run, in a process that has items."""
    session.selection = Selection(session)
    session.config.pluginmanager.register(session.selection, "kebab-eval-selection")


def register_controller(session: KebabSession, source: OwnEvaluation) -> None:
    """Register what works in the process that pytest was called in."""
    register = session.config.pluginmanager.register
    exit_status, reported = ExitStatus(), ReportedOutcomes(session, source)
    controller = Controller(session, source, reported, exit_status)
    register(exit_status, "kebab-eval-exit-status")
    register(reported, "kebab-eval-reported-outcomes")
    register(controller, "kebab-eval-controller")
    register(TerminalSummary(session, source, controller), "kebab-eval-summary")


class KebabSession:
    """Collects the golden file, and answers its items and the fixtures."""

    selection: Selection

    def __init__(self, config: pytest.Config, settings: Settings, source: EvaluationSource) -> None:
        self.config = config
        self.settings = settings
        self.reason_left_out = reason_left_out(config, settings.golden)
        self._source = source
        self._verdicts: Mapping[str, Verdict] | None = None
        self._comparisons: dict[str, QueryComparison] | None = None

    def load_golden(self) -> GoldenSet:
        """The golden queries; read when first asked for."""
        return self._source.load_golden()

    def load_gates(self) -> tuple[str, ...]:
        """The gates, as they were written."""
        return self._source.load_gates()

    def evaluate(self) -> Evaluation:
        """The outcome of the comparison; made when first asked for."""
        return self._source.evaluate()

    def find_verdict(self, query: GoldenQuery) -> Verdict:
        """The verdict on a query."""
        if self._verdicts is None:
            self._verdicts = self.evaluate().verdicts
        return self._verdicts[query.id]

    def failing_names(self) -> Iterator[str]:
        """The names of the items that must fail."""
        evaluation = self.evaluate()
        for query in self.load_golden().queries:
            if evaluation.verdicts[query.id].outcome is Outcome.FAILED:
                yield item_name(query)
        for gate in evaluation.report.gates:
            if not gate.passed and not gate.skipped:
                yield gate_name(gate.gate)

    def evidence(self) -> Mapping[str, QueryEvidence]:
        """What messages show of the queries that fail."""
        return self._source.evidence()

    def find_comparison(self, query: GoldenQuery) -> QueryComparison | None:
        """What became of a query between the runs; None if it is in neither."""
        if self._comparisons is None:
            compared = self.evaluate().report.per_query
            self._comparisons = {comparison.query_id: comparison for comparison in compared}
        return self._comparisons.get(query.id)

    def make_golden_file(self, session: pytest.Session) -> GoldenFile:
        """The golden file's collector, as if it were named on the command line."""
        return GoldenFile.make(self, self.settings.golden.absolute(), session)

    def wants_snapshot(self) -> bool:
        """Whether there is a snapshot item."""
        return self._source.has_baseline() and is_snapshot_compared(self.config, self.settings)

    # -- hooks -----------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
        """Collect the golden file, where pytest comes across it."""
        return GoldenFile.make(self, file_path, parent) if self.is_golden(file_path) else None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Evaluate before the first item asks for its verdict."""
        if will_run_items(session) and not self.reason_left_out:
            mark_skipped(session.items, self.evaluate().verdicts)
        return (yield)

    def is_golden(self, path: Path) -> bool:
        """Whether it is the golden file, by whatever path."""
        golden = self.settings.golden
        try:
            return path.name == golden.name and path.samefile(golden)
        except OSError:
            return False


def mark_skipped(items: Sequence[pytest.Item], verdicts: Mapping[str, Verdict]) -> None:
    """Mark the items of queries that are in neither run."""
    for item in items:
        verdict = verdicts[item.query.id] if isinstance(item, QueryItem) else None
        if verdict and verdict.outcome is Outcome.SKIPPED:
            item.add_marker(pytest.mark.skip(reason=safe_lines(verdict.reason)))


class Controller:
    """Does what is done once a session: in the process that pytest was called in, not in workers of xdist."""

    def __init__(
        self,
        kebab: KebabSession,
        source: OwnEvaluation,
        reported: ReportedOutcomes,
        exit_status: ExitStatus,
    ) -> None:
        self.published = Published([], [])
        self.left_out = LeftOut()
        self.was_stopped = False  # by somebody, at once
        self.stopped_early = False  # by -x, for one: then not all items run
        self._kebab = kebab
        self._config = kebab.config
        self._settings = kebab.settings
        self._source = source
        self._reported = reported
        self._exit_status = exit_status

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Check the input early; where xdist has workers, evaluate for them."""
        self._check_snapshot()
        if not self._config.option.collectonly:  # where it is an error of the golden file alone
            self._source.prepare(has_workers=self._config.pluginmanager.hasplugin("dsession"))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the evaluation to a worker that is starting."""
        self._source.send_to_worker(node)
        send_environment(node)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that somebody stopped the session; xdist itself ends `-x` by another exception."""
        self.was_stopped = excinfo.type in (KeyboardInterrupt, pytest.exit.Exception)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the aggregates and write the reports; an error there fails the session."""
        evaluation = None if self._kebab.reason_left_out else self._source.made
        self.stopped_early = bool(session.shouldfail or session.shouldstop) or exitstatus == _INTERRUPTED
        if evaluation is not None:
            self.left_out = self._kebab.selection.find_left_out()
        if evaluation is not None and not self.was_stopped and exitstatus not in _BROKEN:
            self.published = self._publish(evaluation)
            hidden = self._reported.errors(self.left_out, stopped_early=self.stopped_early)
            self.published.errors.extend(hidden)
            if self._has_errors(evaluation.report):
                self._exit_status.fail()
        if self.was_stopped:  # perhaps by pytest.exit(…, returncode=0)
            self._exit_status.fail()

    def add_error(self, error: str) -> None:
        """An error that came up while the summary was printed; it fails the session, too."""
        self.published.errors.append(error)
        self._exit_status.fail()

    def _check_snapshot(self) -> None:
        if self._settings.snapshot == "require" and not has_syrupy(self._config):
            raise pytest.UsageError("--kebab-snapshot=require needs the syrupy plugin, which is disabled")

    def _publish(self, evaluation: Evaluation) -> Published:
        context, error = self._make_context(evaluation.report)
        source = self._source
        published = publish(self._settings, source.read_inputs(), evaluation, context, source.briefs)
        if error is not None:
            text = brief(f"{type(error).__name__}: {error}", 200)
            published.errors.append(f"pytest_kebab_report_context failed: {text}")
        return published

    def _make_context(self, report: CompareReport) -> tuple[dict[str, Any], Exception | None]:
        """What the report templates are given, and the error of a hook that was to change it."""
        queries = self._source.read_inputs().golden.queries
        context = report_context(report, queries)
        try:
            self._config.hook.pytest_kebab_report_context(report=report, context=context)
            check_sections(context)
        except Exception as error:  # noqa: BLE001  the reports are written without what the hook adds
            return report_context(report, queries), error
        return context, None

    def _has_errors(self, report: CompareReport) -> bool:
        return bool(self.published.errors or report.unreadable or report.problems)
