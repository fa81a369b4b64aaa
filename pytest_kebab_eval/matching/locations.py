"""Where hits and expected chunks are and what they say; and whether that, or their chunk id, decides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.golden import GoldenSet, Lock, LockedChunk
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult, Run, Span, gains_of
from pytest_kebab_eval.spans import Box, extent, extents
from pytest_kebab_eval.store import Chunk, Corpus, Database, IndexCoverage
from pytest_kebab_eval.text.folding import is_same_path


class Location(NamedTuple):
    """What is known of where an expected chunk is, and what it says."""

    doc_id: str | None = None
    extents: tuple[Box, ...] = ()
    text: str | None = None

    def or_else(self, other: Location) -> Location:
        """With what the other knows where this knows nothing; a document and its span stay together."""
        text = self.text or other.text or None
        if self.extents:
            return self._replace(text=text)
        doc_id = (other.doc_id or self.doc_id) if other.extents else (self.doc_id or other.doc_id)
        return Location(doc_id, other.extents, text)


class ExpectedLocation(NamedTuple):
    """A target as hits are compared with it: it is in one of these documents, there, and says this."""

    doc_ids: frozenset[str] = frozenset()
    extents: tuple[Box, ...] = ()
    text: str | None = None
    chunk_id: str | None = None

    @property
    def has_document(self) -> bool:
        """Whether its document is known."""
        return bool(self.doc_ids) and self.doc_ids != {self.chunk_id}

    def without(self, way: str) -> ExpectedLocation:
        """The same, to be known by its text, or by its document alone."""
        return self._replace(extents=(), text=self.text if way == "text" else None)


class Passages:
    """Location and text of a run's hits: from the run's own corpus, else from the hit itself."""

    def __init__(self, corpus: Corpus | None = None, version: str | None = None) -> None:
        self._corpus = corpus if corpus and not corpus.is_empty else None
        self._version = version

    def _chunk(self, chunk_id: str | None) -> Chunk | None:
        """The chunk that the run's chunker has under that id."""
        return self._corpus.chunk(chunk_id, self._version) if self._corpus and chunk_id else None

    def coverage(self) -> IndexCoverage | None:
        """How much there is of the index of the run's chunker."""
        return self._corpus.coverage(self._version) if self._corpus else None

    def extents(self, hit: Hit) -> tuple[Box, ...]:
        """The hit's span: that of its chunk, else that of its citation."""
        chunk = self._chunk(hit.chunk_id)
        return (chunk.extents if chunk else ()) or citation_extents(hit)

    def text(self, hit: Hit) -> str | None:
        """The hit's whole text; None if it is neither stored nor in the corpus."""
        if hit.text is not None or self._corpus is None or not hit.chunk_id:
            return hit.text
        return self._corpus.text(hit.chunk_id, self._version)

    def is_at(self, hit: Hit, path: str) -> bool:
        """Whether the hit is in a document of that path: its own, else that of its document or chunk."""
        if hit.doc_path or self._corpus is None:
            return hit.doc_path == path or is_same_path(hit.doc_path or "", path)
        doc_ids = self._corpus.documents.at(path)
        return bool(doc_ids) and self._document(hit) in doc_ids

    def path(self, hit: Hit) -> str | None:
        """The path of the hit's document, if it is known."""
        if hit.doc_path or self._corpus is None:
            return hit.doc_path or None
        return self._corpus.documents.path_of(self._document(hit) or "")

    def _document(self, hit: Hit) -> str | None:
        chunk = None if has_document(hit) else self._chunk(hit.chunk_id)
        return chunk.doc_id if chunk else hit.doc_id

    def heading_path(self, hit: Hit) -> Sequence[str]:
        """The headings above the hit: its own, else those of its chunk."""
        if hit.heading_path or self._corpus is None or not hit.chunk_id:
            return hit.heading_path or ()
        return self._corpus.heading_path(hit.chunk_id, self._version)

    def with_all_known(self, hit: Hit) -> Hit:
        """The hit with the path, headings and text that the corpus knows, where it has none of its own."""
        if self._corpus is None:
            return hit
        return msgspec.structs.replace(
            hit, doc_path=self.path(hit), heading_path=tuple(self.heading_path(hit)), text=self.text(hit)
        )

    def resolves(self, citation: Span) -> bool | None:
        """Whether the corpus has what is cited; None if there is no corpus to ask."""
        if self._corpus is None or not self._corpus.has_documents:
            return None
        return self._corpus.resolves(citation, self._version)

    def has_chunk(self, chunk_id: str) -> bool:
        """Whether the corpus has the chunk."""
        return self._chunk(chunk_id) is not None

    def document_at(self, path: str) -> str | None:
        """The document of a path, as far as the corpus knows."""
        return next(iter(self._corpus.documents.at(path)), None) if self._corpus else None

    def paths_of(self, doc_ids: Iterable[str], chunk_ids: Iterable[str]) -> frozenset[str]:
        """Where the documents are, else those of the chunks, as far as the corpus knows."""
        if self._corpus is None:
            return frozenset()
        chunks = map(self._chunk, chunk_ids)
        docs = doc_ids or {chunk.doc_id for chunk in chunks if chunk and chunk.doc_id}
        return frozenset(path for doc_id in docs if (path := self._corpus.documents.path_of(doc_id)))

    @cached_property
    def without_texts(self) -> Passages:
        """The same, for what has no text of its own to be asked about."""
        return _WithoutTexts(self._corpus, self._version)


