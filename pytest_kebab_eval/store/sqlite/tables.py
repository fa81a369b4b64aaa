"""The tables in SQLite: how they are made and read, that nothing runs in them, that no index lost a row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store.database import (
    ALL_IDS,
    CORPUS_TABLES,
    EVAL_TABLES,
    READ_COLUMNS,
    TAGS_TABLE,
    Database,
    IdRange,
)
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.store.sqlite.connections import DamagedIndex, database_errors
from pytest_kebab_eval.text import brief, pattern, shown_path

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
_CALL = pattern(r"(?:Function|PureFunc)\w*")
_PLAIN_FUNCTIONS = frozenset(  # which take no longer than their argument is long
    (
        *("abs", "coalesce", "glob", "ifnull", "length", "like", "lower", "ltrim", "round", "rtrim"),
        *("substr", "trim", "typeof", "upper"),
        *("date", "datetime", "julianday", "strftime", "time", "unixepoch"),
        *("json_array_length", "json_extract", "json_type", "json_valid", "->", "->>"),
    )
)
_FIRST_ROW, _LAST_ROW = -(2**63), 2**63 - 1
_MOST_AROUND = 1_000  # rows that are looked at before and after those of a run: as many as it has


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


def check_statement(connection: sqlite3.Connection, path: Path, statement: str, parameters: int) -> None:
    """Refuse to write where the table computes more than its rows need, in a CHECK, default or index."""
    for _, operation, *_, call, _, _ in connection.execute(f"EXPLAIN {statement}", (None,) * parameters):
        name = text_of(call).split("(")[0]
        if _CALL.fullmatch(text_of(operation)) and name not in _PLAIN_FUNCTIONS:
            what = f"writing to it calls the SQL function '{brief(name)}', in a CHECK, a default or an index"
            raise _refusal(path, what, "remove that")


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


# -- indexes: SQLite skips rows without a word where a damaged one lost them -----------------------


class Index(NamedTuple):
    """An index of a table, without a condition and without expressions."""

    name: str
    columns: tuple[str, ...]

    @property
    def clause(self) -> str:
        """What makes SQLite read by it, and by no other."""
        quoted = self.name.replace('"', '""')
        return f'INDEXED BY "{quoted}"'


def plain_indexes(connection: sqlite3.Connection, table: str) -> Iterator[Index]:
    """The indexes of a table that hold all its rows, compared byte by byte."""
    for _, name, _, _, partial, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall():
        quoted = text_of(name).replace('"', '""')
        keys = [row for row in connection.execute(f'PRAGMA index_xinfo("{quoted}")') if row[5]]
        if not partial and all(row[1] >= 0 and text_of(row[4]) == "BINARY" for row in keys):
            yield Index(text_of(name), tuple(text_of(row[2]).lower() for row in keys))


def results_index(connection: sqlite3.Connection) -> Index | None:
    """The index that a run's results are read by; None where the table itself has their order, or none."""
    if not _has_rowid(connection, "eval_query_results"):
        return None
    found = plain_indexes(connection, "eval_query_results")
    return next((index for index in found if index.columns == ("run_id", "query_id")), None)


def check_results(connection: sqlite3.Connection, index: Index, run_id: str) -> None:
    """Raise `DamagedIndex` unless the index leads to the rows that the table has of a run, and to no others.

    A run's rows are stored together, so that it is enough to look at those from its first to its last and a
    few around them: the cost is that of the run, not of all that were ever stored.
    """
    entries = f"{index.clause} WHERE run_id = ?"
    same = "count(*), total(rowid)"
    first, last, *led_to = _results(connection, f"min(rowid), max(rowid), {same}", entries, run_id)
    around = min(_MOST_AROUND, led_to[0])
    low, high = (_FIRST_ROW, _LAST_ROW) if first is None else (first - around, last + around)
    stored = (
        f"NOT INDEXED WHERE run_id = ? AND rowid BETWEEN {max(low, _FIRST_ROW)} AND {min(high, _LAST_ROW)}"
    )
    if led_to != [*_results(connection, same, stored, run_id)]:
        found = led_to[0]
        (rows,) = _results(connection, "count(*)", "NOT INDEXED WHERE run_id = ?", run_id)
        what = f"{found} of the {rows} results" if found != rows else "other rows than the results"
        raise DamagedIndex(f"{index.name} leads to {what} of run '{run_id}'")


