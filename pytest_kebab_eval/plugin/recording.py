"""A pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each process that runs tests, also a worker of xdist, writes their results into one staging file, each as soon
as it is known. The run is stored when the session ends, if it is whole; if not, `--kebab-resume` goes on.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.plugin.command_line import selection_of, usage_errors
from pytest_kebab_eval.plugin.recorded_run import RecordedRun, SessionProgress
from pytest_kebab_eval.plugin.selection import is_recording
from pytest_kebab_eval.plugin.session import EvaluationSource
from pytest_kebab_eval.plugin.xdist import WorkerPayload, received_payload, send_payload
from pytest_kebab_eval.reports.as_text import Line
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, golden_of
from pytest_kebab_eval.store.recorder import Recording, StagedRecording
from pytest_kebab_eval.store.staging import Staging
from pytest_kebab_eval.text import printable, safe_lines

RECORDED_ALREADY = "recorded before the run was resumed (--kebab-resume)"


def start_recording(
    config: pytest.Config, sources: Sources, source: EvaluationSource | None = None
) -> RecordingSession | RecordingWorker:
    """Register the plugin of `--kebab-record`; `source` is that of a session which judges the run, too."""
    kind = RecordingWorker if hasattr(config, "workerinput") else RecordingSession
    made = kind(config, sources, source)
    config.pluginmanager.register(made, "kebab-eval-recording")
    return made


def recorded_query(item: pytest.Item | None) -> GoldenQuery | None:
    """The golden query that the test records, if it is such a test."""
    if item is None or not is_recording(item):
        return None
    query = getattr(getattr(item, "callspec", None), "params", {}).get("kebab_query")
    return query if isinstance(query, GoldenQuery) else None


# -- the tests, in the process that runs them ----------------------------------------------------


class RecordingTests:
    """A plugin that follows the tests of this process, and skips those of queries that have a result."""

    def __init__(self, config: pytest.Config, sources: Sources, source: EvaluationSource | None) -> None:
        self.recorder: Recording = Recording()
        self._config = config
        with usage_errors():
            sources.refuse_empty()
            self._golden_path = golden_of(sources)
            self._mask: tuple[str, ...] = sources.read("mask")
        self._source = source
        self._golden: GoldenSet | None = None
        self._recorded_before: frozenset[str] = frozenset()  # ids of queries
        self._item: pytest.Item | None = None

    def start(self, staging: Staging) -> None:
        """Record into this file."""
        self.recorder = StagedRecording(staging, self._mask)
        self._recorded_before = frozenset(staging.ids())

    @property
    def _staging(self) -> Staging | None:
        return self.recorder.staging if isinstance(self.recorder, StagedRecording) else None

    def read_golden(self) -> GoldenSet:
        """The golden queries, for tests that ask a retriever about each of them; read once."""
        if self._golden is None:
            with usage_errors():
                judged = self._source
                self._golden = judged.load_golden() if judged else load_golden_set(self._golden_path)
        return self._golden

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        """Skip what is recorded already; it stays among the tests, so that all are accounted for."""
        recording = sum(map(is_recording, items))
        yield
        left_out = recording - sum(map(is_recording, items))
        if left_out and self._staging is not None:
            self._staging.set("left_out", str(left_out))
        for item in items if self._recorded_before else ():
            query = recorded_query(item)
            if query is not None and query.id in self._recorded_before:
                item.add_marker(pytest.mark.skip(reason=RECORDED_ALREADY))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Say which test begins, should its process die."""
        self._item = item
        if self._staging is not None:
            query = recorded_query(item)
            of_query = (query.id, query.query) if query else (None, None if is_recording(item) else "")
            self._staging.test_begins(item.nodeid, self._worker_id, *of_query)

    @property
    def _worker_id(self) -> str:
        found: str = getattr(self._config, "workerinput", {}).get("workerid", "")
        return found

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep what a recording test raised, in case that nothing else is recorded for its query."""
        query, not_raised = recorded_query(item), (pytest.skip.Exception, pytest.xfail.Exception)
        if query is None or call.excinfo is None or call.excinfo.errisinstance(not_raised):
            return
        if self._staging is not None:
            text = call.excinfo.exconly().encode("utf-8", "backslashreplace").decode()
            self._staging.test_raised(query.id, query.query, text)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Have a query recorded again whose test failed, where it runs again or the run is resumed."""
        item, staging = self._item, self._staging
        if item is None or staging is None or report.nodeid != item.nodeid:
            return
        query = recorded_query(item)
        if query is not None and report.outcome not in ("passed", "skipped"):
            staging.mark_for_repeat(query.id)
        if report.when == "setup" and report.skipped:
            staging.test_skipped(item.nodeid)

    def finish(self) -> None:
        """Take over a configuration that was changed after the last result, or say what is wrong with it."""
        if isinstance(self.recorder, StagedRecording):
            try:
                self.recorder.update_config(has_results=False)
            except KebabEvalError as error:
                self.recorder.staging.set("refusal", str(error))


