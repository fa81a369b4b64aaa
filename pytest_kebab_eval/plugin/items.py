"""The items of the golden file; their verdicts are known before they run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.text import printable, safe_lines, shown_path

if TYPE_CHECKING:
    from pytest_kebab_eval.model import GoldenQuery, QueryComparison
    from pytest_kebab_eval.plugin.session import KebabSession


class Failure(Exception):
    """What makes an item fail; only its text is shown."""


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
        self._text = safe_lines(text)
        self.reprcrash = Crash(self._text.split("\n")[0], path, line)

    def __str__(self) -> str:
        return self._text

    def toterminal(self, tw: Any) -> None:
        """Called by pytest's terminal reporter."""
        first, *rest = self._text.split("\n")
        tw.line(safe_lines(first), red=True, bold=True)
        for line in rest:
            tw.line(safe_lines(line), green=line.startswith("  * "), red=line.startswith(("- ", "+ ")))


class KebabItem(pytest.Item):
    """An item that fails without a traceback."""

    def __init__(self, *, kebab: KebabSession, line: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.kebab = kebab
        self.line = line
        # What pytest derives from `reportinfo`, without resolving the golden file's path for each item.
        self.location = (self.nodeid.partition("::")[0], line - 1, self.name)

    def set_properties(self, properties: Iterable[tuple[str, object]]) -> None:
        """Replace the item's `kebab_` properties, so that an item that is run again has each once."""
        if self.user_properties:
            others = [pair for pair in self.user_properties if not pair[0].startswith("kebab_")]
            self.user_properties[:] = others
        self.user_properties.extend(properties)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where the item is, for pytest's reports: its line in the golden file, counted from 0."""
        return printable(str(self.path)), self.line - 1, self.name

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """A failure as its text; anything else, which would be a bug, as pytest shows it."""
        if isinstance(excinfo.value, Failure):
            return FailureText(str(excinfo.value), printable(str(self.path)), self.line)
        return super().repr_failure(excinfo, style)


class QueryItem(KebabItem):
    """A golden query."""

    def __init__(self, *, query: GoldenQuery, **more: Any) -> None:
        super().__init__(line=query.line, **more)
        self.query = query

    def set_query_properties(self) -> None:
        """Set what reports such as JUnit's show of the query."""
        self.set_properties(query_properties(self.kebab.find_comparison(self.query)))

    def runtest(self) -> None:
        """Report the verdict, which the evaluation has reached already."""
        self.set_query_properties()
        verdict = self.kebab.find_verdict(self.query)
        if verdict.outcome is Outcome.XFAILED:
            pytest.xfail(safe_lines(verdict.reason))
        if verdict.outcome is not Outcome.PASSED:
            raise Failure(self._explain(verdict))

    def failure_text(self) -> FailureText:
        """How it is shown that the item fails."""
        text = self._explain(self.kebab.find_verdict(self.query))
        return FailureText(text, printable(str(self.path)), self.line)

    def _explain(self, verdict: Verdict) -> str:
        query, kebab = self.query, self.kebab
        shown = kebab.evaluate().evidence.get(query.id)
        where = f"{shown_path(kebab.settings.golden)}:{query.line}"
        return explain(query, verdict, kebab.find_comparison(query), shown, where)


def query_properties(comparison: QueryComparison | None) -> tuple[tuple[str, object], ...]:
    """What JUnit XML and other reports show of a query beside its outcome."""
    if comparison is None:
        return ()
    kind = comparison.kind.value if comparison.kind else "none"
    ranks = (_or_none(comparison.a_hit_rank), _or_none(comparison.b_hit_rank))
    return _properties(kind, *ranks, tuple(comparison.checks), comparison.cause or "none")


@lru_cache(maxsize=1_000)  # most queries share them with others
def _properties(
    kind: str, a_rank: float | str, b_rank: float | str, checks: tuple[str, ...], cause: str
) -> tuple[tuple[str, object], ...]:
    return (
        ("kebab_kind", kind),
        ("kebab_a_hit_rank", a_rank),
        ("kebab_b_hit_rank", b_rank),
        ("kebab_checks", ",".join(checks) or "none"),
        ("kebab_cause", cause),
    )


def _or_none(value: float | None) -> float | str:
    return "none" if value is None else value


class GateItem(KebabItem):
    """A gate."""

    def __init__(self, *, number: int, **more: Any) -> None:
        super().__init__(**more)
        self._number = number

    def runtest(self) -> None:
        """Report whether the gate holds."""
        result = self.kebab.evaluate().report.gates[self._number]
        reason = printable(result.reason)
        self.set_properties([("kebab_value", _or_none(result.value)), ("kebab_reason", reason)])
        if result.skipped:
            pytest.skip(safe_lines(result.reason))
        if not result.passed:
            raise Failure(result.reason)
