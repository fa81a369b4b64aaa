"""Golden query + hits -> which targets were found, at which rank (section 3.1 of the contract).

`Matcher` turns a golden query into `Targets`; judging a ranking is then a walk over its hits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.matching.locations import Located, Passages, Places
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, Support, Value
from pytest_kebab_eval.spans import Box, describe, extent, overlap

SPAN_OVERLAP = 0.5
_ROUNDING = 1e-9  # half of 0.6 is half, whatever floats make of it


class Match(NamedTuple):
    """A target that a hit satisfies, and whether only by being in the right document."""

    target: int
    by_document: bool = False


Find = Callable[[Hit, Passages], Sequence[Match]]


class Targets(msgspec.Struct, frozen=True):
    """What a query wants found."""

    ids: tuple[str, ...]
    gains: tuple[float, ...]
    by: str  # chunk | anchor | span | document | nothing
    find: Find | None = None  # None: a chunk's id is all that counts
    doc_ids: Sequence[str] = ()
    paths: frozenset[str] = frozenset()
    for_metrics: bool = True  # false: for the per-query comparison alone


class Ranking(Value, frozen=True):
    """A list of hits, judged."""

    found: tuple[int | None, ...]  # for each target, the rank of its first matching hit
    correct: tuple[int, ...]  # the ranks of the correct hits, ascending
    by_document: bool = False  # a hit counted only for being in the right document

    @property
    def first(self) -> int | None:
        """The rank of the first correct hit."""
        return self.correct[0] if self.correct else None


def judge(targets: Targets, hits: Sequence[Hit], passages: Passages) -> Ranking:
    """Which hits are correct, and where each target was found first."""
    find = targets.find
    if find is None:
        return _judge_by_id(targets.ids, hits)
    found: list[int | None] = [None] * len(targets.ids)
    correct = []
    by_document = False
    for hit in hits:
        matches = find(hit, passages)
        if matches:
            correct.append(hit.rank)
            for target, only_document in matches:
                by_document = by_document or only_document
                if found[target] is None:
                    found[target] = hit.rank
    return Ranking(tuple(found), tuple(correct), by_document)


def _judge_by_id(ids: tuple[str, ...], hits: Sequence[Hit]) -> Ranking:
    """The same for the usual case, in a tighter loop."""
    wanted: Container[str | None] = ids if len(ids) <= FEW else frozenset(ids)
    found = [(hit.chunk_id, hit.rank) for hit in hits if hit.chunk_id in wanted]
    return Ranking(first_ranks(ids, found), tuple([rank for _, rank in found]))


FEW = 8  # up to here, looking through a tuple is faster than hashing


def first_ranks(ids: Sequence[str], found: Sequence[tuple[str | None, int]]) -> tuple[int | None, ...]:
    """For each id, the first rank that it was found at."""
    if not found:
        return (None,) * len(ids)
    first = dict(reversed(found))
    return tuple([first.get(one) for one in ids])


class Matcher:
    """Makes the targets of queries, in one mode."""

    def __init__(
        self, mode: MatchMode, places: Places | None = None, least_overlap: float = SPAN_OVERLAP
    ) -> None:
        self.mode = mode
        self._places = places or Places()
        self._least_overlap = least_overlap
        self._known: dict[str, Targets] = {}  # of queries whose targets take some finding

    def targets(self, query: GoldenQuery) -> Targets:
        """The targets of a query: its chunks, else its anchors, else its documents."""
        ids = query.expected_chunk_ids
        if ids and self.mode is MatchMode.EXACT and not query.expected_spans and not query.relevance:
            return _chunk_targets(query, ids, (1.0,) * len(ids))  # as usual
        known = self._known.get(query.id)
        if known is None:
            known = self._known[query.id] = self._targets(query)
        return known

    def _targets(self, query: GoldenQuery) -> Targets:
        chunks = gains_of(query)
        own_spans = [one for one in query.expected_spans if one.chunk_id is None]
        if query.gold_supports and (self.mode is MatchMode.FALLBACK or not (chunks or own_spans)):
            return _anchor_targets(query.gold_supports)
        if chunks or own_spans:
            if self.mode is MatchMode.EXACT and not own_spans:
                return _chunk_targets(query, tuple(chunks), tuple(chunks.values()))
            return self._located_targets(query, chunks)
        if query.expected_doc_ids:
            return _document_targets(query.expected_doc_ids)
        return _NOTHING

    def _located_targets(self, query: GoldenQuery, chunks: dict[str, float]) -> Targets:
        """Chunks by their place (by their id in exact mode), and spans that are targets of their own."""
        exact = self.mode is MatchMode.EXACT
        places: list[tuple[frozenset[str], tuple[Box, ...]]] = []
        index: dict[str, Match] = {}
        for number, chunk_id in enumerate(chunks):
            located = Located() if exact else self._places.locate(query, chunk_id)
            docs = {located.doc_id} if located.doc_id else set(query.expected_doc_ids or ())
            places.append((frozenset(docs - {None}), located.extents))
            if exact:
                index[chunk_id] = Match(number)
        ids, gains = list(chunks), list(chunks.values())
        for one in query.expected_spans:
            if one.chunk_id is None:
                place = extent(one.span)
                places.append((frozenset({one.doc_id}), (place,) if place else ()))
                ids.append(f"{one.doc_id} {describe(one.span)}")
                gains.append(1.0)
        first_place = len(chunks) if exact else 0

        def find(hit: Hit, passages: Passages) -> Sequence[Match]:
            found = self._by_place(hit, passages, ids, places, first_place)
            return [index[hit.chunk_id], *found] if hit.chunk_id in index else found

        unlocated = any(not found for _, found in places[first_place:])
        return Targets(
            ids=tuple(ids),
            gains=tuple(gains),
            by="document" if unlocated else "chunk" if exact and chunks else "span",
            find=find,
            doc_ids=tuple({*(query.expected_doc_ids or ())}.union(*(docs for docs, _ in places))),
        )

    def _by_place(
        self,
        hit: Hit,
        passages: Passages,
        ids: Sequence[str],
        places: list[tuple[frozenset[str], tuple[Box, ...]]],
        start: int,
    ) -> list[Match]:
        matches = []
        ours: tuple[Box, ...] | None = None
        for number in range(start, len(places)):
            docs, theirs = places[number]
            if not docs and not theirs and hit.chunk_id == ids[number]:
                matches.append(Match(number))  # nobody knows where it is, but this is it
            if hit.doc_id not in docs:
                continue
            if ours is None:
                ours = passages.extents(hit)
            share = overlap(ours, theirs)
            if share is None:
                matches.append(Match(number, by_document=True))
            elif share >= self._least_overlap - _ROUNDING:
                matches.append(Match(number))
        return matches


def gains_of(query: GoldenQuery) -> dict[str, float]:
    """The expected chunks with their gains: 1, unless `relevance` says otherwise; 0 is not a target."""
    gains = dict.fromkeys(query.expected_chunk_ids, 1.0)
    if not query.relevance:
        return gains
    gains.update(query.relevance)
    return {chunk_id: gain for chunk_id, gain in gains.items() if gain > 0}


# -- targets that need no place ------------------------------------------------------------------

_NO_MATCH: tuple[Match, ...] = ()
_NOTHING = Targets((), (), "nothing", lambda hit, passages: _NO_MATCH, for_metrics=False)


def _chunk_targets(query: GoldenQuery, ids: tuple[str, ...], gains: tuple[float, ...]) -> Targets:
    return Targets(ids, gains, "chunk", None, query.expected_doc_ids or ())


def _document_targets(doc_ids: Sequence[str]) -> Targets:
    index = {doc_id: (Match(number),) for number, doc_id in enumerate(doc_ids)}
    return Targets(
        ids=tuple(doc_ids),
        gains=(1.0,) * len(doc_ids),
        by="document",
        find=lambda hit, passages: index.get(hit.doc_id or "", _NO_MATCH),
        doc_ids=doc_ids,
        for_metrics=False,
    )


def _anchor_targets(supports: Sequence[Support]) -> Targets:
    anchors = [
        (support.path, normal_heading(support.heading), [one.casefold() for one in support.snippets])
        for support in supports
    ]

    def find(hit: Hit, passages: Passages) -> Sequence[Match]:
        return [
            Match(number)
            for number, (path, heading, snippets) in enumerate(anchors)
            if hit.doc_path == path
            and normal_heading(" > ".join(hit.heading_path or ())).startswith(heading)
            and (not snippets or _has_snippet(passages.text(hit), snippets))
        ]

    return Targets(
        ids=_anchor_ids(supports),
        gains=(1.0,) * len(supports),
        by="anchor",
        find=find,
        paths=frozenset(support.path for support in supports),
    )


def _anchor_ids(supports: Sequence[Support]) -> tuple[str, ...]:
    """Path and heading; numbered where that alone does not tell two supports apart."""
    names = [f"{one.path} > {one.heading}" if one.heading else one.path for one in supports]
    return tuple(
        name if names.count(name) == 1 else f"{name} (support {number})" for number, name in enumerate(names)
    )


def _has_snippet(text: str | None, snippets: Sequence[str]) -> bool:
    """Any snippet in the text; a text that is not at hand cannot speak against the hit."""
    if text is None:
        return True
    folded = text.casefold()
    return any(snippet in folded for snippet in snippets)


_DELIMITER = re.compile(r"\s*>\s*")
_MARKS = re.compile(r"(?:^|(?<= > ))#+\s*")


def normal_heading(heading: str) -> str:
    """A heading path as text that compares: single spaces, ` > ` between levels, no `#` marks."""
    spaced = " ".join(heading.split())
    return _MARKS.sub("", _DELIMITER.sub(" > ", spaced)).strip()
