"""The hooks that a conftest or another plugin may implement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.report import CompareReport
    from pytest_kebab_eval.model import GoldenQuery, QueryResult


def pytest_kebab_metrics() -> dict[str, Callable[[GoldenQuery, QueryResult], float | None]]:  # type: ignore[empty-body]
    """Add metrics: by name, functions of a golden query and its stored result.

    Each is averaged over the queries for which it is not None, and works in gates, slices and reports by
    its name. Called once, before the runs are scored; not on the workers of xdist.
    """


def pytest_kebab_compared(report: CompareReport) -> None:
    """The comparison is made; nothing is stored or written yet. Not called on the workers of xdist."""


def pytest_kebab_report_context(report: CompareReport, context: dict[str, Any]) -> None:
    """Change what the report templates are given.

    `context["sections"]` is a list of (title, Markdown), shown at the end of a report.
    """
