"""Aggregates -> `eval_runs.aggregate_json`, the only column ever written in a foreign database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError, StoreError
from pytest_kebab_eval.store.connections import SQLITE_ERRORS, connect, database_uri, load_schema, reason
from pytest_kebab_eval.store.tables import check_statement, check_tables
from pytest_kebab_eval.text import printable, shown_path

WRITE_TIMEOUT_S = 10.0


def write_aggregates(aggregates: Mapping[tuple[Path, str], bytes]) -> None:
    """Store the JSON for each (database, run id) in one transaction: all of them or none."""
    if not aggregates:
        return
    paths = _distinct([path.resolve() for path, _ in aggregates])
    with _store_errors(paths), closing(_connect(paths)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        for number, path in enumerate(paths):
            check_tables(connection, path, _schema_name(number))
            check_statement(connection, path, _update(number), parameters=2)
        for (path, run_id), aggregate in aggregates.items():
            number = next(number for number, known in enumerate(paths) if _is_same(path, known))
            updated = connection.execute(_update(number), (aggregate.decode(), run_id)).rowcount
            if updated != 1:
                raise StoreError(
                    f"nothing was stored: there is no run '{printable(run_id)}' in {shown_path(path)}"
                )
        connection.execute("COMMIT")


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
        advice = reason(error)
        if isinstance(error, sqlite3.OperationalError):
            advice = (
                "another program is writing to it; try again when it is done"
                if "locked" in str(error)
                else f"{advice}; use --kebab-no-store to skip storing"
            )
        names = " and ".join(shown_path(path) for path in paths)
        raise StoreError(f"the aggregates were not stored in {names}: {advice}") from None


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
