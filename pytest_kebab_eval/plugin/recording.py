"""A pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each process keeps what its tests record. Under xdist the workers send theirs to the controller, which stores
the whole run when the session ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.plugin.progress import SessionProgress
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.reports.as_text import Line
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of, golden_of
from pytest_kebab_eval.store import Address, Recording, RunRecorder, check_recordable, shown_address
from pytest_kebab_eval.store.results import encode_json
from pytest_kebab_eval.text import printable, safe_lines

WORKER_KEY = "kebab_recorded"
SHOWN_MISSING = 5


class RecordingSession:
    """The plugin that is registered with `--kebab-record`."""

    def __init__(self, config: pytest.Config, sources: Sources, *, is_judged: bool = False) -> None:
        self.recorder = Recording()
        self._config = config
        with usage_errors():
            sources.refuse_empty()
            self.run_id: str = sources.read("record")
            run_b_database = sources.read("db_b") if is_judged else None
            self._database: Address = run_b_database or database_of(sources)
            self._golden_path = golden_of(sources)
            self._suite: str = sources.read("suite") or "default"
            self._mask: tuple[str, ...] = sources.read("mask")
        self._golden: GoldenSet | None = None
        self._raised: dict[str, tuple[str, str]] = {}  # query id -> its text, what its test raised
        self._progress = SessionProgress()
        self._worker_error: str | None = None
        self._is_stored: bool | None = None  # None: not tried yet
        self._message = Line("")

    def load_golden(self) -> GoldenSet:
        """The golden queries, for tests that ask a retriever about each of them; read once."""
        if self._golden is None:
            with usage_errors():
                self._golden = load_golden_set(self._golden_path)
        return self._golden

    def take_golden(self, golden: GoldenSet) -> None:
        """Use these golden queries, which somebody else has read."""
        self._golden = golden

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

    # -- hooks -----------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Do not let a retriever work for a run that could not be stored in the end."""
        if not hasattr(self._config, "workerinput"):
            self._config.pluginmanager.register(self._progress, "kebab-eval-recording-progress")
            with usage_errors():
                check_recordable(self._database, self.run_id)

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        """Keep what a recording test raised, in case that nothing else is recorded for its query."""
        if call.excinfo is None or call.excinfo.errisinstance(
            (pytest.skip.Exception, pytest.xfail.Exception)
        ):
            return
        query = _recorded_query(item)
        if query is not None:
            self._raised[query.id] = (query.query, _exception_text(call.excinfo))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker recorded; if it crashed, that is lost."""
        output = getattr(node, "workeroutput", {}).get(WORKER_KEY)
        if error is not None or output is None:
            self._progress.lose_worker()
        else:
            self._receive(output)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the run, or fail; a worker of xdist sends what it recorded."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[WORKER_KEY] = self._recorded()
        elif not self._config.option.collectonly and not self.store_whole(session, exitstatus):
            session.exitstatus = self._progress.exit_code(exitstatus)

    @pytest.hookimpl(tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what became of the run."""
        text, is_error = self._message.text, self._message.direction < 0
        if text:
            prefix = "kebab-eval: ERROR: " if is_error else "kebab-eval: "
            terminalreporter.write_line(safe_lines(f"{prefix}{text}"), red=is_error, bold=is_error)
        self._message = Line("")

    def pytest_unconfigure(self, config: pytest.Config) -> None:
        """Print it now, where the exit code is one for which pytest has no summary."""
        terminal = config.pluginmanager.get_plugin("terminalreporter")
        if terminal is not None:
            self.pytest_terminal_summary(terminal)

    # -- workers ---------------------------------------------------------------------------------

    def _recorded(self) -> dict[str, Any]:
        """What this worker has, for the controller."""
        try:
            config, error = encode_json("config", self.recorder.config).decode(), None
        except KebabEvalError as refusal:
            config, error = "{}", str(refusal)
        return {
            "config": config,
            "error": error,
            "rows": [list(row) for row in self.recorder.rows],
            "raised": [[query_id, *what] for query_id, what in self._raised.items()],
        }

    def _receive(self, output: dict[str, Any]) -> None:
        self._worker_error = self._worker_error or output["error"]
        self.recorder.config.update(json.loads(output["config"]))
        self.recorder.rows.extend((query_id, data) for query_id, data in output["rows"])
        self._raised.update({query_id: (query, text) for query_id, query, text in output["raised"]})

    # -- storing ---------------------------------------------------------------------------------

    def _try_to_store(self, session: pytest.Session, exitstatus: int) -> bool:
        try:
            missing = self._progress.what_is_missing(session, exitstatus)
            if missing:
                raise StoreError(missing)
            self._store()
        except (KebabEvalError, OSError) as error:
            self._message = Line(f"run {printable(self.run_id)} was not recorded{_reason(error)}", -1)
            return False
        return True

    def _store(self) -> None:
        if self._worker_error is not None:
            raise StoreError(self._worker_error)
        errored = self._record_raised()
        if not self.recorder.rows:
            raise StoreError("no test recorded anything")
        database, config = self._database, self.recorder.config
        with RunRecorder(database, self._suite, config, self.run_id, mask=self._mask) as run:
            for query_id, data in self.recorder.rows:
                run.record_json(query_id, data)
        recorded, missing = self._coverage()
        with_errors = f", {errored} of them with an error" if errored else ""
        name, where = printable(self.run_id), shown_address(database)
        self._message = Line(f"run {name}: {recorded} recorded in {where}{with_errors}{missing}")

    def _record_raised(self) -> int:
        """Record what tests raised for queries without a result; how many those are."""
        recorded = {query_id for query_id, _ in self.recorder.rows}
        raised = {query_id: what for query_id, what in self._raised.items() if query_id not in recorded}
        for query_id, (query, text) in raised.items():
            self.recorder.record(query_id, query=query, error=text)
        return len(raised)

    def _coverage(self) -> tuple[str, str]:
        """How many of the golden queries are recorded, and which are not."""
        recorded = {query_id for query_id, _ in self.recorder.rows}
        golden = self._golden_ids()
        if not golden:
            return counted(len(recorded), "query"), ""
        missing = [query_id for query_id in golden if query_id not in recorded]
        others = len(recorded) - (len(golden) - len(missing))
        text = f"{len(golden) - len(missing)} of {len(golden)} golden queries"
        text += f" and {counted(others, 'query')} not in the golden file" if others else ""
        return text, f"; without a result: {_first_few(missing)}" if missing else ""

    def _golden_ids(self) -> list[str]:
        """The ids of the golden queries; none if there is no golden file that can be read."""
        try:
            golden = self._golden or load_golden_set(self._golden_path)
        except KebabEvalError:
            return []
        return [query.id for query in golden.queries]


def _recorded_query(item: pytest.Item) -> GoldenQuery | None:
    """The golden query that the test records, if it is such a test."""
    if "kebab_recorder" not in getattr(item, "fixturenames", ()):
        return None
    query = getattr(getattr(item, "callspec", None), "params", {}).get("kebab_query")
    return query if isinstance(query, GoldenQuery) else None


def _exception_text(raised: pytest.ExceptionInfo[BaseException]) -> str:
    return raised.exconly().encode("utf-8", "backslashreplace").decode()


def _first_few(query_ids: list[str]) -> str:
    shown = ", ".join(map(printable, query_ids[:SHOWN_MISSING]))
    more = len(query_ids) - SHOWN_MISSING
    return f"{shown} and {more} more" if more > 0 else shown


def _reason(error: Exception) -> str:
    """Why a run was not recorded, to follow these words; the store's own errors begin with them."""
    words = "the run was not recorded"
    text = str(error)
    return text.removeprefix(words) if text.startswith(words) else f": {text}"
