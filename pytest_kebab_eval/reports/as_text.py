"""A comparison for the terminal: a failing query, the summary at the end, annotations for GitHub."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import ANSWER_CHECKS
from pytest_kebab_eval.comparing.evidence import HITS_SHOWN, QueryEvidence
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.model import (
    ComparisonKind,
    GoldenQuery,
    Hit,
    QueryComparison,
    QueryResult,
    is_labelled,
)
from pytest_kebab_eval.reports.rows import summary_rows
from pytest_kebab_eval.reports.wording import (
    CAUSES,
    check_noise,
    coverage,
    flaky_rates,
    format_delta,
    format_p,
    format_spread,
    format_value,
    has_failed,
    headline,
    kind_counts,
    match_counts,
    movement,
    replicate_sentence,
)
from pytest_kebab_eval.text import brief, first_of, printable

_FLAKY_SHOWN = 10
MAX_ANNOTATIONS = 10  # GitHub shows no more of one step


class Line(NamedTuple):
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
    lines = [verdict.reason, f"  query     {brief(query.query, 100)}"]
    if evidence is None or comparison is None:
        lines.append(f"  golden    {where}")
    else:
        lines += _explanation(query, comparison, evidence, where)
    return "\n".join(lines)


def _explanation(
    query: GoldenQuery, comparison: QueryComparison, evidence: QueryEvidence, where: str
) -> Iterator[str]:
    both_readable = evidence.readable_a and evidence.readable_b
    yield f"  expected  {_expected(query, evidence)}"
    if comparison.kind is not None:
        yield f"  run A     {_rank(comparison.a_hit_rank, evidence.a, evidence.readable_a)}"
    yield f"  run B     {_rank(comparison.b_hit_rank, evidence.b, evidence.readable_b)}"
    if comparison.cause and both_readable:
        yield f"  cause     {comparison.cause}: {CAUSES[comparison.cause]}"
    yield from _lost(comparison, evidence)
    yield from _answer(query, comparison, evidence)
    if comparison.note and both_readable:
        yield f"  note      {printable(comparison.note)}"
    yield f"  golden    {where}"
    if evidence.b and evidence.b.hits:
        marks = f"* = expected{', ! = forbidden' if comparison.forbidden else ''}"
        yield f"  top hits of run B ({marks}){_unlabelled(query, comparison, evidence)}"
        yield from _top_hits(comparison, evidence)


def _expected(query: GoldenQuery, evidence: QueryEvidence) -> str:
    if query.can_be_answered is False:
        return "a refusal"
    rules = [f"an answer with {brief(text, 40)!r}" for text in query.must_contain]
    rules += [f"an answer without {brief(text, 40)!r}" for text in query.forbidden]
    if query.claims:
        claims = ", ".join(repr(brief(claim, 40)) for claim in query.claims[:3])
        rules.append(f"an answer with any of {claims}")
    groups = {group[0]: " or ".join(group) for group in (*query.alternatives, *query.doc_alternatives)}
    found = [printable(groups.get(target, target)) for target in evidence.expected]
    if query.must_rank_at_most and found:
        found[-1] += f" (at rank {query.must_rank_at_most} or better)"
    unwanted = (*query.forbidden_chunk_ids, *query.forbidden_doc_ids)
    found += [f"not {first_of(unwanted, 3, 40)}"] if unwanted else []
    return ", ".join([*found, *rules]) or "nothing in particular"


def _rank(rank: int | None, result: QueryResult | None, readable: bool) -> str:
    if result is None:
        return "no result" if readable else "cannot be read"
    if result.error is not None:
        return f"error: {brief(result.error)}"
    return "not found" if rank is None else f"rank {rank}"


def _lost(comparison: QueryComparison, evidence: QueryEvidence) -> Iterator[str]:
    """The lost targets, and what B has instead: the first wrong hit from the rank of A's right one on."""
    if not comparison.lost:
        return
    yield f"  lost      {', '.join(map(printable, comparison.lost))}"
    hits = evidence.b.hits if evidence.b else ()
    expected = set(evidence.expected)
    wrong = (hit for hit in hits if hit.rank not in evidence.correct_b and hit.chunk_id not in expected)
    instead = next((hit for hit in wrong if hit.rank >= (comparison.a_hit_rank or 1)), None)
    if instead:
        yield f"  instead   {_hit(instead)}"


def _answer(query: GoldenQuery, comparison: QueryComparison, evidence: QueryEvidence) -> Iterator[str]:
    if not {*ANSWER_CHECKS} & {*comparison.checks}:
        return
    answer = evidence.b.answer if evidence.b else None
    if answer is None:
        yield "  answer    none"
        return
    refused = "" if answer.grounded else "(refused) "
    yield f"  answer    {refused}{brief(answer.text, 100)}"
    broken = [f"lacks {brief(text, 40)!r}" for text in query.must_contain if text not in answer.text]
    broken += [f"says the forbidden {brief(text, 40)!r}" for text in query.forbidden if text in answer.text]
    if "answer" in comparison.checks and broken:
        yield f"  rule      {', '.join(broken)}"
    if "citation" in comparison.checks:
        paths = [cited.citation.path for cited in answer.citations if cited.citation and cited.citation.path]
        yield f"  cites     {', '.join(map(printable, paths)) or 'nothing'}"


