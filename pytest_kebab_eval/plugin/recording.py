"""A pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each process keeps what its tests record. Under xdist the workers send theirs to the controller, which stores
the whole run when the session ends.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.reports.as_text import Line
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of, golden_of
from pytest_kebab_eval.store import Recording, RunRecorder, check_recordable
from pytest_kebab_eval.text import printable, shown_path

WORKER_KEY = "kebab_recorded"
_FINISHED = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class RecordingSession:
    """The plugin that is registered with `--kebab-record`."""

    def __init__(self, config: pytest.Config, run_id: str, sources: Sources) -> None:
        self.recorder = Recording()
        self._config = config
        self._run_id = run_id
        self._database = database_of(sources)
        self._golden_path = golden_of(sources)
        self._golden: GoldenSet | None = None
        self._suite = str(sources.value("suite")[0] or "default")
        self._worker_crashed = False
        self._worker_error: str | None = None
        self._message = Line("")

    def load_golden(self) -> GoldenSet:
        """The golden queries, for tests that ask a retriever about each of them; read once."""
        if self._golden is None:
            with usage_errors():
                self._golden = load_golden_set(self._golden_path)
        return self._golden

    # -- hooks -----------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Do not let a retriever work for a run that could not be stored in the end."""
        if not hasattr(self._config, "workerinput"):
            with usage_errors():
                check_recordable(self._database, self._run_id)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker recorded; if it crashed, that is lost."""
        output = getattr(node, "workeroutput", {}).get(WORKER_KEY)
        if error is not None or output is None:
            self._worker_crashed = True
        else:
            self._receive(*output)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the run; a worker of xdist sends what it recorded."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[WORKER_KEY] = self._recorded()
        elif not self._config.option.collectonly:
            self._finish(session, exitstatus)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what became of the run."""
        text, is_error = self._message.text, self._message.direction < 0
        if text:
            prefix = "kebab-eval: ERROR: " if is_error else "kebab-eval: "
            terminalreporter.write_line(f"{prefix}{text}", red=is_error, bold=is_error)

    # -- workers ---------------------------------------------------------------------------------

    def _recorded(self) -> tuple[str | None, list[list[Any]]]:
        """The configuration as JSON, None if it cannot be written so; and the results."""
        try:
            config = json.dumps(self.recorder.config, allow_nan=False)
        except (TypeError, ValueError):
            config = None
        return config, [list(row) for row in self.recorder.rows]

    def _receive(self, config: str | None, rows: list[list[Any]]) -> None:
        if config is None:
            self._worker_error = "'config' cannot be recorded as JSON: a worker has something else in it"
            return
        self.recorder.config.update(json.loads(config))
        self.recorder.rows.extend((query_id, data) for query_id, data in rows)

    # -- storing ---------------------------------------------------------------------------------

    def _finish(self, session: pytest.Session, exitstatus: int) -> None:
        stopped = session.shouldfail or session.shouldstop or self._worker_crashed
        if stopped or exitstatus not in _FINISHED:
            name = printable(self._run_id)
            self._message = Line(f"run {name} was not recorded: the session did not finish", -1)
            return
        try:
            self._store()
        except KebabEvalError as error:
            self._message = Line(str(error), -1)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _store(self) -> None:
        name, rows = printable(self._run_id), self.recorder.rows
        if self._worker_error is not None:
            raise StoreError(self._worker_error)
        if not rows:
            raise StoreError(f"run {name} was not recorded: no test recorded anything")
        path, config = self._database, self.recorder.config
        with RunRecorder(path, suite=self._suite, config=config, run_id=self._run_id) as run:
            for query_id, data in rows:
                run.record_json(query_id, data)
        self._message = Line(f"run {name}: {counted(len(rows), 'query')} recorded in {shown_path(path)}")
