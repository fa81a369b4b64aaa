"""SQLite files as a store."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase, StoreError
from pytest_kebab_eval.files import creating, remove_leftovers
from pytest_kebab_eval.limits import CHECKED_BYTES, STORED_VALUE_BYTES
from pytest_kebab_eval.store.address import missing_directory
from pytest_kebab_eval.store.database import (
    CORPUS_TABLES,
    EVAL_TABLES,
    TAGS_TABLE,
    Connection,
    Database,
    RawRun,
    Row,
)
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.store.sql import (
    AGGREGATES_TIMEOUT_S,
    READ_TIMEOUT_S,
    WRITE_TIMEOUT_S,
    NewIndex,
    Room,
    Store,
    check_has_runs,
    check_tables,
    make_missing_tables,
    store_aggregates,
)
from pytest_kebab_eval.text import printable, shown_path

_READ_COLUMNS = {
    "eval_runs": {"run_id", "suite", "config_snapshot_json", "aggregate_json", "commit_hash", "created_at"},
    "eval_query_results": {"run_id", "query_id", "result_json"},
    "documents": {"doc_id", "workspace_path"},
    "chunks": {"chunk_id", "doc_id", "text", "heading_path_json", "source_spans_json", "chunker_version"},
    TAGS_TABLE: {"name", "run_id"},
}
APPLICATION_ID = 0x6B656201  # in the header of a file whose tables were made here
_GENERATED = (2, 3)  # `hidden` in SQLite's table_xinfo: computed when read, computed when written


class SqliteConnection(Connection):
    """An open file, or a database in memory."""

    AMONG = "IN (SELECT value FROM json_each(?))"
    BY_BYTES = "COLLATE BINARY"
    HOLDS_NUL = True  # in what others wrote

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        raw.text_factory = bytes

    def rows(
        self,
        statement: str,
        values: Sequence[Any] = (),
        *,
        are_many: bool = False,  # noqa: ARG002  SQLite always gives one row at a time
    ) -> Iterable[Row]:
        return self._raw.execute(statement.replace("{schema}", ""), values)

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._raw.execute(statement.replace("{schema}", ""), values).rowcount

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        self._raw.executemany(statement.replace("{schema}", ""), rows)

    def many(self, values: Sequence[str]) -> str:
        return json.dumps([*values])

    def columns(self, table: str) -> set[str]:
        return {text_of(row[1]) for row in self._raw.execute(f"PRAGMA table_info({table})")}

    def are_own(self) -> bool:
        return self.first("PRAGMA application_id") == (APPLICATION_ID,)

    def mark_as_own(self) -> None:
        self.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def now(self) -> str:
        return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class SqliteStore(Store):
    """A database file, which is made when a run is recorded."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path

    def is_there(self) -> bool:
        return self._path.exists()

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[Database]:
        errors = partial(reading_errors, self._path)
        with errors(), closing(_open_to_read(self._path)) as raw:
            tables = _checked_tables(raw, self.name)
            check_has_runs(tables, self.name)
            if self._path.stat().st_size <= CHECKED_BYTES:
                (found,) = raw.execute("PRAGMA quick_check(1)").fetchone()
                if text_of(found) != "ok":
                    raise DatabaseError(f"{self.name} is damaged ({printable(text_of(found))}); restore it")
            yield Database(self._path, SqliteConnection(raw), errors, mask)

    @contextmanager
    def writing(
        self, failed: str, timeout_s: float = WRITE_TIMEOUT_S, *, with_corpus: bool = False
    ) -> Iterator[Connection]:
        with self._transaction(failed, timeout_s, with_corpus=with_corpus) as (raw, _):
            yield SqliteConnection(raw)

    @contextmanager
    def recording(self, failed: str, *, with_corpus: bool = False) -> Iterator[Connection]:
        with self._transaction(failed, WRITE_TIMEOUT_S, with_corpus=with_corpus) as (raw, tables):
            connection = SqliteConnection(raw)
            if tables and not tables & {*EVAL_TABLES, *CORPUS_TABLES}:
                raise InputError(
                    f"{self.name} is a database of something else: it has no {' and '.join(EVAL_TABLES)}"
                    " tables; name another file to record into"
                )
            make_missing_tables(connection, tables, self.name, "TEXT", with_corpus=with_corpus)
            yield connection

    @contextmanager
    def _transaction(
        self, failed: str, timeout_s: float, *, with_corpus: bool = False, kind: str = "IMMEDIATE"
    ) -> Iterator[tuple[sqlite3.Connection, set[str]]]:
        """A transaction, and the tables that there are; committed at the end of the block."""
        if not self._path.exists():
            raise NoDatabase(f"there is no database {self.name}; name yours with --kebab-db=FILE")
        with self._errors(failed), closing(_open(self._path, "mode=rw", timeout_s)) as raw:
            raw.execute(f"BEGIN {kind}")
            written = (*CORPUS_TABLES, TAGS_TABLE) if with_corpus else (TAGS_TABLE,)
            yield raw, _checked_tables(raw, self.name, written)
            raw.execute("COMMIT")

    def check_recordable(self, run_id: str, *, with_chunks: bool = False) -> None:
        if problem := missing_directory(self._path):
            raise DatabaseError(f"cannot record into {self.name}: {problem}")
        if self._path.exists():
            super().check_recordable(run_id, with_chunks=with_chunks)

    def write_runs(self, runs: Iterable[RawRun], index: NewIndex | None = None) -> None:
        """Store runs in one transaction.

        A new database is made beside its path and gets its name when the runs are in it. If another process
        made one meanwhile, the rows are read again, for that.
        """
        runs = [*runs]
        remove_leftovers(self._path)
        if not self._path.exists():
            with self._errors("the run was not recorded in"), suppress(FileExistsError):
                with creating(self._path) as new:
                    store = SqliteStore(new)
                    store.name = self.name
                    super(SqliteStore, store).write_runs(runs, index)
                return
        super().write_runs(runs, index)

    def make_tables(self) -> None:
        if not self._path.exists():
            self.write_runs(())
        super().make_tables()

    def remove_run(self, run_id: str, *, with_file: bool) -> None:
        super().remove_run(run_id, with_file=with_file)
        if with_file:
            with self.writing("nothing was changed in") as connection:
                if connection.first("SELECT 1 FROM eval_runs") is None:
                    with suppress(PermissionError):  # Windows removes no open file
                        self._path.unlink()

    def give_back_room(self) -> Room | None:
        """Have SQLite write the file anew, in place and under its own locks."""
        before = _size_of(self._path)
        failed = "the room of removed runs was not given back in"
        with self._errors(failed), closing(_open(self._path, "mode=rw", WRITE_TIMEOUT_S)) as raw:
            (free_pages,) = raw.execute("PRAGMA freelist_count").fetchone()
            if free_pages:
                raw.execute("VACUUM")
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Room(before, _size_of(self._path))

    @contextmanager
    def storing_aggregates(self, aggregates: Mapping[str, str]) -> Iterator[None]:
        # Of two files none is committed while somebody who reads the other could keep that from it.
        failed = "the aggregates were not stored in"
        with self._transaction(failed, AGGREGATES_TIMEOUT_S, kind="EXCLUSIVE") as (raw, _):
            store_aggregates(SqliteConnection(raw), aggregates, self.name)
            yield

    @contextmanager
    def _errors(self, failed: str) -> Iterator[None]:
        """Turn errors of SQLite and of the file system into a `StoreError`."""
        try:
            yield
        except FileExistsError:
            raise
        except (*SQLITE_ERRORS, OSError) as error:
            raise StoreError(f"{failed} {self.name}: {reason(error)}") from None


