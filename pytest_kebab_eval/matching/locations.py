"""Where hits and expected chunks are, and what they say, from the first source that knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from pytest_kebab_eval.golden import Lock
from pytest_kebab_eval.model import GoldenQuery, Hit, Span
from pytest_kebab_eval.spans import Box, extent, extents
from pytest_kebab_eval.store import Chunk, Corpus


class Located(NamedTuple):
    """Where an expected chunk is, as far as anybody knows."""

    doc_id: str | None = None
    extents: tuple[Box, ...] = ()


class Passages:
    """Where a run's hits are from, and what they say: the run's own corpus knows, else the hit itself."""

    def __init__(self, corpus: Corpus | None = None, version: str | None = None) -> None:
        self._corpus = corpus if corpus and corpus.has_chunks else None
        self._version = version

    def _chunk(self, chunk_id: str | None) -> Chunk | None:
        """The chunk of that id, unless the index was rebuilt since and gave the id to another one."""
        chunk = self._corpus.chunk(chunk_id) if self._corpus and chunk_id else None
        if chunk and None not in (self._version, chunk.chunker_version):
            return chunk if chunk.chunker_version == self._version else None
        return chunk

    def extents(self, hit: Hit) -> tuple[Box, ...]:
        """The hit's span: that of its chunk, else that of its citation."""
        chunk = self._chunk(hit.chunk_id)
        return (chunk.extents if chunk else ()) or citation_extents(hit)

    def text(self, hit: Hit) -> str | None:
        """The hit's whole text, where it is at hand."""
        if hit.text is not None:
            return hit.text
        known = self._corpus and hit.chunk_id and self._chunk(hit.chunk_id)
        return self._corpus.text(hit.chunk_id) if self._corpus and hit.chunk_id and known else None

    def resolves(self, citation: Span) -> bool | None:
        """Whether the corpus has what is cited; None if there is no corpus to ask."""
        if self._corpus is None or not self._corpus.has_documents:
            return None
        return self._corpus.resolves(citation)

    def has_chunk(self, chunk_id: str) -> bool:
        """Whether the corpus has the chunk."""
        return self._chunk(chunk_id) is not None

    def document_at(self, path: str) -> str | None:
        """The document of a path, as far as the corpus knows."""
        return self._corpus.document_at(path) if self._corpus else None

    def paths_of(self, doc_ids: Iterable[str], chunk_ids: Iterable[str]) -> frozenset[str]:
        """Where the documents are, else those of the chunks, as far as the corpus knows."""
        if self._corpus is None:
            return frozenset()
        chunks = (self._corpus.chunk(one) for one in chunk_ids)
        docs = doc_ids or {chunk.doc_id for chunk in chunks if chunk and chunk.doc_id}
        return frozenset(path for one in docs if (path := self._corpus.path_of(one)))

    @cached_property
    def without_texts(self) -> Passages:
        """The same, for what has no text of its own to be asked about."""
        return _WithoutTexts(self._corpus, self._version)


class _WithoutTexts(Passages):
    def text(self, hit: Hit) -> None:  # noqa: ARG002
        return None


class Places:
    """Where the expected chunks are, from the first source that knows."""

    def __init__(
        self,
        lock: Lock | None = None,
        corpora: Sequence[Corpus] = (),
        stored: Mapping[str, Located] | None = None,
        version: str | None = None,
    ) -> None:
        self._version = version  # of run A
        self._lock = lock
        self._corpora = corpora
        self._stored = stored or {}

    def locate(self, query: GoldenQuery, chunk_id: str) -> Located:
        """The chunk's place; one without extents is known by its document at best."""
        doc_id = None
        for place in self._sources(query, chunk_id):
            if place.extents:
                return place if place.doc_id else place._replace(doc_id=doc_id)
            doc_id = doc_id or place.doc_id
        return Located(doc_id)

    def _sources(self, query: GoldenQuery, chunk_id: str) -> Iterable[Located]:
        given = [one for one in query.expected_spans if one.chunk_id == chunk_id]
        if given:
            yield Located(given[0].doc_id, extents(one.span for one in given))
        if self._lock and chunk_id in self._lock.chunks:
            locked = self._lock.chunks[chunk_id]
            yield Located(locked.doc_id, extents(locked.spans))
        chunks = [chunk for corpus in self._corpora if (chunk := corpus.chunk(chunk_id))]
        # After re-indexing, an id may be that of another chunk; a hit of run A then knows better.
        chunks.sort(key=self._is_anothers)
        if chunk_id in self._stored and chunks and self._is_anothers(chunks[0]):
            yield self._stored[chunk_id]
        for chunk in chunks:
            yield Located(chunk.doc_id, chunk.extents)
        if chunk_id in self._stored:
            yield self._stored[chunk_id]

    def _is_anothers(self, chunk: Chunk) -> bool:
        versions = (self._version, chunk.chunker_version)
        return None not in versions and versions[0] != versions[1]

    def is_certain(self, query: GoldenQuery, chunk_id: str) -> bool:
        """Whether the chunk's place is known without asking stored hits."""
        if any(one.chunk_id == chunk_id for one in query.expected_spans):
            return True
        if self._lock and chunk_id in self._lock.chunks:
            return bool(self._lock.chunks[chunk_id].spans)
        found = (corpus.chunk(chunk_id) for corpus in self._corpora)
        return any(chunk and chunk.extents and not self._is_anothers(chunk) for chunk in found)


def citation_extents(hit: Hit) -> tuple[Box, ...]:
    """Where a hit says that it is from."""
    place = extent(hit.citation) if hit.citation else None
    return (place,) if place else ()
