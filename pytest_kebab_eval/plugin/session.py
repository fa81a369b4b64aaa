"""A pytest session that judges a comparison, which is read and made in this process, or received.

Under xdist the controller evaluates once, before its workers start, and sends them the result. So no worker
reads a database, and the controller has the report to store and to write. Where run B is recorded in the
same session, all but run B is read at the start, and the comparison is made when it is stored:
`recorded_gate` has the rest.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kebab_eval.comparing.checks import WORSE
from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.comparing.worse import WORSE_GATE
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inputs import Inputs, Task, find_inputs, inputs_of, read_task, run_names
from pytest_kebab_eval.inputs.sides import Baseline, find_baseline
from pytest_kebab_eval.model import GoldenQuery, QueryComparison, Recorded, Run
from pytest_kebab_eval.plugin.command_line import reason_left_out, usage_errors, will_run_items
from pytest_kebab_eval.plugin.controller import Controller, ReportedOutcomes
from pytest_kebab_eval.plugin.direct_reports import DirectReports
from pytest_kebab_eval.plugin.items import (
    FailureReports,
    GoldenFile,
    QueryItem,
    gate_name,
    is_snapshot_compared,
    query_name,
    snapshot_path,
)
from pytest_kebab_eval.plugin.selection import Selection, UnrecordedTests
from pytest_kebab_eval.plugin.terminal import TerminalSummary
from pytest_kebab_eval.plugin.xdist import WorkerPayload, received_payload
from pytest_kebab_eval.reports.as_json import is_snapshot_of
from pytest_kebab_eval.reports.publishing import Published, publish
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Settings, Sources, resolve
from pytest_kebab_eval.text import brief, printable, safe_lines, shown_path

if TYPE_CHECKING:
    from pytest_kebab_eval.reports.briefs import Briefs


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


# -- the comparison that a session judges ---------------------------------------------------------


class EvaluationSource:
    """What the items of a session are made from; each part is read or made when it is first asked for."""

    def __init__(self, config: pytest.Config, settings: Settings, *, is_recording: bool = False) -> None:
        self.is_recording = is_recording  # whether run B is still to be stored
        self._records = is_recording
        self._config = config
        self._settings = settings
        self._received = received_payload(config)
        if self._received:
            self._received_golden = GoldenSet(settings.golden, self._received.queries or ())
        self._task: Task | None = None
        self._baseline: Baseline | None = None
        self._inputs: Inputs | None = None
        self._briefs: Briefs | None = None
        if settings.html:
            from pytest_kebab_eval.reports.briefs import Briefs

            self._briefs = Briefs()
        self.made = self._received.evaluation if self._received else None  # the evaluation, if there is one
        self._evidence = self._received.evidence if self._received else None

    # -- what items are made from ------------------------------------------------------------------

    def load_golden(self) -> GoldenSet:
        """The golden queries; with `--collect-only` also where something else of the input is wrong."""
        if self._received:
            return self._received_golden
        try:
            return self._read().golden
        except pytest.UsageError:
            if not self._config.option.collectonly:
                raise
        with usage_errors():
            return load_golden_set(self._settings.golden)

    def load_gates(self) -> tuple[str, ...]:
        """The names of all gates, in the order of the report."""
        if self._received:
            return self._received.gates
        own = tuple(map(str, self._read().gates))
        return (*own, WORSE_GATE) if WORSE in self._settings.fail_on and self.has_baseline() else own

    def has_baseline(self) -> bool:
        if self._received:
            return self._received.has_baseline
        return bool(self._read_baseline().runs) if self._records else self.read_inputs().run_a is not None

    def evaluate(self) -> Evaluation:
        """Score and compare the runs, and call `pytest_kebab_compared`; once."""
        if self.made is None:
            if self.is_recording:
                self._fail_early()
            with usage_errors():
                made = evaluate(self._settings, self.read_inputs(), observer=self._briefs)
                self._evidence = failure_evidence(self._settings, self.read_inputs(), made)
            self._config.hook.pytest_kebab_compared(report=made.report)
            self.made = made
        return self.made

    @property
    def evidence(self) -> Mapping[str, QueryEvidence]:
        """What is shown of the queries that fail: read at once, as a database may be gone by then."""
        return self._evidence or {}

    def _fail_early(self) -> None:
        """Fail a test that asks for the comparison before there is one."""
        advice = "take kebab_report or its like as an argument, and not together with kebab_recorder"
        if self._received:
            advice = "run this test without -n, or in a session of its own"
        run_b = printable(self._settings.run_b)
        text = f"run {run_b} is still being recorded, and not compared yet; {advice}"
        pytest.fail(safe_lines(text), pytrace=False)

    # -- reading -------------------------------------------------------------------------------------

    def read_inputs(self) -> Inputs:
        """Read what is compared; a usage error if anything is wrong with it."""
        if self._inputs is None:
            with usage_errors():
                if self._records:  # with the run A to compare with when the session began
                    runs_a, warnings = self._read_baseline()
                    settings = self._settings._replace(run_a=run_names(runs_a) or None)
                    inputs = inputs_of(settings, self._read_task())
                    warnings = tuple(dict.fromkeys((*warnings, *inputs.warnings)))
                    self._inputs = inputs._replace(warnings=warnings)
                else:
                    self._inputs = find_inputs(self._settings, custom_metrics(self._config))
        return self._inputs

    def _read(self) -> Task | Inputs:
        return self._read_task() if self._records else self.read_inputs()

    def _read_task(self) -> Task:
        if self._task is None:
            with usage_errors():
                self._task = read_task(self._settings, custom_metrics(self._config))
        return self._task

    def _read_baseline(self) -> Baseline:
        """The runs of A, found before B is recorded."""
        if self._baseline is None:
            from pytest_kebab_eval.store.working_tree import working_tree

            with usage_errors():
                settings, branch = self._settings, working_tree().branch
                run_b = Run(settings.run_b, settings.suite or "default", recorded=Recorded(branch=branch))
                self._baseline = find_baseline(settings, run_b)
        return self._baseline

    # -- in the process that pytest was called in --------------------------------------------------

    def prepare(self, *, for_workers: bool) -> None:
        """Check the input early; where xdist has workers, evaluate for them, if run B is stored."""
        self._read()
        self.has_baseline()
        if for_workers and not self.is_recording:
            self.evaluate()

    def payload(self) -> WorkerPayload:
        known = (tuple(self.load_golden().queries), self.load_gates(), self.has_baseline())
        if self.is_recording:
            return WorkerPayload(*known)
        return WorkerPayload(*known, self.evaluate()._replace(matcher=None), self._evidence)

    def publish(self, context: dict[str, Any]) -> Published:
        evaluation, matches = self.evaluate(), None
        if self.has_baseline() and is_snapshot_compared(self._config, self._settings):
            matches = is_snapshot_of(snapshot_path(self._settings.golden), evaluation.report)
        return publish(self._settings, self.read_inputs(), evaluation, context, self._briefs, matches)

    def header_lines(self) -> Iterator[str]:
        """What is compared, for the header of the session."""
        if self._records:
            runs_a, warnings = self._read_baseline()
            b = f"{printable(self._settings.run_b)}, to be recorded"
            yield f"A {printable(run_names(runs_a))} → B {b}" if runs_a else f"run {b}, alone"
        else:
            inputs = self.read_inputs()
            b, warnings = printable(inputs.name_b), inputs.warnings
            runs = f"A {printable(inputs.name_a)} → B {b}" if inputs.name_a else f"run {b} alone"
            yield f"{runs} ({inputs.mode.value})"
        golden = self.load_golden()
        yield f"golden {shown_path(golden.path)} ({counted(len(golden.queries), 'query')})"
        yield from (f"warning: {warning}" for warning in warnings)


def custom_metrics(config: pytest.Config) -> dict[str, Any]:
    """The functions that the hooks `pytest_kebab_metrics` return, by name."""
    try:
        returned = config.hook.pytest_kebab_metrics()
    except Exception as error:
        text = brief(f"{type(error).__name__}: {error}", 200)
        raise pytest.UsageError(safe_lines(f"pytest_kebab_metrics failed: {text}")) from error
    found: dict[str, Any] = {}
    for metrics in returned:
        if not isinstance(metrics, dict):
            raise pytest.UsageError("pytest_kebab_metrics must return a dict of functions by name")
        twice = found.keys() & metrics.keys()
        if twice:
            name = printable(min(map(str, twice)))
            raise pytest.UsageError(safe_lines(f"pytest_kebab_metrics: two hooks define '{name}'"))
        found.update(metrics)
    return found
