"""Which of `documents` and `chunks` a database has; its documents by path; and how large the index is."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.store.located import PLACES_TOGETHER, batches, text_or_none

if TYPE_CHECKING:
    from pytest_kebab_eval.store.database import Database

_CHUNK_COLUMNS = {"chunk_id", "doc_id", "source_spans_json"}


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
        """Whether a table that is there has rows; an error if an index has lost some."""
        if table not in self._has_rows:
            self._database.check_indexes(table)
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
    tables.has_rows("chunks")  # or an error, if an index has lost some
    columns = ("doc_id", tables.column("chunker_version"), tables.column("token_estimate"))
    return _coverage(
        database.select("chunks", *columns), [*chain.from_iterable(documents.by_path.values())], version
    )


def _coverage(
    chunks: Iterable[tuple[Any, ...]], doc_ids: Sequence[str], version: str | None
) -> IndexCoverage | None:
    """The figures, of chunks with document, chunker and tokens; None if all are of other chunkers."""
    counts: list[object] = []
    own: set[str] = set()
    others: set[str] = set()
    for doc_id, found, count in chunks:
        is_own = version is None or text_or_none(found) in (version, None)
        (own if is_own else others).add(text_or_none(doc_id) or "")
        if is_own:
            counts.append(count)
    if others and not own:
        return None
    empty = sum(doc_id not in own and doc_id not in others for doc_id in doc_ids)
    tokens = sorted(
        float(count) for count in counts if isinstance(count, (int, float)) and abs(count) <= STORED_NUMBER
    )
    return IndexCoverage(
        documents=sum(doc_id in own for doc_id in doc_ids) + empty,
        documents_without_chunks=empty,
        chunks=len(counts),
        tokens_min=tokens[0] if tokens else None,
        tokens_mean=round(math.fsum(tokens) / len(tokens), 1) if tokens else None,
        tokens_p95=tokens[math.ceil(0.95 * len(tokens)) - 1] if tokens else None,
        tokens_max=tokens[-1] if tokens else None,
    )
