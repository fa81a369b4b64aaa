"""What the queries of `report.html` show when they are opened: targets, hits and answers of both runs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import msgspec
from markupsafe import Markup

from pytest_kebab_eval.comparing.evidence import KnownPassage, QueryEvidence
from pytest_kebab_eval.comparing.rules import counted_claims, made_claims
from pytest_kebab_eval.model import (
    Answer,
    Cited,
    ComparisonKind,
    GoldenQuery,
    Hit,
    Judge,
    QueryComparison,
    QueryResult,
    Value,
)
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.failures import FailedQuery
from pytest_kebab_eval.reports.html import (
    TEXT_SHOWN,
    Packing,
    escape_controls,
    escape_script,
    packed,
    short,
    short_any,
    truncate,
)
from pytest_kebab_eval.reports.html.query_index import QUERIES_A_BLOCK, Evidence, PageQueries, QueryIndex
from pytest_kebab_eval.spans import SPAN_FIELDS
from pytest_kebab_eval.text.folding import contains, fold_text

HITS_SHOWN = 10
ANSWER_SHOWN = 2000
LIST_SHOWN = 40
REASON_SHOWN = 1000
MATCHES_SHOWN = 20  # of each rule in an answer
PAGE_SIZE = 4_000_000  # bytes, for what is not the list of queries, which is always whole
CHARTS_SIZE = 300_000  # of them for all but queries
LEAST_SIZE = 1_000_000  # for details, however long the list is
IN_FULL_AT_LEAST = 300  # queries with the texts of their hits and answers, if they are not too large
IN_FULL_AT_MOST = 1_000  # which is how many are read again, where so many changed
BLOCK_SIZE = 400_000  # bytes of a block, before it is packed; what comes after them is in brief

Json = dict[str, Any]


# -- all queries, within the size of a page ------------------------------------------------------


class DetailBlocks:
    """Script blocks with what queries show when they are opened; the first is plain, the others are packed.

    The first queries of the list are in full, their results read again; the others have what was kept of
    them, with ids by their numbers, as one more block lists them. Where that is too much for a page, the end
    of the list has none.
    """

    def __init__(self, index: QueryIndex, queries: PageQueries) -> None:
        self._index = index
        self._briefs = queries.briefs
        self._read = queries.read
        self.in_full = min(max(index.changed, IN_FULL_AT_LEAST), IN_FULL_AT_MOST, len(index.listed))
        self._room = max(PAGE_SIZE - CHARTS_SIZE - len(index.packed_rows), LEAST_SIZE)
        self._room_in_full = self._room // 2
        self._names = _Names()

    def __iter__(self) -> Iterator[Markup]:
        for number, details in enumerate(self._blocks()):
            script = _script(number, details)
            size = len(script.encode())
            if size > self._room:
                break
            self._room -= size + self._names.pack()
            self._room_in_full -= size
            yield Markup(script)  # noqa: S704  escaped, or base64
        yield Markup(_packed_script("names", self._names.packing.finish()))  # noqa: S704  base64

    def _blocks(self) -> Iterator[bytes]:
        listed = self._index.listed
        with closing(self._read(listed[: self.in_full])) as evidence:
            for start in range(0, len(listed), QUERIES_A_BLOCK):
                names = self._names if start else None  # the first block is there where none is unpacked
                yield self._encode(listed[start : start + QUERIES_A_BLOCK], evidence, names)

    def _encode(self, queries: list[GoldenQuery], evidence: Evidence, names: _Names | None) -> bytes:
        """The details of a block as JSON; in full as long as there are results and room for them."""
        encoded: list[bytes] = []
        size = 0
        for query in queries:
            comparison = self._index.comparisons.get(query.id)
            found = next(evidence, None) if self._room_in_full > 0 else None
            if found is not None and size < BLOCK_SIZE:
                details = query_details(query, found[1], comparison, alone=self._index.alone)
            else:
                details = brief_details(query, comparison, self._briefs)
                if names is not None:
                    names.number(details)
            if reason := self._index.reason(query.id):
                shown = (
                    FailedQuery(query, comparison, found[1]).reason(reason)
                    if comparison and found
                    else reason
                )
                details["why"] = short(shown, REASON_SHOWN)
            if command := self._index.review(query.id):
                details["review"] = short(command, TEXT_SHOWN)
            encoded.append(msgspec.json.encode(details))
            size += len(encoded[-1])
        return b"[%b]" % b",".join(encoded)


def _script(number: int, details: bytes) -> str:
    if number == 0:
        return f'<script type="application/json" id="details-0">{escape_script(details.decode())}</script>\n'
    return _packed_script(f"details-{number}", packed([details]))


def _packed_script(name: str, text: str) -> str:
    return f'<script type="text/plain" id="{name}">{text}</script>\n'


class _Names(dict[str, int]):
    """The ids in the packed blocks, each with its number: where they are hashes, they are most of a page."""

    def __init__(self) -> None:
        self.packing = Packing()
        self.packing.add(b"[]")  # so that there is something to unpack
        self._new: list[str] = []

    def __missing__(self, name: str) -> int:
        self._new.append(name)
        self[name] = number = len(self)
        return number

    def number(self, details: Json) -> None:
        """Have brief details name ids by their numbers, and B's hits not at all if they are those of A."""
        details["expected"] = list(map(self.__getitem__, details["expected"]))
        a, b = details["brief"]
        if a and b and a[0] == b[0]:
            b[0] = None
        for result in (a, b):
            if result and result[0]:
                result[0] = list(map(self.__getitem__, result[0]))

    def pack(self) -> int:
        """Pack those that are new; how many bytes more they take in the page."""
        size = self.packing.add(msgspec.json.encode(self._new)) if self._new else 0
        self._new.clear()
        return size * 4 // 3


