"""`report.html`: a comparison for looking at, in one file that needs nothing else.

Foreign text reaches the page in two ways only: as text that the template escapes, and as JSON in script
blocks that a browser does not run, most of them packed, from which the script makes text nodes. The page's
Content-Security-Policy forbids everything else.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import jinja2
from markupsafe import Markup

from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.worse import WORSE_GATE
from pytest_kebab_eval.model import Run, Value
from pytest_kebab_eval.reports.as_markdown import Context
from pytest_kebab_eval.reports.briefs import Briefs, RunBriefs
from pytest_kebab_eval.reports.html import (
    escape_controls,
    percent,
    short,
    short_delta,
    short_setting,
    short_value,
)
from pytest_kebab_eval.reports.html.charts import drawn_rows, forest, slice_panels, slope
from pytest_kebab_eval.reports.html.details import DetailBlocks
from pytest_kebab_eval.reports.html.query_index import FAILED_SHOWN, PageQueries, QueryIndex
from pytest_kebab_eval.reports.html.time_charts import latency_histograms, trend_charts
from pytest_kebab_eval.reports.rows import metric_label, metric_rows, slice_rows
from pytest_kebab_eval.reports.templates import make_environment
from pytest_kebab_eval.reports.wording import counted, coverage, duration_words, match_counts, verdict_effect
from pytest_kebab_eval.store.working_tree import WebRepository

if TYPE_CHECKING:
    from pytest_kebab_eval.history import HistoryPoint


class ComparedRuns(NamedTuple):
    """The runs of both sides, and where their commits can be looked at."""

    a: Sequence[Run] = ()
    b: Sequence[Run] = ()
    repository: WebRepository | None = None


def render_report_html(
    report: CompareReport,
    queries: PageQueries,
    history: Sequence[HistoryPoint],
    context: Context,
    runs: ComparedRuns | None = None,
) -> Iterator[str]:
    """The report as HTML, in parts; the queries' details are never in memory as a whole.

    The history is oldest first. `context` is what `report_context` gave, perhaps changed by a user's hook.
    """
    runs = runs or ComparedRuns()
    index = QueryIndex(report, queries)
    details = DetailBlocks(index, queries)
    rows = metric_rows(report)
    drawn = drawn_rows(report, rows)
    values = {
        **context,
        "effect": verdict_effect(report),
        "runs": _runs_shown(report, runs, queries.briefs),
        "commit_url": runs.repository.commit_url if runs.repository else lambda commit: None,
        "lost_count": index.outcome_counts["failed"],
        "failed_shown": FAILED_SHOWN,
        "coverage": coverage(report),
        "matched": match_counts(report),
        "gates": sorted(gates_shown(report), key=lambda gate: gate.passed),
        "counted": counted,
        "forest": forest(drawn) if report.deltas else None,
        "bars": drawn,
        "slope": slope(index) if report.run_a is not None else None,
        "panels": slice_panels(slice_rows(report), index),
        "latency": latency_histograms(rows, queries.briefs.a.times, queries.briefs.b.times),
        "trends": trend_charts(report, rows, history),
        "history": history,
        "outcomes_shown": index.outcomes(),
        "kinds_shown": index.kinds(),
        "causes_shown": index.causes(),
        "slices_shown": index.slices_by_field(),
        "total": len(index.listed),
        "index": index.as_json(),
        "rows_packed": Markup(index.packed_rows),  # noqa: S704  base64
        "in_full": details.in_full,
        "details": details,
    }
    page = _environment().get_template("html/report.html.jinja").stream(values)
    page.enable_buffering(100)
    yield from page


def gates_shown(report: CompareReport) -> list[GateResult]:
    """The gates but for that of every comparison where it holds: it would push down what failed."""
    return [gate for gate in report.gates if not gate.passed or gate.gate != WORSE_GATE]


# -- the runs at the top: commit, branch, date, and how long their queries took --------------------


class RunShown(Value, frozen=True):
    """A side of the comparison; of several runs, the first."""

    letter: str
    role: str
    run_id: str
    commit: str | None
    facts: tuple[str, ...]  # branch, date, duration


def _runs_shown(report: CompareReport, runs: ComparedRuns, briefs: Briefs) -> list[RunShown]:
    """The sides that there are, A first."""
    sides = [("B", "candidate" if report.run_a else "judged alone", report.run_b, runs.b, briefs.b)]
    if report.run_a is not None:
        sides.insert(0, ("A", "baseline", report.run_a, runs.a, briefs.a))
    return [
        RunShown(
            letter,
            role,
            short(run_id),
            stored[0].commit_hash if stored else None,
            tuple(_facts(stored, kept)),
        )
        for letter, role, run_id, stored, kept in sides
    ]


def _facts(runs: Sequence[Run], kept: RunBriefs) -> Iterator[str]:
    """What is known of the runs of a side."""
    if len(runs) > 1:
        yield f"the first of {counted(len(runs), 'run')}"
    if runs:
        recorded = runs[0].recorded
        if recorded.branch:
            yield f"branch {short(recorded.branch, 60)}"
        if recorded.dirty:
            yield "with uncommitted changes"
        if runs[0].created_at:
            yield short(runs[0].created_at[:16].replace("T", " "))
    if kept.times:
        took = duration_words(math.fsum(kept.times))
        yield f"{counted(len(kept.times), 'query')} took {took}"


# -- templates --------------------------------------------------------------------------------------


def page_environment() -> jinja2.Environment:
    """The environment of pages: foreign text is escaped, as are control characters in it."""
    environment = make_environment(
        autoescape=True, finalize=lambda value: escape_controls(value) if isinstance(value, str) else value
    )
    environment.filters.update(as_value=short_value, as_delta=short_delta, percent=percent, short=short)
    environment.filters["label"] = metric_label
    return environment


@cache
def _environment() -> jinja2.Environment:
    environment = page_environment()
    environment.filters["setting"] = short_setting
    script = _file("differences.js") + _file("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals.update(css=_file("report.css"), script=script, script_hash=f"sha256-{digest}")
    return environment


def _file(name: str) -> Markup:
    return Markup(Path(__file__).with_name(name).read_text(encoding="utf-8"))  # noqa: S704  our own
