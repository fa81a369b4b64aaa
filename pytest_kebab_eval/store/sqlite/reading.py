"""An SQLite file, opened for reading: the rows of its tables as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from pytest_kebab_eval.errors import DatabaseError, NoDatabase
from pytest_kebab_eval.store.database import ALL_IDS, TAGS_TABLE, Database, IdRange
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.store.sqlite.connections import SQLITE_ERRORS, connect, is_locked, reason
from pytest_kebab_eval.store.sqlite.tables import (
    DamagedIndex,
    check_results,
    check_table,
    plain_indexes,
    results_index,
)
from pytest_kebab_eval.text import printable, shown_path

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


# -- opening -------------------------------------------------------------------------------------


def connect_to_read(path: Path, timeout: float) -> sqlite3.Connection:
    """Open a file in a transaction that only reads."""
    if not path.exists():
        raise NoDatabase(f"there is no database {shown_path(path)}; name yours with --kebab-db=FILE")
    if not path.is_file():
        kind = "directory" if path.is_dir() else "special file"
        raise DatabaseError(f"{shown_path(path)} is a {kind}, not a database file")
    path = path.resolve()  # SQLite keeps its log beside the file, not beside a link to it
    try:
        return _connect(path, "mode=ro", timeout)
    except sqlite3.OperationalError as error:
        # SQLite reads a WAL database only where it can create its -shm file, or if told that nobody
        # writes (immutable). In a read-only directory nobody does; and no log may be left to be read.
        if is_locked(error):
            raise
        if "readonly" in str(error) and path.with_name(f"{path.name}-journal").exists():
            # Undo the unfinished transaction of a killed program, as SQLite does on opening for writing.
            _connect(path, "mode=rw", timeout).close()
            return _connect(path, "mode=ro", timeout)
        if not _uses_wal(path):
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise DatabaseError(
                f"{shown_path(path)} has changes in {log.name} that can only be read where its directory"
                " can be written to; copy the files somewhere else, or close the program that wrote them"
            ) from None
        return _connect(path, "mode=ro&immutable=1", timeout)


def _connect(path: Path, parameters: str, timeout: float) -> sqlite3.Connection:
    connection = connect(path, parameters, timeout)
    try:
        connection.text_factory = bytes
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _uses_wal(path: Path) -> bool:
    """Whether the file's header names WAL (bytes 18 and 19: write and read version)."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


@contextmanager
def database_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into a `DatabaseError`."""
    name = shown_path(path)
    try:
        yield
    except sqlite3.OperationalError as error:
        if is_locked(error):
            raise DatabaseError(
                f"{name} is locked by another program, also for reading; try again when it is done"
            ) from None
        if "no such column" in str(error):
            raise DatabaseError(
                f"{name} has an eval table without what this reads: {error}; it was made by another version"
            ) from None
        hint = "; another program left it unfinished: open it once where it can be written to"
        advice = hint if "readonly" in str(error) else ""
        raise DatabaseError(f"cannot read the database {name}: {reason(error)}{advice}") from None
    except DamagedIndex as error:
        raise DatabaseError(
            f"{name} is damaged, and rows are lost: its index {printable(str(error))};"
            " restore it from a backup, or repair it with SQLite's REINDEX"
        ) from None
    except SQLITE_ERRORS as error:
        raise DatabaseError(f"{name} cannot be read as an SQLite database: {reason(error)}") from None
    except OSError as error:
        raise DatabaseError(f"cannot open {name}: {error.strerror or error}") from None
