"""A comparison for the terminal: a failing query, the summary at the end, annotations for GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from pytest_kebab_eval.comparing.configurations import changed_settings
from pytest_kebab_eval.comparing.evidence import HITS_SHOWN, QueryEvidence
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, QueryComparison, Value
from pytest_kebab_eval.reports.failures import FailedQuery, Words
from pytest_kebab_eval.reports.rows import MetricRow, metric_rows, shortlist
from pytest_kebab_eval.reports.wording import (
    check_noise,
    counted,
    coverage,
    flaky_rates,
    format_delta,
    format_spread,
    format_value,
    has_failed,
    headline,
    match_counts,
    movement,
    rank_changes,
    replicate_sentence,
)
from pytest_kebab_eval.text import brief, first_of, printable

_FLAKY_SHOWN = 10
_SETTINGS_SHOWN = 3
MAX_METRICS = 12  # rows of the table
MAX_ANNOTATIONS = 10  # GitHub shows no more of one step


class Line(Value, frozen=True):
    """A line of the summary; `direction` is 1 for good news, -1 for bad news, 0 for neither."""

    text: str
    direction: int = 0


# -- a query that fails --------------------------------------------------------------------------


def explain(
    query: GoldenQuery,
    verdict: Verdict,
    comparison: QueryComparison | None,
    evidence: QueryEvidence | None,
    where: str,
) -> str:
    """Why a query fails: what was expected, its rank in A, and what B has instead."""
    asked = f"  query     {brief(query.query, 100)}"
    if evidence is None or comparison is None:
        return "\n".join([verdict.reason, asked, f"  golden    {where}"])
    failed = FailedQuery(query, comparison, evidence)
    lines, label = [failed.reason(verdict.reason), asked], ""
    for fact in failed.facts():
        lines.append(f"  {fact.label if fact.label != label else '':<9} {in_text(fact.words)}")
        label = fact.label
    lines.append(f"  golden    {where}")
    if evidence.b and evidence.b.hits:
        marks = f"* = expected{', ! = forbidden' if comparison.forbidden else ''}"
        unlabelled = failed.unlabelled()
        lines.append(f"  top hits of run B ({marks}){f'; {unlabelled}' if unlabelled else ''}")
        lines += _top_hits(failed)
    return "\n".join(lines)


def in_text(words: Words) -> str:
    """Words on one line."""
    return "".join(
        piece if isinstance(piece, str) else f"{piece.quote}{brief(piece.text, piece.width)}{piece.quote}"
        for piece in words
    )


def _top_hits(failed: FailedQuery) -> Iterator[str]:
    evidence = failed.evidence
    forbidden = {hit.rank: "!" for hit in failed.comparison.forbidden or ()}
    marks = dict.fromkeys(evidence.correct_b, "*") | forbidden
    for hit in evidence.b.hits[:HITS_SHOWN] if evidence.b else ():
        yield f"  {marks.get(hit.rank, ' ')} {hit.rank:>3}  {in_text(failed.hit_words(hit))}"


# -- the summary ---------------------------------------------------------------------------------


def summary(report: CompareReport) -> Iterator[Line]:
    """The comparison in total, the verdict first, in 80 columns."""
    shown = shortlist(report, MAX_METRICS)
    yield Line(headline(report), -1 if has_failed(report) else 1)
    for problem in report.problems:
        yield Line(f"ERROR: {problem}", -1)
    if report.run_a:
        changed = changed_settings(report.config_changes, _SETTINGS_SHOWN)
        yield Line(f"changed in the configuration: {changed}")
    for gate in report.gates:
        state = "skipped" if gate.skipped else "holds" if gate.passed else "FAILED"
        yield Line(f"gate {state}: {gate.gate}", 0 if gate.skipped else 1 if gate.passed else -1)
        yield Line(f"     {gate.reason}")
    yield from _metric_lines(report, shown)
    left_out = len(metric_rows(report)) - len(shown)
    if left_out:
        yield Line(f"and {counted(left_out, 'more metric')}, in the report")
    if report.deltas is not None:
        yield Line(rank_changes(report))
        yield Line(f"matched {match_counts(report)}")
    moved = movement(report)
    if moved:
        yield Line(moved)
    yield from _noise_lines(report)
    covered = coverage(report)
    if covered:
        yield Line(covered, -1)
    if report.not_in_golden:
        yield Line(f"not in the golden file: {first_of(report.not_in_golden, 5)}")
    for warning in report.warnings:
        yield Line(f"warning: {warning}", -1)


def _noise_lines(report: CompareReport) -> Iterator[Line]:
    """What several runs a side tell: how much each check flips, and on which queries."""
    if not report.replicates:
        return
    yield Line(replicate_sentence(report))
    for check in report.replicates.checks:
        if check.disagreement:
            yield Line(
                f"noise of {check.check} ({check.what}): {check_noise(check, len(report.replicates.runs_a))}"
            )
    flaky = flaky_rates(report)
    for rates in flaky[:_FLAKY_SHOWN]:
        yield Line(f"flaky: {printable(rates.query_id)}: {rates.rates}")
    if len(flaky) > _FLAKY_SHOWN:
        yield Line(f"flaky: and {len(flaky) - _FLAKY_SHOWN} more, in report.json")


def _metric_lines(report: CompareReport, rows: Sequence[MetricRow]) -> Iterator[Line]:
    names = [f"{row.label}{' ↓' if row.lower_is_better else ''}" for row in rows]
    width = max(map(len, [*names, "metric" + " " * 16]))
    if report.deltas is None:
        yield Line(f"{'metric':<{width}} {'value':>9}{'n':>7}")
        for name, row in zip(names, rows, strict=True):
            yield Line(f"{name:<{width}} {format_value(row.b):>9}{row.n_b:>7}")
        return
    extra = f"{'± A':>8}{'± B':>8}" if report.replicates else ""
    change = "paired" if report.deltas.paired.unpaired else "B - A"
    yield Line(f"{'metric':<{width}} {'A':>9} {'B':>9} {change:>9}{extra}  significance")
    for name, row in zip(names, rows, strict=True):
        extra = (
            f"{format_spread(row.spread_a):>8}{format_spread(row.spread_b):>8}" if report.replicates else ""
        )
        numbers = f"{format_value(row.a):>9} {format_value(row.b):>9} {format_delta(row.delta):>9}{extra}"
        says = f"{row.conclusion}{f': {row.in_both}' if row.in_both else ''}"
        n = "" if row.n_a == row.n_b else f"n {row.n_a}→{row.n_b}"
        figures = filter(None, [numbers, says if row.delta or row.in_both else "", n])
        yield Line(f"{name:<{width}} {'  '.join(figures)}", row.direction)


_DIRECTIONS = {ComparisonKind.WIN: 1, ComparisonKind.LOSS: -1, ComparisonKind.REGRESSION: -1}


def query_lines(comparison: QueryComparison, failed: FailedQuery | None = None) -> Iterator[Line]:
    """A query on one line; with its stored results, the hits of run B below it."""
    kind = comparison.kind.value if comparison.kind else "query"
    ranks = f"{comparison.a_hit_rank or '–'}→{comparison.b_hit_rank or '–'}"
    note = f"  {printable(comparison.note)}" if comparison.note else ""
    direction = _DIRECTIONS.get(comparison.kind, 0) if comparison.kind else 0
    text = f"{kind:<11}{ranks:>6}  {printable(comparison.query_id)}{note}"
    yield Line(text, -1 if comparison.checks else direction)
    if failed:
        yield from map(Line, _top_hits(failed))


# -- annotations for GitHub Actions --------------------------------------------------------------


def annotate(
    golden: Path,
    gates: Iterable[GateResult],
    queries: Iterable[tuple[GoldenQuery, Verdict]],
    workspace: Path,
    problems: Iterable[str],
) -> Iterator[str]:
    """An `::error` command for each problem, failed gate and failed query, up to `MAX_ANNOTATIONS`."""
    path = _escape_property(_relative(golden, workspace))
    of_problems = (_error(f"file={path},line=1,", "kebab-eval", problem) for problem in problems)
    of_gates = (_error("", f"gate {brief(gate.gate, 80)}", gate.reason) for gate in gates)
    of_queries = (
        _error(f"file={path},line={query.line},", f"query {brief(query.id, 80)}", verdict.reason)
        for query, verdict in queries
    )
    return islice(chain(of_problems, of_gates, of_queries), MAX_ANNOTATIONS)


def _relative(golden: Path, workspace: Path) -> str:
    try:
        return Path(os.path.relpath(golden, workspace)).as_posix()
    except (ValueError, OSError):  # another drive; no working directory any more
        return golden.as_posix()


def _error(place: str, title: str, reason: str) -> str:
    return f"::error {place}title={_escape_property(title)}::{_escape(printable(reason))}"


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
