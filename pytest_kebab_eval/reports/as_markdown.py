"""`report.md`, a comparison for a pull request; and what the templates of all reports are given."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import jinja2

from pytest_kebab_eval.comparing.configurations import shown_setting
from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, QueryComparison
from pytest_kebab_eval.reports.failures import FailedQuery, Words, most_telling
from pytest_kebab_eval.reports.rows import (
    SLICE_METRICS,
    changed_rows,
    group_equal,
    metric_label,
    metric_rows,
    slice_rows,
)
from pytest_kebab_eval.reports.templates import make_environment
from pytest_kebab_eval.reports.wording import (
    CAUSES,
    check_noise,
    checks_failed,
    duration_words,
    format_delta,
    format_noise,
    format_spread,
    format_value,
    headline,
    match_counts,
    movement,
    partial_losses,
    rank_changes,
    replicate_sentence,
    review_command,
)
from pytest_kebab_eval.text import brief

MAX_LENGTH = 65_536  # characters that GitHub takes as a comment
MAX_IN_A_CELL = 20
_ROWS_SHOWN = (1_000, 300, 100, 30, 10, 3)
_CUT = "\n\n… cut here; report.json has all of it.\n"
FAILURES_IN_FULL = 10
FAILURE_COLUMNS = 220  # of a line in report.md
Context = dict[str, Any]


def render_report_md(report: CompareReport, queries: Iterable[GoldenQuery] = ()) -> str:
    """The report as Markdown; with the golden queries, their texts stand beside their ids."""
    return render_markdown(report_context(report, queries))


def render_markdown(context: Context) -> str:
    """The report as Markdown, with as many rows as fit into a comment on GitHub."""
    text = ""
    for limit in _ROWS_SHOWN:
        text = _template().render(context, limit=limit)
        if len(text) <= MAX_LENGTH:
            return text
    return text[: text.rindex("\n", 0, MAX_LENGTH - len(_CUT))] + _CUT


@cache
def _template() -> jinja2.Template:
    # Markdown is not escaped: every foreign text goes through `code`.
    environment = make_environment(autoescape=False, keep_trailing_newline=True)
    environment.filters.update(
        code=code,
        codes=codes,
        setting=lambda value: code(None if value is None else shown_setting(value, 80)),
        in_markdown=in_markdown,
        as_value=format_value,
        as_delta=format_delta,
        duration=duration_words,
        as_number=lambda value: "–" if value is None else f"{value:g}",
    )
    return environment.get_template("templates/report.md.jinja")


def code(text: Any, width: int = 200) -> str:
    """Foreign text as an inline code span: no Markdown, HTML or mention in it has an effect."""
    if text is None:
        return "–"
    shown = brief(str(text), width) or " "
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|")


def codes(texts: Sequence[str]) -> str:
    """Foreign texts as inline code spans, no more of them than fit into a cell."""
    shown = [code(text, 80) for text in texts[:MAX_IN_A_CELL]]
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown)} more")
    return ", ".join(shown) or "–"


def in_markdown(words: Words) -> str:
    """Words with what is foreign in them as code spans."""
    return "".join(piece if isinstance(piece, str) else code(piece.text, piece.width) for piece in words)


# -- what templates are given -----------------------------------------------------------------------


def report_context(
    report: CompareReport,
    queries: Iterable[GoldenQuery] = (),
    evidence: Mapping[str, QueryEvidence] | None = None,
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
