"""The exit status of a session that must fail, whatever other plugins make of it."""

from __future__ import annotations

from collections.abc import Generator

import pytest

_FINE = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class ExitStatus:
    """A plugin that has the last word on the exit status, where something went wrong beside the tests."""

    def __init__(self) -> None:
        self._session: pytest.Session | None = None
        self._must_fail = False

    def fail(self) -> None:
        """Fail the session, at once if it is about to finish."""
        self._must_fail = True
        if self._session is not None and self._session.exitstatus in _FINE:
            self._session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Fail the session again after plugins that take no tests, or all deselected, for a success."""
        self._session = session
        result = yield
        if self._must_fail:
            self.fail()
        return result
