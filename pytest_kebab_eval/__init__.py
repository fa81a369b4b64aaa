"""Tells, in CI, whether a change to a retrieval or RAG system made it worse.

The public names; each is imported when it is first used, so that loading the pytest plugin stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.report import CompareReport
    from pytest_kebab_eval.errors import (
        ChunkerError,
        DatabaseError,
        GateError,
        GoldenError,
        InputError,
        KebabEvalError,
        MetricError,
        NoDatabase,
        NoSuchRun,
        RunNameError,
        SettingsError,
        StoreError,
    )
    from pytest_kebab_eval.evaluation import compare_runs, compute_aggregate, store_aggregate
    from pytest_kebab_eval.golden import GoldenSet, load_golden_set
    from pytest_kebab_eval.model import (
        Answer,
        ComparisonKind,
        GoldenQuery,
        Hit,
        QueryComparison,
        QueryResult,
    )
    from pytest_kebab_eval.reports.as_markdown import render_report_md
    from pytest_kebab_eval.scoring.aggregates import AggregateMetrics
    from pytest_kebab_eval.store import RunRecorder

_HOMES = {
    "comparing.report": ("CompareReport",),
    "errors": (
        "ChunkerError",
        "DatabaseError",
        "GateError",
        "GoldenError",
        "InputError",
        "KebabEvalError",
        "MetricError",
        "NoDatabase",
        "NoSuchRun",
        "RunNameError",
        "SettingsError",
        "StoreError",
    ),
    "evaluation": ("compare_runs", "compute_aggregate", "store_aggregate"),
    "golden": ("GoldenSet", "load_golden_set"),
    "model": ("Answer", "ComparisonKind", "GoldenQuery", "Hit", "QueryComparison", "QueryResult"),
    "reports.as_markdown": ("render_report_md",),
    "scoring.aggregates": ("AggregateMetrics",),
    "store": ("RunRecorder",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AggregateMetrics",
    "Answer",
    "ChunkerError",
    "CompareReport",
    "ComparisonKind",
    "DatabaseError",
    "GateError",
    "GoldenError",
    "GoldenQuery",
    "GoldenSet",
    "Hit",
    "InputError",
    "KebabEvalError",
    "MetricError",
    "NoDatabase",
    "NoSuchRun",
    "QueryComparison",
    "QueryResult",
    "RunNameError",
    "RunRecorder",
    "SettingsError",
    "StoreError",
    "compare_runs",
    "compute_aggregate",
    "load_golden_set",
    "render_report_md",
    "store_aggregate",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
