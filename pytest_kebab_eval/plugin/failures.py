"""Failures as others read them: pytest's terminal, other plugins, xdist's controller."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from _pytest._code.code import ExceptionRepr, ReprEntry, ReprFileLocation, ReprTraceback

from pytest_kebab_eval.text import safe_lines

_MARK = "$kebab_eval_failure"  # in a report that is sent


class Failure(AssertionError):
    """What makes an item fail; as an exception it is its first line."""

    __module__ = "builtins"  # as pytest's own have it: shown without the name of a module

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(safe_lines(text.partition("\n")[0]))


class FailureLocation(ReprFileLocation):
    """Where and what, for pytest's one-line styles."""

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class FailureText(ExceptionRepr):
    """How a failure is shown: without a traceback, and by its first line where there is little room.

    It is built of pytest's own parts, where other plugins look for the message, and which pytest knows how to
    send: an exception with one entry in its traceback, whose place is the line in the golden file.
    """

    def __init__(self, safe_text: str, path: str, line: int) -> None:
        self._text = safe_text
        lines = safe_text.split("\n")
        self.place = FailureLocation(path, line, lines[0])
        entry = ReprEntry(lines, None, None, self.place, "value")
        super().__init__(ReprTraceback([entry], None, "value"), self.place)

    @property
    def chain(self) -> list[tuple[Any, Any, None]]:
        """What other exceptions led to it: none."""
        return [(self.reprtraceback, self.reprcrash, None)]

    def __str__(self) -> str:
        return self._text

    def toterminal(self, tw: Any) -> None:
        first, *rest = self._text.split("\n")
        tw.line(safe_lines(first), red=True, bold=True)
        for line in rest:
            tw.line(safe_lines(line), green=line.startswith("  * "), red=line.startswith(("- ", "+ ")))
        super().toterminal(tw)  # the sections that a plugin has added


class FailureReports:
    """The plugin by which failures arrive as they were sent; pytest alone would take the colours away."""

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self, report: Any) -> Generator[None, Any, Any]:
        data = yield
        return {**data, _MARK: True} if isinstance(report.longrepr, FailureText) else data

    @pytest.hookimpl(wrapper=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> Generator[None, Any, Any]:
        is_ours = data.pop(_MARK, False)
        report = yield
        if is_ours:
            arrived = report.longrepr
            (entry,), place = arrived.reprtraceback.reprentries, arrived.reprcrash
            report.longrepr = FailureText("\n".join(entry.lines), place.path, place.lineno)
            report.longrepr.sections = arrived.sections
        return report
