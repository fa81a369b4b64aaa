"""A recorded run -> an SQLite file that has the eval tables, or a new one; in one transaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.errors import DatabaseError, InputError, StoreError
from pytest_kebab_eval.files import creating, remove_leftovers
from pytest_kebab_eval.limits import RECORDING_SQL_STEPS
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.address import missing_directory
from pytest_kebab_eval.store.backend import StoredRun
from pytest_kebab_eval.store.new_chunks import ChunkRow
from pytest_kebab_eval.store.results import encode_json
from pytest_kebab_eval.store.schema import EVAL_TABLES, SCHEMA
from pytest_kebab_eval.store.sqlite.chunks import check_own, write_chunks
from pytest_kebab_eval.store.sqlite.connections import SQLITE_ERRORS, connect, reason
from pytest_kebab_eval.store.sqlite.tables import check_statement, check_tables
from pytest_kebab_eval.text import printable, shown_path

RECORD_TIMEOUT_S = 60.0
_INSERT_RUN = (
    "INSERT INTO eval_runs (run_id, suite, config_snapshot_json, aggregate_json, commit_hash, created_at)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_INSERT_RESULT = "INSERT INTO eval_query_results (run_id, query_id, result_json) VALUES (?, ?, ?)"


def check_recordable(db: Path, run_id: str, *, with_chunks: bool = False) -> None:
    """Raise an `InputError` early if a run of that id cannot be recorded there."""
    try:
        _check_writable(db)
        if db.exists():
            with closing(connect(db, "mode=rw", RECORD_TIMEOUT_S)) as connection:
                _check_new(connection, run_id, db)
                if with_chunks:
                    check_own(connection, db)
    except (*SQLITE_ERRORS, OSError) as error:
        raise DatabaseError(f"cannot record into {shown_path(db)}: {reason(error)}") from None


def _check_writable(db: Path) -> None:
    """Refuse a directory that is not there or takes no file, and a file that is read-only."""
    import tempfile

    name, directory = shown_path(db), db.parent
    if missing := missing_directory(db):
        raise DatabaseError(f"cannot record into {name}: {missing}")
    if db.exists() and not os.access(db, os.W_OK):
        raise DatabaseError(f"cannot record into {name}: the file is read-only")
    try:
        tempfile.NamedTemporaryFile(dir=directory).close()  # access rights alone do not tell
    except OSError as error:
        raise DatabaseError(
            f"cannot record into {name}: no file can be written in {shown_path(directory)} ({error.strerror})"
        ) from None


def write_run(
    db: Path, run: Run, rows: Iterable[tuple[str, bytes]], chunks: list[ChunkRow] | None = None
) -> None:
    """Store a run, its rows (query id, `result_json`) and the chunks of its index in one transaction."""
    config = encode_json("config", run.config).decode()
    stored = StoredRun(run.run_id, run.suite, config, run.commit_hash, run.created_at, rows)
    write_runs(db, [stored], None if chunks is None else NewIndex(chunks, run.chunker_version))


class NewIndex(NamedTuple):
    """The chunks that are stored with a run."""

    chunks: list[ChunkRow]
    chunker_version: str | None


def write_runs(db: Path, runs: Sequence[StoredRun], index: NewIndex | None = None) -> None:
    """Store runs in one transaction.

    A new database is made beside its path and gets its name when the runs are in it. If another process made
    one meanwhile, the rows are read again, for that.
    """
    with _store_errors(db):
        remove_leftovers(db)
        if db.exists() or not _write_new(db, runs, index):
            _write_runs(db, runs, index)


def remove_run(db: Path, run_id: str, *, with_file: bool) -> None:
    """Remove a run that was just stored; and the database, if it was made for this run and has no other."""
    try:
        with closing(_connect_to_record(db)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            connection.execute("DELETE FROM eval_query_results WHERE run_id = ?", (run_id,))
            connection.execute("DELETE FROM eval_runs WHERE run_id = ?", (run_id,))
            if with_file and not connection.execute("SELECT 1 FROM eval_runs").fetchone():
                with suppress(PermissionError):  # Windows removes no open file
                    db.unlink()
            connection.execute("COMMIT")
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"run '{printable(run_id)}' is in {shown_path(db)} and could not be removed again: {error}"
        ) from None


def _write_new(db: Path, runs: Sequence[StoredRun], index: NewIndex | None) -> bool:
    """Make a database with the runs in it; False if another process made one meanwhile."""
    try:
        with creating(db) as new:
            _write_runs(new, runs, index, journal="MEMORY")  # a file that is removed if this fails
    except FileExistsError:
        return False
    return True


def _write_runs(
    db: Path, runs: Sequence[StoredRun], index: NewIndex | None, journal: str | None = None
) -> None:
    with closing(_connect_to_record(db)) as connection:
        if journal:
            connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("BEGIN IMMEDIATE")
        if not _tables(connection):
            for statement in SCHEMA:
                connection.execute(statement)
        for run in runs:
            _check_new(connection, run.run_id, db)
            _insert(connection, run)
        if index is not None:
            check_own(connection, db)
            write_chunks(connection, *index)
        connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, run: StoredRun) -> None:
    connection.execute(
        _INSERT_RUN,
        (run.run_id, run.suite, run.config_json, run.aggregate_json, run.commit_hash, run.created_at),
    )
    connection.executemany(
        _INSERT_RESULT, ((run.run_id, query_id, result.decode()) for query_id, result in run.rows)
    )


def _connect_to_record(path: Path) -> sqlite3.Connection:
    return connect(path, "mode=rwc", RECORD_TIMEOUT_S, RECORDING_SQL_STEPS)


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {str(name).lower() for (name,) in rows}


def _check_new(connection: sqlite3.Connection, run_id: str, path: Path) -> None:
    """Refuse a database without the eval tables, and a run id that is already there."""
    tables = _tables(connection)
    if not tables:
        return
    if not set(EVAL_TABLES) <= tables:
        raise InputError(
            f"{shown_path(path)} is a database of something else: it has no {' and '.join(EVAL_TABLES)}"
            " tables; name another file to record into"
        )
    check_tables(connection, path)
    for statement, parameters in ((_INSERT_RUN, 6), (_INSERT_RESULT, 3)):
        check_statement(connection, path, statement, parameters)
    if connection.execute("SELECT 1 FROM eval_runs NOT INDEXED WHERE run_id = ?", (run_id,)).fetchone():
        raise InputError(
            f"{shown_path(path)} has a run '{printable(run_id)}' already; name the new one differently"
        )


@contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into a `StoreError`."""
    try:
        yield
    except sqlite3.OperationalError as error:
        why = "it is locked by another program" if "locked" in str(error) else reason(error)
        raise StoreError(f"the run was not recorded in {shown_path(path)}: {why}") from None
    except (*SQLITE_ERRORS, OSError) as error:
        raise StoreError(f"the run was not recorded in {shown_path(path)}: {reason(error)}") from None
