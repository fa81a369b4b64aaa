"""The run that a session records: what is kept of it, whether the session got to its end, and storing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.plugin.command_line import usage_errors
from pytest_kebab_eval.reports.as_text import Line
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of
from pytest_kebab_eval.store import Address, RunRecorder, backend_of, shown_address
from pytest_kebab_eval.store.staging import Staging
from pytest_kebab_eval.text import brief, first_of, printable

SHOWN_MISSING = 5
_PYTESTS_OWN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
_UNFINISHED = (pytest.ExitCode.INTERRUPTED, *_PYTESTS_OWN)


class RecordedRun:
    """A run, from the first result that is kept beside the database to its storing as a whole."""

    def __init__(self, sources: Sources, *, is_judged: bool) -> None:
        with usage_errors():
            self.run_id: str = sources.read("record")
            run_b_database = sources.read("db_b") if is_judged else None
            self._database: Address = run_b_database or database_of(sources)
            self._suite: str = sources.read("suite") or "default"
            self._mask: tuple[str, ...] = sources.read("mask")
            self._resume: bool = sources.read("resume")
            self._runs_dir: Path = sources.read("runs_dir")
        self.is_stored: bool | None = None  # None: not tried yet
        self.errored = 0  # queries without a result, of tests that raised
        self.message = Line("")
        self._recorder: RunRecorder | None = None

    def check(self) -> None:
        """Raise if the run could not be stored in the end."""
        backend_of(self._database).check_recordable(self.run_id)

    def open(self, golden: GoldenSet | None) -> Staging:
        """Begin the run, or go on with it."""
        self._recorder = RunRecorder(
            self._database,
            self._suite,
            run_id=self.run_id,
            resume=self._resume,
            mask=self._mask,
            golden=golden,
            progress=False,
            runs_dir=self._runs_dir,
        )
        self._recorder.open()
        return self._recorder.staging

    def close(self) -> None:
        if self._recorder is not None:
            self._recorder.close()

    # -- storing ---------------------------------------------------------------------------------

    @contextmanager
    def storing(self) -> Iterator[None]:
        """Store the run within; `message` says what became of it."""
        try:
            yield
            self.is_stored = True
        except (KebabEvalError, OSError) as error:
            words, text = "the run was not recorded", str(error)  # with which errors of the store begin
            reason = text.removeprefix(words) if text.startswith(words) else f": {text}"
            self.message = Line(f"run {printable(self.run_id)} was not recorded{reason}", -1)
            self.is_stored = False

    def check_whole(self, missing: str, died: str) -> None:
        """Raise if something is missing; `died` says which workers did."""
        refusal = self._recorder.staging.get("refusal") if self._recorder else None
        missing = refusal or missing
        if missing:
            kept = self._recorder.kept if self._recorder else ""
            kept = f"; {kept}" if kept and kept.partition(",")[0] not in missing else ""
            raise StoreError(f"{missing}{died}{kept}")

    def store(self, golden: GoldenSet | None, died: str, selection: str) -> None:
        """Store the run, with what tests raised for queries without a result.

        From a selection, it is partial, unless it has all golden queries nevertheless.
        """
        recorder = self._recorder
        if recorder is None:
            raise StoreError("no test recorded anything")
        staging = recorder.staging
        for query_id, query, text in staging.raised():
            recorder.record(query_id, query=query, error=text)
            staging.mark_for_repeat(query_id)
            self.errored += 1
        if not len(staging):
            raise StoreError("no test recorded anything")
        recorder.config = {**recorder.config, **staging.config}
        recorded, missing = _coverage(set(staging.ids()), golden)
        if selection and (missing or golden is None):
            recorder.partial = selection
        recorder.store()
        where = f"{recorded} recorded in {shown_address(self._database)}"
        with_errors = f", {self.errored} of them with an error" if self.errored else ""
        partial = (
            f"; it is partial ({brief(selection, 80)}), so that latest, commit: and history pass it over"
            if recorder.partial
            else ""
        )
        self.message = Line(f"run {printable(self.run_id)}: {where}{with_errors}{missing}{died}{partial}")


def _coverage(recorded: set[str], golden: GoldenSet | None) -> tuple[str, str]:
    """How many of the golden queries are recorded, and which are not."""
    if golden is None or not golden.queries:
        return counted(len(recorded), "query"), ""
    missing = [query.id for query in golden.queries if query.id not in recorded]
    found = len(golden.queries) - len(missing)
    others = len(recorded) - found
    text = f"{found} of {len(golden.queries)} golden queries"
    text += f" and {counted(others, 'query')} not in the golden file" if others else ""
    return text, f"; without a result: {first_of(missing, SHOWN_MISSING)}" if missing else ""


# -- how far the session got ---------------------------------------------------------------------


class SessionProgress:
    """A plugin that follows the tests of a session, also those that workers of xdist run."""

    def __init__(self) -> None:
        self._planned: set[str] = set()  # node ids
        self._finished: set[str] = set()
        self._not_collected = 0
        self._stopped_by: BaseException | None = None

    # -- hooks -----------------------------------------------------------------------------------

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep what is to run; xdist's controller has no items."""
        self._planned.update(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Keep what is to run, which workers of xdist know."""
        self._planned.update(ids)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._not_collected += report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test is over, whatever came of it; also called where its worker of xdist died in it."""
        self._finished.add(nodeid)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep what stopped the session: Ctrl-C, `pytest.exit`, or pytest itself."""
        self._stopped_by = excinfo.value

    def expect(self, items: Iterable[pytest.Item]) -> None:
        """Only these are to run."""
        self._planned = {item.nodeid for item in items}

    # -- what became of the session ---------------------------------------------------------------

    def what_is_missing(self, session: pytest.Session, exitstatus: int) -> str:
        """Why the session is not whole; empty if it is."""
        if self._not_collected:
            return f"{counted(self._not_collected, 'test file')} could not be collected"
        not_run = len(self._planned - self._finished)
        if not_run:
            tests = counted(len(self._planned), "test")
            reason = brief(str(self._stopped_by or session.shouldfail or session.shouldstop or ""))
            why = f" ({reason})" if reason else ""
            return f"the session did not finish: {not_run} of {tests} did not run{why}"
        return "the session did not finish" if exitstatus in _UNFINISHED or self._stopped_by else ""

    def exit_code(self, exitstatus: int) -> int:
        """The exit code of a session that is not whole: 1, unless Ctrl-C or somebody's own code says more."""
        own = isinstance(self._stopped_by, pytest.exit.Exception) and self._stopped_by.returncode
        if own or type(self._stopped_by) is KeyboardInterrupt or exitstatus in _PYTESTS_OWN:
            return exitstatus
        return pytest.ExitCode.TESTS_FAILED
