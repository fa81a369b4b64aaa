"""Under which heading pytest's terminal keeps reports.

For each failure that it prints, pytest looks through all reports under the empty heading, which are those of
setups and teardowns that passed. Those of our items have nothing to print, and are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


class Uncounted(str):
    """A heading that the summary line leaves out, as it does the empty one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


HEADING = Uncounted("kebab-eval: setup and teardown")
_NOTHING_SHOWN = ("", "", "")


class Headings:
    """A plugin that finds the heading for reports of the golden file's items."""

    def __init__(self, golden_nodeid: str) -> None:
        self._golden_nodeid = golden_nodeid

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(
        self, report: pytest.TestReport | pytest.CollectReport
    ) -> Generator[None, object, object]:
        """Change the heading where it is the empty one, and the report has no output to print."""
        status = yield
        if status == _NOTHING_SHOWN and not report.sections and self._is_ours(report):
            return (HEADING, "", "")
        return status

    def _is_ours(self, report: pytest.TestReport | pytest.CollectReport) -> bool:
        return report.location is not None and report.location[0] == self._golden_nodeid
