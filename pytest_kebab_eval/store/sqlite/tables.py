"""The tables in SQLite: how they are made and read, and that nothing runs in them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import msgspec

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store.database import (
    CORPUS_TABLES,
    EVAL_TABLES,
    READ_COLUMNS,
    TAGS_TABLE,
    Database,
)
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.store.sqlite.connections import database_errors
from pytest_kebab_eval.text import brief, shown_path

SCHEMA = (
    """
CREATE TABLE eval_runs (
    run_id TEXT PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL)
""",
    """
CREATE TABLE eval_query_results (
    run_id TEXT NOT NULL REFERENCES eval_runs (run_id), query_id TEXT NOT NULL, result_json TEXT NOT NULL,
    PRIMARY KEY (run_id, query_id))
""",
)
TAGS_SCHEMA = f"CREATE TABLE {TAGS_TABLE} (name TEXT PRIMARY KEY, run_id TEXT NOT NULL)"
CORPUS_SCHEMA = (
    "CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL)",
    """
CREATE TABLE chunks (
    chunk_id TEXT NOT NULL, doc_id TEXT NOT NULL REFERENCES documents (doc_id), text TEXT NOT NULL,
    heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL, token_estimate INTEGER,
    chunker_version TEXT, UNIQUE (chunk_id, chunker_version))
""",
)
# As recorders made it before, with room for one chunk of an id; it is changed when chunks are written.
FIRST_CHUNKS_SCHEMA = """
CREATE TABLE chunks (
    chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL REFERENCES documents (doc_id), text TEXT NOT NULL,
    heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL, token_estimate INTEGER,
    chunker_version TEXT)
"""

_GENERATED = (2, 3)  # `hidden` in SQLite's table_xinfo: computed when read, computed when written


def check_tables(connection: sqlite3.Connection, path: Path, schema: str = "main") -> None:
    """Refuse a view, a virtual table, a generated column or a trigger where a plain table is expected."""
    kinds = table_kinds(connection, schema)
    for table in (*EVAL_TABLES, *CORPUS_TABLES, TAGS_TABLE):
        kind = kinds.get(table, "table")
        if kind != "table":
            raise _refusal(path, f"{table} is a {kind}, not a table", "make it a table")
        for _, name, *_, hidden in connection.execute(f"PRAGMA {schema}.table_xinfo({table})"):
            column = text_of(name).lower()
            if hidden in _GENERATED and column in READ_COLUMNS[table]:
                what = f"the column {column} of {table} is computed, not stored"
                raise _refusal(path, what, "store its values")
    check_no_triggers(connection, path, EVAL_TABLES, schema)


def check_no_triggers(
    connection: sqlite3.Connection, path: Path, tables: Iterable[str], schema: str = "main"
) -> None:
    """Refuse a table that is written to if that would run a trigger."""
    triggers = connection.execute(f"SELECT name, tbl_name FROM {schema}.sqlite_master WHERE type = 'trigger'")
    for name, table in triggers:
        if text_of(table).lower() in tables:
            what = f"the trigger '{brief(text_of(name))}' would run when {text_of(table).lower()} is written"
            raise _refusal(path, what, "drop it")


def table_kinds(connection: sqlite3.Connection, schema: str = "main") -> dict[str, str]:
    """What each table is, by its name in lower case, as SQLite compares them.

    SQLite itself sees to it that these rows are true. Its `PRAGMA table_list` would say the same, but it
    compiles every view in the file, which views of views can make take for ever.
    """
    rows = connection.execute(
        f"SELECT name, type, rootpage FROM {schema}.sqlite_master WHERE type IN ('table', 'view')"
    )
    return {
        text_of(name).lower(): "view" if text_of(kind) == "view" else "table" if page else "virtual table"
        for name, kind, page in rows
    }


def _refusal(path: Path, what: str, advice: str) -> DatabaseError:
    return DatabaseError(f"{shown_path(path)} is refused: {what}; {advice}, or name another database")


# -- rows, as they are -------------------------------------------------------------------------------

_GIVEN = "(SELECT value FROM json_each(?))"


class SqliteDatabase(Database):
    """The tables of an open file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, mask: Sequence[str] = ()) -> None:
        super().__init__(path, mask)
        self._path = path
        self._connection = connection

    def errors(self) -> AbstractContextManager[None]:
        return database_errors(self._path)

    def columns(self, table: str) -> set[str]:
        return {text_of(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def select(self, table: str, *columns: str, **equal: str) -> Iterator[tuple[Any, ...]]:
        where = f"WHERE {' AND '.join(f'{column} = ?' for column in equal)}" if equal else ""
        query = f"SELECT {', '.join(columns)} FROM {table} {where}"
        return self._connection.execute(query, tuple(equal.values()))

    def has_rows(self, table: str) -> bool:
        return self._connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None

    def select_among(self, table: str, *columns: str, **among: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        ((column, values),) = among.items()
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE {column} IN {_GIVEN}"
        yield from self._connection.execute(query, (_json(values),))
        for value in filter(_ends_early, values):
            yield from self.select(table, *columns, **{column: value})

    def is_indexed(self, table: str, column: str) -> bool:
        indexes = self._connection.execute(f"PRAGMA index_list({table})").fetchall()
        names = [text_of(name).replace('"', '""') for _, name, *_ in indexes]
        firsts = (self._connection.execute(f'PRAGMA index_info("{name}")').fetchone() for name in names)
        return any(first and first[2] is not None and text_of(first[2]) == column for first in firsts)

    def result_rows(self, run_id: str) -> Iterator[tuple[Any, Any]]:
        query = "SELECT query_id, result_json FROM eval_query_results WHERE run_id = ? ORDER BY query_id"
        return self._connection.execute(query, (run_id,))

    def result_rows_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        query = (
            f"SELECT query_id, result_json FROM eval_query_results WHERE run_id = ? AND query_id IN {_GIVEN}"
        )
        yield from self._connection.execute(query, (run_id, _json(query_ids)))
        for query_id in filter(_ends_early, query_ids):
            columns = ("query_id", "result_json")
            yield from self.select("eval_query_results", *columns, run_id=run_id, query_id=query_id)

    def result_counts(self) -> dict[str, int]:
        rows = self._connection.execute("SELECT run_id, count(*) FROM eval_query_results GROUP BY run_id")
        return {text_of(run_id): count for run_id, count in rows if run_id is not None}


def _json(values: Sequence[str]) -> str:
    """Values as one parameter, of which SQLite before 3.32 takes 999."""
    return msgspec.json.encode([value for value in values if not _ends_early(value)]).decode()


def _ends_early(value: str) -> bool:
    """Whether JSON in SQLite takes less for the value: it ends texts at a NUL."""
    return "\0" in value
