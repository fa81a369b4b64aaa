"""A golden query -> `Targets`: what it wants found, and the strategy that decides which hits are correct."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from pytest_kebab_eval.matching.locations import ExpectedLocation, Locations, Passages
from pytest_kebab_eval.matching.strategies import (
    ByAnchor,
    ByAnswer,
    ByChunk,
    ByDocument,
    Coarser,
    Ranking,
    Strategy,
    first_of_each,
)
from pytest_kebab_eval.model import (
    ExpectedSpan,
    ForbiddenHit,
    GoldenQuery,
    Hit,
    MatchMode,
    Support,
    Value,
    gains_of,
    members_of,
)
from pytest_kebab_eval.spans import describe, extents
from pytest_kebab_eval.store import Corpus
from pytest_kebab_eval.text import brief

SPAN_OVERLAP = 0.5
_FOUND_TOGETHER = 2_000  # queries whose expected chunks are read by one statement


class Forbidden(Value, frozen=True):
    """What a query must not find, by id."""

    chunk_ids: frozenset[str]
    doc_ids: frozenset[str]

    def has(self, hit: Hit) -> bool:
        return hit.chunk_id in self.chunk_ids or hit.doc_id in self.doc_ids

    def among(self, hits: Iterable[Hit], k: int) -> tuple[ForbiddenHit, ...]:
        """The forbidden hits in the top k, each by the id that forbids it."""
        return tuple(
            ForbiddenHit(hit.rank, (hit.doc_id if hit.doc_id in self.doc_ids else hit.chunk_id) or "")
            for hit in hits
            if hit.rank <= k and self.has(hit)
        )


class Targets(msgspec.Struct, frozen=True):
    """What a query wants found."""

    ids: tuple[str, ...]
    gains: tuple[float, ...]
    matched_by: str  # one of MATCHED_BY, or nothing
    strategy: Strategy
    doc_ids: Sequence[str] = ()
    paths: frozenset[str] = frozenset()
    has_chunk_targets: bool = True  # false: for the per-query comparison alone
    wrong_ids: frozenset[str] = frozenset()  # chunks that somebody judged, and that are no targets
    forbidden: Forbidden | None = None
    documents: Sequence[str] = ()  # that are expected beside chunks: they may be lost in part
    members: tuple[tuple[int, ...], ...] = ()  # where there are alternatives: those of each target, by number
    to_cite: tuple[ToCite, ...] = ()  # what an answer must cite

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:
        """Which hits are correct, and where each target, or any alternative of it, was found first."""
        ranking = self.strategy.judge(hits, passages)
        if not self.members:
            return ranking
        return msgspec.structs.replace(ranking, found=first_of_each(ranking.found, self.members))


ToCite = tuple[Targets, "tuple[int, ...]"]
"""Targets, and the numbers of those that an answer must cite."""


class Matcher:
    """Makes the targets of queries, in one mode."""

    def __init__(
        self,
        mode: MatchMode,
        locations: Locations | None = None,
        least_overlap: float = SPAN_OVERLAP,
    ) -> None:
        self.mode = mode
        self._is_exact = mode is MatchMode.EXACT
        self.locations = locations or Locations()
        self._least_overlap = least_overlap
        self._known: dict[str, Targets] = {}  # of queries whose targets take some finding
        self.coarser: dict[str, Coarser] = {}
        self._queries: Iterable[GoldenQuery] = ()

    def coarsen(self, coarser: Mapping[str, Coarser]) -> None:
        """From now on, match these targets of queries by text, or by document."""
        for query_id, ways in coarser.items():
            self.coarser[query_id] = (*self.coarser.get(query_id, ()), *ways)
            self._known.pop(query_id, None)

    def will_judge(self, queries: Iterable[GoldenQuery]) -> None:
        """Have what the index says of the chunks of these queries read together."""
        self._queries = queries

    def find_targets(self) -> None:
        """Find the targets of these queries, reading what the index says of many of them together."""
        unknown = [] if self._is_exact else [query for query in self._queries if query.id not in self._known]
        for first in range(0, len(unknown), _FOUND_TOGETHER):
            some = unknown[first : first + _FOUND_TOGETHER]
            for corpus in self.locations.corpora:
                corpus.read_ahead(chunk_id for query in some for chunk_id in gains_of(query))
            for query in some:
                self.targets(query)

    def look_in(self, corpora: Sequence[Corpus]) -> None:
        """From now on, look chunks up there: the databases that it was made with may be closed."""
        self.locations = self.locations._replace(corpora=corpora)

    def target_ids(self, query: GoldenQuery) -> tuple[str, ...]:
        """The ids of a query's targets."""
        return query.expected_chunk_ids if self._is_plain(query) else self.targets(query).ids

    def targets(self, query: GoldenQuery) -> Targets:
        """The targets of a query: its chunks, else its anchors, its expected answer, its documents."""
        if self._is_plain(query):
            ids, doc_ids = query.expected_chunk_ids, query.expected_doc_ids or ()
            return Targets(ids, (1.0,) * len(ids), "chunk", ByChunk(ids), doc_ids, documents=doc_ids)
        known = self._known.get(query.id)
        if known is None:
            known = self._with_labels(query)
            if query.must_cite is not None:
                known = msgspec.structs.replace(known, to_cite=tuple(self._to_cite(query, known)))
            self._known[query.id] = known
        return known

    def _to_cite(self, query: GoldenQuery, targets: Targets) -> Iterator[ToCite]:
        """What an answer must cite; the golden file counts supports first, then what else it expects."""
        if query.must_cite == "all":
            yield targets, tuple(range(len(targets.ids)))
            return
        supports = len(query.gold_supports)
        of_supports = tuple(place for place in query.must_cite or () if place < supports)
        if of_supports:
            yield _anchor_targets(query.gold_supports), of_supports
        others = tuple(place - supports for place in query.must_cite or () if place >= supports)
        if others and supports:
            targets = self._with_labels(msgspec.structs.replace(query, gold_supports=()))
        if others:
            yield targets, others

    def _is_plain(self, query: GoldenQuery) -> bool:
        """Whether the targets are chunks that are known by their ids, and nothing else is said of hits."""
        return (
            self._is_exact
            and query.expected_chunk_ids != ()
            and not query.expected_spans
            and not query.relevance
            and not query.forbidden_chunk_ids
            and not query.forbidden_doc_ids
            and not query.alternatives
            and not query.doc_alternatives
            and query.must_cite is None
        )

    def _with_labels(self, query: GoldenQuery) -> Targets:
        """The targets of a query, alternatives as one, and what else the golden file says of hits."""
        targets = self._targets(query)
        doc_ids, documents = query.expected_doc_ids, targets.documents
        if doc_ids and targets.has_chunk_targets:
            documents = [doc_ids[places[0]] for places in members_of(doc_ids, query.doc_alternatives)]
        chunks, docs = query.forbidden_chunk_ids, query.forbidden_doc_ids
        targets = msgspec.structs.replace(
            targets,
            documents=documents,
            wrong_ids=frozenset(query.relevance).difference(gains_of(query)),
            forbidden=Forbidden(frozenset(chunks), frozenset(docs)) if chunks or docs else None,
        )
        alternatives = query.alternatives if targets.has_chunk_targets else query.doc_alternatives
        is_joined = alternatives and targets.matched_by not in ("anchor", "answer")
        return _joined(targets, alternatives) if is_joined else targets

    def _targets(self, query: GoldenQuery) -> Targets:
        chunks, doc_ids = gains_of(query), query.expected_doc_ids or ()
        own_spans = [expected for expected in query.expected_spans if expected.chunk_id is None]
        if query.gold_supports and not (self._is_exact and (chunks or own_spans)):
            return _anchor_targets(query.gold_supports)
        if chunks and self._is_exact and not own_spans:
            ids = tuple(chunks)
            return Targets(ids, tuple(chunks.values()), "chunk", ByChunk(ids), doc_ids)
        if chunks or own_spans:
            return self._located_targets(query, chunks, own_spans)
        if query.expected_answer is not None:
            by_answer = ByAnswer(query.expected_answer, doc_ids)
            return Targets((brief(query.expected_answer, 60),), (1.0,), "answer", by_answer, doc_ids)
        if not doc_ids:
            return _NOTHING
        gains = (1.0,) * len(doc_ids)
        return Targets(doc_ids, gains, "document", ByDocument(doc_ids), doc_ids, has_chunk_targets=False)

    def _located_targets(
        self, query: GoldenQuery, chunks: Mapping[str, float], own_spans: Sequence[ExpectedSpan]
    ) -> Targets:
        """Chunks by where they are (by their id in exact mode), and spans that are targets of their own."""
        from pytest_kebab_eval.matching.by_location import ByLocation  # with all that compares texts

        exact = self._is_exact
        spans = [
            ExpectedLocation(frozenset({expected.doc_id}), extents([expected.span])) for expected in own_spans
        ]
        if exact:
            expected_chunks = [ExpectedLocation(chunk_id=chunk_id) for chunk_id in chunks]
        else:
            expected_chunks = [self.locations.expected(query, chunk_id) for chunk_id in chunks]
        located = [*expected_chunks, *spans]
        for number, way in self.coarser.get(query.id, ()):
            located[number] = located[number].without(way)
        doc_ids = {*(query.expected_doc_ids or ())}.union(*(target.doc_ids for target in located))
        return Targets(
            ids=(*chunks, *(f"{expected.doc_id} {describe(expected.span)}" for expected in own_spans)),
            gains=(*chunks.values(), *[1.0] * len(own_spans)),
            matched_by="chunk" if exact and chunks else _matched_by(located),
            strategy=ByLocation(located, self._least_overlap, asks_coarser=not exact),
            doc_ids=tuple(doc_ids),
        )


