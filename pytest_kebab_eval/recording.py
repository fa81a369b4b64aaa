"""One pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each process keeps what its tests record; under xdist the workers hand theirs to the controller, which
stores the run as a whole when the session ends.
"""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.inert import printable, shown_path
from pytest_kebab_eval.settings import Sources, database_of
from pytest_kebab_eval.store import Recording, RunRecorder, check_recordable

WORKER_KEY = "kebab_recorded"


class RecordingSession:
    """The plugin that is registered with `--kebab-record`."""

    def __init__(self, config: pytest.Config, run_id: str, sources: Sources) -> None:
        self.recorder = Recording()
        self._config = config
        self._run_id = run_id
        self._database = database_of(sources)
        self._suite = str(sources.value("suite")[0] or "default")
        self._said: list[tuple[str, bool]] = []

    @property
    def _is_worker(self) -> bool:
        return hasattr(self._config, "workerinput")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Do not let a retriever work for a run that could not be stored in the end."""
        if not self._is_worker:
            try:
                check_recordable(self._database, self._run_id)
            except KebabEvalError as error:
                raise pytest.UsageError(str(error)) from None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker recorded."""
        recorded = getattr(node, "workeroutput", {}).get(WORKER_KEY)
        if recorded is not None:
            config, rows = recorded
            self.recorder.config.update(config)
            self.recorder.rows.extend((query_id, data) for query_id, data in rows)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the run, unless the session was cut short."""
        if self._is_worker:
            output = getattr(self._config, "workeroutput")  # noqa: B009  it is set by xdist
            output[WORKER_KEY] = (self.recorder.config, [list(row) for row in self.recorder.rows])
            return
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._said.append(
                (f"run {printable(self._run_id)} was not recorded: the session did not finish", True)
            )
            return
        try:
            self._store()
        except KebabEvalError as error:
            self._said.append((str(error), True))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _store(self) -> None:
        path, config = self._database, self.recorder.config
        with RunRecorder(path, suite=self._suite, config=config, run_id=self._run_id) as run:
            for query_id, data in self.recorder.rows:
                run.record_json(query_id, data)
        count = len(self.recorder.rows)
        self._said.append(
            (f"run {printable(self._run_id)}: {count} queries recorded in {shown_path(path)}", False)
        )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what became of the run."""
        for text, bad in self._said:
            terminalreporter.write_line(f"kebab-eval: {'ERROR: ' if bad else ''}{text}", red=bad, bold=bad)