# -- one query -----------------------------------------------------------------------------------


def query_details(
    query: GoldenQuery, evidence: QueryEvidence, comparison: QueryComparison | None, *, alone: bool
) -> Json:
    """The details of a query, for the script to show; a hit that both runs have is stored once."""
    shown = _PassagesShown(query, evidence if _has_changed(comparison) else evidence.without_targets())
    b = _ResultShown(evidence.b, evidence.readable_b, evidence.correct_b, evidence.cited_b)
    details = {"b": _result(query, b, shown), **_expected(query, evidence.expected, comparison)}
    if not alone:
        a = _ResultShown(evidence.a, evidence.readable_a, evidence.correct_a, evidence.cited_a)
        details["a"] = _result(query, a, shown)
    if comparison is not None:
        details |= _moved(comparison) | _forbidden(comparison)
        if comparison.checks or comparison.lost:
            shown.add_targets(details["expected"])
    details |= _long_texts(query)
    details["hits"] = list(shown.numbers)
    return details


def brief_details(query: GoldenQuery, comparison: QueryComparison | None, briefs: Briefs) -> Json:
    """The same for a query whose texts are left out: what was kept of its results when they were scored."""
    details = _expected(query, briefs.expected(query), comparison)
    details |= _long_texts(query)
    details["brief"] = [briefs.a.of(query.id), briefs.b.of(query.id)]
    if comparison is not None and (comparison.lost or comparison.gained):
        details |= _moved(comparison)
    return details | _forbidden(comparison)


def _has_changed(comparison: QueryComparison | None) -> bool:
    """Whether hits are shown around what they share with a target, which takes time."""
    if comparison is None:
        return False
    return bool(comparison.kind is not ComparisonKind.DRAW or comparison.checks or comparison.lost)


def _moved(comparison: QueryComparison) -> Json:
    return {
        "lost": [short(target) for target in comparison.lost[:LIST_SHOWN]],
        "gained": [short(target) for target in comparison.gained[:LIST_SHOWN]],
    }


def _forbidden(comparison: QueryComparison | None) -> Json:
    """The ranks of B's forbidden hits, if it has any."""
    hits = comparison.forbidden if comparison else ()
    return {"forbidden": [hit.rank for hit in hits[:LIST_SHOWN]]} if hits else {}


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


class _ResultShown(Value, frozen=True):
    """One run's side of the evidence."""

    result: QueryResult | None
    readable: bool
    correct_ranks: tuple[int, ...]
    citations_resolve: tuple[bool, ...]


class _PassagesShown:
    """The passages of a query that the page has, each once: id, document, heading and text."""

    def __init__(self, query: GoldenQuery, evidence: QueryEvidence) -> None:
        self.numbers: dict[tuple[str, ...], int] = {}
        self._of_hits: dict[tuple[object, ...], int] = {}  # those of A are mostly those of B
        self._query = query
        self._evidence = evidence

    def number(self, hit: Hit) -> int:
        """The number of a hit, which is that of an equal one."""
        known = (hit.chunk_id, hit.doc_id, hit.doc_path, hit.heading_path, hit.snippet, hit.text)
        if known not in self._of_hits:
            passage = self._evidence.show_hit(self._query, hit, TEXT_SHOWN)
            self._of_hits[known] = self._add(hit.chunk_id or "", passage)
        return self._of_hits[known]

    def add_targets(self, names: Sequence[str]) -> None:
        """Have the targets that are no hit among them, as far as more than their id is known."""
        known = {entry[0] for entry in self.numbers}
        for target in self._evidence.passages:
            name = short(target.id)
            if name in names and name not in known and (target.text or target.where):
                self._add(target.id, self._evidence.show_target(self._query, target.id, TEXT_SHOWN))

    def _add(self, name: str, passage: KnownPassage) -> int:
        entry = (short(name), short(passage.document), short(passage.heading), passage.text)
        return self.numbers.setdefault(entry, len(self.numbers))


