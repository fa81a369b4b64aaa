"""`report.md`: a comparison for a pull request."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import jinja2

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import ComparisonKind
from pytest_kebab_eval.reports.environment import environment_for
from pytest_kebab_eval.reports.wording import (
    SLICE_METRICS,
    kinds_counted,
    metric_rows,
    signed,
    slice_rows,
    valued,
    verdict,
)
from pytest_kebab_eval.text import brief

LONGEST = 65_536  # characters that GitHub takes as a comment
MOST_IN_A_CELL = 20
_ROWS_SHOWN = (1_000, 300, 100, 30, 10, 3)
_CUT = "\n\n… cut here; report.json has all of it.\n"


def render_report_md(report: CompareReport) -> str:
    """The report as Markdown."""
    return render_markdown(report_context(report))


def render_markdown(context: dict[str, Any]) -> str:
    """The report as Markdown, from what the templates are given; never longer than GitHub takes."""
    text = ""
    for most in _ROWS_SHOWN:
        text = _template().render(context, most=most)
        if len(text) <= LONGEST:
            return text
    return text[: text.rindex("\n", 0, LONGEST - len(_CUT))] + _CUT


def report_context(report: CompareReport) -> dict[str, Any]:
    """What the templates are given."""
    by_kind = {kind.value: [one for one in report.per_query if one.kind is kind] for kind in ComparisonKind}
    failed_checks = [
        one
        for one in report.per_query
        if (one.checks or one.cause == "absent") and one.kind is not ComparisonKind.REGRESSION
    ]
    rows = metric_rows(report)
    return {
        "report": report,
        "verdict": verdict(report),
        "rows": rows,
        "changed_rows": [row for row in rows if row.delta != 0],
        "unchanged_rows": [row for row in rows if row.delta == 0],
        "by_kind": by_kind,
        "failed_checks": failed_checks,
        "paired": report.deltas.paired if report.deltas else None,
        "kinds": kinds_counted(report),
        "gates": sorted(report.gates, key=lambda one: one.passed),
        "slices": slice_rows(report),
        "slice_metrics": SLICE_METRICS,
        "sections": [],
    }


def check_sections(context: dict[str, Any]) -> None:
    """A `TypeError` if what a user's hook made of the sections cannot be shown."""
    for section in context["sections"]:
        if not (
            isinstance(section, tuple) and len(section) == 2 and all(isinstance(one, str) for one in section)
        ):
            raise TypeError('context["sections"] takes pairs of a title and Markdown')


@cache
def _template() -> jinja2.Template:
    # No escaping in Markdown: every foreign text goes through `code`.
    environment = environment_for(autoescape=False, keep_trailing_newline=True)
    environment.filters.update(code=code, codes=codes, valued=valued, signed=signed, number=_number)
    return environment.get_template("templates/report.md.jinja")


def code(text: Any, width: int = 200) -> str:
    """Foreign text as an inline code span, where neither Markdown nor HTML nor a mention means anything."""
    if text is None:
        return "–"
    shown = brief(str(text), width) or " "
    fence = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}".replace("|", "\\|")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:g}"


def codes(texts: Any) -> str:
    """A list of foreign texts."""
    shown = [code(text, 80) for text in texts[:MOST_IN_A_CELL]]
    if len(texts) > len(shown):
        shown.append(f"and {len(texts) - len(shown)} more")
    return ", ".join(shown) or "–"