def _unlabelled(query: GoldenQuery, comparison: QueryComparison, evidence: QueryEvidence) -> str:
    """How many of B's top hits nobody labelled, where it lost one that was, or ranks none high enough."""
    top = evidence.b.hits[:HITS_SHOWN] if evidence.b else ()
    unknown = [hit for hit in top if hit.rank not in evidence.correct_b and not is_labelled(query, hit)]
    if not unknown or not (comparison.lost or {"miss", "rank_limit"} & {*comparison.checks}):
        return ""
    return f"; {len(unknown)} of B's top {len(top)} {'was' if len(unknown) == 1 else 'were'} never labelled"


def _top_hits(comparison: QueryComparison, evidence: QueryEvidence) -> Iterator[str]:
    marks = dict.fromkeys(evidence.correct_b, "*") | {hit.rank: "!" for hit in comparison.forbidden or ()}
    for hit in evidence.b.hits[:HITS_SHOWN] if evidence.b else ():
        yield f"  {marks.get(hit.rank, ' ')} {hit.rank:>3}  {_hit(hit)}"


def _hit(hit: Hit) -> str:
    where = " > ".join([hit.doc_path or hit.doc_id or "", *(hit.heading_path or ())])
    where = "" if where == hit.chunk_id else where
    begins = hit.snippet or hit.text or ""
    parts = [brief(hit.chunk_id or "", 40), brief(where, 60), f'"{brief(begins, 40)}"' if begins else ""]
    return "  ".join(filter(None, parts))


# -- the summary ---------------------------------------------------------------------------------


def summary(report: CompareReport) -> Iterator[Line]:
    """The comparison in total, in 80 columns."""
    yield from _metric_lines(report)
    if report.deltas is not None:
        yield Line(kind_counts(report))
        yield Line(f"matched {match_counts(report)}")
    moved = movement(report)
    if moved:
        yield Line(moved)
    yield from _noise_lines(report)
    covered = coverage(report)
    if covered:
        yield Line(covered, -1)
    for gate in report.gates:
        state = "skipped" if gate.skipped else "holds" if gate.passed else "FAILED"
        yield Line(f"gate {state}: {gate.gate}", 0 if gate.skipped else 1 if gate.passed else -1)
        yield Line(f"     {gate.reason}")
    if report.not_in_golden:
        yield Line(f"not in the golden file: {first_of(report.not_in_golden, 5)}")
    for warning in report.warnings:
        yield Line(f"warning: {warning}", -1)
    for problem in report.problems:
        yield Line(f"ERROR: {problem}", -1)
    yield Line(headline(report), -1 if has_failed(report) else 1)


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


def _metric_lines(report: CompareReport) -> Iterator[Line]:
    summary = summary_rows(report)
    rows = [row for row, *_ in summary]
    names = [f"{row.name}{' ↓' if row.lower_is_better else ''}" for row in rows]
    width = max(map(len, [*names, "metric" + " " * 16]))
    if report.deltas is None:
        yield Line(f"{'metric':<{width}} {'value':>9}{'n':>7}")
        for name, row in zip(names, rows, strict=True):
            yield Line(f"{name:<{width}} {format_value(row.b):>9}{row.n_b:>7}")
        return
    extra = f"{'± A':>8}{'± B':>8}" if report.replicates else ""
    change = "paired" if report.deltas.paired.unpaired else "B - A"
    yield Line(f"{'metric':<{width}} {'A':>9} {'B':>9} {change:>9}{extra}  significance")
    for name, (row, direction, conclusion) in zip(names, summary, strict=True):
        extra = (
            f"{format_spread(row.spread_a):>8}{format_spread(row.spread_b):>8}" if report.replicates else ""
        )
        numbers = f"{format_value(row.a):>9} {format_value(row.b):>9} {format_delta(row.delta):>9}{extra}"
        p = (
            f" ({format_p(row.significance.p)})"
            if row.significance and row.significance.p is not None
            else ""
        )
        n = "" if row.n_a == row.n_b else f"n {row.n_a}→{row.n_b}"
        figures = filter(None, [numbers, f"{conclusion}{p}" if row.delta else "", n])
        yield Line(f"{name:<{width}} {'  '.join(figures)}", direction)


_DIRECTIONS = {ComparisonKind.WIN: 1, ComparisonKind.LOSS: -1, ComparisonKind.REGRESSION: -1}


def query_lines(comparison: QueryComparison, evidence: QueryEvidence | None = None) -> Iterator[Line]:
    """A query on one line; with its stored results, the hits of run B below it."""
    kind = comparison.kind.value if comparison.kind else "query"
    ranks = f"{comparison.a_hit_rank or '–'}→{comparison.b_hit_rank or '–'}"
    note = f"  {printable(comparison.note)}" if comparison.note else ""
    direction = _DIRECTIONS.get(comparison.kind, 0) if comparison.kind else 0
    text = f"{kind:<11}{ranks:>6}  {printable(comparison.query_id)}{note}"
    yield Line(text, -1 if comparison.checks else direction)
    if evidence:
        yield from map(Line, _top_hits(comparison, evidence))


# -- annotations for GitHub Actions --------------------------------------------------------------


def annotate(
    golden: Path,
    gates: Iterable[GateResult],
    queries: Iterable[tuple[GoldenQuery, Verdict]],
    workspace: Path,
    problems: Iterable[str] = (),
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
