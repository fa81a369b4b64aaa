"""Chunks -> `documents` and `chunks` of an SQLite file of the recorder."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.store.new_chunks import ChunkRow
from pytest_kebab_eval.store.schema import CORPUS_SCHEMA, CORPUS_TABLES, EVAL_TABLES, SCHEMA
from pytest_kebab_eval.store.sqlite.tables import check_no_triggers
from pytest_kebab_eval.text import shown_path


def check_own(connection: sqlite3.Connection, db: Path) -> None:
    """Refuse to write chunks into a database whose tables the recorder did not make."""
    tables, statements = (*EVAL_TABLES, *CORPUS_TABLES), (*SCHEMA, *CORPUS_SCHEMA)
    for table, statement in zip(tables, statements, strict=True):
        row = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if row and str(row[0]).split() != statement.split():
            raise InputError(
                f"the table {table} of {shown_path(db)} was not made by the recorder, so chunks are not"
                " written there; leave out chunks=, or record into another file"
            )
    check_no_triggers(connection, db, CORPUS_TABLES)


def write_chunks(connection: sqlite3.Connection, rows: list[ChunkRow], chunker_version: str | None) -> None:
    """Make these the chunks of that chunker version; those of other versions stay, unless an id is reused."""
    for statement in CORPUS_SCHEMA:
        connection.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    connection.execute("DELETE FROM chunks WHERE chunker_version IS ?", (chunker_version,))
    connection.executemany(
        "INSERT OR REPLACE INTO documents (doc_id, workspace_path) VALUES (?, ?)",
        {row.doc_id: row.path for row in rows}.items(),
    )
    connection.executemany(
        "INSERT OR REPLACE INTO chunks (chunk_id, doc_id, text, heading_path_json, source_spans_json,"
        " token_estimate, chunker_version) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((*row[:6], chunker_version) for row in rows),
    )
    connection.execute("DELETE FROM documents WHERE doc_id NOT IN (SELECT doc_id FROM chunks)")
