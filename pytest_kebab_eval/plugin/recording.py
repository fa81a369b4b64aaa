"""A pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each result is kept beside the database as soon as it is known: at once, or, where a test is of one golden
query, with the report of the test. Under xdist the workers send theirs with the reports. The run is stored
when the session ends, if it is whole; if not, `--kebab-resume` goes on with what was kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_kebab_eval.errors import InputError, KebabEvalError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.model import GoldenQuery, QueryResult
from pytest_kebab_eval.plugin.command_line import selection_of, usage_errors
from pytest_kebab_eval.plugin.items import escaped
from pytest_kebab_eval.plugin.recorded_run import RecordedRun, SessionProgress
from pytest_kebab_eval.plugin.selection import is_recording
from pytest_kebab_eval.plugin.xdist import (
    Parcel,
    WorkerPayload,
    WorkerQueries,
    attach,
    detach,
    leave,
    left_by,
    received_payload,
    send_payload,
)
from pytest_kebab_eval.reports.as_text import Line
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, golden_of
from pytest_kebab_eval.store import Recording
from pytest_kebab_eval.store.plain import encode_json
from pytest_kebab_eval.text import printable, safe_lines

if TYPE_CHECKING:
    from pytest_kebab_eval.plugin.session import EvaluationSource

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


class TestRecording(Recording):
    """What the tests of this process record, until the session takes it over."""

    __test__ = False

    def __init__(self, on_result: Callable[[], None]) -> None:
        super().__init__()
        self._on_result = on_result

    def expect_no(self, query_ids: tuple[str, ...]) -> None:
        """These queries have a result already."""
        self._ids.update(query_ids)

    def take(self) -> tuple[tuple[str, str], ...]:
        """What was recorded since it was last taken."""
        rows, self.rows = self.rows, []
        return tuple((query_id, data.decode()) for query_id, data in rows)

    def _keep(self, query_id: str, result: QueryResult, result_json: bytes) -> None:
        super()._keep(query_id, result, result_json)
        self._on_result()


class RecordingTests:
    """A plugin that follows the tests of this process, and skips those of queries that have a result."""

    def __init__(self, config: pytest.Config, sources: Sources, source: EvaluationSource | None) -> None:
        self.recorder = TestRecording(self.result_recorded)
        self._config = config
        with usage_errors():
            sources.refuse_empty()
            self._golden_path = golden_of(sources)
        self._source = source
        self._golden: GoldenSet | None = None
        self._recorded_before: tuple[str, ...] = ()  # ids of queries
        self._raised: dict[str, tuple[str, str]] = {}  # query id -> its text, what its test raised
        self._left_out = 0  # tests that record, and are not to run
        self._item: pytest.Item | None = None

    def read_golden(self) -> GoldenSet:
        """The golden queries, for tests that ask a retriever about each of them; read once."""
        if self._golden is None:
            with usage_errors():
                judged = self._source
                self._golden = judged.load_golden() if judged else load_golden_set(self._golden_path)
        return self._golden

    def skip_recorded(self, query_ids: tuple[str, ...]) -> None:
        """Skip the tests of these queries, which have a result."""
        self._recorded_before = query_ids
        self.recorder.expect_no(query_ids)

    def result_recorded(self) -> None:
        """A test has recorded a result."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Generator[None]:
        """Skip what is recorded already; it stays among the tests, so that all are accounted for."""
        recording = sum(map(is_recording, items))
        yield
        self._left_out = recording - sum(map(is_recording, items))
        recorded = set(self._recorded_before)
        for item in items if recorded else ():
            query = recorded_query(item)
            if query is not None and query.id in recorded:
                item.add_marker(pytest.mark.skip(reason=RECORDED_ALREADY))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Know whose results come next."""
        self._item = item

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep what a recording test raised, in case that nothing else is recorded for its query."""
        query, not_raised = recorded_query(item), (pytest.skip.Exception, pytest.xfail.Exception)
        if query is not None and call.excinfo is not None and not call.excinfo.errisinstance(not_raised):
            text = call.excinfo.exconly().encode("utf-8", "backslashreplace").decode()
            self._raised[query.id] = (query.query, text)


