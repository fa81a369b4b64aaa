"""`report.html`: a comparison for looking at, in one file that needs nothing else.

The charts are laid out in `charts` and `time_charts` and drawn by the template. What is foreign reaches the
page in two ways only: as text that the template escapes, and as JSON in blocks that a browser does not run,
from which the script makes text nodes. The page forbids itself everything else (its Content-Security-Policy).
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import jinja2
from markupsafe import Markup

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.environment import environment_for
from pytest_kebab_eval.reports.html.charts import bars, forest, mood_of, slice_panels, slope
from pytest_kebab_eval.reports.html.query_index import Digest
from pytest_kebab_eval.reports.html.text import change, figure, inert, percent, setting, short
from pytest_kebab_eval.reports.html.time_charts import latency_histograms, trend_charts
from pytest_kebab_eval.reports.wording import CAUSES, counted, coverage, lost_queries, matched, metric_rows


def render_report_html(
    report: CompareReport,
    queries: Iterable[tuple[GoldenQuery, QueryEvidence]],
    history: Sequence[HistoryPoint] = (),
    context: dict[str, Any] | None = None,
) -> Iterator[str]:
    """The report as HTML, piece by piece; the queries' details are never in memory as a whole.

    The history is oldest first. `context` is what `report_context` gave, perhaps changed by a user's hook.
    """
    digest = Digest(report)
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as details:
        for block in digest.blocks(queries):
            details.write(block)
        details.seek(0)
        page = (
            _environment()
            .get_template("html/report.html.jinja")
            .stream(
                {
                    **(context or report_context(report)),
                    **_drawn(report, digest, history),
                    "details": _chunks(details),
                }
            )
        )
        page.enable_buffering(100)
        yield from page


def _chunks(file: IO[str]) -> Iterator[Markup]:
    while chunk := file.read(1 << 20):
        yield Markup(chunk)  # noqa: S704  JSON in script blocks, made inert by `inert_json`


def _drawn(report: CompareReport, digest: Digest, history: Sequence[HistoryPoint]) -> dict[str, Any]:
    """What the template shows beside what every report has."""
    rows = metric_rows(report)
    failed = [one for one in report.gates if not one.passed]
    worse = report.run_a is not None and any(
        one.kind and one.kind.value == "loss" for one in report.per_query
    )
    bad = bool(failed or lost_queries(report) or report.unreadable)
    return {
        "mood": "lost" if bad else "worse" if worse else "better",
        "lost_count": len(lost_queries(report)),
        "coverage": coverage(report),
        "matched": matched(report),
        "gates": sorted(report.gates, key=lambda one: one.passed),
        "kinds_shown": digest.kinds_shown(),
        "forest": forest(report, rows) if report.deltas else None,
        "bars": bars(report, rows),
        "slope": slope(digest) if report.run_a is not None else None,
        "panels": slice_panels(report, digest),
        "latency": latency_histograms(report, digest),
        "trends": trend_charts(report, history),
        "history": history,
        "causes_shown": [(one, CAUSES[one], digest.causes[one]) for one in CAUSES if digest.causes[one]],
        "slices_shown": digest.slices_by_name(),
        "total": len(digest.rows),
        "index": digest.index(),
        "mood_of": mood_of,
        "counted": counted,
    }


@cache
def _environment() -> jinja2.Environment:
    environment = environment_for(
        autoescape=True, finalize=lambda value: inert(value) if isinstance(value, str) else value
    )
    environment.filters.update(figure=figure, change=change, percent=percent, short=short, setting=setting)
    script = _file("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(css=_file("report.css"), script=script, script_hash=f"sha256-{digest}")
    return environment


def _file(name: str) -> Markup:
    return Markup(Path(__file__).with_name(name).read_text(encoding="utf-8"))  # noqa: S704  our own
