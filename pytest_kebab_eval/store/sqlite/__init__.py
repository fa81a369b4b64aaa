"""SQLite files as a store."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase, StoreError
from pytest_kebab_eval.files import creating, remove_leftovers
from pytest_kebab_eval.store import Backend, Made, NewIndex, Room, run_is_tagged, run_is_there
from pytest_kebab_eval.store.address import missing_directory
from pytest_kebab_eval.store.database import CORPUS_TABLES, EVAL_TABLES, TAGS_TABLE, RawRun
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.store.sqlite.connections import (
    SQLITE_ERRORS,
    connect,
    connect_to_read,
    database_errors,
    database_uri,
    is_locked,
    load_schema,
    reason,
    size_of,
)
from pytest_kebab_eval.store.sqlite.tables import (
    CORPUS_SCHEMA,
    FIRST_CHUNKS_SCHEMA,
    SCHEMA,
    TAGS_SCHEMA,
    SqliteDatabase,
    check_no_triggers,
    check_tables,
    table_kinds,
)
from pytest_kebab_eval.text import printable, shown_path

READ_TIMEOUT_S = 5.0
AGGREGATES_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 60.0
_INSERT_RUN = (
    "INSERT INTO eval_runs (run_id, suite, config_snapshot_json, commit_hash, created_at, aggregate_json)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_INSERT_RESULT = "INSERT INTO eval_query_results (run_id, query_id, result_json) VALUES (?, ?, ?)"
_SET_TAG = f"INSERT OR REPLACE INTO {TAGS_TABLE} (name, run_id) VALUES (?, ?)"


class SqliteStore(Backend):
    """A database file, which may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = shown_path(path)

    def is_there(self) -> bool:
        return self._path.exists()

    def make_tables(self) -> Made:
        return Made.NOT_NEEDED  # the recorder makes them with the file

    def check_text(self, text: str, what: str) -> None:
        pass  # any text can be stored

    @contextmanager
    def read(self, mask: Sequence[str] = (), named: Path | None = None) -> Iterator[SqliteDatabase]:
        """See `Backend.read`; errors name the file as it is `named`, where it is a copy of another."""
        with (
            database_errors(self._path),
            closing(connect_to_read(self._path, READ_TIMEOUT_S)) as connection,
        ):
            rows = connection.execute("SELECT name FROM sqlite_master")
            names = {text_of(name).lower() for (name,) in rows}
            missing = [name for name in EVAL_TABLES if name not in names]
            if missing:
                raise DatabaseError(
                    f"{self._name} has no table {' and no table '.join(missing)};"
                    " is it the database that the evaluation runs were stored in?"
                )
            check_tables(connection, self._path)
            yield SqliteDatabase(named or self._path, connection, mask)

    # -- recording -----------------------------------------------------------------------------------

    def check_recordable(self, run_id: str, *, with_chunks: bool = False) -> None:
        try:
            self._check_writable()
            if self._path.exists():
                with closing(connect(self._path, "mode=rw", WRITE_TIMEOUT_S)) as connection:
                    self._check_new(connection, run_id)
                    if with_chunks:
                        self._check_own(connection)
        except (*SQLITE_ERRORS, OSError) as error:
            raise DatabaseError(f"cannot record into {self._name}: {reason(error)}") from None

    def _check_writable(self) -> None:
        """Refuse a directory that is not there or takes no file, and a file that is read-only."""
        import tempfile

        problem, directory = missing_directory(self._path), self._path.parent
        if not problem and self._path.exists() and not os.access(self._path, os.W_OK):
            problem = "the file is read-only"
        if not problem:
            try:
                tempfile.NamedTemporaryFile(dir=directory).close()  # access rights alone do not tell
            except OSError as error:
                problem = f"no file can be written in {shown_path(directory)} ({error.strerror})"
        if problem:
            raise DatabaseError(f"cannot record into {self._name}: {problem}")

    def write_runs(self, runs: Sequence[RawRun], index: NewIndex | None = None) -> None:
        """Store runs in one transaction.

        A new database is made beside its path and gets its name when the runs are in it. If another process
        made one meanwhile, the rows are read again, for that.
        """
        with self._store_errors("the run was not recorded"):
            remove_leftovers(self._path)
            if not self._path.exists():
                with suppress(FileExistsError), creating(self._path) as new:
                    self._write_runs(new, runs, index, journal="MEMORY")  # removed if this fails
                    return
            self._write_runs(self._path, runs, index)

    def _write_runs(
        self, path: Path, runs: Sequence[RawRun], index: NewIndex | None, journal: str | None = None
    ) -> None:
        with closing(connect_to_record(path)) as connection:
            if journal:
                connection.execute(f"PRAGMA journal_mode = {journal}")
            connection.execute("BEGIN IMMEDIATE")
            if not _tables(connection):
                for statement in SCHEMA:
                    connection.execute(statement)
            for run in runs:
                self._check_new(connection, run.run_id)
                connection.execute(_INSERT_RUN, run[:-1])  # all but its results
                rows = ((run.run_id, query_id, result.decode()) for query_id, result in run.rows)
                connection.executemany(_INSERT_RESULT, rows)
            if index is not None:
                self._check_own(connection)
                _write_chunks(connection, index)
            connection.execute("COMMIT")

    def _check_new(self, connection: sqlite3.Connection, run_id: str) -> None:
        """Refuse a database without the eval tables, and a run id that is already there."""
        tables = _tables(connection)
        if not tables:
            return
        if not set(EVAL_TABLES) <= tables:
            raise InputError(
                f"{self._name} is a database of something else: it has no {' and '.join(EVAL_TABLES)}"
                " tables; name another file to record into"
            )
        check_tables(connection, self._path)
        if connection.execute("SELECT 1 FROM eval_runs WHERE run_id = ?", (run_id,)).fetchone():
            raise run_is_there(self._name, run_id)

    def _check_own(self, connection: sqlite3.Connection) -> None:
        """Refuse to write chunks into a database whose tables the recorder did not make."""
        tables, statements = (*EVAL_TABLES, *CORPUS_TABLES), (*SCHEMA, *CORPUS_SCHEMA)
        for table, statement in zip(tables, statements, strict=True):
            made_by = _statement_of(connection, table)
            if made_by and made_by not in (statement.split(), FIRST_CHUNKS_SCHEMA.split()):
                raise InputError(
                    f"the table {table} of {self._name} was not made by the recorder, so chunks are not"
                    " written there; leave out chunks=, or record into another file"
                )
        check_no_triggers(connection, self._path, CORPUS_TABLES)

    # -- changing ------------------------------------------------------------------------------------

    def remove_run(self, run_id: str, *, with_file: bool) -> None:
        try:
            with closing(connect_to_record(self._path)) as connection:
                connection.execute("BEGIN EXCLUSIVE")
                _delete(connection, run_id)
                if with_file and not connection.execute("SELECT 1 FROM eval_runs").fetchone():
                    with suppress(PermissionError):  # Windows removes no open file
                        self._path.unlink()
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise StoreError(
                f"run '{printable(run_id)}' is in {self._name} and could not be removed again: {error}"
            ) from None

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        with self._changing() as connection:
            tags = f"SELECT name, run_id FROM {TAGS_TABLE}"
            for row in connection.execute(tags) if TAGS_TABLE in table_kinds(connection) else ():
                name, run_id = map(text_of, row)
                if run_id in run_ids:
                    raise run_is_tagged(self._name, run_id, name)
            for run_id in run_ids:
                _delete(connection, run_id)

    def give_back_room(self) -> Room:
        """Have SQLite write the file anew, in place and under its own locks.

        With a new file in the place of this one, a recorder that has the old one open could not record.
        """
        before = size_of(self._path)
        with (
            self._store_errors("the room of removed runs was not given back"),
            closing(connect(self._path, "mode=rw", WRITE_TIMEOUT_S)) as connection,
        ):
            (free_pages,) = connection.execute("PRAGMA freelist_count").fetchone()
            if free_pages:
                connection.execute("VACUUM")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Room(before, size_of(self._path))

    def tag(self, name: str, run_id: str | None) -> None:
        with self._changing() as connection:
            has_tags = TAGS_TABLE in table_kinds(connection)
            if run_id is not None:
                if not has_tags:
                    connection.execute(TAGS_SCHEMA)
                connection.execute(_SET_TAG, (name, run_id))
            elif has_tags:
                connection.execute(f"DELETE FROM {TAGS_TABLE} WHERE name = ?", (name,))

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A transaction, which is committed at the end of the block."""
        if not self._path.exists():
            raise NoDatabase(f"there is no database {self._name}; name yours with --kebab-db=FILE")
        with (
            self._store_errors("nothing was changed"),
            closing(connect(self._path, "mode=rw", WRITE_TIMEOUT_S)) as connection,
        ):
            connection.execute("BEGIN IMMEDIATE")
            check_tables(connection, self._path)
            check_no_triggers(connection, self._path, [TAGS_TABLE])
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _store_errors(self, failed: str) -> Iterator[None]:
        """Turn errors of SQLite and of the file system into a `StoreError`."""
        try:
            yield
        except (*SQLITE_ERRORS, OSError) as error:
            why = "it is locked by another program" if is_locked(error) else reason(error)
            raise StoreError(f"{failed} in {self._name}: {why}") from None


def connect_to_record(path: Path) -> sqlite3.Connection:
    """Open a file to write to; it is made if it is not there."""
    return connect(path, "mode=rwc", WRITE_TIMEOUT_S)


def _tables(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {str(name).lower() for (name,) in rows}


def _delete(connection: sqlite3.Connection, run_id: str) -> None:
    for table in reversed(EVAL_TABLES):
        connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))


def _statement_of(connection: sqlite3.Connection, table: str) -> list[str]:
    """The words of the statement that made a table; none if it is not there."""
    row = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return str(row[0]).split() if row else []


def _write_chunks(connection: sqlite3.Connection, index: NewIndex) -> None:
    """Make these the chunks of that chunker version; those of other versions stay, also with the same ids."""
    is_first = _statement_of(connection, "chunks") == FIRST_CHUNKS_SCHEMA.split()
    if is_first:
        connection.execute("CREATE TEMP TABLE first_chunks AS SELECT * FROM chunks")
        connection.execute("DROP TABLE chunks")
    for statement in CORPUS_SCHEMA:
        connection.execute(statement.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"))
    if is_first:
        connection.execute("INSERT INTO chunks SELECT * FROM first_chunks")
    connection.execute("DELETE FROM chunks WHERE chunker_version IS ?", (index.chunker_version,))
    connection.executemany(
        "INSERT OR REPLACE INTO documents (doc_id, workspace_path) VALUES (?, ?)",
        {row.doc_id: row.path for row in index.chunks}.items(),
    )
    connection.executemany(
        "INSERT INTO chunks (chunk_id, doc_id, text, heading_path_json, source_spans_json,"
        " token_estimate, chunker_version) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((*row[:6], index.chunker_version) for row in index.chunks),
    )
    connection.execute("DELETE FROM documents WHERE doc_id NOT IN (SELECT doc_id FROM chunks)")


# -- aggregates --------------------------------------------------------------------------------------


@contextmanager
def storing_aggregates(aggregates: Mapping[Path, Mapping[str, str]]) -> Iterator[None]:
    """Write `aggregate_json` of runs by their ids, in all these files or in none; the end commits it.

    One file may have several names.
    """
    schemas: dict[Path, str] = {}  # by the first name of each file
    for path in aggregates:
        if not any(_is_same(path, known) for known in schemas):
            schemas[path.resolve()] = f"db{len(schemas)}" if schemas else "main"
    try:
        with closing(_connect_to_all(schemas)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for path, schema in schemas.items():
                check_tables(connection, path, schema)
            for path, found in aggregates.items():
                update = next(_update(schema) for known, schema in schemas.items() if _is_same(path, known))
                for run_id, aggregate in found.items():
                    if connection.execute(update, (aggregate, run_id)).rowcount != 1:
                        name = f"'{printable(run_id)}' in {shown_path(path)}"
                        raise StoreError(f"nothing was stored: there is no run {name}")
            yield
            connection.execute("COMMIT")
    except DatabaseError as error:
        raise StoreError(f"the aggregates were not stored: {error}") from None
    except SQLITE_ERRORS as error:
        locked = "another program is writing to it; try again when it is done"
        names = " and ".join(map(shown_path, schemas))
        why = locked if is_locked(error) else reason(error)
        raise StoreError(f"the aggregates were not stored in {names}: {why}") from None


def _update(schema: str) -> str:
    return f"UPDATE {schema}.eval_runs SET aggregate_json = ? WHERE run_id = ?"


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:  # one is gone, which is found out when it is opened
        return path.resolve() == other


def _connect_to_all(schemas: Mapping[Path, str]) -> sqlite3.Connection:
    """One connection with every database attached, so that one transaction covers them all.

    The main database is a file and not in memory: only then does a transaction over several files survive
    a crash whole (in WAL mode not even then).
    """
    main, *others = schemas
    connection = connect(main, "mode=rw", AGGREGATES_TIMEOUT_S)
    try:
        for path in others:
            load_schema(connection, f"ATTACH ? AS {schemas[path]}", (database_uri(path, "mode=rw"),))
    except BaseException:
        connection.close()
        raise
    return connection
