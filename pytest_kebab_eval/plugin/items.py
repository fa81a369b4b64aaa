"""The golden file as pytest sees it: a file of items whose verdicts are known before they run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome

if TYPE_CHECKING:
    from pytest_kebab_eval.model import GoldenQuery
    from pytest_kebab_eval.plugin.session import KebabSession


class Failure(Exception):
    """A verdict against B; the text is all that is shown."""


class Crash(NamedTuple):
    """Where and what, for pytest's one-line styles."""

    message: str
    path: str
    lineno: int

    def __str__(self) -> str:
        return f"{self.path}:{self.lineno}: {self.message}"


class FailureText:
    """How a failure is shown: without a traceback, and by its first line where there is little room."""

    def __init__(self, text: str, path: str, line: int) -> None:
        self._text = text
        self.reprcrash = Crash(text.splitlines()[0] if text else "", path, line)

    def __str__(self) -> str:
        return self._text

    def toterminal(self, tw: Any) -> None:
        """Called by pytest's terminal reporter."""
        first, *rest = self._text.splitlines()
        tw.line(first, red=True, bold=True)
        for line in rest:
            tw.line(line, green=line.startswith("  * "), red=line.startswith(("- ", "+ ")))


class KebabItem(pytest.Item):
    """An item whose failures need no traceback."""

    def __init__(self, *, kebab: KebabSession, **more: Any) -> None:
        super().__init__(**more)
        self.kebab = kebab

    line = 1

    def say(self, properties: Iterable[tuple[str, object]]) -> None:
        """Set the item's properties, once also where it is run again."""
        others = [one for one in self.user_properties if not one[0].startswith("kebab_")]
        self.user_properties[:] = [*others, *properties]

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """What pytest would work out from `reportinfo`; the golden file's part of it is the same for all."""
        file = self.nodeid.partition("::")[0]
        return file, self.line - 1, self.name

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where the item is, for pytest's reports: its line in the golden file, counted from 0."""
        return self.path, self.line - 1, self.name

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """A verdict as its text; anything else, which would be a defect, as pytest shows it."""
        if isinstance(excinfo.value, Failure):
            return FailureText(str(excinfo.value), str(self.path), self.line)
        return super().repr_failure(excinfo, style)


class QueryItem(KebabItem):
    """One golden query."""

    def __init__(self, *, query: GoldenQuery, **more: Any) -> None:
        super().__init__(**more)
        self.query = query
        self.line = query.line

    def runtest(self) -> None:
        """Report the verdict, which the evaluation has reached already."""
        self.say(self.kebab.properties(self.query))
        verdict = self.kebab.evaluation.verdicts[self.query.id]
        if verdict.outcome is Outcome.XFAILED:
            pytest.xfail(verdict.reason)
        if verdict.outcome is not Outcome.PASSED:
            raise Failure(self.kebab.explain(self.query))


class GateItem(KebabItem):
    """One gate."""

    def __init__(self, *, number: int, **more: Any) -> None:
        super().__init__(**more)
        self._number = number

    def runtest(self) -> None:
        """Report whether the gate holds."""
        result = self.kebab.evaluation.report.gates[self._number]
        value = "none" if result.value is None else result.value
        self.say([("kebab_value", value), ("kebab_reason", result.reason)])
        if result.skipped:
            pytest.skip(result.reason)
        if not result.passed:
            raise Failure(result.reason)