class _WithoutTexts(Passages):
    def text(self, hit: Hit) -> None:  # noqa: ARG002
        return None


class Locations(NamedTuple):
    """Where the expected chunks are and what they say, from the first source that knows."""

    lock: Lock | None = None
    corpora: Sequence[Corpus] = ()
    stored: Mapping[str, Location] = {}  # from hits
    version: str | None = None  # of the chunker that the expected ids are of

    def find(self, query: GoldenQuery, chunk_id: str) -> Location:
        """What is known of a chunk; without extents, only its document is known, if that."""
        found = Location()
        for source in self._sources(query, chunk_id):
            found = found.or_else(source)
            if found.extents and found.text:
                break
        return found

    def _sources(self, query: GoldenQuery, chunk_id: str) -> Iterator[Location]:
        """The golden file, its lock file, the index, stored hits."""
        given = [expected for expected in query.expected_spans if expected.chunk_id == chunk_id]
        yield Location(
            given[0].doc_id if given else None,
            extents(expected.span for expected in given),
            query.expected_texts.get(chunk_id),
        )
        if locked := self._locked(chunk_id):
            yield Location(locked.doc_id, extents(locked.spans), locked.text)
            if self.is_left(chunk_id):
                return
        for corpus in self.corpora:
            if chunk := corpus.chunk(chunk_id, self.version):
                yield Location(chunk.doc_id, chunk.extents, corpus.text(chunk_id, self.version))
        if chunk_id in self.stored:
            yield self.stored[chunk_id]

    def expected(self, query: GoldenQuery, chunk_id: str) -> ExpectedLocation:
        """An expected chunk, as hits are compared with it."""
        found = self.find(query, chunk_id)
        doc_ids = [found.doc_id] if found.doc_id else query.expected_doc_ids or ()
        own_id = "" if self.is_left(chunk_id) else chunk_id  # which may be another's by now
        return ExpectedLocation(frozenset(doc_ids), found.extents, found.text, own_id)

    def is_left(self, chunk_id: str) -> bool:
        """Whether a re-anchoring left the chunk: in the index and in hits its id may be another's by now."""
        locked = self._locked(chunk_id)
        return locked is not None and locked.chunker_version is not None

    def _locked(self, chunk_id: str) -> LockedChunk | None:
        return self.lock.chunks.get(chunk_id) if self.lock else None

    def needs_hits(self, query: GoldenQuery, chunk_id: str) -> bool:
        """Whether only stored hits may know where the chunk is."""
        if any(expected.chunk_id == chunk_id for expected in query.expected_spans):
            return False
        if locked := self._locked(chunk_id):
            return not locked.spans and not self.is_left(chunk_id)
        found = (corpus.chunk(chunk_id, self.version) for corpus in self.corpora)
        return not any(chunk and chunk.extents for chunk in found)


def has_document(hit: Hit) -> bool:
    """Whether a hit says what document it is from; where that is not known, its own id is stored."""
    return bool(hit.doc_id) and hit.doc_id != hit.chunk_id


def citation_extents(hit: Hit) -> tuple[Box, ...]:
    """Where a hit says that it is from."""
    box = extent(hit.citation) if hit.citation else None
    return (box,) if box else ()


# -- finding them --------------------------------------------------------------------------------

OpenRun = tuple[Database, Run]
"""A run, and the open database that holds it."""


