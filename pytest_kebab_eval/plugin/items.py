"""The items of the golden file; their verdicts are known before they run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.plugin.failures import Failure, FailureText
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.text import printable, safe_lines, shown_path

if TYPE_CHECKING:
    from pytest_kebab_eval.model import GoldenQuery, QueryComparison
    from pytest_kebab_eval.plugin.session import KebabSession


class KebabItem(pytest.Item):
    """An item that fails without a traceback."""

    properties: tuple[tuple[str, object], ...] = ()

    def __init__(self, *, kebab: KebabSession, line: int = 1, **more: Any) -> None:
        super().__init__(**more)
        self.kebab = kebab
        self.line = line
        # What pytest derives from `reportinfo`, without resolving the golden file's path for each item.
        self.location = (more["parent"].nodeid, line - 1, self.name)

    def set_properties(self, properties: Iterable[tuple[str, object]]) -> None:
        """Replace the item's `kebab_` properties, so that an item that is run again has each once."""
        self.properties = tuple(properties)
        if self.user_properties:
            others = [pair for pair in self.user_properties if not pair[0].startswith("kebab_")]
            self.user_properties[:] = others
        if self.kebab.settings.junit_properties:
            self.user_properties.extend(self.properties)

    def repeat_no_more(self) -> None:
        """Tell pytest-flakefinder, which looks at an item's function, that this is repeated already."""
        self.function = SimpleNamespace(_pytest_duplicated=True)

    def _initrequest(self) -> None:
        """Nothing: pytest-retry calls it to reset the fixtures of what it runs again, and there are none."""

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where the item is, for pytest's reports: its line in the golden file, counted from 0."""
        return printable(str(self.path)), self.line - 1, self.name

    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        """A failure as its text; anything else, which would be a bug, as pytest shows it."""
        if isinstance(excinfo.value, Failure):
            return self.show_failure(excinfo.value.text)
        return super().repr_failure(excinfo, style)

    def show_failure(self, text: str) -> FailureText:
        """How a failure is shown; by `--tb=line`, in one line."""
        if self.config.getoption("tbstyle", "auto") == "line":
            text = text.partition("\n")[0]
        return FailureText(safe_lines(text), printable(str(self.path)), self.line)


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
        return self.show_failure(self._explain(self.kebab.find_verdict(self.query)))

    def _explain(self, verdict: Verdict) -> str:
        query, kebab = self.query, self.kebab
        shown = kebab.evidence().get(query.id)
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
