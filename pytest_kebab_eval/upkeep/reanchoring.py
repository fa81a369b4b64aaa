"""The expected chunks of a golden file -> the chunks of a newer chunker, by the rules that the gate has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import GoldenSet, Lock
from pytest_kebab_eval.golden.editing import Refused, rename_chunks
from pytest_kebab_eval.golden.lock import LockedChunk
from pytest_kebab_eval.matching.locations import Locations, Passages, find_locations
from pytest_kebab_eval.matching.modes import golden_versions
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import SPAN_OVERLAP, Matcher
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult, Run, Value
from pytest_kebab_eval.store import Database, in_order
from pytest_kebab_eval.text import brief, printable, shown_path
from pytest_kebab_eval.upkeep.locking import Locking, Placed, as_locked, locking_of, placed_in_lock, with_text


class NewChunks(Value, frozen=True):
    """What a query's expected chunks are by the newer chunker, and whether a text was needed to tell."""

    query_id: str
    line: int
    ids: dict[str, tuple[str, ...]]  # only those that change
    by_text: bool = False


class Undecided(Value, frozen=True):
    """A query that is left as it is, and why."""

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
    texts: bool = True,
) -> Reanchoring:
    """Decide for every query, and make the golden file's new text of its old one; nothing is written."""
    chunks = _Chunks(golden, *stored)
    anchors = _Anchors(golden, chunks, least_overlap)
    decided: dict[int, NewChunks | Undecided | None] = {
        number: anchors.decide(query) for number, query in enumerate(golden.queries)
    }
    changes = {
        number: found.ids for number, found in decided.items() if isinstance(found, NewChunks) and found.ids
    }
    try:
        edited = rename_chunks(text, golden.path.suffix.lower(), changes)
    except Refused as error:
        raise GoldenError(f"{shown_path(golden.path)} {error}") from None
    for number, reason in edited.refused.items():
        query = golden.queries[number]
        decided[number] = Undecided(query.id, query.line, reason)
    outcomes = [found for found in decided.values() if found is not None]
    changed = tuple(found for found in outcomes if isinstance(found, NewChunks) and found.ids)
    undecided = tuple(found for found in outcomes if isinstance(found, Undecided))
    locking = _locking(golden, chunks, changed, texts=texts)
    return Reanchoring(edited.text, locking, changed, undecided, chunks.in_index)


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
        indexed = [chunk for name in names if (chunk := self.database.corpus.chunk(name))]
        return {
            *(doc_id for query in golden.queries for doc_id in query.expected_doc_ids or ()),
            *(span.doc_id for query in golden.queries for span in query.expected_spans),
            *(chunk.doc_id for chunk in (*locked, *indexed) if chunk.doc_id),
        }

    def _add_indexed(self, doc_ids: set[str]) -> bool:
        """Add the chunks of these documents in the index; whether there are any of this chunker."""
        corpus, found = self.database.corpus, False
        for chunk_id in corpus.chunk_ids_in(doc_ids):
            chunk = corpus.chunk(chunk_id)
            if chunk and chunk.chunker_version == self.run.chunker_version:
                hit = self.all.get(chunk_id) or Hit(rank=1, chunk_id=chunk_id)
                self.all[chunk_id] = msgspec.structs.replace(hit, doc_id=chunk.doc_id)
                found = True
        return found

    def near(self, query: GoldenQuery, doc_ids: Iterable[str]) -> list[Hit]:
        """The chunks of these documents, and those that the query found, in the order of the documents."""
        found = [hit for doc_id in dict.fromkeys(doc_ids) for hit in self._by_document.get(doc_id, ())]
        found += [hit for hit in self.by_query.get(query.id, ()) if hit.chunk_id]
        distinct = {hit.chunk_id: self.all[hit.chunk_id or ""] for hit in found}
        return sorted(distinct.values(), key=self._position)

    def _position(self, hit: Hit) -> tuple[str, float, str]:
        extents = self.passages.extents(hit)
        return hit.doc_id or "", extents[0].left if extents else 0.0, hit.chunk_id or ""


# -- what becomes of a query -----------------------------------------------------------------------


_Judged = tuple[Hit, Ranking]


