"""The expected chunks of a golden file -> the chunks of a newer chunker, by the rules that the gate has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

import msgspec

from pytest_kebab_eval.comparing.evidence import KnownPassage, TargetPassages, passage_of
from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import GoldenSet, Lock, LockedChunk
from pytest_kebab_eval.golden.edit import Refused, rename_chunks
from pytest_kebab_eval.matching.locations import (
    ExpectedLocation,
    Locations,
    Passages,
    find_locations,
    golden_versions,
)
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import SPAN_OVERLAP, Matcher
from pytest_kebab_eval.matching.text import letters_of
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult, Run, Value
from pytest_kebab_eval.spans import extents
from pytest_kebab_eval.store import Database, in_order
from pytest_kebab_eval.text import brief, printable, shown_path
from pytest_kebab_eval.upkeep.locking import (
    FoundChunk,
    Locking,
    as_locked,
    found_in_hits,
    found_in_index,
    found_in_lock,
    locking_of,
    with_text,
)


class NewChunks(Value, frozen=True):
    """What a query's expected chunks are by the newer chunker, and whether a text was needed to tell."""

    query_id: str
    line: int
    ids: dict[str, tuple[str, ...]]  # only those that change
    by_text: bool = False
    old: dict[str, KnownPassage] = msgspec.field(default_factory=dict)  # by id
    new: dict[str, KnownPassage] = msgspec.field(default_factory=dict)


class Undecided(Value, frozen=True):
    """A query that is left as it is, and why; the reason continues a sentence that starts with it."""

    query_id: str
    line: int
    reason: str


class Reanchoring(Value, frozen=True):
    """The new text of a golden file and its new lock, and what was decided of each query."""

    text: str
    locking: Locking
    changed: tuple[NewChunks, ...]
    undecided: tuple[Undecided, ...]
    in_index: bool  # the chunks are those of the index; else only those that the run's hits have


def reanchor(
    golden: GoldenSet,
    text: str,
    stored: tuple[Database, Run],
    *,
    least_overlap: float = SPAN_OVERLAP,
) -> Reanchoring:
    """Decide for every query, and make the golden file's new text of its old one; nothing is written."""
    chunks = _Chunks(golden, *stored)
    anchors = _Anchors(golden, chunks, least_overlap)
    decisions = _Decisions(golden, anchors)
    edited = decisions.edit(text)
    changed = tuple(found for found in decisions.found if isinstance(found, NewChunks) and found.ids)
    undecided = tuple(found for found in decisions.found if isinstance(found, Undecided))
    locking = _locking(decisions, chunks)
    return Reanchoring(edited, locking, changed, undecided, chunks.in_index)


# -- the newer chunker's chunks --------------------------------------------------------------------


class _Chunks:
    """The chunks of a run: those of its chunker in the index, and those that its hits have."""

    def __init__(self, golden: GoldenSet, database: Database, run: Run) -> None:
        self.database = database
        self.run = run
        self.passages = Passages(database.corpus, run.chunker_version)
        self.by_query: dict[str, tuple[Hit, ...]] = {}
        self.all: dict[str, Hit] = {}
        for result in database.results(run.run_id):
            if isinstance(result, QueryResult):
                self.by_query[result.query_id] = result.hits
                self.all.update((hit.chunk_id, hit) for hit in result.hits if hit.chunk_id)
        self.in_index = self._add_indexed(
            {hit.doc_id or "" for hit in self.all.values()} | self._documents(golden)
        )
        self._by_document: dict[str, list[Hit]] = {}
        for hit in self.all.values():
            self._by_document.setdefault(hit.doc_id or "", []).append(hit)

    def _documents(self, golden: GoldenSet) -> set[str]:
        """The documents that the golden file or its lock file names, and those of the expected chunks."""
        locked = golden.lock.chunks.values() if golden.lock else ()
        names = {name for query in golden.queries for name in _probe(query).expected_chunk_ids}
        indexed = [chunk for name in names for chunk in self.database.corpus.chunks_of_any_version(name)]
        return {
            *(doc_id for query in golden.queries for doc_id in query.expected_doc_ids or ()),
            *(span.doc_id for query in golden.queries for span in query.expected_spans),
            *(chunk.doc_id for chunk in (*locked, *indexed) if chunk.doc_id),
        }

    def _add_indexed(self, doc_ids: set[str]) -> bool:
        """Add the chunks of these documents in the index; whether there are any of this chunker."""
        corpus, found = self.database.corpus, False
        for chunk_id in corpus.chunk_ids_in(doc_ids):
            chunk = corpus.chunk(chunk_id, self.run.chunker_version)
            if chunk and chunk.chunker_version == self.run.chunker_version:
                hit = self.all.get(chunk_id) or Hit(rank=1, chunk_id=chunk_id)
                self.all[chunk_id] = msgspec.structs.replace(hit, doc_id=chunk.doc_id)
                found = True
        return found

    def near(self, query: GoldenQuery, target: ExpectedLocation) -> list[Hit]:
        """The chunks of the target's documents, and those that the query found, in their documents' order."""
        ids = {hit.chunk_id or "" for hit in self.by_query.get(query.id, ()) if hit.chunk_id}
        for doc_id in {*target.doc_ids, *(query.expected_doc_ids or ())}:
            ids.update(hit.chunk_id or "" for hit in self._by_document.get(doc_id, ()))
        return sorted((self.all[chunk_id] for chunk_id in ids), key=self._position)

    @cached_property
    def can_be_found(self) -> bool:
        """Whether any chunk has a text or a span."""
        return any(self.passages.text(hit) or self.passages.extents(hit) for hit in self.all.values())

    def _position(self, hit: Hit) -> tuple[str, float, str]:
        extents = self.passages.extents(hit)
        return hit.doc_id or "", extents[0].left if extents else 0.0, hit.chunk_id or ""


