"""A pytest session that judges a comparison; where it records run B first, `recorded_gate` has the rest."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.model import GoldenQuery, QueryComparison
from pytest_kebab_eval.plugin.command_line import reason_left_out, usage_errors, will_run_items
from pytest_kebab_eval.plugin.controller import Controller, ReportedOutcomes
from pytest_kebab_eval.plugin.direct_reports import DirectReports
from pytest_kebab_eval.plugin.evaluation_source import EvaluationSource
from pytest_kebab_eval.plugin.items import (
    AllureResults,
    FailureReports,
    GoldenFile,
    QueryItem,
    gate_name,
    query_name,
)
from pytest_kebab_eval.plugin.selection import Selection, UnrecordedTests
from pytest_kebab_eval.plugin.terminal import TerminalSummary
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import safe_lines


def start_session(config: pytest.Config, sources: Sources) -> KebabSession:
    """Register what a session that judges consists of; on a worker of xdist, only what runs items."""
    with usage_errors():
        settings = resolve(sources)
    session = KebabSession(config, settings, EvaluationSource(config, settings))
    register_session(session)
    config.pluginmanager.register(UnrecordedTests(), "kebab-eval-unrecorded-tests")
    return session


def register_session(session: KebabSession) -> None:
    """Register a session, and what reports on its items."""
    config = session.config
    register = config.pluginmanager.register
    register(session, "kebab-eval-session")
    register(session.selection, "kebab-eval-selection")
    register(FailureReports(), "kebab-eval-failures")
    if config.getoption("allure_report_dir", None):
        register(AllureResults(), "kebab-eval-allure")
    DirectReports(config, session.settings.golden.absolute()).register()
    if hasattr(config, "workerinput"):
        return
    reported = ReportedOutcomes(session)
    controller = Controller(session, reported)
    register(reported, "kebab-eval-reported-outcomes")
    register(controller, "kebab-eval-controller")
    register(TerminalSummary(session, controller), "kebab-eval-summary")


class KebabSession:
    """Collects the golden file, and answers its items and the fixtures."""

    def __init__(self, config: pytest.Config, settings: Settings, source: EvaluationSource) -> None:
        self.config = config
        self.settings = settings
        self.source = source
        self.reason_left_out = reason_left_out(config, settings.golden)
        self.selection = Selection(self)
        self._comparisons: dict[str, QueryComparison] | None = None

    def find_verdict(self, query: GoldenQuery) -> Verdict:
        return self.source.evaluate().verdicts[query.id]

    def find_comparison(self, query: GoldenQuery) -> QueryComparison | None:
        """What became of a query between the runs; None if it is in neither."""
        if self._comparisons is None:
            compared = self.source.evaluate().report.per_query
            self._comparisons = {comparison.query_id: comparison for comparison in compared}
        return self._comparisons.get(query.id)

    def failing_names(self) -> Iterator[str]:
        evaluation = self.source.evaluate()
        for query in self.source.load_golden().queries:
            if evaluation.verdicts[query.id].outcome is Outcome.FAILED:
                yield query_name(query)
        for gate in evaluation.report.gates:
            if not gate.passed and not gate.skipped:
                yield gate_name(gate.gate)

    def make_golden_file(self, session: pytest.Session) -> GoldenFile:
        """The golden file's collector, as if it were named on the command line."""
        return GoldenFile.make(self, self.settings.golden.absolute(), session)

    def mark_skipped(self, session: pytest.Session) -> None:
        """Evaluate, and mark the items of queries that are in neither run."""
        verdicts = self.source.evaluate().verdicts
        for item in session.items:
            verdict = verdicts[item.query.id] if isinstance(item, QueryItem) else None
            if verdict and verdict.outcome is Outcome.SKIPPED:
                item.add_marker(pytest.mark.skip(reason=safe_lines(verdict.reason)))

    def is_golden(self, path: Path) -> bool:
        """Whether it is the golden file, by whatever path."""
        golden = self.settings.golden
        try:
            return path.name == golden.name and path.samefile(golden)
        except OSError:
            return False

    # -- hooks -----------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GoldenFile | None:
        return GoldenFile.make(self, file_path, parent) if self.is_golden(file_path) else None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Evaluate before the first item asks for its verdict."""
        if will_run_items(session) and not self.reason_left_out:
            self.mark_skipped(session)
        return (yield)
