"""The `documents` and `chunks` of a knowledge base, where the database has them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container, Iterable
from functools import cached_property
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.model import Span, Value
from pytest_kebab_eval.spans import Box, extent, extents, touches
from pytest_kebab_eval.store.backend import CorpusTables
from pytest_kebab_eval.store.plain import text_of

_span_lists = msgspec.json.Decoder(tuple[Span, ...])


class Chunk(NamedTuple):
    """A chunk as the index has it."""

    doc_id: str | None
    extents: tuple[Box, ...]
    chunker_version: str | None = None


class IndexCoverage(Value, frozen=True):
    """The size of the index; tokens are per chunk."""

    documents: int
    documents_without_chunks: int
    chunks: int
    tokens_min: float | None
    tokens_mean: float | None
    tokens_p95: float | None
    tokens_max: float | None


class Corpus:
    """Looks up chunks and cited passages; reads only the rows it needs."""

    def __init__(self, tables: CorpusTables) -> None:
        self._tables = tables
        self._chunks: dict[str, Chunk | None] = {}
        self._extents_of: dict[str, list[tuple[Box, ...]]] = {}

    @cached_property
    def _has_tables(self) -> bool:
        """Whether both tables are there, with rows or without."""
        chunks, documents = self._tables.columns("chunks"), self._tables.columns("documents")
        return {"chunk_id", "doc_id", "source_spans_json"} <= chunks and {
            "doc_id",
            "workspace_path",
        } <= documents

    @cached_property
    def has_chunks(self) -> bool:
        """Whether there are chunks."""
        columns = self._tables.columns("chunks")
        return columns >= {"chunk_id", "doc_id", "source_spans_json"} and self._tables.has_rows("chunks")

    @cached_property
    def has_documents(self) -> bool:
        """Whether the chunks of a cited path can be found."""
        return (
            self.has_chunks
            and {"doc_id", "workspace_path"} <= self._tables.columns("documents")
            and self._tables.has_rows("documents")
        )

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk with that id, if the index still has it."""
        if not self.has_chunks:
            return None
        if chunk_id not in self._chunks:
            row = self._tables.chunk(chunk_id)
            self._chunks[chunk_id] = row and Chunk(
                doc_id=_text(row[0]),
                extents=extents(_spans(row[1])),
                chunker_version=_text(row[2]),
            )
        return self._chunks[chunk_id]

    def spans(self, chunk_id: str) -> tuple[Span, ...]:
        """The source spans of the chunk with that id."""
        row = self._tables.chunk(chunk_id) if self.has_chunks else None
        return _spans(row[1]) if row else ()

    def text(self, chunk_id: str) -> str | None:
        """The text of the chunk with that id."""
        if not (self.has_chunks and "text" in self._tables.columns("chunks")):
            return None
        row = self._tables.text(chunk_id)
        return _text(row[0]) if row else None

    def chunk_ids_in(self, doc_ids: Container[str]) -> list[str]:
        """The ids of all chunks of these documents."""
        rows = self._tables.chunk_ids() if self.has_chunks else ()
        return [_text(chunk_id) or "" for chunk_id, doc_id in rows if (_text(doc_id) or "") in doc_ids]

    def document_at(self, path: str) -> str | None:
        """The document with that path."""
        found = self._documents.get(path) if self.has_documents else None
        return found[0] if found else None

    def path_of(self, doc_id: str) -> str | None:
        """The path of that document."""
        if not self.has_documents:
            return None
        row = self._tables.path(doc_id)
        return _text(row[0]) if row else None

    def coverage(self) -> IndexCoverage | None:
        """The size of the index; None if there is no document."""
        if not self._has_tables or not self._tables.has_rows("documents"):
            return None
        documents, empty, chunks = self._tables.counts()
        tokens = sorted(
            float(tokens)
            for (tokens,) in self._token_estimates()
            if isinstance(tokens, (int, float)) and abs(tokens) <= STORED_NUMBER
        )
        return IndexCoverage(
            documents=documents,
            documents_without_chunks=empty,
            chunks=chunks,
            tokens_min=tokens[0] if tokens else None,
            tokens_mean=round(math.fsum(tokens) / len(tokens), 1) if tokens else None,
            tokens_p95=tokens[math.ceil(0.95 * len(tokens)) - 1] if tokens else None,
            tokens_max=tokens[-1] if tokens else None,
        )

    def _token_estimates(self) -> Iterable[tuple[object]]:
        return self._tables.tokens() if "token_estimate" in self._tables.columns("chunks") else ()

    def resolves(self, citation: Span) -> bool:
        """Whether a document has the cited path, and one of its chunks overlaps the cited span.

        Spans that cannot be compared count as overlapping.
        """
        cited = extent(citation)
        return any(
            touches(cited, chunk_extents)
            for doc_id in self._documents.get(citation.path or "", ())
            for chunk_extents in self._chunks_of(doc_id)
        )

    @cached_property
    def _documents(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for path, doc_id in self._tables.documents():
            found[_text(path) or ""].append(_text(doc_id) or "")
        return found

    def _chunks_of(self, doc_id: str) -> list[tuple[Box, ...]]:
        if doc_id not in self._extents_of:
            if self._is_indexed_by_document:
                rows = self._tables.spans_of(doc_id)
                self._extents_of[doc_id] = [extents(_spans(spans)) for (spans,) in rows]
            else:
                self._extents_of[doc_id] = [
                    extents(_spans(spans)) for spans in self._spans_by_document.get(doc_id, ())
                ]
        return self._extents_of[doc_id]

    @cached_property
    def _is_indexed_by_document(self) -> bool:
        return self._tables.is_indexed_by_document()

    @cached_property
    def _spans_by_document(self) -> dict[str, list[object]]:
        """All spans, read in one pass: without an SQL index on doc_id, each lookup would be a pass."""
        found = defaultdict(list)
        for doc_id, spans in self._tables.spans():
            found[_text(doc_id) or ""].append(spans)
        return found


def _spans(source_spans_json: object) -> tuple[Span, ...]:
    """The spans of a chunk; none if the value does not parse."""
    if not isinstance(source_spans_json, bytes):
        return ()
    try:
        return _span_lists.decode(source_spans_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


def _text(value: object) -> str | None:
    return None if value is None else text_of(value)