def _result(query: GoldenQuery, shown: _ResultShown, passages: _PassagesShown) -> Json:
    result = shown.result
    if result is None:
        return {"gone": "no result in this run" if shown.readable else "the stored result cannot be read"}
    correct = set(shown.correct_ranks)
    top = [hit for place, hit in enumerate(result.hits) if place < HITS_SHOWN or hit.rank in correct]
    top = top[: HITS_SHOWN + LIST_SHOWN]
    hits: list[list[float]] = []  # rank, number, whether it is correct, perhaps a score
    for hit in top:
        score = [] if hit.shown_score is None else [hit.shown_score]
        hits.append([hit.rank, passages.number(hit), int(hit.rank in correct), *score])
    details: Json = {"hits": hits, "more": len(result.hits) - len(top)}
    if result.elapsed_ms is not None:
        details["ms"] = result.elapsed_ms
    if result.error is not None:
        details["error"] = truncate(result.error, TEXT_SHOWN)
    if result.timed_out:
        details["timed_out"] = True
    if result.answer is not None:
        details["answer"] = _answer(query, result.answer, shown.citations_resolve)
    if result.judge is not None:
        details["judge"] = [result.judge.groundedness, result.judge.correctness]
        details["judged"] = list(_judged(result.judge))
    return details


def _judged(judge: Judge) -> Iterator[tuple[str, str]]:
    """What a judge said of claims, and what it was given."""
    for words, value in (
        ("unsupported", judge.unsupported_claims),
        ("supported", judge.supported_claims),
        ("judge's input", judge.input),
    ):
        if value:
            is_list = isinstance(value, list) and all(isinstance(claim, str) for claim in value)
            yield words, short_any("; ".join(value) if is_list else value, TEXT_SHOWN)


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
        kept = contains(answer.text, text)
        yield "contains" if kept else "lacks", short(text), kept
    for text in query.forbidden[:LIST_SHOWN]:
        kept = not contains(answer.text, text)
        yield "avoids" if kept else "says, though forbidden,", short(text), kept
    claims = counted_claims(query)
    if claims:
        made = [*made_claims(query, answer.text)]
        yield "makes the claim" if made else "makes no claim such as", short((made or claims)[0]), bool(made)


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


def _marks(query: GoldenQuery, text: str) -> list[tuple[int, int, str]]:
    """Where the text keeps or breaks a rule; of marks that overlap, a broken rule wins, then the first."""
    rules = [(_places(text, forbidden), "bad") for forbidden in query.forbidden if forbidden]
    rules += [(_places(text, needed), "good") for needed in query.must_contain if needed]
    rules += [(_places(text, claim, re.IGNORECASE), "good") for claim in counted_claims(query)]
    found = {
        (start, end, kind)
        for places, kind in rules[:LIST_SHOWN]
        for start, end in itertools.islice(places, MATCHES_SHOWN)
    }
    marks: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(found, key=lambda mark: (mark[2] == "good", mark[0], -mark[1])):
        if all(end <= other_start or start >= other_end for other_start, other_end, _ in marks):
            marks.append((start, end, kind))
    return marks


def _places(text: str, wanted: str, flags: int = 0) -> Iterator[tuple[int, int]]:
    """Where a text says something, whatever spaces and marks are between its words."""
    words = map(re.escape, fold_text(wanted).split() or [wanted])
    return (match.span() for match in re.finditer(r"[\s|*`]+".join(words), text, flags))


def _cited(cited: Cited) -> str:
    """The path, section and span that a citation gives, or its chunk id."""
    span = cited.citation
    if span is None:
        return short(cited.chunk_id or "nothing")
    numbers = [getattr(span, name) for name in SPAN_FIELDS.get(span.kind, ())]
    place = "–".join(f"{number:g}" for number in numbers if number is not None)
    parts = (span.path or cited.chunk_id or "no path", span.section, f"{span.kind} {place}".strip())
    return short(" · ".join(part for part in parts if part))