class RecordingWorker(RecordingTests):
    """The plugin of a worker of xdist: sends what tests record with their reports."""

    def __init__(self, config: pytest.Config, sources: Sources, source: EvaluationSource | None) -> None:
        super().__init__(config, sources, source)
        self._sent_config = "{}"
        self._outgoing: tuple[pytest.TestReport, Parcel] | None = None
        payload = received_payload(config)
        if payload is not None:
            self.skip_recorded(payload.recorded)
            if payload.queries is not None:
                self._golden = GoldenSet(self._golden_path, payload.queries)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Pack what was recorded since the last report, and whose test it is."""
        parcel = self._pack(recorded_query(self._item))
        is_needed = parcel != Parcel() or (self._item is not None and is_recording(self._item))
        self._outgoing = (report, parcel) if is_needed else None

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, report: pytest.TestReport
    ) -> Generator[None, dict[str, Any] | None, dict[str, Any] | None]:
        """Send it with the report; in this process the report stays as it is."""
        data = yield
        if data is not None and self._outgoing is not None and self._outgoing[0] is report:
            attach(data, self._outgoing[1])
        return data

    def pytest_sessionfinish(self) -> None:
        """Send what was recorded after the last report, as the end of a fixture may."""
        leave(self._config, self._pack(None, is_last=True))

    def _pack(self, query: GoldenQuery | None, *, is_last: bool = False) -> Parcel:
        raised = tuple((query_id, *what) for query_id, what in self._raised.items())
        self._raised = {}
        rows = self.recorder.take()
        config, refusal = self._config_to_send(has_results=bool(rows))
        of_query = (query.id, query.query) if query else None
        left_out = self._left_out if is_last else 0
        return Parcel(rows, raised, config, refusal if is_last else "", of_query, left_out)

    def _config_to_send(self, *, has_results: bool) -> tuple[str, str]:
        """The configuration if it is new, and why it cannot be recorded, which tests may still fix.

        Where a run goes on, each result is held against the configuration of the ones before.
        """
        try:
            config = encode_json("config", self.recorder.config).decode()
        except KebabEvalError as error:
            return "", str(error)
        is_needed = config != self._sent_config or (has_results and bool(self._recorded_before))
        self._sent_config = config
        return config if is_needed else "", ""


# -- the session, in the process that pytest was called in ---------------------------------------


class RecordingSession(RecordingTests):
    """The plugin of the process that pytest was called in, which stores the run."""

    def __init__(self, config: pytest.Config, sources: Sources, source: EvaluationSource | None) -> None:
        super().__init__(config, sources, source)
        self.progress = SessionProgress()
        self._run = RecordedRun(sources, is_judged=source is not None)
        with usage_errors():
            self._unjudged_gates = 0 if source else len(sources.read("gates"))  # of the ini file
        self._workers = WorkerQueries()

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
                self._run.open(self._find_golden())
                self.skip_recorded(self._run.resumed)

    def pytest_report_header(self) -> str | None:
        if not self._run.resumed:
            return None
        results = counted(len(self._run.resumed), "result")
        return safe_lines(f"kebab-eval: run {self._run.run_id} goes on after {results}")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker that is starting what is recorded, and what the golden queries are."""
        golden = self._find_golden()
        queries = tuple(golden.queries) if golden else None
        payload = self._source.payload() if self._source else WorkerPayload(queries)
        send_payload(node, msgspec.structs.replace(payload, recorded=self._run.resumed))

    # -- results ---------------------------------------------------------------------------------

    def result_recorded(self) -> None:
        """Keep it, unless its test is of this query alone: then it counts when the test has passed."""
        if recorded_query(self._item) is None:
            self._keep_own()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came with the report, and stop if it cannot belong to this run."""
        parcel = detach(report)
        if parcel is None and self._item is not None and is_recording(self._item):
            self._keep_own()
        else:
            self._workers.report(report, parcel)
        if parcel is not None:
            self._receive(parcel)
        if report.failed:  # it is to run again, should the run be resumed: its exit code counts
            query = recorded_query(self._item) if parcel is None else None
            query_id = query.id if query else parcel.query[0] if parcel and parcel.query else None
            if query_id is not None:
                self._run.mark_for_repeat(query_id)
        if self._run.must_stop:
            stopped = f"run {printable(self._run.run_id)} cannot go on; the summary says why"
            pytest.exit(safe_lines(stopped), returncode=int(pytest.ExitCode.TESTS_FAILED))

    def _keep_own(self) -> None:
        """Keep what the tests of this process recorded; a configuration that is no JSON is an error later."""
        rows = self.recorder.take()
        with suppress(InputError):
            config = encode_json("config", self.recorder.config)
            self._run.update_config(config, has_results=bool(rows))
        self._run.keep(rows)

    def _receive(self, parcel: Parcel) -> None:
        self._raised.update({query_id: (query, text) for query_id, query, text in parcel.raised})
        self._run.refuse(parcel.refusal)
        self._left_out = self._left_out or parcel.left_out
        if parcel.config:
            self._run.update_config(parcel.config.encode(), has_results=bool(parcel.rows))
        self._run.keep(parcel.rows)

    # -- workers that die --------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker recorded last; if it died, its queries without a result are errored."""
        parcel = left_by(node, Parcel)
        if parcel is not None:
            self._receive(parcel)
        if error is not None or parcel is None:
            for query_id, query, text in self._workers.lose(node.gateway.id):
                self._raised.setdefault(query_id, (query, text))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """The test in flight: it will not run again, unless another plugin sees to that."""
        # The query by which alone it is parametrized, as its worker may have died before it said so.
        parameter, golden = re.search(r"\[(.*)\]", crashitem), self._find_golden()
        queries = golden.queries if golden and parameter else ()
        query = next((query for query in queries if parameter and escaped(query.id) == parameter[1]), None)
        if query is not None and not self._workers.knows(crashitem):
            died = self._workers.died_in(report.node.gateway.id)
            self._raised.setdefault(query.id, (query.query, died))
        if query is not None or self._workers.knows(crashitem):
            self.progress.pytest_runtest_logfinish(crashitem)

    # -- the end ---------------------------------------------------------------------------------

    @property
    def message(self) -> str:
        return self._run.message.text

    def store_whole(self, session: pytest.Session, exitstatus: int = 0) -> bool:
        """Store the run if it is whole, once; whether it is stored."""
        if self._run.is_stored is None:
            died = self._workers.summary()
            with self._run.storing():
                self._keep_own()
                self._run.check_whole(self.progress.what_is_missing(session, exitstatus), died)
                encode_json("config", self.recorder.config)  # which says what is wrong with it
                golden = self._find_golden()
                selection = selection_of(self._config, self._left_out, has_golden=golden is not None)
                self._run.store(self._raised, golden, died, selection)
        return bool(self._run.is_stored)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._config.option.collectonly:
            return
        if not self.store_whole(session, exitstatus):
            session.exitstatus = self.progress.exit_code(exitstatus)
        elif self._workers.lost and exitstatus == pytest.ExitCode.OK:
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
