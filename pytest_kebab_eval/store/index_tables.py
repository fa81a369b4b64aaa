"""What a `Corpus` reads: which tables there are, documents by path, where chunks are and what they say."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

import msgspec

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.model import Span, Value
from pytest_kebab_eval.spans import Box, extents
from pytest_kebab_eval.store.results import text_of

if TYPE_CHECKING:
    from pytest_kebab_eval.store.database import Database

_CHUNK_COLUMNS = {"chunk_id", "doc_id", "source_spans_json"}
PLACES_TOGETHER = 20_000  # chunks or documents without their texts, by one statement
_PASSES = 8  # over the whole table, before all of it is kept
_DISTINCT = 4_096  # places that many chunks share, as lines of short documents are, are decoded once
_VersionedExtents = tuple["str | None", tuple[Box, ...]]  # of a chunk
_T = TypeVar("_T")
_span_lists = msgspec.json.Decoder(tuple[Span, ...])


class IndexTables:
    """The tables, as far as they are there; nothing is asked twice."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_rows: dict[str, bool] = {}

    @cached_property
    def chunk_columns(self) -> set[str]:
        return self._database.columns("chunks")

    @cached_property
    def _has_document_columns(self) -> bool:
        return {"doc_id", "workspace_path"} <= self._database.columns("documents")

    @cached_property
    def are_both_there(self) -> bool:
        """With rows or without."""
        return self.chunk_columns >= _CHUNK_COLUMNS and self._has_document_columns

    @cached_property
    def has_paths(self) -> bool:
        """Whether the paths of documents are known, also where no chunk is."""
        return self._has_document_columns and self.has_rows("documents")

    @cached_property
    def has_chunks(self) -> bool:
        return self.chunk_columns >= _CHUNK_COLUMNS and self.has_rows("chunks")

    def has_rows(self, table: str) -> bool:
        """Whether a table that is there has rows."""
        if table not in self._has_rows:
            self._has_rows[table] = self._database.has_rows(table)
        return self._has_rows[table]

    def column(self, name: str) -> str:
        """What to select for a column of chunks that may not be there."""
        return name if name in self.chunk_columns else "NULL"


class Documents:
    """The documents of an index, by path and by id."""

    def __init__(self, database: Database, tables: IndexTables) -> None:
        self._database = database
        self._tables = tables
        self._paths: dict[str, str | None] = {}

    @cached_property
    def by_path(self) -> dict[str, list[str]]:
        """Their ids, mostly one a path."""
        found = defaultdict(list)
        for path, doc_id in self._database.select("documents", "workspace_path", "doc_id"):
            found[text_or_none(path) or ""].append(text_or_none(doc_id) or "")
        return found

    def at(self, path: str) -> Sequence[str]:
        """The ids of the documents of a path."""
        return self.by_path.get(path, ()) if self._tables.has_paths else ()

    def path_of(self, doc_id: str) -> str | None:
        if not self._tables.has_paths:
            return None
        if doc_id not in self._paths:
            row = self._database.first("documents", "workspace_path", doc_id=doc_id)
            self._paths[doc_id] = text_or_none(row[0]) if row else None
        return self._paths[doc_id]

    def read_paths(self, doc_ids: Collection[str]) -> None:
        """Read the paths of documents that will be asked for."""
        wanted = sorted({*doc_ids} - self._paths.keys()) if doc_ids and self._tables.has_paths else []
        for some in batches(wanted, PLACES_TOGETHER):
            self._paths.update(dict.fromkeys(some))
            found = self._database.select_among("documents", "doc_id", "workspace_path", doc_id=some)
            for doc_id, path in found:
                self._paths[text_or_none(doc_id) or ""] = text_or_none(path)


