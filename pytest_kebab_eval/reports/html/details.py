"""What a query of `report.html` shows when it is opened: targets, hits and answers of both runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.model import Answer, Cited, GoldenQuery, Hit, QueryComparison, QueryResult
from pytest_kebab_eval.reports.html.text import TEXT_SHOWN, cut, inert, short
from pytest_kebab_eval.scoring.facts import SHORTEST_CLAIM
from pytest_kebab_eval.spans import SPAN_FIELDS

HITS_SHOWN = 10
ANSWER_SHOWN = 2000
LIST_SHOWN = 40


def query_details(
    query: GoldenQuery, shown: QueryEvidence, comparison: QueryComparison | None, *, alone: bool
) -> dict[str, Any]:
    """What a query shows when it is opened; a hit that both runs have is there once."""
    hits: dict[tuple[Any, ...], int] = {}
    moved = {*comparison.lost, *comparison.gained} if comparison else set()
    expected = sorted(shown.expected, key=lambda one: one not in moved)
    details: dict[str, Any] = {
        "b": _side(query, shown.b, shown.readable_b, shown.correct_b, shown.cited_b, hits),
        "expected": [short(one) for one in expected[:LIST_SHOWN]],
        "expected_more": max(len(expected) - LIST_SHOWN, 0),
        "refuse": query.can_be_answered is False,
        "line": query.line,
    }
    if not alone:
        details["a"] = _side(query, shown.a, shown.readable_a, shown.correct_a, shown.cited_a, hits)
    if comparison is not None:
        details["lost"] = [short(one) for one in comparison.lost[:LIST_SHOWN]]
        details["gained"] = [short(one) for one in comparison.gained[:LIST_SHOWN]]
    if len(query.query) > TEXT_SHOWN:
        details["query"] = cut(query.query, ANSWER_SHOWN)
    if query.expected_answer is not None:
        details["expected_answer"] = cut(query.expected_answer, TEXT_SHOWN)
    if query.xfail is not None:
        until = f" (until {query.xfail.until})" if query.xfail.until else ""
        details["xfail"] = short(query.xfail.reason + until, TEXT_SHOWN)
    details["hits"] = list(hits)
    return details


def _side(
    query: GoldenQuery,
    result: QueryResult | None,
    readable: bool,
    correct: Sequence[int],
    cited: Sequence[bool],
    hits: dict[tuple[Any, ...], int],
) -> dict[str, Any]:
    if result is None:
        return {"gone": "no result in this run" if readable else "the stored result cannot be read"}
    right = set(correct)
    kept = [hit for place, hit in enumerate(result.hits) if place < HITS_SHOWN or hit.rank in right]
    side: dict[str, Any] = {
        "hits": [
            [hit.rank, hits.setdefault(_hit(hit), len(hits)), int(hit.rank in right)]
            for hit in kept[: HITS_SHOWN + LIST_SHOWN]
        ],
        "more": len(result.hits) - len(kept[: HITS_SHOWN + LIST_SHOWN]),
    }
    if result.elapsed_ms is not None:
        side["ms"] = result.elapsed_ms
    if result.error is not None:
        side["error"] = cut(result.error, TEXT_SHOWN)
    if result.timed_out:
        side["timed_out"] = True
    if result.answer is not None:
        side["answer"] = _answer(query, result.answer, cited)
    if result.judge is not None:
        side["judge"] = [result.judge.groundedness, result.judge.correctness]
    return side


def _hit(hit: Hit) -> tuple[Any, ...]:
    text = hit.snippet if hit.snippet is not None else hit.text or ""
    shown, length = cut(text, TEXT_SHOWN)
    return (
        short(hit.chunk_id or ""),
        short(hit.doc_path or hit.doc_id or ""),
        short(" > ".join(hit.heading_path or ())),
        shown,
        length,
    )


# -- answers -------------------------------------------------------------------------------------


def _answer(query: GoldenQuery, answer: Answer, cited: Sequence[bool]) -> dict[str, Any]:
    shown, length = _marked(query, answer.text)
    resolved = [*cited, *[False] * len(answer.citations)]
    return {
        "grounded": answer.grounded,
        "why": short(answer.refusal_reason, TEXT_SHOWN) if answer.refusal_reason else "",
        "text": shown,
        "cut": length,
        "rules": list(_rules(query, answer)),
        "cites": [
            [short(one.marker or "", 40), _cited(one), int(leads)]
            for one, leads in zip(answer.citations[:LIST_SHOWN], resolved, strict=False)
        ],
        "cites_more": max(len(answer.citations) - LIST_SHOWN, 0),
    }


def _rules(query: GoldenQuery, answer: Answer) -> Iterator[tuple[str, str, bool]]:
    """What the answer does about each rule of the golden file, and whether that keeps it."""
    if query.can_be_answered is False:
        yield "should refuse, and", "answered" if answer.grounded else "refused", not answer.grounded
    elif query.can_be_answered and not answer.grounded:
        yield "should answer, and", "refused", False
    for one in query.must_contain[:LIST_SHOWN]:
        kept = one in answer.text
        yield "contains" if kept else "lacks", short(one), kept
    for one in query.forbidden[:LIST_SHOWN]:
        kept = one not in answer.text
        yield "avoids" if kept else "says, though forbidden,", short(one), kept
    claims = [one for one in query.claims if len(one) >= SHORTEST_CLAIM]
    if claims:
        folded = answer.text.casefold()
        found = [one for one in claims if one.casefold() in folded]
        yield (
            "makes the claim" if found else "makes no claim such as",
            short((found or claims)[0]),
            bool(found),
        )


def _marked(query: GoldenQuery, text: str) -> tuple[list[str | tuple[str, str]], int]:
    """The answer in pieces, of which those that keep or break a rule are marked; and its length, if cut."""
    kept = text[:ANSWER_SHOWN]
    wanted = [(re.escape(one), "bad") for one in query.forbidden if one]
    wanted += [(re.escape(one), "good") for one in query.must_contain if one]
    wanted += [(f"(?i:{re.escape(one)})", "good") for one in query.claims if len(one) >= SHORTEST_CLAIM]
    found = sorted(
        {
            (match.start(), match.end(), mark)
            for pattern, mark in wanted[:LIST_SHOWN]
            for match in itertools.islice(re.finditer(pattern, kept), 20)
        },
        key=lambda one: (one[2] == "good", one[0], -one[1]),
    )
    marks: list[tuple[int, int, str]] = []
    for start, end, mark in found:
        if all(end <= other[0] or start >= other[1] for other in marks):
            marks.append((start, end, mark))
    pieces: list[str | tuple[str, str]] = []
    at = 0
    for start, end, mark in sorted(marks):
        if at < start:
            pieces.append(inert(kept[at:start]))
        pieces.append((inert(kept[start:end]), mark))
        at = end
    if at < len(kept):
        pieces.append(inert(kept[at:]))
    return pieces, len(text) if len(text) > ANSWER_SHOWN else 0


def _cited(cited: Cited) -> str:
    """Where a citation points to, as far as it says."""
    span = cited.citation
    if span is None:
        return short(cited.chunk_id or "nothing")
    numbers = [getattr(span, name) for name in SPAN_FIELDS.get(span.kind, ())]
    place = "–".join(f"{number:g}" for number in numbers if number is not None)
    parts = (span.path or cited.chunk_id or "no path", span.section, f"{span.kind} {place}".strip())
    return short(" · ".join(part for part in parts if part))
