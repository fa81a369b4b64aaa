"""What a query of `report.html` shows when it is opened: targets, hits and answers of both runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.model import Answer, Cited, GoldenQuery, Hit, QueryComparison, QueryResult
from pytest_kebab_eval.reports.html.markup import TEXT_SHOWN, escape_controls, short, short_any, truncate
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.scoring.facts import SHORTEST_CLAIM
from pytest_kebab_eval.spans import SPAN_FIELDS

HITS_SHOWN = 10
ANSWER_SHOWN = 2000
LIST_SHOWN = 40
MATCHES_SHOWN = 20  # of each rule in an answer

Json = dict[str, Any]


def query_details(
    query: GoldenQuery, evidence: QueryEvidence, comparison: QueryComparison | None, *, alone: bool
) -> Json:
    """The details of a query, for the script to show; a hit that both runs have is stored once."""
    hits = _HitTable()
    details: Json = {
        "b": _side(query, _side_b(evidence), hits),
        **_expected(query, evidence.expected, comparison),
    }
    if not alone:
        details["a"] = _side(query, _side_a(evidence), hits)
    if comparison is not None:
        details |= _moved(comparison)
    details |= _long_texts(query)
    details["hits"] = list(hits.numbers)
    return details


def brief_details(
    query: GoldenQuery, expected: tuple[str, ...], comparison: QueryComparison | None, briefs: Briefs
) -> Json:
    """The same for a query whose texts are left out: what was kept of its results when they were scored."""
    details = _expected(query, expected, comparison)
    if len(query.query) > TEXT_SHOWN or query.expected_answer is not None or query.xfail is not None:
        details |= _long_texts(query)
    details["brief"] = [briefs.a.of(query.id), briefs.b.of(query.id)]
    if comparison is not None and (comparison.lost or comparison.gained):
        details |= _moved(comparison)
    return details


def _moved(comparison: QueryComparison) -> Json:
    return {
        "lost": [short(target) for target in comparison.lost[:LIST_SHOWN]],
        "gained": [short(target) for target in comparison.gained[:LIST_SHOWN]],
    }


def _expected(query: GoldenQuery, expected: Sequence[str], comparison: QueryComparison | None) -> Json:
    """The targets; those that were lost or gained come first, so that the limit does not hide them."""
    moved = {*comparison.lost, *comparison.gained} if comparison else set()
    targets = sorted(expected, key=lambda target: target not in moved) if moved else expected
    details: Json = {"expected": [short(target) for target in targets[:LIST_SHOWN]], "line": query.line}
    if len(targets) > LIST_SHOWN:
        details["expected_more"] = len(targets) - LIST_SHOWN
    if query.can_be_answered is False:
        details["refuse"] = True
    return details


def _long_texts(query: GoldenQuery) -> Json:
    texts: Json = {}
    if len(query.query) > TEXT_SHOWN:
        texts["query"] = truncate(query.query, ANSWER_SHOWN)
    if query.expected_answer is not None:
        texts["expected_answer"] = truncate(query.expected_answer, TEXT_SHOWN)
    if query.xfail is not None:
        until = f" (until {query.xfail.until})" if query.xfail.until else ""
        texts["xfail"] = short(query.xfail.reason + until, TEXT_SHOWN)
    return texts


# -- one run's result ----------------------------------------------------------------------------


class _Side(NamedTuple):
    result: QueryResult | None
    readable: bool
    correct_ranks: tuple[int, ...]
    citations_resolve: tuple[bool, ...]


def _side_a(evidence: QueryEvidence) -> _Side:
    return _Side(evidence.a, evidence.readable_a, evidence.correct_a, evidence.cited_a)


def _side_b(evidence: QueryEvidence) -> _Side:
    return _Side(evidence.b, evidence.readable_b, evidence.correct_b, evidence.cited_b)


class _HitTable:
    """Numbers the hits that are shown; equal hits get the same number."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}

    def number(self, hit: Hit) -> int:
        """The hit's number; a new hit is added."""
        return self.numbers.setdefault(_hit(hit), len(self.numbers))


def _hit(hit: Hit) -> tuple[Any, ...]:
    text = hit.snippet if hit.snippet is not None else hit.text or ""
    return (
        short(hit.chunk_id or ""),
        short(hit.doc_path or hit.doc_id or ""),
        short(" > ".join(hit.heading_path or ())),
        *truncate(text, TEXT_SHOWN),
    )


def _score(hit: Hit) -> list[float]:
    return [] if hit.shown_score is None else [hit.shown_score]


