"""Tells, in CI, whether a change to a retrieval or RAG system made it worse.

The public names; each is imported when it is first used, so that loading the pytest plugin stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_kebab_eval.api import compare_runs, compute_aggregate, store_aggregate
    from pytest_kebab_eval.comparing.aggregates import AggregateMetrics
    from pytest_kebab_eval.comparing.report import CompareReport
    from pytest_kebab_eval.errors import (
        DatabaseError,
        GateError,
        GoldenError,
        InputError,
        KebabEvalError,
        RunNameError,
        SettingsError,
        StoreError,
    )
    from pytest_kebab_eval.golden import GoldenSet, load_golden_set
    from pytest_kebab_eval.model import (
        Answer,
        ComparisonKind,
        GoldenQuery,
        Hit,
        QueryComparison,
        QueryResult,
        Run,
    )
    from pytest_kebab_eval.reports.as_markdown import render_report_md
    from pytest_kebab_eval.store import Recording, RunRecorder

__version__ = "0.2.0.dev0"  # between releases, the next one with .dev0

_HOMES = {  # the names of each module
    "api": "compare_runs compute_aggregate store_aggregate",
    "comparing.aggregates": "AggregateMetrics",
    "comparing.report": "CompareReport",
    "errors": (
        "DatabaseError GateError GoldenError InputError KebabEvalError RunNameError SettingsError StoreError"
    ),
    "golden": "GoldenSet load_golden_set",
    "model": "Answer ComparisonKind GoldenQuery Hit QueryComparison QueryResult Run",
    "reports.as_markdown": "render_report_md",
    "store": "Recording RunRecorder",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

# fmt: off
__all__ = [
    "AggregateMetrics", "Answer", "CompareReport", "ComparisonKind", "DatabaseError", "GateError",
    "GoldenError", "GoldenQuery", "GoldenSet", "Hit", "InputError", "KebabEvalError", "QueryComparison",
    "QueryResult", "Recording", "Run", "RunNameError", "RunRecorder", "SettingsError", "StoreError",
    "compare_runs", "compute_aggregate", "load_golden_set", "render_report_md", "store_aggregate",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