def _matched_by(targets: Sequence[ExpectedLocation]) -> str:
    """The coarsest way in which any of the targets is known."""
    unlocated = [target for target in targets if not target.extents]
    if not unlocated:
        return "span"
    return "document" if any(target.text is None for target in unlocated) else "text"


def _joined(targets: Targets, alternatives: Sequence[tuple[str, ...]]) -> Targets:
    """The targets with alternatives as one, which has the name of the first of them and the largest gain."""
    members = members_of(targets.ids, alternatives)
    return msgspec.structs.replace(
        targets,
        ids=tuple(targets.ids[places[0]] for places in members),
        gains=tuple(max(targets.gains[place] for place in places) for places in members),
        members=members,
    )


_NOTHING = Targets((), (), "nothing", ByChunk(()), has_chunk_targets=False)


def _anchor_targets(supports: Sequence[Support]) -> Targets:
    """Targets by path and heading; numbered where that alone does not tell two supports apart."""
    names = [
        f"{support.path} > {support.heading}" if support.heading else support.path for support in supports
    ]
    return Targets(
        ids=tuple(
            name if names.count(name) == 1 else f"{name} (support {number})"
            for number, name in enumerate(names)
        ),
        gains=(1.0,) * len(supports),
        matched_by="anchor",
        strategy=ByAnchor(supports),
        paths=frozenset(support.path for support in supports),
    )