class RecordingWorker(RecordingTests):
    """The plugin of a worker of xdist, which writes into the file of the controller."""

    def __init__(self, config: pytest.Config, sources: Sources, source: EvaluationSource | None) -> None:
        super().__init__(config, sources, source)
        payload = received_payload(config)
        if payload is not None:
            if payload.staging is not None:
                self.start(Staging(Path(payload.staging[0]), payload.staging[1]))
            if payload.queries is not None:
                self._golden = GoldenSet(self._golden_path, payload.queries)

    def pytest_sessionfinish(self) -> None:
        self.finish()
        if self._staging is not None:
            self._staging.close()


# -- the session, in the process that pytest was called in ---------------------------------------


class RecordingSession(RecordingTests):
    """The plugin of the process that pytest was called in, which stores the run."""

    def __init__(self, config: pytest.Config, sources: Sources, source: EvaluationSource | None) -> None:
        super().__init__(config, sources, source)
        self.progress = SessionProgress()
        self._run = RecordedRun(sources, is_judged=source is not None)
        with usage_errors():
            self._unjudged_gates = 0 if source else len(sources.read("gates"))  # of the ini file
        self._died: list[str] = []  # workers

    def _find_golden(self) -> GoldenSet | None:
        """The golden queries; None if there is no golden file that can be read, which tests need not have."""
        try:
            return self.read_golden()
        except pytest.UsageError:
            return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Do not let a retriever work for a run that could not be stored in the end."""
        self._config.pluginmanager.register(self.progress, "kebab-eval-recording-progress")
        with usage_errors():
            if self._config.option.collectonly:
                self._run.check()
            else:
                self.start(self._run.open(self._find_golden()))

    def pytest_report_header(self) -> str | None:
        if not self._recorded_before:
            return None
        results = counted(len(self._recorded_before), "result")
        return safe_lines(f"kebab-eval: run {self._run.run_id} goes on after {results}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker that is starting where to record, and what the golden queries are."""
        golden, staging = self._find_golden(), self._staging
        queries = tuple(golden.queries) if golden else None
        payload = self._source.payload() if self._source else WorkerPayload(queries)
        if staging is not None and staging.path is not None:
            place = (str(staging.path.absolute()), staging.session)
            payload = msgspec.structs.replace(payload, staging=place)
        send_payload(node, payload)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stop if what is recorded cannot belong to this run."""
        super().pytest_runtest_logreport(report)
        if self._recorded_before and self._staging is not None and self._staging.get("must_stop"):
            stopped = f"run {printable(self._run.run_id)} cannot go on; the summary says why"
            pytest.exit(safe_lines(stopped), returncode=int(pytest.ExitCode.TESTS_FAILED))

    # -- workers that die --------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """The queries that a worker takes along are errored, unless they are recorded after all."""
        if error is not None and self._staging is not None:
            worker = node.gateway.id
            self._died.append(worker)
            self._staging.lose(worker, f"worker {worker} of xdist died before this query was recorded")

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str) -> None:
        """The test in flight counts as run, where it is known what it would record: one query, or nothing."""
        begun = self._staging.begun(crashitem) if self._staging is not None else None
        if begun is not None and begun.query is not None:
            self.progress.pytest_runtest_logfinish(crashitem)

    # -- the end ---------------------------------------------------------------------------------

    @property
    def message(self) -> str:
        return self._run.message.text

    def store_whole(self, session: pytest.Session, exitstatus: int = 0) -> bool:
        """Store the run if it is whole, once; whether it is stored."""
        if self._run.is_stored is None:
            workers = f"{counted(len(self._died), 'worker')} of xdist died ({', '.join(self._died)})"
            died = f"; {workers}" if self._died else ""
            with self._run.storing():
                self.finish()
                self._run.check_whole(self.progress.what_is_missing(session, exitstatus), died)
                golden = self._find_golden()
                left_out = int((self._staging and self._staging.get("left_out")) or 0)
                selection = selection_of(self._config, left_out, has_golden=golden is not None)
                self._run.store(golden, died, selection)
            self._run.close()
            self.recorder = Recording()
        return bool(self._run.is_stored)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._config.option.collectonly:
            return
        if not self.store_whole(session, exitstatus):
            session.exitstatus = self.progress.exit_code(exitstatus)
        elif self._run.errored and self._died and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        text, is_error = self.message, self._run.message.direction < 0
        if text:
            prefix = "kebab-eval: ERROR: " if is_error else "kebab-eval: "
            terminalreporter.write_line(safe_lines(f"{prefix}{text}"), red=is_error, bold=is_error)
            if self._run.is_stored and self._unjudged_gates:
                gates = "gate was" if self._unjudged_gates == 1 else "gates were"
                text = (
                    f"kebab-eval: {self._unjudged_gates} {gates} not judged, since this session only records;"
                )
                text += f" to judge the run, name it with --kebab-run-b {printable(self._run.run_id)}, or a"
                terminalreporter.write_line(safe_lines(f"{text} baseline with --kebab-run-a"))
        self._run.message = Line("")

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print it now, where the exit code is one for which pytest has no summary."""
        self._run.close()
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            self.pytest_terminal_summary(terminal)