def find_locations(golden: GoldenSet, runs: Sequence[OpenRun]) -> Locations:
    """Where the expected chunks are; the stored hits are read only where nothing better knows."""
    corpora = [database.corpus for database in dict.fromkeys(database for database, _ in runs)]
    known = Locations(golden.lock, corpora, version=_version_of_expected(golden, runs))
    for corpus in corpora:
        corpus.locate_ahead(_expected_ids(golden))
    unlocated = {
        chunk_id
        for query in golden.queries
        if not query.gold_supports
        for chunk_id in gains_of(query)
        if known.needs_hits(query, chunk_id)
    }
    return known._replace(stored=_locations_in_hits(unlocated, runs)) if unlocated else known


def _version_of_expected(golden: GoldenSet, runs: Sequence[OpenRun]) -> str | None:
    """The chunker of the expected ids: run A's, unless all runs are of one that the ids are not of."""
    version, *others = dict.fromkeys(run.chunker_version for _, run in runs)  # run A's first
    of_ids = indexed_versions(golden, [database for database, _ in runs]) if not others else ()
    if not of_ids or version in of_ids:
        return version
    return next(iter(of_ids)) if len(of_ids) == 1 else None


def _locations_in_hits(wanted: set[str], runs: Sequence[OpenRun]) -> dict[str, Location]:
    """Where chunks are by the hits of the runs: all that is left after re-indexing."""
    found: dict[str, Location] = {}
    for hit in _stored_hits(runs):
        if (chunk_id := hit.chunk_id) and chunk_id in wanted:
            known = found.get(chunk_id, Location())
            found[chunk_id] = known.or_else(Location(hit.doc_id, citation_extents(hit), hit.text))
            if found[chunk_id].extents:
                wanted.discard(chunk_id)
                if not wanted:
                    break
    return found


def _stored_hits(runs: Sequence[OpenRun]) -> Iterator[Hit]:
    for database, run in runs:
        for result in database.results(run.run_id):
            if isinstance(result, QueryResult):
                yield from result.hits


# -- by chunk id, or by location -----------------------------------------------------------------------


def match_mode(runs: Sequence[OpenRun], golden: GoldenSet) -> MatchMode:
    """Exact where the runs are of one chunker, unless the golden file's ids are plainly of another.

    One run alone must be of the golden set's version. Two runs of one version are matched exactly, unless the
    golden set is of another version: by its lock file, or by the index if no run returned any of its ids. One
    that was re-anchored in part has ids of two chunkers, which may be alike; only where the chunks are tells
    them apart.
    """
    versions = {run.chunker_version for _, run in runs}
    if len(versions) > 1 or _left_ids(golden):
        return MatchMode.FALLBACK
    of_golden = golden_versions(golden, [database for database, _ in runs])
    if not of_golden or versions <= of_golden:
        return MatchMode.EXACT
    if len(runs) > 1 and versions == {None}:
        return MatchMode.EXACT
    if len(runs) == 1 or (golden.lock is not None and golden.lock.chunker_version is not None):
        return MatchMode.FALLBACK
    expected = _expected_ids(golden)
    returned_any = any(hit.chunk_id in expected for hit in _stored_hits(runs))
    return MatchMode.EXACT if returned_any else MatchMode.FALLBACK


def golden_versions(golden: GoldenSet, databases: Iterable[Database]) -> set[str | None]:
    """The chunkers of the expected ids, as the lock file says, else as the index does, if it has any."""
    if golden.lock is not None and golden.lock.chunker_version is not None:
        lock = golden.lock
        return {lock.chunker_version, *map(lock.version_of, _left_ids(golden))}
    return indexed_versions(golden, databases)


def indexed_versions(golden: GoldenSet, databases: Iterable[Database]) -> set[str | None]:
    """The chunkers of the expected ids by the index; an id of several tells nothing that another does."""
    corpora = [database.corpus for database in dict.fromkeys(databases) if database.corpus.has_chunks]
    expected = _expected_ids(golden) if corpora else ()
    by_id: dict[str, set[str | None]] = {}
    for corpus in corpora:
        for chunk_id, version in corpus.versions_of(sorted(expected)):
            by_id.setdefault(chunk_id, set()).add(version)
    found = {*map(frozenset, by_id.values())}
    certain = set[str | None]().union(*(versions for versions in found if len(versions) == 1))
    return certain.union(*(versions for versions in found if certain.isdisjoint(versions)))


def _left_ids(golden: GoldenSet) -> set[str]:
    """The expected ids that a re-anchoring left, of the chunker before."""
    left = golden.lock.left() if golden.lock else set()
    return left & _expected_ids(golden) if left else left


def _expected_ids(golden: GoldenSet) -> set[str]:
    return {chunk_id for query in golden.queries for chunk_id in gains_of(query)}