def _side(query: GoldenQuery, side: _Side, hits: _HitTable) -> Json:
    result = side.result
    if result is None:
        return {"gone": "no result in this run" if side.readable else "the stored result cannot be read"}
    correct = set(side.correct_ranks)
    top = [hit for place, hit in enumerate(result.hits) if place < HITS_SHOWN or hit.rank in correct]
    top = top[: HITS_SHOWN + LIST_SHOWN]
    details: Json = {
        "hits": [[hit.rank, hits.number(hit), int(hit.rank in correct), *_score(hit)] for hit in top],
        "more": len(result.hits) - len(top),
    }
    if result.elapsed_ms is not None:
        details["ms"] = result.elapsed_ms
    if result.error is not None:
        details["error"] = truncate(result.error, TEXT_SHOWN)
    if result.timed_out:
        details["timed_out"] = True
    if result.answer is not None:
        details["answer"] = _answer(query, result.answer, side.citations_resolve)
    if result.judge is not None:
        details["judge"] = [result.judge.groundedness, result.judge.correctness]
    return details


# -- answers -------------------------------------------------------------------------------------


def _answer(query: GoldenQuery, answer: Answer, citations_resolve: Sequence[bool]) -> Json:
    resolved = [*citations_resolve, *[False] * len(answer.citations)]
    return {
        "grounded": answer.grounded,
        "why": short_any(answer.refusal_reason or "", TEXT_SHOWN),
        "text": _marked_pieces(query, answer.text[:ANSWER_SHOWN]),
        "cut": len(answer.text) if len(answer.text) > ANSWER_SHOWN else 0,
        "rules": list(_rules(query, answer)),
        "cites": [
            [short_any(cited.marker or "", 40), _cited(cited), int(resolves)]
            for cited, resolves in zip(answer.citations[:LIST_SHOWN], resolved, strict=False)
        ],
        "cites_more": max(len(answer.citations) - LIST_SHOWN, 0),
    }


def _rules(query: GoldenQuery, answer: Answer) -> Iterator[tuple[str, str, bool]]:
    """Each rule of the golden file: what the answer does, with which text, and whether it keeps the rule."""
    if query.can_be_answered is False:
        yield "should refuse, and", "answered" if answer.grounded else "refused", not answer.grounded
    elif query.can_be_answered and not answer.grounded:
        yield "should answer, and", "refused", False
    for text in query.must_contain[:LIST_SHOWN]:
        kept = text in answer.text
        yield "contains" if kept else "lacks", short(text), kept
    for text in query.forbidden[:LIST_SHOWN]:
        kept = text not in answer.text
        yield "avoids" if kept else "says, though forbidden,", short(text), kept
    claims = _claims(query)
    if claims:
        folded = answer.text.casefold()
        made = [claim for claim in claims if claim.casefold() in folded]
        yield "makes the claim" if made else "makes no claim such as", short((made or claims)[0]), bool(made)


def _claims(query: GoldenQuery) -> list[str]:
    return [claim for claim in query.claims if len(claim) >= SHORTEST_CLAIM]


class _Mark(NamedTuple):
    start: int
    end: int
    kind: str  # good | bad


def _marked_pieces(query: GoldenQuery, text: str) -> list[str | tuple[str, str]]:
    """The text in pieces; a piece that keeps or breaks a rule comes with `good` or `bad`."""
    pieces: list[str | tuple[str, str]] = []
    at = 0
    for start, end, kind in sorted(_marks(query, text)):
        if at < start:
            pieces.append(escape_controls(text[at:start]))
        pieces.append((escape_controls(text[start:end]), kind))
        at = end
    if at < len(text):
        pieces.append(escape_controls(text[at:]))
    return pieces


def _marks(query: GoldenQuery, text: str) -> list[_Mark]:
    """Where the text keeps or breaks a rule; of marks that overlap, a broken rule wins, then the first."""
    patterns = [(re.escape(forbidden), "bad") for forbidden in query.forbidden if forbidden]
    patterns += [(re.escape(needed), "good") for needed in query.must_contain if needed]
    patterns += [(f"(?i:{re.escape(claim)})", "good") for claim in _claims(query)]
    found = {
        _Mark(match.start(), match.end(), kind)
        for pattern, kind in patterns[:LIST_SHOWN]
        for match in itertools.islice(re.finditer(pattern, text), MATCHES_SHOWN)
    }
    marks: list[_Mark] = []
    for mark in sorted(found, key=lambda mark: (mark.kind == "good", mark.start, -mark.end)):
        if all(mark.end <= other.start or mark.start >= other.end for other in marks):
            marks.append(mark)
    return marks


def _cited(cited: Cited) -> str:
    """The path, section and span that a citation gives, or its chunk id."""
    span = cited.citation
    if span is None:
        return short(cited.chunk_id or "nothing")
    numbers = [getattr(span, name) for name in SPAN_FIELDS.get(span.kind, ())]
    place = "–".join(f"{number:g}" for number in numbers if number is not None)
    parts = (span.path or cited.chunk_id or "no path", span.section, f"{span.kind} {place}".strip())
    return short(" · ".join(part for part in parts if part))