# -- opening -------------------------------------------------------------------------------------------


def _open(path: Path, mode: str, timeout_s: float) -> sqlite3.Connection:
    """Open a file without trusting its schema; the mode is one of SQLite's URI parameters, as `mode=ro`."""
    uri = path.resolve().as_uri()  # SQLite keeps its log beside the file, not beside a link to it
    if not uri.startswith("file:///"):  # the server of a Windows share is a part of the path
        uri = uri.replace("file://", "file:////", 1)
    raw = sqlite3.connect(f"{uri}?{mode}", uri=True, timeout=timeout_s, isolation_level=None)
    try:
        if sys.version_info >= (3, 11):
            raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, STORED_VALUE_BYTES)
        raw.text_factory = bytes
        raw.execute("PRAGMA trusted_schema = OFF")
        raw.execute("PRAGMA foreign_keys = OFF")  # a foreign key may delete rows of other tables
        try:
            raw.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        except sqlite3.Error as error:
            # Some versions (3.40 is one) open no database that has `CHECK (json_valid(…))` anywhere, then.
            if "unsafe use of json" not in str(error):
                raise
            raw.execute("PRAGMA trusted_schema = ON")
    except BaseException:
        raw.close()
        raise
    return raw


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a file in a transaction that only reads."""
    if not path.exists():
        raise NoDatabase(f"there is no database {shown_path(path)}; name yours with --kebab-db=FILE")
    if not path.is_file():
        kind = "directory" if path.is_dir() else "special file"
        raise DatabaseError(f"{shown_path(path)} is a {kind}, not a database file")
    path = path.resolve()
    try:
        return _begin_reading(path, "mode=ro")
    except sqlite3.OperationalError as error:
        # SQLite reads a WAL database only where it can create its -shm file, or if told that nobody
        # writes (immutable). In a read-only directory nobody does; and no log may be left to be read.
        if "locked" in str(error):
            raise
        if "readonly" in str(error) and path.with_name(f"{path.name}-journal").exists():
            # Undo the unfinished transaction of a killed program, as SQLite does on opening for writing.
            _begin_reading(path, "mode=rw").close()
            return _begin_reading(path, "mode=ro")
        with path.open("rb") as file:
            uses_wal = file.read(20)[18:20] == b"\x02\x02"  # in the header, the write and read version
        if not uses_wal:
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise DatabaseError(
                f"{shown_path(path)} has changes in {log.name} that can only be read where its directory"
                " can be written to; copy the files somewhere else, or close the program that wrote them"
            ) from None
        return _begin_reading(path, "mode=ro&immutable=1")


def _begin_reading(path: Path, mode: str) -> sqlite3.Connection:
    raw = _open(path, mode, READ_TIMEOUT_S)
    try:
        raw.execute("BEGIN")
        raw.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        raw.close()
        raise
    return raw


def _size_of(path: Path) -> int:
    """How many bytes a database takes; its log may hold most of it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def _checked_tables(raw: sqlite3.Connection, name: str, written: Sequence[str] = ()) -> set[str]:
    """The names of the tables in lower case, as SQLite compares them; what is no plain table is refused."""
    found: list[tuple[str, str, str]] = []
    tables: set[str] = set()
    schema = "SELECT type, name, tbl_name, rootpage FROM sqlite_master WHERE type <> 'index'"
    for kind, own_name, table, page in raw.execute(schema).fetchall():
        what, part, of = text_of(kind), text_of(own_name), text_of(table).lower()
        if what == "trigger":
            found.append((of, "trigger", part))
        elif not of.startswith("sqlite_"):
            tables.add(of)
            if what == "view" or not page:
                found.append((of, "kind", "view" if what == "view" else "virtual table"))
    for table, columns in _READ_COLUMNS.items():
        rows = raw.execute(f"PRAGMA table_xinfo({table})").fetchall() if table in tables else ()
        computed = [text_of(row[1]).lower() for row in rows if row[-1] in _GENERATED]
        found += [(table, "computed", column) for column in computed if column in columns]
    check_tables([row for row in found if row[0] in _READ_COLUMNS], name, written)
    return tables


# -- errors --------------------------------------------------------------------------------------------

# What Python raises for an error of SQLite; the second, from 3.11 on, if its text is not UTF-8.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
LOCKED = "it is locked by another program; try again when it is done"


def reason(error: Exception) -> str:
    """Why SQLite or the file system gave up, in words where its own do not tell."""
    if isinstance(error, UnicodeDecodeError) or not str(error):
        return "its schema is damaged, with text that is not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if "locked" in str(error):
        return LOCKED
    if "not a database" in str(error):
        return "it is no SQLite database"
    if "too big" in str(error):
        return f"it has a value longer than {STORED_VALUE_BYTES // 1_000_000} MB"
    return printable(str(error))


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into a `DatabaseError`."""
    try:
        yield
    except (*SQLITE_ERRORS, OSError) as error:
        why = reason(error)
        if "no such column" in why:
            why += "; it was made by another version"
        elif "readonly" in why:
            why += "; another program left it unfinished: open it once where it can be written to"
        raise DatabaseError(f"cannot read the database {shown_path(path)}: {why}") from None
