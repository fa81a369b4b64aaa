"""A pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each result is kept beside the database as soon as it is known: at once, or, where a test is of one golden
query, with the report of the test. Under xdist the workers send theirs with the reports. The run is stored
when the session ends, if it is whole; if not, `--kebab-resume` goes on with what was kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from pytest_kebab_eval.errors import InputError, KebabEvalError, SettingsError, StoreError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.plugin.golden_file import escaped
from pytest_kebab_eval.plugin.parcels import Assignment, Parcel, assign, detach, left_by
from pytest_kebab_eval.plugin.progress import SessionProgress
from pytest_kebab_eval.plugin.recording_tests import (
    RecordingTests,
    RecordingWorker,
    is_recording,
    recorded_query,
)
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.plugin.workers import WorkerQueries
from pytest_kebab_eval.reports.as_text import Line
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of
from pytest_kebab_eval.store import Address, RunRecorder, backend_of, shown_address
from pytest_kebab_eval.store.results import encode_json
from pytest_kebab_eval.text import printable, safe_lines

SHOWN_MISSING = 5


def start_recording(
    config: pytest.Config, sources: Sources, *, is_judged: bool = False
) -> RecordingSession | RecordingWorker:
    """Register the plugin of `--kebab-record`: that of a worker of xdist, or of the process that stores."""
    made = (
        RecordingWorker(config, sources)
        if hasattr(config, "workerinput")
        else RecordingSession(config, sources, is_judged=is_judged)
    )
    config.pluginmanager.register(made, "kebab-eval-recording")
    return made


class RecordingSession(RecordingTests):
    """The plugin of the process that pytest was called in, which stores the run."""

    def __init__(self, config: pytest.Config, sources: Sources, *, is_judged: bool = False) -> None:
        super().__init__(config, sources)
        with usage_errors():
            self.run_id: str = sources.read("record")
            run_b_database = sources.read("db_b") if is_judged else None
            self._database: Address = run_b_database or database_of(sources)
            self._suite: str = sources.read("suite") or "default"
            self._mask: tuple[str, ...] = sources.read("mask")
            self._resume: bool = sources.read("resume")
            self._unjudged_gates = 0 if is_judged else len(sources.read("gates"))
        self._golden_source: Callable[[], GoldenSet] = super()._read_golden
        self._run: RunRecorder | None = None
        self._resumed: tuple[str, ...] = ()  # queries that had a result before
        self._refusal = ""  # why what was recorded cannot be stored
        self._must_stop = False
        self._progress = SessionProgress()
        self._workers = WorkerQueries()
        self._is_stored: bool | None = None  # None: not tried yet
        self._message = Line("")

    def use_golden(self, source: Callable[[], GoldenSet]) -> None:
        """Have the golden queries read by somebody who needs them, too."""
        self._golden_source = source

    def _read_golden(self) -> GoldenSet:
        return self._golden_source()

    def expect(self, items: Iterable[pytest.Item]) -> None:
        """Only these tests are to run before the run is stored."""
        self._progress.expect(items)

    def store_whole(self, session: pytest.Session, exitstatus: int = 0) -> bool:
        """Store the run if it is whole, once; whether it is stored."""
        if self._is_stored is None:
            self._is_stored = self._try_to_store(session, exitstatus)
        return self._is_stored

    @property
    def message(self) -> str:
        """What became of the run."""
        return self._message.text

    # -- starting --------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Do not let a retriever work for a run that could not be stored in the end."""
        self._config.pluginmanager.register(self._progress, "kebab-eval-recording-progress")
        with usage_errors():
            if self._config.option.collectonly:
                backend_of(self._database).check_recordable(self.run_id)
            else:
                self._open()

    def _open(self) -> None:
        run = RunRecorder(
            self._database,
            self._suite,
            run_id=self.run_id,
            resume=self._resume,
            mask=self._mask,
            golden=self._find_golden(),
            progress=False,
        )
        run.open()
        self._run, self._resumed = run, run.ids
        self.skip_recorded(run.ids)

    def _find_golden(self) -> GoldenSet | None:
        """The golden queries; None if there is no golden file that can be read, which tests need not have."""
        try:
            return self.load_golden()
        except pytest.UsageError:
            return None

    def pytest_report_header(self) -> str | None:
        """Say that a run goes on."""
        if not self._resumed:
            return None
        return safe_lines(
            f"kebab-eval: run {self.run_id} goes on after {counted(len(self._resumed), 'result')}"
        )

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker that is starting what is recorded, and what the golden queries are."""
        golden = self._find_golden()
        assign(node, Assignment(self._resumed, tuple(golden.queries) if golden else None))

    # -- results ---------------------------------------------------------------------------------

    def result_recorded(self) -> None:
        """Keep it, unless its test is of this query alone: then it counts when the test has passed."""
        if self._item is None or recorded_query(self._item) is None:
            self._keep_own()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what came with the report, and stop if it cannot belong to this run."""
        parcel = detach(report)
        if parcel is not None:
            self._workers.report(report, parcel)
            self._receive(parcel)
        elif self._item is not None and is_recording(self._item):
            self._keep_own()
        else:
            self._workers.report_other(report)
        if report.failed:
            self._mark_for_repeat(parcel)
        if self._must_stop:
            stopped = f"run {printable(self.run_id)} cannot go on; the summary says why"
            pytest.exit(safe_lines(stopped), returncode=int(pytest.ExitCode.TESTS_FAILED))

    def _keep_own(self) -> None:
        """Keep what the tests of this process recorded; a configuration that is no JSON is an error later."""
        rows = self.recorder.take()
        with suppress(InputError):
            self._update_config(encode_json("config", self.recorder.config), has_results=bool(rows))
        self._keep(rows)

    def _receive(self, parcel: Parcel) -> None:
        """Keep what a worker recorded."""
        self._raised.update({query_id: (query, text) for query_id, query, text in parcel.raised})
        self._refusal = self._refusal or parcel.refusal
        if parcel.config:
            self._update_config(parcel.config.encode(), has_results=bool(parcel.rows))
        self._keep(parcel.rows)

    def _update_config(self, config: bytes, *, has_results: bool) -> None:
        if self._run is not None and self._is_stored is None and not self._must_stop:
            try:
                self._run.update_config(msgspec.json.decode(config), has_results=has_results)
            except KebabEvalError as error:
                self._refusal, self._must_stop = self._refusal or str(error), True

    def _keep(self, rows: Iterable[tuple[str, str]]) -> None:
        """Keep results; one that cannot be kept is the reason why the run will not be stored."""
        if self._run is not None and self._is_stored is None and not self._must_stop:
            for query_id, result_json in rows:
                self._keep_row(self._run, query_id, result_json.encode())

    def _keep_row(self, run: RunRecorder, query_id: str, result_json: bytes) -> None:
        try:
            if query_id in self._recorded_before:  # a test that is not of one query runs again as a whole
                self._recorded_before.discard(query_id)
                run.forget(query_id)
            run.record_json(query_id, result_json)
        except KebabEvalError as error:
            self._refusal = self._refusal or str(error)
            run.mark_for_repeat(query_id)

    def _mark_for_repeat(self, parcel: Parcel | None) -> None:
        """A test that failed is to run again, should the run be resumed: its exit code counts."""
        query = recorded_query(self._item) if parcel is None and self._item else None
        query_id = query.id if query else parcel.query[0] if parcel and parcel.query else None
        if query_id is not None and self._run is not None:
            self._run.mark_for_repeat(query_id)

    # -- workers that die --------------------------------------------------------------------------

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker recorded last; if it died, its queries without a result are errored."""
        parcel = left_by(node)
        if parcel is not None:
            self._receive(parcel)
        if error is not None or parcel is None:
            for query_id, query, text in self._workers.lose(node.gateway.id):
                self._raised.setdefault(query_id, (query, text))

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(self, crashitem: str, report: pytest.TestReport) -> None:
        """The test in flight: it will not run again, unless another plugin sees to that."""
        query = self._query_named_in(crashitem)
        if query is not None and not self._workers.knows(crashitem):
            died = self._workers.died_in(report.node.gateway.id)
            self._raised.setdefault(query[0], (query[1], died))
        if query is not None or self._workers.knows(crashitem):
            self._progress.finish(crashitem)

    def _query_named_in(self, nodeid: str) -> tuple[str, str] | None:
        """The golden query by which alone a test is parametrized, where its worker died before it said so."""
        parameter = re.search(r"\[(.*)\]", nodeid)
        golden = self._find_golden()
        if parameter is None or golden is None:
            return None
        named = (query for query in golden.queries if escaped(query.id) == parameter[1])
        return next(((query.id, query.query) for query in named), None)

    # -- the end ---------------------------------------------------------------------------------

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the run, or fail."""
        if self._config.option.collectonly:
            return
        if not self.store_whole(session, exitstatus):
            session.exitstatus = self._progress.exit_code(exitstatus)
        elif self._workers.lost and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what became of the run."""
        text, is_error = self._message.text, self._message.direction < 0
        if text:
            prefix = "kebab-eval: ERROR: " if is_error else "kebab-eval: "
            terminalreporter.write_line(safe_lines(f"{prefix}{text}"), red=is_error, bold=is_error)
            if self._is_stored and self._unjudged_gates:
                terminalreporter.write_line(safe_lines(f"kebab-eval: {self._not_judged()}"))
        self._message = Line("")

    def _not_judged(self) -> str:
        """That the gates of the ini file are not those of this session."""
        gates = "gate was" if self._unjudged_gates == 1 else "gates were"
        return (
            f"{self._unjudged_gates} {gates} not judged, since this session only records; to judge the run,"
            f" name it with --kebab-run-b {printable(self.run_id)}, or a baseline with --kebab-run-a"
        )

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print it now, where the exit code is one for which pytest has no summary."""
        if self._run is not None:
            self._run.close()
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            self.pytest_terminal_summary(terminal)

    # -- storing ---------------------------------------------------------------------------------

    def _try_to_store(self, session: pytest.Session, exitstatus: int) -> bool:
        try:
            self._keep_own()
            missing = self._refusal or self._progress.what_is_missing(session, exitstatus)
            if missing:
                raise StoreError(f"{missing}{self._workers.summary()}{self._kept()}")
            self._store()
        except (KebabEvalError, OSError) as error:
            self._message = Line(f"run {printable(self.run_id)} was not recorded{_reason(error)}", -1)
            return False
        return True

    def _kept(self) -> str:
        """What is kept, to follow the reason why the run is not stored."""
        kept = self._run.kept if self._run and not self._must_stop else ""
        return f"; {kept}" if kept and not self._refusal.endswith(kept) else ""

    def _store(self) -> None:
        run = self._run
        encode_json("config", self.recorder.config)  # which says what is wrong with it
        errored = self._record_raised(run) if run else 0
        if run is None or not run.ids:
            raise StoreError("no test recorded anything")
        recorded, missing = self._coverage(run.ids)
        run.store()
        with_errors = f", {errored} of them with an error" if errored else ""
        where = f"recorded in {shown_address(self._database)}"
        died = self._workers.summary()
        self._message = Line(f"run {printable(self.run_id)}: {recorded} {where}{with_errors}{missing}{died}")

    def _record_raised(self, run: RunRecorder) -> int:
        """Record what tests raised for queries without a result; how many those are."""
        raised = {query_id: what for query_id, what in self._raised.items() if not run.has(query_id)}
        for query_id, (query, text) in raised.items():
            run.record(query_id, query=query, error=text)
            run.mark_for_repeat(query_id)
        return len(raised)

    def _coverage(self, query_ids: tuple[str, ...]) -> tuple[str, str]:
        """How many of the golden queries are recorded, and which are not."""
        recorded, golden = set(query_ids), self._find_golden()
        if golden is None or not golden.queries:
            return counted(len(recorded), "query"), ""
        missing = [query.id for query in golden.queries if query.id not in recorded]
        found = len(golden.queries) - len(missing)
        others = len(recorded) - found
        text = f"{found} of {len(golden.queries)} golden queries"
        text += f" and {counted(others, 'query')} not in the golden file" if others else ""
        return text, f"; without a result: {_first_few(missing)}" if missing else ""


def _first_few(query_ids: list[str]) -> str:
    shown = ", ".join(map(printable, query_ids[:SHOWN_MISSING]))
    more = len(query_ids) - SHOWN_MISSING
    return f"{shown} and {more} more" if more > 0 else shown


def _reason(error: Exception) -> str:
    """Why a run was not recorded, to follow these words; the store's own errors begin with them."""
    words = "the run was not recorded"
    text = str(error)
    return text.removeprefix(words) if text.startswith(words) else f": {text}"


def refuse_resume_alone(sources: Sources) -> None:
    """A `SettingsError` for `--kebab-resume` where nothing is to be recorded."""
    with usage_errors():
        raise SettingsError(f"{sources.value('resume').source} goes on with a run of --kebab-record; name it")