class _Anchors:
    """Decides what the expected chunks of queries are now."""

    def __init__(self, golden: GoldenSet, chunks: _Chunks, least_overlap: float) -> None:
        self._chunks = chunks
        self._lock = golden.lock
        versions = golden_versions(golden, [chunks.database])
        self._is_of_run = not versions or versions == {chunks.run.chunker_version}
        probes = msgspec.structs.replace(golden, queries=tuple(map(_probe, golden.queries)))
        self._matcher = Matcher(MatchMode.FALLBACK, _locations(probes, chunks, versions), least_overlap)

    def decide(self, query: GoldenQuery) -> NewChunks | Undecided | None:
        """The new chunks of a query; None if it names no chunks."""
        wanted = [name for name in _probe(query).expected_chunk_ids if not self._is_current(name)]
        found = {name: self._find(query, name) for name in wanted}
        for name, (sure, only_document) in found.items():
            if not sure:
                reason = _why_not(name, self._chunks.run, only_document=bool(only_document))
                return Undecided(query.id, query.line, reason)
        ids = {name: tuple(hit.chunk_id or "" for hit, _ in sure) for name, (sure, _) in found.items()}
        by_text = any(ranking.by_text for sure, _ in found.values() for _, ranking in sure)
        changed = {name: new for name, new in ids.items() if new != (name,)}
        return NewChunks(query.id, query.line, changed, by_text) if wanted else None

    def _is_current(self, name: str) -> bool:
        """Whether an id is one of the newer chunker already, as far as can be told."""
        if name not in self._chunks.all:
            return False
        return self._is_of_run or (self._lock is not None and name not in self._lock.chunks)

    def _find(self, query: GoldenQuery, name: str) -> tuple[list[_Judged], list[_Judged]]:
        """The chunks that are correct for an expected one, and those that are so by their document alone."""
        only = msgspec.structs.replace(_probe(query), id=f"{query.id}\0{name}", expected_chunk_ids=(name,))
        targets = self._matcher.targets(only)
        judged = [
            (hit, targets.judge([hit], self._chunks.passages))
            for hit in self._chunks.near(query, targets.doc_ids)
        ]
        correct = [(hit, ranking) for hit, ranking in judged if ranking.correct]
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


def _locations(golden: GoldenSet, chunks: _Chunks, versions: set[str | None]) -> Locations:
    """Where the old chunks are: hits of the newest run of their chunker are asked, too."""
    database = chunks.database
    for run in in_order(database.runs()):
        known = database.with_config(run)
        is_old = known.chunker_version in versions if versions else run.run_id != chunks.run.run_id
        if is_old and known.chunker_version != chunks.run.chunker_version:
            return find_locations(golden, [(database, known)])
    version = next(iter(versions)) if len(versions) == 1 else None
    return Locations(golden.lock, [database.corpus], version=version)


def _why_not(name: str, run: Run, *, only_document: bool) -> str:
    chunk, where = f"expects the chunk '{brief(name, 60)}'", f"run {printable(run.run_id)}"
    if only_document:
        return f"{chunk}, of which only the document is known: give its span or text, or lock the golden file"
    return f"{chunk}, which no chunk of {where} has half of"


# -- the lock --------------------------------------------------------------------------------------


def _locking(golden: GoldenSet, chunks: _Chunks, changed: Sequence[NewChunks], *, texts: bool) -> Locking:
    """A lock of the new chunks; of queries that are left as they are, it keeps what the old one has."""
    new = {query.query_id: query.ids for query in changed}
    wanted = dict.fromkeys(
        name
        for query in golden.queries
        for old in _probe(query).expected_chunk_ids
        for name in new.get(query.id, {}).get(old, (old,))
    )
    found = dict(_placed(wanted, golden.lock or Lock(), chunks, texts=texts))
    locking = locking_of(sorted(wanted), found)
    return msgspec.structs.replace(
        locking, lock=msgspec.structs.replace(locking.lock, chunker_version=chunks.run.chunker_version)
    )


def _placed(
    wanted: Iterable[str], old: Lock, chunks: _Chunks, *, texts: bool
) -> Iterator[tuple[str, Placed]]:
    version = chunks.run.chunker_version
    for name in sorted(wanted):
        hit = chunks.all.get(name)
        placed = Placed(_locked(hit, chunks), version, "new") if hit else placed_in_lock(name, old)
        if placed:
            yield name, with_text([placed], texts=texts)


def _locked(hit: Hit, chunks: _Chunks) -> LockedChunk:
    """What is known of a new chunk: of the index, else of the hit."""
    corpus, text = chunks.database.corpus, chunks.passages.text(hit)
    if chunks.passages.has_chunk(hit.chunk_id or ""):
        return LockedChunk(hit.doc_id, corpus.spans(hit.chunk_id or ""), text)
    said = as_locked(hit) or LockedChunk(hit.doc_id)
    return msgspec.structs.replace(said, text=text)
