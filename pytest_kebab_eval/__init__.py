"""Tells, in CI, whether a change to a retrieval or RAG system made it worse.

The public names; each is imported when it is first used, so that loading the pytest plugin stays cheap.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_kebab_eval.api import compare_runs, compute_aggregate, store_aggregate
    from pytest_kebab_eval.comparing.decide import QueryRates
    from pytest_kebab_eval.comparing.deltas import ComparisonCounts, Deltas, Paired, Significance
    from pytest_kebab_eval.comparing.gates import GateResult
    from pytest_kebab_eval.comparing.replicates import CheckRates, ReplicateReport, Spread
    from pytest_kebab_eval.comparing.report import BrokenResult, CompareReport, Paraphrase, ParaphraseGroup
    from pytest_kebab_eval.comparing.unlike_runs import ConfigChange
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
    from pytest_kebab_eval.golden import GoldenSet, Lock, LockedChunk, load_golden_set
    from pytest_kebab_eval.model import (
        Answer,
        Cited,
        ComparisonKind,
        ExpectedSpan,
        ForbiddenHit,
        GoldenQuery,
        Hit,
        Judge,
        Judgment,
        QueryComparison,
        QueryResult,
        Recorded,
        Retrieval,
        Run,
        Scope,
        Span,
        Support,
        Timings,
        Usage,
        Xfail,
    )
    from pytest_kebab_eval.reports.as_markdown import render_report_md
    from pytest_kebab_eval.scoring.aggregates import AggregateMetrics
    from pytest_kebab_eval.store import Recording, RunRecorder
    from pytest_kebab_eval.store.index_tables import IndexCoverage

__version__ = "0.2.0.dev0"  # between releases, the next one with .dev0

_HOMES = {  # the names of each module
    "comparing.decide": "QueryRates",
    "comparing.deltas": "ComparisonCounts Deltas Paired Significance",
    "comparing.gates": "GateResult",
    "comparing.replicates": "CheckRates ReplicateReport Spread",
    "comparing.report": "BrokenResult CompareReport Paraphrase ParaphraseGroup",
    "comparing.unlike_runs": "ConfigChange",
    "errors": (
        "ChunkerError DatabaseError GateError GoldenError InputError KebabEvalError MetricError "
        "NoDatabase NoSuchRun RunNameError SettingsError StoreError"
    ),
    "api": "compare_runs compute_aggregate store_aggregate",
    "golden": "GoldenSet Lock LockedChunk load_golden_set",
    "model": (
        "Answer Cited ComparisonKind ExpectedSpan ForbiddenHit GoldenQuery Hit Judge Judgment "
        "QueryComparison QueryResult Recorded Retrieval Run Scope Span Support Timings Usage Xfail"
    ),
    "reports.as_markdown": "render_report_md",
    "scoring.aggregates": "AggregateMetrics",
    "store": "Recording RunRecorder",
    "store.index_tables": "IndexCoverage",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

# fmt: off
__all__ = [
    "AggregateMetrics", "Answer", "BrokenResult", "CheckRates", "ChunkerError", "Cited", "CompareReport",
    "ComparisonCounts", "ComparisonKind", "ConfigChange", "DatabaseError", "Deltas", "ExpectedSpan",
    "ForbiddenHit", "GateError", "GateResult", "GoldenError", "GoldenQuery", "GoldenSet", "Hit",
    "IndexCoverage", "InputError", "Judge", "Judgment", "KebabEvalError", "Lock", "LockedChunk",
    "MetricError", "NoDatabase", "NoSuchRun", "Paired", "Paraphrase", "ParaphraseGroup", "QueryComparison",
    "QueryRates", "QueryResult", "Recorded", "Recording", "ReplicateReport", "Retrieval", "Run",
    "RunNameError", "RunRecorder", "Scope", "SettingsError", "Significance", "Span", "Spread", "StoreError",
    "Support", "Timings", "Usage", "Xfail", "compare_runs", "compute_aggregate", "load_golden_set",
    "render_report_md", "store_aggregate",
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
