"""How far a session got: whether every test that was to run did, and what stopped it if not."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.text import brief

_UNFINISHED = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
_PYTESTS_OWN = (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)


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
        """Count what could not be collected."""
        self._not_collected += report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """A test has run, whatever came of it."""
        self._finished.add(nodeid)

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Keep what stopped the session: Ctrl-C, `pytest.exit`, or pytest itself."""
        self._stopped_by = excinfo.value

    def expect(self, items: Iterable[pytest.Item]) -> None:
        """Only these are to run."""
        self._planned = {item.nodeid for item in items}

    def finish(self, nodeid: str) -> None:
        """A test is over, though its worker of xdist died in it."""
        self._finished.add(nodeid)

    # -- what became of the session ---------------------------------------------------------------

    def what_is_missing(self, session: pytest.Session, exitstatus: int) -> str:
        """Why the session is not whole; empty if it is."""
        if self._not_collected:
            return f"{counted(self._not_collected, 'test file')} could not be collected"
        not_run = len(self._planned - self._finished)
        if not_run:
            tests = counted(len(self._planned), "test")
            return f"the session did not finish: {not_run} of {tests} did not run{self._reason(session)}"
        return "the session did not finish" if exitstatus in _UNFINISHED or self._stopped_by else ""

    def _reason(self, session: pytest.Session) -> str:
        text = brief(str(self._stopped_by or session.shouldfail or session.shouldstop or ""))
        return f" ({text})" if text else ""

    def exit_code(self, exitstatus: int) -> int:
        """The exit code of a session that is not whole: 1, unless Ctrl-C or somebody's own code says more."""
        own = isinstance(self._stopped_by, pytest.exit.Exception) and self._stopped_by.returncode
        if own or type(self._stopped_by) is KeyboardInterrupt or exitstatus in _PYTESTS_OWN:
            return exitstatus
        return pytest.ExitCode.TESTS_FAILED
