"""The `documents` and `chunks` of a database of a server, as they are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.limits import FETCHED_ROWS
from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.postgres.texts import can_hold

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection


class PostgresCorpus:
    """The two tables."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._columns_of: dict[str, set[str]] = {}

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""
        if table not in self._columns_of:
            rows = self._connection.execute(
                "SELECT attname::text FROM pg_catalog.pg_attribute"
                " WHERE attrelid = pg_catalog.to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                (table,),
            )
            self._columns_of[table] = {text_of(name) for (name,) in rows}
        return self._columns_of[table]

    def has_rows(self, table: str) -> bool:
        """Whether the table has rows."""
        return self._row(f"SELECT 1 FROM {table} LIMIT 1") is not None

    def chunk(self, chunk_id: str) -> tuple[Any, ...] | None:
        """`doc_id`, `source_spans_json` and `chunker_version` of a chunk."""
        return self._row(self._chunk_query, chunk_id)

    def text(self, chunk_id: str) -> tuple[Any, ...] | None:
        """The text of a chunk."""
        return self._row("SELECT text::text FROM chunks WHERE chunk_id = %s", chunk_id)

    def path(self, doc_id: str) -> tuple[Any, ...] | None:
        """The path of a document."""
        return self._row("SELECT workspace_path::text FROM documents WHERE doc_id = %s", doc_id)

    def documents(self) -> Iterable[tuple[Any, ...]]:
        """`workspace_path` and `doc_id` of all documents."""
        return self._stream("SELECT workspace_path::text, doc_id::text FROM documents", "doc_id")

    def spans(self) -> Iterable[tuple[Any, ...]]:
        """`doc_id` and `source_spans_json` of all chunks."""
        return self._stream("SELECT doc_id::text, source_spans_json::text FROM chunks", "chunk_id")

    def spans_of(self, doc_id: str) -> Iterable[tuple[Any, ...]]:
        """`source_spans_json` of a document's chunks."""
        query = "SELECT source_spans_json::text FROM chunks WHERE doc_id = %s"
        return self._connection.execute(query, (doc_id,)) if can_hold(doc_id) else ()

    def is_indexed_by_document(self) -> bool:
        """Whether a document's chunks are found without looking at all chunks."""
        row = self._row(
            "SELECT 1 FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a"
            " ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
            " WHERE i.indrelid = pg_catalog.to_regclass('chunks') AND a.attname = 'doc_id'"
            " AND i.indisvalid AND i.indpred IS NULL LIMIT 1"
        )
        return row is not None

    def chunk_ids(self) -> Iterable[tuple[Any, ...]]:
        """`chunk_id` and `doc_id` of all chunks."""
        return self._connection.execute("SELECT chunk_id, doc_id FROM chunks")

    def tokens(self) -> Iterable[tuple[Any, ...]]:
        """`token_estimate` of all chunks."""
        return self._connection.execute("SELECT token_estimate FROM chunks")

    def counts(self) -> tuple[int, int, int]:
        """How many documents, documents without chunks, and chunks there are."""
        row = self._row(
            "SELECT (SELECT count(*) FROM documents),"
            " (SELECT count(*) FROM documents AS d"
            " WHERE NOT EXISTS (SELECT FROM chunks AS c WHERE c.doc_id = d.doc_id)),"
            " (SELECT count(*) FROM chunks)"
        )
        documents, empty, chunks = row or (0, 0, 0)
        return documents, empty, chunks

    @cached_property
    def _chunk_query(self) -> str:
        version = "chunker_version::text" if "chunker_version" in self.columns("chunks") else "NULL"
        return f"SELECT doc_id::text, source_spans_json::text, {version} FROM chunks WHERE chunk_id = %s"

    def _row(self, query: str, *values: str) -> tuple[Any, ...] | None:
        if not all(map(can_hold, values)):
            return None
        return self._connection.execute(query, values or None).fetchone()

    def _stream(self, query: str, key: str) -> Iterable[tuple[Any, ...]]:
        """All rows in the order of their key, not all of them in memory."""
        with self._connection.cursor("kebab_corpus", binary=True) as rows:
            rows.itersize = FETCHED_ROWS
            rows.execute(f'{query} ORDER BY {key} COLLATE "C"')
            yield from rows
