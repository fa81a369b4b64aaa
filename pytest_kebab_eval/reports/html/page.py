"""`report.html`: a comparison for looking at, in one file that needs nothing else.

`charts` and `time_charts` lay the charts out; the template draws them. Foreign text reaches the page in two
ways only: as text that the template escapes, and as JSON in script blocks that a browser does not run, most
of them packed, from which the script makes text nodes. The page's Content-Security-Policy forbids everything
else. The beginning of the list is not packed: it is there at once, and in a browser that cannot unpack.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.reports.context import Context, report_context
from pytest_kebab_eval.reports.html.charts import bars, forest, slice_panels, slope
from pytest_kebab_eval.reports.html.detail_blocks import DetailBlocks
from pytest_kebab_eval.reports.html.markup import (
    escape_controls,
    percent,
    short,
    short_delta,
    short_setting,
    short_value,
)
from pytest_kebab_eval.reports.html.query_index import FAILED_SHOWN, PageQueries, QueryIndex
from pytest_kebab_eval.reports.html.time_charts import latency_histograms, trend_charts
from pytest_kebab_eval.reports.rows import metric_rows
from pytest_kebab_eval.reports.templates import make_environment
from pytest_kebab_eval.reports.wording import counted, coverage, lost_queries, match_counts, verdict_effect


def render_report_html(
    report: CompareReport,
    queries: PageQueries,
    history: Sequence[HistoryPoint] = (),
    context: Context | None = None,
) -> Iterator[str]:
    """The report as HTML, in parts; the queries' details are never in memory as a whole.

    The history is oldest first. `context` is what `report_context` gave, perhaps changed by a user's hook.
    """
    index = QueryIndex(report, queries)
    details = DetailBlocks(index, queries)
    values = {
        **(context or report_context(report)),
        **_summary_values(report),
        **_chart_values(report, index, history),
        **_index_values(index),
        "in_full": details.in_full,
        "details": details,
    }
    page = _environment().get_template("html/report.html.jinja").stream(values)
    page.enable_buffering(100)
    yield from page


# -- what the template is given, beside the context of all reports -------------------------------


def _summary_values(report: CompareReport) -> dict[str, Any]:
    lost = lost_queries(report)
    return {
        "effect": verdict_effect(report),
        "lost_count": len(lost),
        "failed_shown": FAILED_SHOWN,
        "coverage": coverage(report),
        "matched": match_counts(report),
        "gates": sorted(report.gates, key=lambda gate: gate.passed),
        "counted": counted,
    }


def _chart_values(
    report: CompareReport, index: QueryIndex, history: Sequence[HistoryPoint]
) -> dict[str, Any]:
    rows = metric_rows(report)
    return {
        "forest": forest(report, rows) if report.deltas else None,
        "bars": bars(report, rows),
        "slope": slope(index) if report.run_a is not None else None,
        "panels": slice_panels(report, index),
        "latency": latency_histograms(report, index),
        "trends": trend_charts(report, history),
        "history": history,
    }


def _index_values(index: QueryIndex) -> dict[str, Any]:
    return {
        "kinds_shown": index.kinds(),
        "causes_shown": index.causes(),
        "slices_shown": index.slices_by_field(),
        "total": len(index.listed),
        "index": index.as_json(),
        "rows_packed": map(Markup, index.packed_rows),
    }


# -- the template --------------------------------------------------------------------------------


@cache
def _environment() -> jinja2.Environment:
    environment = make_environment(
        autoescape=True, finalize=lambda value: escape_controls(value) if isinstance(value, str) else value
    )
    environment.filters.update(
        as_value=short_value, as_delta=short_delta, percent=percent, short=short, setting=short_setting
    )
    script = _file("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(css=_file("report.css"), script=script, script_hash=f"sha256-{digest}")
    return environment


def _file(name: str) -> Markup:
    return Markup(Path(__file__).with_name(name).read_text(encoding="utf-8"))  # noqa: S704  our own