class ChunksLocated:
    """Where the chunks of the documents are that were asked for, with the chunker of each."""

    def __init__(self, database: Database, version_column: str) -> None:
        self._database = database
        self._columns = ("doc_id", version_column, "source_spans_json")
        self._chunks: dict[str, list[_VersionedExtents]] = {}
        self._passes = 0
        self.are_all = False

    def of(self, doc_id: str) -> Sequence[_VersionedExtents]:
        if doc_id not in self._chunks:
            self.read([doc_id])
        return self._chunks.get(doc_id, ())

    def read(self, doc_ids: Collection[str]) -> None:
        """Read those of these documents that are not known."""
        wanted = [] if self.are_all else sorted({*doc_ids} - self._chunks.keys())
        for some in batches(wanted, PLACES_TOGETHER):
            self._passes += 1  # over the whole table, where it has no SQL index
            if self._passes > _PASSES:
                self.read_all()
                return
            self._chunks.update((doc_id, []) for doc_id in some)
            for doc_id, *place in self._database.select_among("chunks", *self._columns, doc_id=some):
                self._chunks[text_or_none(doc_id) or ""].append(_versioned(*place))

    def read_all(self) -> None:
        self.are_all, self._chunks = True, {}
        for doc_id, *place in self._database.select("chunks", *self._columns):
            self._chunks.setdefault(text_or_none(doc_id) or "", []).append(_versioned(*place))


# -- columns -----------------------------------------------------------------------------------------


@lru_cache(maxsize=_DISTINCT, typed=True)
def _versioned(version: object, source_spans_json: object) -> _VersionedExtents:
    return text_or_none(version), extents_of(source_spans_json)


@lru_cache(maxsize=_DISTINCT, typed=True)
def extents_of(source_spans_json: object) -> tuple[Box, ...]:
    """Where a chunk is."""
    return extents(spans_of(source_spans_json))


def spans_of(source_spans_json: object) -> tuple[Span, ...]:
    """The source spans of a chunk."""
    return decoded(source_spans_json, _span_lists)


def decoded(value: object, decoder: msgspec.json.Decoder[tuple[_T, ...]]) -> tuple[_T, ...]:
    """The items of a JSON list; none if the value does not parse."""
    if not isinstance(value, bytes):
        return ()
    try:
        return decoder.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


def text_or_none(value: object) -> str | None:
    """A value of a row as text, if it is not NULL."""
    return None if value is None else text_of(value)


def batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The names in lists of a size, in their order."""
    return (names[first : first + size] for first in range(0, len(names), size))


# -- how large the index is --------------------------------------------------------------------------


class IndexCoverage(Value, frozen=True):
    """The size of the index; tokens are per chunk."""

    documents: int
    documents_without_chunks: int
    chunks: int
    tokens_min: float | None
    tokens_mean: float | None
    tokens_p95: float | None
    tokens_max: float | None


def coverage(
    database: Database, tables: IndexTables, documents: Documents, version: str | None
) -> IndexCoverage | None:
    """The size of a chunker's index; None if there is no document, or only what other chunkers made.

    Documents of which only other chunkers have chunks are not counted.
    """
    if not tables.are_both_there or not tables.has_rows("documents"):
        return None
    columns = ("doc_id", tables.column("chunker_version"), tables.column("token_estimate"))
    chunks = database.select("chunks", *columns)
    doc_ids = [*chain.from_iterable(documents.by_path.values())]
    chunks_seen, tokens = 0, Counter[float]()  # which are of few values, however many chunks there are
    own: set[str] = set()
    others: set[str] = set()
    for doc_id, found, count in chunks:
        is_own = version is None or text_or_none(found) in (version, None)
        (own if is_own else others).add(text_or_none(doc_id) or "")
        if is_own:
            chunks_seen += 1
            if isinstance(count, (int, float)) and abs(count) <= STORED_NUMBER:
                tokens[float(count)] += 1
    if others and not own:
        return None
    empty = sum(doc_id not in own and doc_id not in others for doc_id in doc_ids)
    in_order = sorted(tokens)
    return IndexCoverage(
        documents=sum(doc_id in own for doc_id in doc_ids) + empty,
        documents_without_chunks=empty,
        chunks=chunks_seen,
        tokens_min=in_order[0] if in_order else None,
        tokens_mean=round(math.fsum(n * count for count, n in tokens.items()) / tokens.total(), 1)
        if tokens
        else None,
        tokens_p95=_nearest_rank(tokens, 0.95) if tokens else None,
        tokens_max=in_order[-1] if in_order else None,
    )


def _nearest_rank(counted: Counter[float], share: float) -> float:
    """The value below or at which that share of what was counted is."""
    rank = math.ceil(share * counted.total())
    for value in sorted(counted):
        rank -= counted[value]
        if rank <= 0:
            return value
    raise ValueError("nothing was counted")
