"""The values that the templates of reports are given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery
from pytest_kebab_eval.reports.rows import SLICE_METRICS, metric_rows, slice_rows
from pytest_kebab_eval.reports.wording import (
    check_noise,
    failed_checks,
    format_noise,
    format_spread,
    headline,
    kind_counts,
    lost_queries,
    movement,
    partial_losses,
    replicate_sentence,
    review_command,
)

Context = dict[str, Any]


def report_context(report: CompareReport, queries: Iterable[GoldenQuery] = ()) -> Context:
    """The templates' values; the hook `pytest_kebab_report_context` may change them."""
    rows = metric_rows(report)
    return {
        "report": report,
        "texts": {query.id: query.query for query in queries},
        "verdict": headline(report),
        "rows": rows,
        "changed_rows": [row for row in rows if row.delta != 0],
        "unchanged_rows": [row for row in rows if row.delta == 0],
        "by_kind": {
            kind.value: [query for query in report.per_query if query.kind is kind] for kind in ComparisonKind
        },
        "failed_checks": [
            query for query in failed_checks(report) if query.kind is not ComparisonKind.REGRESSION
        ],
        "partial_losses": partial_losses(report),
        "reviews": [
            command for query in lost_queries(report) if (command := review_command(report, query.query_id))
        ],
        "paired": report.deltas.paired if report.deltas else None,
        "kinds": kind_counts(report),
        "movement": movement(report),
        "replicate_sentence": replicate_sentence(report),
        "check_noise": check_noise,
        "shown_rates": sorted(report.rates or (), key=lambda rates: not rates.lost),
        "format_noise": format_noise,
        "format_spread": format_spread,
        "gates": sorted(report.gates, key=lambda gate: gate.passed),
        "slices": slice_rows(report),
        "slice_metrics": SLICE_METRICS,
        "first_bad": None,  # `FirstBad`, where the stored runs tell
        "sections": [],
    }


def check_sections(context: Context) -> None:
    """Raise a `TypeError` if a user's hook added a section that cannot be shown."""
    for section in context["sections"]:
        if not (
            isinstance(section, tuple)
            and len(section) == 2
            and all(isinstance(part, str) for part in section)
        ):
            raise TypeError('context["sections"] takes pairs of a title and Markdown')