def _results(connection: sqlite3.Connection, values: str, rows: str, run_id: str) -> tuple[Any, ...]:
    query = f"SELECT {values} FROM eval_query_results {rows}"
    row: tuple[Any, ...] = connection.execute(query, (run_id,)).fetchone()
    return row


def check_table(connection: sqlite3.Connection, table: str) -> None:
    """Raise `DamagedIndex` unless each index of the table has as many entries as it has rows."""
    if not _has_rowid(connection, table):
        return
    rows = _count(connection, f"{table} NOT INDEXED WHERE rowid >= {_FIRST_ROW}")
    for index in plain_indexes(connection, table):
        entries = _count(connection, f"{table} {index.clause} WHERE rowid IS NOT NULL")
        if entries != rows:
            raise DamagedIndex(f"{index.name} has {entries} entries for the {rows} rows of {table}")


def _count(connection: sqlite3.Connection, rows: str) -> int:
    """With a condition, so that SQLite counts row by row and can be stopped."""
    return int(connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0])


def _has_rowid(connection: sqlite3.Connection, table: str) -> bool:
    """Whether rows are stored beside the indexes, and not in that of the primary key."""
    try:
        connection.execute(f"SELECT rowid FROM {table} LIMIT 0")
    except sqlite3.OperationalError:
        return False
    return True


# -- rows, as they are -------------------------------------------------------------------------------

_GIVEN = "(SELECT value FROM json_each(?))"
_READ_BY_TABLE = ("eval_runs", TAGS_TABLE)  # which have few rows; a damaged index would not tell


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
        by = "NOT INDEXED" if table in _READ_BY_TABLE else ""
        where = f"WHERE {' AND '.join(f'{column} = ?' for column in equal)}" if equal else ""
        query = f"SELECT {', '.join(columns)} FROM {table} {by} {where}"
        return self._connection.execute(query, tuple(equal.values()))

    def has_rows(self, table: str) -> bool:
        return self._connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None

    def select_among(self, table: str, *columns: str, **among: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        ((column, values),) = among.items()
        query = f"SELECT {', '.join(columns)} FROM {table} WHERE {column} IN {_GIVEN}"
        yield from self._connection.execute(query, (_json(values),))
        for value in filter(_ends_early, values):
            yield from self.select(table, *columns, **{column: value})

    def check_indexes(self, table: str) -> None:
        check_table(self._connection, table)

    def is_indexed(self, table: str, column: str) -> bool:
        return any(index.columns[:1] == (column,) for index in plain_indexes(self._connection, table))

    def result_rows(self, run_id: str, ids: IdRange = ALL_IDS) -> Iterator[tuple[Any, Any]]:
        index = results_index(self._connection)
        if index and not ids.first:  # the check reads all of the run, so only its first part makes it
            check_results(self._connection, index, run_id)
        by = index.clause if index else "NOT INDEXED"
        within, bounds = "", [run_id]
        if ids != ALL_IDS:  # which may have a NULL
            within, bounds = " AND query_id >= ?", [run_id, ids.first]
        if ids.before is not None:
            within, bounds = f"{within} AND query_id < ?", [*bounds, ids.before]
        return self._connection.execute(
            f"SELECT query_id, result_json FROM eval_query_results {by} WHERE run_id = ?{within}", bounds
        )

    def result_rows_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        query = (
            f"SELECT query_id, result_json FROM eval_query_results WHERE run_id = ? AND query_id IN {_GIVEN}"
        )
        yield from self._connection.execute(query, (run_id, _json(query_ids)))
        for query_id in filter(_ends_early, query_ids):
            columns = ("query_id", "result_json")
            yield from self.select("eval_query_results", *columns, run_id=run_id, query_id=query_id)

    def result_counts(self) -> dict[str, int]:
        rows = self._connection.execute(
            "SELECT run_id, count(*) FROM eval_query_results NOT INDEXED GROUP BY run_id"
        )
        return {text_of(run_id): count for run_id, count in rows if run_id is not None}


def _json(values: Sequence[str]) -> str:
    """Values as one parameter, of which SQLite before 3.32 takes 999."""
    return msgspec.json.encode([value for value in values if not _ends_early(value)]).decode()


def _ends_early(value: str) -> bool:
    """Whether JSON in SQLite takes less for the value: it ends texts at a NUL."""
    return "\0" in value
