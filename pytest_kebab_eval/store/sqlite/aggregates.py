"""`eval_runs.aggregate_json` of SQLite files, written in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError, StoreError
from pytest_kebab_eval.store.sqlite.connections import (
    SQLITE_ERRORS,
    connect,
    database_uri,
    load_schema,
    reason,
)
from pytest_kebab_eval.store.sqlite.tables import check_statement, check_tables
from pytest_kebab_eval.text import shown_path

WRITE_TIMEOUT_S = 10.0


class SqliteAggregates:
    """The runs of one file, in a transaction that is open on one file or on several."""

    def __init__(self, connection: sqlite3.Connection, number: int) -> None:
        self._connection = connection
        self._update = _update(number)

    def write(self, run_id: str, aggregate_json: str) -> bool:
        """Store the aggregate; False if there is no such run."""
        return self._connection.execute(self._update, (aggregate_json, run_id)).rowcount == 1

    def commit(self) -> None:
        """Make it last, in all files."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")


@contextmanager
def open_for_aggregates(paths: Iterable[Path]) -> Iterator[dict[Path, SqliteAggregates]]:
    """Begin a transaction on these files, which may be one under several names."""
    given = {path: path.resolve() for path in paths}
    distinct = _distinct(list(given.values()))
    with _store_errors(distinct), closing(_connect(distinct)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for number, path in enumerate(distinct):
            check_tables(connection, path, _schema_name(number))
            check_statement(connection, path, _update(number), parameters=2)
        yield {path: SqliteAggregates(connection, _number(path, distinct)) for path in given}


def _number(path: Path, distinct: list[Path]) -> int:
    return next(number for number, known in enumerate(distinct) if _is_same(path, known))


def _distinct(paths: list[Path]) -> list[Path]:
    """One path for each file; a file may have several, by hard links."""
    found: list[Path] = []
    for path in paths:
        if not any(_is_same(path, known) for known in found):
            found.append(path)
    return found


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one is gone, which is found out when it is opened
        return path.resolve() == other


@contextmanager
def _store_errors(paths: list[Path]) -> Iterator[None]:
    """Turn errors of SQLite into a `StoreError`."""
    try:
        yield
    except DatabaseError as error:
        raise StoreError(f"the aggregates were not stored: {error}") from None
    except SQLITE_ERRORS as error:
        is_locked = isinstance(error, sqlite3.OperationalError) and "locked" in str(error)
        why = "another program is writing to it; try again when it is done" if is_locked else reason(error)
        names = " and ".join(shown_path(path) for path in paths)
        raise StoreError(f"the aggregates were not stored in {names}: {why}") from None


def _update(number: int) -> str:
    """By the table and not its index, which may be damaged and not know the run."""
    return f"UPDATE {_schema_name(number)}.eval_runs NOT INDEXED SET aggregate_json = ? WHERE run_id = ?"


def _schema_name(number: int) -> str:
    return f"db{number}" if number else "main"


def _connect(paths: list[Path]) -> sqlite3.Connection:
    """One connection with every database attached, so that one transaction covers them all.

    The main database is a file and not in memory: only then does a transaction over several files survive
    a crash whole (in WAL mode not even then).
    """
    connection = connect(paths[0], "mode=rw", WRITE_TIMEOUT_S)
    try:
        for number, path in enumerate(paths[1:], start=1):
            uri = database_uri(path, "mode=rw")
            load_schema(connection, f"ATTACH ? AS {_schema_name(number)}", (uri,))
    except BaseException:
        connection.close()
        raise
    return connection
