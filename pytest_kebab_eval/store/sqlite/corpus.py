"""The `documents` and `chunks` of an SQLite file, as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.sqlite.indexes import check_table


class SqliteCorpus:
    """The two tables; an index, by which rows are looked up, is held against its table once."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._columns_of: dict[str, set[str]] = {}
        self._checked: set[str] = set()

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""
        if table not in self._columns_of:
            rows = self._connection.execute(f"PRAGMA table_info({table})")
            self._columns_of[table] = {text_of(row[1]) for row in rows}
        return self._columns_of[table]

    def has_rows(self, table: str) -> bool:
        """Whether the table has rows; an error if an index has lost some."""
        self._check_indexes(table)
        return self._row(f"SELECT 1 FROM {table} LIMIT 1") is not None

    def chunk(self, chunk_id: str) -> tuple[object, object, object] | None:
        """`doc_id`, `source_spans_json` and `chunker_version` of a chunk."""
        row: tuple[object, object, object] | None = self._row(self._chunk_query, chunk_id)
        return row

    def text(self, chunk_id: str) -> tuple[object] | None:
        """The text of a chunk."""
        row: tuple[object] | None = self._row("SELECT text FROM chunks WHERE chunk_id = ?", chunk_id)
        return row

    def path(self, doc_id: str) -> tuple[object] | None:
        """The path of a document."""
        query = "SELECT workspace_path FROM documents WHERE doc_id = ?"
        row: tuple[object] | None = self._row(query, doc_id)
        return row

    def documents(self) -> Iterable[tuple[object, object]]:
        """`workspace_path` and `doc_id` of all documents."""
        return self._connection.execute("SELECT workspace_path, doc_id FROM documents")

    def spans(self) -> Iterable[tuple[object, object]]:
        """`doc_id` and `source_spans_json` of all chunks."""
        return self._connection.execute("SELECT doc_id, source_spans_json FROM chunks")

    def spans_of(self, doc_id: str) -> Iterable[tuple[object]]:
        """`source_spans_json` of a document's chunks."""
        return self._connection.execute("SELECT source_spans_json FROM chunks WHERE doc_id = ?", (doc_id,))

    def is_indexed_by_document(self) -> bool:
        """Whether a document's chunks are found without looking at all chunks."""
        for _, index, *_ in self._connection.execute("PRAGMA index_list(chunks)"):
            name = text_of(index).replace('"', '""')
            first = self._row(f'PRAGMA index_info("{name}")')
            if first and text_of(first[2]) == "doc_id":
                return True
        return False

    def chunk_ids(self) -> Iterable[tuple[object, object]]:
        """`chunk_id` and `doc_id` of all chunks."""
        return self._connection.execute("SELECT chunk_id, doc_id FROM chunks")

    def tokens(self) -> Iterable[tuple[object]]:
        """`token_estimate` of all chunks."""
        return self._connection.execute("SELECT token_estimate FROM chunks")

    def counts(self) -> tuple[int, int, int]:
        """How many documents, documents without chunks, and chunks there are."""
        self._check_indexes("chunks")
        chunked = "SELECT doc_id FROM chunks WHERE doc_id IS NOT NULL"
        return (
            self._count("documents"),
            self._count(f"documents WHERE doc_id NOT IN ({chunked})"),
            self._count("chunks"),
        )

    @cached_property
    def _chunk_query(self) -> str:
        version = "chunker_version" if "chunker_version" in self.columns("chunks") else "NULL"
        return f"SELECT doc_id, source_spans_json, {version} FROM chunks WHERE chunk_id = ?"

    def _count(self, rows: str) -> int:
        return int(self._row(f"SELECT count(*) FROM {rows}")[0])

    def _row(self, query: str, *parameters: str) -> Any:
        return self._connection.execute(query, parameters).fetchone()

    def _check_indexes(self, table: str) -> None:
        """An error if an index has lost rows; looked at once."""
        if table not in self._checked:
            check_table(self._connection, table)
            self._checked.add(table)
