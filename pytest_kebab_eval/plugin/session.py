"""A pytest session that judges a comparison: the plugins that are registered where a run is named."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.evaluation import Evaluation
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.model import GoldenQuery, QueryComparison
from pytest_kebab_eval.plugin.allure import AllureResults, uses_allure
from pytest_kebab_eval.plugin.evaluation_source import (
    EvaluationSource,
    OwnEvaluation,
    received_evaluation,
)
from pytest_kebab_eval.plugin.failures import FailureReports
from pytest_kebab_eval.plugin.fast_path import FastPath, will_run_items
from pytest_kebab_eval.plugin.golden_file import GoldenFile, gate_name, item_name
from pytest_kebab_eval.plugin.items import KebabItem, QueryItem
from pytest_kebab_eval.plugin.snapshot import has_syrupy, is_snapshot_compared
from pytest_kebab_eval.plugin.terminal import TerminalSummary
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.reports.context import check_sections, report_context
from pytest_kebab_eval.reports.publishing import Published, publish
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import brief, safe_lines

_BROKEN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
_FINE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
_SELECTING = ("keyword", "markexpr", "deselect", "lf", "stepwise", "ignore", "ignore_glob", "collectonly")


def start_session(config: pytest.Config, sources: Sources) -> KebabSession:
    """Register what a session that judges consists of; on a worker of xdist, only what runs items."""
    with usage_errors():
        settings = resolve(sources)
    own = OwnEvaluation(config, settings)
    session = KebabSession(config, settings, received_evaluation(config, settings) or own)
    config.pluginmanager.register(session, "kebab-eval-session")
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


def register_controller(session: KebabSession, source: OwnEvaluation) -> Controller:
    """Register what works in the process that pytest was called in."""
    register = session.config.pluginmanager.register
    controller = Controller(session.config, session.settings, source)
    register(controller, "kebab-eval-controller")
    register(TerminalSummary(session, source, controller), "kebab-eval-summary")
    return controller


class KebabSession:
    """Collects the golden file, and answers its items and the fixtures."""

    def __init__(self, config: pytest.Config, settings: Settings, source: EvaluationSource) -> None:
        self.config = config
        self.settings = settings
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

    def find_comparison(self, query: GoldenQuery) -> QueryComparison | None:
        """What became of a query between the runs; None if it is in neither."""
        if self._comparisons is None:
            compared = self.evaluate().report.per_query
            self._comparisons = {comparison.query_id: comparison for comparison in compared}
        return self._comparisons.get(query.id)

    def wants_snapshot(self) -> bool:
        """Whether there is a snapshot item."""
        return self._source.has_baseline() and is_snapshot_compared(self.config, self.settings)

    # -- hooks -----------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
        """Collect the golden file, where pytest comes across it."""
        return GoldenFile.make(self, file_path, parent) if self.is_golden(file_path) else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Collect the golden file, where pytest did not come across it."""
        if not any(isinstance(item.parent, GoldenFile) for item in items):
            path = self.settings.golden.absolute()
            items.extend(session.genitems(GoldenFile.make(self, path, session)))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Evaluate before the first item asks for its verdict."""
        if will_run_items(session):
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

    def __init__(self, config: pytest.Config, settings: Settings, source: OwnEvaluation) -> None:
        self.published = Published([], [])
        self.was_stopped = False
        self._session: pytest.Session | None = None
        self._planned: set[str] = set()  # names of items
        self._config = config
        self._settings = settings
        self._source = source

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Check the input early; where xdist has workers, evaluate for them."""
        self._check_snapshot()
        has_workers = self._config.pluginmanager.hasplugin("dsession")
        self._source.prepare(has_workers=has_workers and not self._config.option.collectonly)

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Send the evaluation to a worker that is starting."""
        self._source.send_to_worker(node)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what will run; xdist's controller has no items."""
        self._planned.update(item.name for item in session.items if isinstance(item, KebabItem))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Keep what will run, which workers of xdist know; a group's name may follow an item's."""
        self._planned.update(name for nodeid in ids for name in _names(nodeid))

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Remember that somebody stopped the session; xdist itself ends `-x` by another exception."""
        self.was_stopped = excinfo.type in (KeyboardInterrupt, pytest.exit.Exception)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the aggregates and write the reports; an error there fails the session."""
        self._session = session
        evaluation = self._source.made
        if evaluation is not None and not self.was_stopped and exitstatus not in _BROKEN:
            self.published = self._publish(evaluation)
            self.published.errors.extend(self._taken_out(evaluation))
            if self._has_errors(evaluation.report):
                _fail_session(session)
        if self.was_stopped:  # perhaps by pytest.exit(…, returncode=0)
            _fail_session(session)

    def add_error(self, error: str) -> None:
        """An error that came up while the summary was printed; it fails the session, too."""
        self.published.errors.append(error)
        if self._session is not None:
            _fail_session(self._session)

    def _taken_out(self, evaluation: Evaluation) -> Iterator[str]:
        """A sentence, if items that fail were not to run, and it was not the user who left them out."""
        if not _is_selection(self._config):
            names = [*_failing_queries(evaluation, self._source), *_failing_gates(evaluation)]
            taken_out = [name for name in names if name not in self._planned]
            if taken_out:
                yield (
                    f"{counted(len(taken_out), 'item')} that would fail did not run, such as {taken_out[0]}:"
                    " a plugin or conftest took it out of the session"
                )

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


def _fail_session(session: pytest.Session) -> None:
    if session.exitstatus in _FINE:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _failing_queries(evaluation: Evaluation, source: OwnEvaluation) -> Iterator[str]:
    for query in source.load_golden().queries:
        if evaluation.verdicts[query.id].outcome is Outcome.FAILED:
            yield item_name(query)


def _failing_gates(evaluation: Evaluation) -> Iterator[str]:
    for gate in evaluation.report.gates:
        if not gate.passed and not gate.skipped:
            yield gate_name(gate.gate)


def _is_selection(config: pytest.Config) -> bool:
    """Whether the user chose among the tests on the command line."""
    options = config.option
    chosen = any(getattr(options, name, None) for name in _SELECTING)
    return chosen or any("::" in str(arg) for arg in options.file_or_dir)


def _names(nodeid: str) -> tuple[str, str]:
    """An item's name, also without the group that xdist may have added."""
    name = nodeid.partition("::")[2]
    return name, name.rpartition("@")[0]
