"""The `documents` and `chunks` of a knowledge base, where the database has them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Container
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.model import Span, Value
from pytest_kebab_eval.spans import Box, extent, extents, touches
from pytest_kebab_eval.store.plain import first_row, text_of

if TYPE_CHECKING:
    from pytest_kebab_eval.store.database import Database

_CHUNK_COLUMNS = {"chunk_id", "doc_id", "source_spans_json"}
_COUNTS = (
    "SELECT count(*) FROM documents",
    "SELECT count(*) FROM (SELECT doc_id FROM documents EXCEPT SELECT doc_id FROM chunks) AS without_chunks",
    "SELECT count(*) FROM chunks",
)
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

    def __init__(self, database: Database) -> None:
        self._database = database
        self._chunks: dict[str, Chunk | None] = {}
        self._extents_of: dict[str, list[tuple[Box, ...]]] = {}
        self._has_rows_in: dict[str, bool] = {}

    @cached_property
    def _chunk_columns(self) -> set[str]:
        return self._database.columns("chunks")

    @cached_property
    def _has_tables(self) -> bool:
        """Whether both tables are there, with rows or without."""
        has_documents = {"doc_id", "workspace_path"} <= self._database.columns("documents")
        return self._chunk_columns >= _CHUNK_COLUMNS and has_documents

    @cached_property
    def has_chunks(self) -> bool:
        return self._chunk_columns >= _CHUNK_COLUMNS and self._has_rows("chunks")

    @cached_property
    def has_documents(self) -> bool:
        """Whether the chunks of a cited path can be found."""
        return self.has_chunks and self._has_tables and self._has_rows("documents")

    def _has_rows(self, table: str) -> bool:
        """Whether a table that is there has rows; an error if an index has lost some."""
        if table not in self._has_rows_in:
            self._database.check_indexes(table)
            found = self._database.query(f"SELECT 1 FROM {table} LIMIT 1")
            self._has_rows_in[table] = first_row(found) is not None
        return self._has_rows_in[table]

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk with that id, if the index still has it."""
        if not self.has_chunks:
            return None
        if chunk_id not in self._chunks:
            version = {"chunker_version"} & self._chunk_columns
            columns = ("doc_id", "source_spans_json", *version)
            row = self._database.first("chunks", *columns, chunk_id=chunk_id)
            self._chunks[chunk_id] = (
                None if row is None else Chunk(_text(row[0]), extents(_spans(row[1])), *map(_text, row[2:]))
            )
        return self._chunks[chunk_id]

    def spans(self, chunk_id: str) -> tuple[Span, ...]:
        if not self.has_chunks:
            return ()
        row = self._database.first("chunks", "source_spans_json", chunk_id=chunk_id)
        return _spans(row[0]) if row else ()

    def text(self, chunk_id: str) -> str | None:
        has_texts = self.has_chunks and "text" in self._chunk_columns
        row = self._database.first("chunks", "text", chunk_id=chunk_id) if has_texts else None
        return _text(row[0]) if row else None

    def chunk_ids_in(self, doc_ids: Container[str]) -> list[str]:
        rows = self._database.select("chunks", "chunk_id", "doc_id") if self.has_chunks else ()
        return [_text(chunk_id) or "" for chunk_id, doc_id in rows if (_text(doc_id) or "") in doc_ids]

    def document_at(self, path: str) -> str | None:
        found = self._documents.get(path) if self.has_documents else None
        return found[0] if found else None

    def path_of(self, doc_id: str) -> str | None:
        if not self.has_documents:
            return None
        row = self._database.first("documents", "workspace_path", doc_id=doc_id)
        return _text(row[0]) if row else None

    def coverage(self) -> IndexCoverage | None:
        """The size of the index; None if there is no document."""
        if not self._has_tables or not self._has_rows("documents"):
            return None
        self._has_rows("chunks")  # an error if an index has lost some
        documents, empty, chunks = (
            int(count) for query in _COUNTS for (count,) in self._database.query(query)
        )
        has_tokens = "token_estimate" in self._chunk_columns
        tokens = sorted(
            float(tokens)
            for (tokens,) in (self._database.select("chunks", "token_estimate") if has_tokens else ())
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

    def resolves(self, citation: Span) -> bool:
        """Whether a chunk at the cited path overlaps the cited span; spans that cannot be compared do."""
        cited = extent(citation)
        return any(
            touches(cited, chunk_extents)
            for doc_id in self._documents.get(citation.path or "", ())
            for chunk_extents in self._chunks_of(doc_id)
        )

    @cached_property
    def _documents(self) -> dict[str, list[str]]:
        found = defaultdict(list)
        for path, doc_id in self._database.select("documents", "workspace_path", "doc_id"):
            found[_text(path) or ""].append(_text(doc_id) or "")
        return found

    def _chunks_of(self, doc_id: str) -> list[tuple[Box, ...]]:
        if doc_id not in self._extents_of:
            if self._spans_by_document is None:
                rows = self._database.select("chunks", "source_spans_json", doc_id=doc_id)
                found = [spans for (spans,) in rows]
            else:
                found = self._spans_by_document.get(doc_id, [])
            self._extents_of[doc_id] = [extents(_spans(spans)) for spans in found]
        return self._extents_of[doc_id]

    @cached_property
    def _spans_by_document(self) -> dict[str, list[object]] | None:
        """All spans, read in one pass: without an SQL index on doc_id, each lookup would be a pass."""
        if self._database.is_indexed("chunks", "doc_id"):
            return None
        found = defaultdict(list)
        for doc_id, spans in self._database.select("chunks", "doc_id", "source_spans_json"):
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
