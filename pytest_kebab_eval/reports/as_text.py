"""A comparison for the terminal: a failing query in full, and the summary at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_kebab_eval.comparing.evidence import HITS_SHOWN, QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.verdicts import Verdict
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, Hit, QueryComparison, QueryResult
from pytest_kebab_eval.reports.wording import (
    CAUSES,
    coverage,
    kinds_counted,
    lost_queries,
    matched,
    metric_rows,
    p_said,
    signed,
    valued,
    verdict,
)
from pytest_kebab_eval.text import brief, printable

# What the summary shows of the metrics; the reports have all of them.
_IN_SUMMARY = (
    "hit@1",
    "hit@3",
    "hit@5",
    "hit@10",
    "mrr",
    "recall@10_doc",
    "precision@5_chunk",
    "citation_coverage",
    "groundedness",
    "refusal_correctness",
    "empty_result_rate",
)


class Line(NamedTuple):
    """A line and how it is meant: good, bad, or neither."""

    text: str
    mood: int = 0


def explain(
    query: GoldenQuery,
    verdict: Verdict,
    comparison: QueryComparison | None,
    shown: QueryEvidence | None,
    where: str,
) -> str:
    """Why a query fails: what was expected, where it was in A, and what is there in B."""
    return "\n".join(_explained(query, verdict, comparison, shown, where))


def _explained(
    query: GoldenQuery,
    verdict: Verdict,
    comparison: QueryComparison | None,
    shown: QueryEvidence | None,
    where: str,
) -> Iterator[str]:
    yield verdict.reason
    yield f"  query     {brief(query.query, 100)}"
    if shown is None or comparison is None:
        yield f"  golden    {where}"
        return
    yield f"  expected  {_expected(query, shown)}"
    if comparison.kind is not None:
        yield f"  run A     {_rank(comparison.a_hit_rank, shown.a, shown.readable_a)}"
    yield f"  run B     {_rank(comparison.b_hit_rank, shown.b, shown.readable_b)}"
    if comparison.cause and shown.readable_a and shown.readable_b:
        yield f"  cause     {comparison.cause}: {CAUSES[comparison.cause]}"
    yield from _lost(comparison, shown)
    yield from _answer(query, comparison, shown)
    if comparison.note and shown.readable_a and shown.readable_b:
        yield f"  note      {printable(comparison.note)}"
    yield f"  golden    {where}"
    if shown.b and shown.b.hits:
        yield "  top hits of run B (* = expected)"
        for hit in shown.b.hits[:HITS_SHOWN]:
            yield f"  {'*' if hit.rank in shown.correct_b else ' '} {hit.rank:>3}  {_hit(hit)}"


def _expected(query: GoldenQuery, shown: QueryEvidence) -> str:
    if query.can_be_answered is False:
        return "a refusal"
    rules = [f"an answer with {brief(one, 40)!r}" for one in query.must_contain]
    rules += [f"an answer without {brief(one, 40)!r}" for one in query.forbidden]
    return ", ".join([*map(printable, shown.expected), *rules]) or "nothing in particular"


def _rank(rank: int | None, result: QueryResult | None, readable: bool) -> str:
    if result is None:
        return "no result" if readable else "cannot be read"
    if result.error is not None:
        return f"error: {brief(result.error)}"
    return "not found" if rank is None else f"rank {rank}"


def _lost(comparison: QueryComparison, shown: QueryEvidence) -> Iterator[str]:
    """Each lost target, the rank it had, and what took its place."""
    if not comparison.lost:
        return
    yield f"  lost      {', '.join(map(printable, comparison.lost))}"
    had = comparison.a_hit_rank
    taker = next((hit for hit in shown.b.hits if hit.rank == had), None) if shown.b else None
    if taker:
        yield f"  instead   {_hit(taker)}"


def _answer(query: GoldenQuery, comparison: QueryComparison, shown: QueryEvidence) -> Iterator[str]:
    if not {"answer", "refusal", "citation"} & set(comparison.checks):
        return
    answer = shown.b.answer if shown.b else None
    if answer is None:
        yield "  answer    none"
        return
    refused = "" if answer.grounded else "(refused) "
    yield f"  answer    {refused}{brief(answer.text, 100)}"
    missing = [one for one in query.must_contain if one not in answer.text]
    present = [one for one in query.forbidden if one in answer.text]
    if "answer" in comparison.checks and (missing or present):
        said = [f"lacks {brief(one, 40)!r}" for one in missing]
        said += [f"says the forbidden {brief(one, 40)!r}" for one in present]
        yield f"  rule      {', '.join(said)}"
    if "citation" in comparison.checks:
        cited = [one.citation.path for one in answer.citations if one.citation and one.citation.path]
        yield f"  cites     {', '.join(map(printable, cited)) or 'nothing'}"


def _hit(hit: Hit) -> str:
    """A hit on one line: its id, where it is from, how it begins."""
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
        yield Line(kinds_counted(report))
        yield Line(f"matched {matched(report)}")
    covered = coverage(report)
    if covered:
        yield Line(covered, -1)
    for gate in report.gates:
        state = "skipped" if gate.skipped else "holds" if gate.passed else "FAILED"
        yield Line(f"gate {state}: {gate.gate}", 0 if gate.skipped else 1 if gate.passed else -1)
        yield Line(f"     {gate.reason}")
    if report.not_in_golden:
        names = ", ".join(map(printable, report.not_in_golden[:5]))
        more = len(report.not_in_golden) - 5
        yield Line(f"not in the golden file: {names}{f' and {more} more' if more > 0 else ''}")
    for warning in report.warnings:
        yield Line(f"warning: {warning}", -1)
    for problem in report.problems:
        yield Line(f"ERROR: {problem}", -1)
    bad = lost_queries(report) or report.unreadable or any(not gate.passed for gate in report.gates)
    yield Line(verdict(report), -1 if bad else 1)


def _metric_lines(report: CompareReport) -> Iterator[Line]:
    asked = {one.metric for one in report.gates}
    rows = [row for row in metric_rows(report) if row.name in _IN_SUMMARY or row.name in asked]
    names = [f"{row.name}{' ↓' if row.lower_is_better else ''}" for row in rows]
    width = max(map(len, [*names, "metric" + " " * 16]))
    if report.deltas is None:
        yield Line(f"{'metric':<{width}} {'value':>9}{'n':>7}")
        for name, row in zip(names, rows, strict=True):
            yield Line(f"{name:<{width}} {valued(row.b):>9}{row.n_b:>7}")
        return
    paired = report.deltas.paired.deltas
    extra = f"{'paired':>10}" if paired else ""
    yield Line(f"{'metric':<{width}} {'A':>9} {'B':>9} {'B - A':>9}{extra}  what it is worth")
    for name, row in zip(names, rows, strict=True):
        extra = f"{signed(paired.get(row.name)):>10}" if paired else ""
        numbers = f"{valued(row.a):>9} {valued(row.b):>9} {signed(row.delta):>9}{extra}"
        p = f" ({p_said(row.significance.p)})" if row.significance and row.significance.p is not None else ""
        worth = f"  {row.says}{p}" if row.delta else ""
        yield Line(f"{name:<{width}} {numbers}{worth}", row.direction)


_MOODS = {ComparisonKind.WIN: 1, ComparisonKind.LOSS: -1, ComparisonKind.REGRESSION: -1}


def query_lines(comparison: QueryComparison, shown: QueryEvidence | None = None) -> Iterator[Line]:
    """A query on one line; with its stored results, the hits of run B below it."""
    kind = comparison.kind.value if comparison.kind else "query"
    ranks = f"{comparison.a_hit_rank or '–'}→{comparison.b_hit_rank or '–'}"
    note = f"  {printable(comparison.note)}" if comparison.note else ""
    mood = -1 if comparison.checks else _MOODS.get(comparison.kind, 0) if comparison.kind else 0
    yield Line(f"{kind:<11}{ranks:>6}  {printable(comparison.query_id)}{note}", mood)
    for hit in shown.b.hits[:HITS_SHOWN] if shown and shown.b else ():
        yield Line(f"  {'*' if shown and hit.rank in shown.correct_b else ' '} {hit.rank:>3}  {_hit(hit)}")
