"""The values that the templates of reports are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, QueryComparison
from pytest_kebab_eval.reports.failures import FailedQuery, most_telling
from pytest_kebab_eval.reports.rows import (
    SLICE_METRICS,
    changed_rows,
    group_equal,
    metric_label,
    metric_rows,
    slice_rows,
)
from pytest_kebab_eval.reports.wording import (
    CAUSES,
    check_noise,
    checks_failed,
    format_noise,
    format_spread,
    headline,
    match_counts,
    movement,
    partial_losses,
    rank_changes,
    replicate_sentence,
    review_command,
)

FAILURES_IN_FULL = 10
FAILURE_COLUMNS = 220  # of a line in report.md, and on the site
Context = dict[str, Any]


def report_context(
    report: CompareReport,
    queries: Iterable[GoldenQuery] = (),
    evidence: Mapping[str, QueryEvidence] | None = None,
    report_url: str | None = None,
) -> Context:
    """The templates' values; the hook `pytest_kebab_report_context` may change them.

    With evidence, the failed queries that it is of are told in full.
    """
    golden = {query.id: query for query in queries}
    failed = most_telling(report)
    regressions = [query for query in report.per_query if query.kind is ComparisonKind.REGRESSION]
    rows = metric_rows(report)
    accounted_for = {*report.failed, *report.tolerated}
    return {
        "report": report,
        "report_url": report_url,  # of report.html, where it will be found
        "texts": {query.id: query.query for query in golden.values()},
        "verdict": headline(report),
        "rows": rows,
        "rows_once": group_equal(rows),
        "changed_rows": changed_rows(report),
        "by_kind": {
            kind.value: [query for query in report.per_query if query.kind is kind] for kind in ComparisonKind
        },
        "failures": [_failure(query, golden, evidence or {}) for query in failed[:FAILURES_IN_FULL]],
        "other_failures": failed[FAILURES_IN_FULL:],
        "causes": Counter(query.cause for query in failed if query.cause).most_common(),
        "cause_words": CAUSES,
        "checks_failed": partial(checks_failed, report),
        "lost_without_failing": [query for query in regressions if query.query_id not in accounted_for],
        "partial_losses": partial_losses(report),
        "tolerated": [query for query in report.per_query if query.query_id in report.tolerated],
        "review_command": partial(review_command, report),
        "paired": report.deltas.paired if report.deltas else None,
        "ranks": rank_changes(report),
        "matched": match_counts(report),
        "movement": movement(report),
        "replicate_sentence": replicate_sentence(report),
        "check_noise": check_noise,
        "shown_rates": sorted(report.rates or (), key=lambda rates: not rates.lost),
        "format_noise": format_noise,
        "format_spread": format_spread,
        "gates": sorted(report.gates, key=lambda gate: gate.passed),
        "slices": slice_rows(report),
        "slice_metrics": [metric_label(name) for name in SLICE_METRICS],
        "first_bad": None,  # `FirstBad`, where the stored runs tell
        "sections": [],
    }


def _failure(
    comparison: QueryComparison, golden: Mapping[str, GoldenQuery], evidence: Mapping[str, QueryEvidence]
) -> tuple[QueryComparison, FailedQuery | None]:
    """A failed query, and what is known of why, if that was read."""
    query, found = golden.get(comparison.query_id), evidence.get(comparison.query_id)
    return comparison, FailedQuery(query, comparison, found, FAILURE_COLUMNS) if query and found else None


def check_sections(context: Context) -> None:
    """Raise a `TypeError` if a user's hook added a section that cannot be shown."""
    for section in context["sections"]:
        if not (
            isinstance(section, tuple)
            and len(section) == 2
            and all(isinstance(part, str) for part in section)
        ):
            raise TypeError('context["sections"] takes pairs of a title and Markdown')
