"""One pytest session that records a run: `--kebab-record RUN_ID` and the fixture `kebab_recorder`.

Each process keeps what its tests record; under xdist the workers hand theirs to the controller, which
stores the run as a whole when the session ends.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import pytest

from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of, golden_of
from pytest_kebab_eval.store import Recording, RunRecorder, check_recordable
from pytest_kebab_eval.text import printable, shown_path

WORKER_KEY = "kebab_recorded"
NOTHING_RAN = pytest.ExitCode.NO_TESTS_COLLECTED


class RecordingSession:
    """The plugin that is registered with `--kebab-record`."""

    def __init__(self, config: pytest.Config, run_id: str, sources: Sources) -> None:
        self.recorder = Recording()
        self._config = config
        self._run_id = run_id
        self._database = database_of(sources)
        self._golden = golden_of(sources)
        self._suite = str(sources.value("suite")[0] or "default")
        self._said: list[tuple[str, bool]] = []
        self._crashed = False
        self._errors: list[str] = []

    @cached_property
    def golden(self) -> GoldenSet:
        """The golden queries, for tests that ask a retriever about each of them."""
        try:
            return load_golden_set(self._golden)
        except KebabEvalError as error:
            raise pytest.UsageError(str(error)) from None

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
    def pytest_testnodedown(self, node: Any, error: object) -> None:
        """Take over what a worker recorded; one that crashed has lost it."""
        recorded = getattr(node, "workeroutput", {}).get(WORKER_KEY)
        if error is not None or recorded is None:
            self._crashed = True
            return
        config, rows = recorded
        if config is None:
            self._errors.append("'config' cannot be recorded as JSON: a worker has something else in it")
            return
        self.recorder.config.update(json.loads(config))
        self.recorder.rows.extend((query_id, data) for query_id, data in rows)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Store the run, unless the session was cut short."""
        if self._is_worker:
            output = getattr(self._config, "workeroutput")  # noqa: B009  it is set by xdist
            output[WORKER_KEY] = (self._config_json(), [list(row) for row in self.recorder.rows])
            return
        if self._config.option.collectonly:
            return
        stopped = session.shouldfail or session.shouldstop or self._crashed
        if stopped or exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, NOTHING_RAN):
            self._said.append(
                (f"run {printable(self._run_id)} was not recorded: the session did not finish", True)
            )
            return
        try:
            if self._errors:
                raise StoreError(self._errors[0])
            if not self.recorder.rows:
                raise StoreError(f"run {printable(self._run_id)} was not recorded: no test recorded anything")
            self._store()
        except KebabEvalError as error:
            self._said.append((str(error), True))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _config_json(self) -> str | None:
        try:
            return json.dumps(self.recorder.config, allow_nan=False)
        except (TypeError, ValueError):
            return None

    def _store(self) -> None:
        path, config = self._database, self.recorder.config
        with RunRecorder(path, suite=self._suite, config=config, run_id=self._run_id) as run:
            for query_id, data in self.recorder.rows:
                run.record_json(query_id, data)
        count = counted(len(self.recorder.rows), "query")
        self._said.append((f"run {printable(self._run_id)}: {count} recorded in {shown_path(path)}", False))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what became of the run."""
        for text, bad in self._said:
            terminalreporter.write_line(f"kebab-eval: {'ERROR: ' if bad else ''}{text}", red=bad, bold=bad)