# -- what becomes of a query -----------------------------------------------------------------------


_JudgedHit = tuple[Hit, Ranking]
_Found = tuple[list[_JudgedHit], list[_JudgedHit]]
"""The chunks that are correct for an expected one, and those that are so by their document alone."""


class _Anchors:
    """Decides what the expected chunks of queries are now."""

    def __init__(self, golden: GoldenSet, chunks: _Chunks, least_overlap: float) -> None:
        self._chunks = chunks
        self._lock = golden.lock
        versions = golden_versions(golden, [chunks.database])
        self.old_versions = versions - {chunks.run.chunker_version}
        self._is_of_run = not versions or versions == {chunks.run.chunker_version}
        probes = msgspec.structs.replace(golden, queries=tuple(map(_probe, golden.queries)))
        self._locations, self.old_run = _locations(probes, chunks, versions)
        self._matcher = Matcher(MatchMode.FALLBACK, self._locations, least_overlap)
        self._found: dict[tuple[str, str], _Found] = {}

    def decide(self, query: GoldenQuery) -> NewChunks | Undecided | None:
        """The new chunks of a query; None if it names no chunks."""
        wanted = self._old_names(query)
        found = {name: self._find(query, name) for name in wanted}
        for name, (sure, only_document) in found.items():
            if not sure:
                reason = self._why_not(name, only_document=bool(only_document))
                return Undecided(query.id, query.line, reason)
        ids = {name: tuple(hit.chunk_id or "" for hit, _ in sure) for name, (sure, _) in found.items()}
        by_text = any(ranking.by_text for sure, _ in found.values() for _, ranking in sure)
        changed = {name: new for name, new in ids.items() if new != (name,)}
        for name, new in changed.items():
            if reason := self._untrue(query, name, new):
                return Undecided(query.id, query.line, reason)
        return (
            NewChunks(query.id, query.line, changed, by_text, *self._passages(query, changed))
            if wanted
            else None
        )

    def _passages(
        self, query: GoldenQuery, changed: Mapping[str, Sequence[str]]
    ) -> tuple[dict[str, KnownPassage], dict[str, KnownPassage]]:
        """What is known of the old chunks, and of the new ones, so that a person can compare them."""
        known = TargetPassages(self._locations)
        new = {name: self._chunks.all[name] for name in chain.from_iterable(changed.values())}
        whole = {name: msgspec.structs.replace(hit, snippet=None) for name, hit in new.items()}
        return (
            {name: known.chunk(query, name) for name in changed},
            {name: passage_of(self._chunks.passages.with_all_known(hit)) for name, hit in whole.items()},
        )

    def _why_not(self, name: str, *, only_document: bool) -> str:
        chunk = f"expects the chunk '{brief(name, 60)}'"
        where = f"run {printable(self._chunks.run.run_id)}"
        if not self._chunks.can_be_found:
            return f"{chunk}, but {where} stores neither texts nor spans to find it by"
        if only_document:
            known = "of which only the document is known"
            return f"{chunk}, {known}: give its span or text, or lock the golden file"
        return f"{chunk}, which no chunk of {where} has half of"

    def left_names(self, query: GoldenQuery) -> set[str]:
        """The chunks of a query that is left which are not the same chunk by the newer chunker."""
        found = {name: self._find(query, name)[0] for name in self._old_names(query)}
        return {name for name, sure in found.items() if [hit.chunk_id for hit, _ in sure] != [name]}

    def _old_names(self, query: GoldenQuery) -> list[str]:
        return [name for name in _probe(query).expected_chunk_ids if not self._is_current(name)]

    def _is_current(self, name: str) -> bool:
        """Whether an id is one of the newer chunker already, as far as can be told."""
        if name not in self._chunks.all:
            return False
        chunk = self._lock.chunks.get(name) if self._lock else None
        if self._lock and chunk and (self._lock.chunker_version, chunk.chunker_version) != (None, None):
            return self._lock.version_of(name) == self._chunks.run.chunker_version
        return self._is_of_run or (self._lock is not None and chunk is None)

    def _untrue(self, query: GoldenQuery, name: str, new: Sequence[str]) -> str:
        """What the golden file says of a chunk and would not be true of the new one; empty if all would."""
        spans = [expected for expected in query.expected_spans if expected.chunk_id == name]
        hit = self._chunks.all[new[0]] if len(new) == 1 else None
        old, text = self._locations.find(query, name).text, self._chunks.passages.text(hit) if hit else None
        letters = letters_of(old or "")
        if letters and letters == letters_of(text or ""):
            return ""
        if name in query.expected_texts:
            return f"has expected_texts of '{brief(name, 60)}', which only a person can rewrite"
        expected_extents = extents(expected.span for expected in spans)
        if spans and (hit is None or self._chunks.passages.extents(hit) != expected_extents):
            return f"has expected_spans of '{brief(name, 60)}', which only a person can rewrite"
        return ""

    def _find(self, query: GoldenQuery, name: str) -> _Found:
        if (query.id, name) not in self._found:
            self._found[query.id, name] = self._look_for(query, name)
        return self._found[query.id, name]

    def _look_for(self, query: GoldenQuery, name: str) -> _Found:
        only = msgspec.structs.replace(
            _probe(query), id=f"{query.id}\0{name}", expected_chunk_ids=(name,), alternatives=()
        )
        targets = self._matcher.targets(only)
        near = self._chunks.near(query, self._locations.expected(only, name))
        passages = self._chunks.passages
        ranked = [msgspec.structs.replace(hit, rank=rank) for rank, hit in enumerate(near, 1)]
        # Together, since a short chunk alone is no evidence for a longer one.
        hits = [near[rank - 1] for rank in targets.judge(ranked, passages).correct]
        correct = [(hit, targets.judge([hit], passages)) for hit in hits]
        return (
            [(hit, ranking) for hit, ranking in correct if not ranking.by_document],
            [(hit, ranking) for hit, ranking in correct if ranking.by_document],
        )


def _probe(query: GoldenQuery) -> GoldenQuery:
    """A query that looks for all chunks that this one names, also those that are no targets."""
    return msgspec.structs.replace(
        query,
        expected_chunk_ids=tuple(dict.fromkeys([*query.expected_chunk_ids, *query.relevance])),
        relevance={},
        gold_supports=(),
        expected_spans=tuple(span for span in query.expected_spans if span.chunk_id is not None),
    )


def _locations(golden: GoldenSet, chunks: _Chunks, versions: set[str | None]) -> tuple[Locations, Run | None]:
    """Where the old chunks are, and the newest run of their chunker, whose hits are asked, too."""
    database = chunks.database
    for run in in_order(database.runs()):
        known = database.with_config(run)
        is_old = known.chunker_version in versions if versions else run.run_id != chunks.run.run_id
        if is_old and known.chunker_version != chunks.run.chunker_version:
            return find_locations(golden, [(database, known)]), known
    version = next(iter(versions)) if len(versions) == 1 else None
    return Locations(golden.lock, [database.corpus], version=version), None


# -- all queries together ----------------------------------------------------------------------------


class _Decisions:
    """What becomes of each query, such that no id stands for chunks of two chunkers."""

    def __init__(self, golden: GoldenSet, anchors: _Anchors) -> None:
        self.golden = golden
        self.anchors = anchors
        self.found = [anchors.decide(query) for query in golden.queries]
        self._left = {
            number: anchors.left_names(golden.queries[number])
            for number, found in enumerate(self.found)
            if isinstance(found, Undecided)
        }

    def edit(self, text: str) -> str:
        """The golden file with the new ids; a query that cannot be edited is left."""
        while True:
            self._leave_clashes()
            new = ((n, found.ids) for n, found in enumerate(self.found) if isinstance(found, NewChunks))
            changes = {number: ids for number, ids in new if ids}
            try:
                edited = rename_chunks(text, self.golden.path.suffix.lower(), changes)
            except Refused as error:
                raise GoldenError(f"{shown_path(self.golden.path)} {error}") from None
            if not edited.refused:
                return edited.text
            for number, reason in edited.refused.items():
                self._leave(number, reason)

    @property
    def left(self) -> set[str]:
        """The chunks of the older chunker that queries still have."""
        return set[str]().union(*self._left.values())

    def names(self, number: int) -> list[str]:
        found = self.found[number]
        new = found.ids if isinstance(found, NewChunks) else {}
        old = _probe(self.golden.queries[number]).expected_chunk_ids
        return [name for chunk_id in old for name in new.get(chunk_id, (chunk_id,))]

    def _leave_clashes(self) -> None:
        """Leave the queries that would get an id that one which is left has for another chunk."""
        changed = True
        while changed and (left := self.left):
            changed = False
            for number, found in enumerate(self.found):
                clash = left.intersection(self.names(number)) if isinstance(found, NewChunks) else ()
                if clash:
                    changed = True
                    said = f"would have the chunk '{brief(min(clash), 60)}', an id by which a query that is"
                    self._leave(number, f"{said} left as it is means a chunk of the older chunker")

    def _leave(self, number: int, reason: str) -> None:
        query = self.golden.queries[number]
        self.found[number] = Undecided(query.id, query.line, reason)
        self._left[number] = self.anchors.left_names(query)


# -- the lock --------------------------------------------------------------------------------------


def _locking(decisions: _Decisions, chunks: _Chunks) -> Locking:
    """A lock of the new chunks; of queries that are left as they are, it keeps what the old one has."""
    wanted = sorted({name for number in range(len(decisions.found)) for name in decisions.names(number)})
    to_lock = _ChunksToLock(decisions, chunks)
    locking = locking_of(wanted, {name: with_text([to_lock.find(name)]) for name in wanted})
    return msgspec.structs.replace(
        locking, lock=msgspec.structs.replace(locking.lock, chunker_version=chunks.run.chunker_version)
    )


class _ChunksToLock:
    """Where the chunks are that queries will have: by the newer chunker, or, if they are left, the older."""

    def __init__(self, decisions: _Decisions, chunks: _Chunks) -> None:
        self._chunks = chunks
        self._left = decisions.left
        self._lock = decisions.golden.lock or Lock()
        old_run, versions = decisions.anchors.old_run, decisions.anchors.old_versions
        self._in_hits = found_in_hits(self._left, chunks.database, old_run) if old_run else {}
        self._old_version = next(iter(versions)) if len(versions) == 1 else None
        if not versions and old_run:
            self._old_version = old_run.chunker_version

    def find(self, name: str) -> FoundChunk:
        corpus, version = self._chunks.database.corpus, self._chunks.run.chunker_version
        hit = self._chunks.all.get(name) if name not in self._left else None
        if hit is not None:
            locked = as_locked(hit) or LockedChunk(hit.doc_id)
            if self._chunks.passages.has_chunk(name):
                locked = LockedChunk(hit.doc_id, corpus.spans(name, version))
            text = self._chunks.passages.text(hit)
            return FoundChunk(msgspec.structs.replace(locked, text=text), version, "new")
        indexed = found_in_index(name, corpus, self._old_version)
        if indexed and indexed.version != self._old_version:
            indexed = None
        old = found_in_lock(name, self._lock) or indexed or self._in_hits.get(name)
        old = old or FoundChunk(LockedChunk(), self._old_version, "nowhere")
        if old.version == version:
            return old
        chunk = msgspec.structs.replace(old.chunk, chunker_version=old.version or "")
        return old._replace(chunk=chunk)
