"""The one place that opens SQLite connections, and words their errors."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError, NoDatabase
from pytest_kebab_eval.limits import STORED_VALUE_BYTES
from pytest_kebab_eval.text import printable, shown_path


def connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """Open a database file; the mode is one of SQLite's URI parameters, such as `mode=ro`."""
    connection = sqlite3.connect(database_uri(path, mode), uri=True, timeout=timeout, isolation_level=None)
    try:
        if sys.version_info >= (3, 11):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, STORED_VALUE_BYTES)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA foreign_keys = OFF")  # a foreign key may delete rows of other tables
        load_schema(connection, "SELECT 1 FROM sqlite_master LIMIT 1")
    except BaseException:
        connection.close()
        raise
    return connection


def size_of(path: Path) -> int:
    """How many bytes a database takes; its log may hold most of it."""
    files = (path, path.with_name(f"{path.name}-wal"))
    return sum(file.stat().st_size for file in files if file.exists())


def load_schema(connection: sqlite3.Connection, statement: str, parameters: tuple[str, ...] = ()) -> None:
    """Run the first statement that needs a database's schema.

    Some versions of SQLite (3.40 is one) take JSON functions for unsafe: with an untrusted schema they cannot
    open a database that has `CHECK (json_valid(…))` anywhere. What else is refused here stays refused.
    """
    try:
        connection.execute(statement, parameters).fetchone()
    except sqlite3.Error as error:
        if "unsafe use of json" not in str(error):
            raise
        connection.execute("PRAGMA trusted_schema = ON")
        connection.execute(statement, parameters).fetchone()


def database_uri(path: Path, mode: str) -> str:
    """The path as SQLite takes it with parameters."""
    return f"{_without_server(path.absolute().as_uri())}?{mode}"


def _without_server(uri: str) -> str:
    """SQLite takes the server of a Windows share, `file://server/share`, only as a part of the path."""
    return uri if uri.startswith("file:///") else uri.replace("file://", "file:////", 1)


# -- a database that is only read --------------------------------------------------------------------


def connect_to_read(path: Path, timeout: float) -> sqlite3.Connection:
    """Open a file in a transaction that only reads."""
    if not path.exists():
        raise NoDatabase(f"there is no database {shown_path(path)}; name yours with --kebab-db=FILE")
    if not path.is_file():
        kind = "directory" if path.is_dir() else "special file"
        raise DatabaseError(f"{shown_path(path)} is a {kind}, not a database file")
    path = path.resolve()  # SQLite keeps its log beside the file, not beside a link to it
    try:
        return _begin_reading(path, "mode=ro", timeout)
    except sqlite3.OperationalError as error:
        # SQLite reads a WAL database only where it can create its -shm file, or if told that nobody
        # writes (immutable). In a read-only directory nobody does; and no log may be left to be read.
        if is_locked(error):
            raise
        if "readonly" in str(error) and path.with_name(f"{path.name}-journal").exists():
            # Undo the unfinished transaction of a killed program, as SQLite does on opening for writing.
            _begin_reading(path, "mode=rw", timeout).close()
            return _begin_reading(path, "mode=ro", timeout)
        if not _uses_wal(path):
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise DatabaseError(
                f"{shown_path(path)} has changes in {log.name} that can only be read where its directory"
                " can be written to; copy the files somewhere else, or close the program that wrote them"
            ) from None
        return _begin_reading(path, "mode=ro&immutable=1", timeout)


def _begin_reading(path: Path, parameters: str, timeout: float) -> sqlite3.Connection:
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


# -- errors ------------------------------------------------------------------------------------------

# What Python raises for an error of SQLite; the second, from 3.11 on, if its text is not UTF-8.
SQLITE_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def is_locked(error: Exception) -> bool:
    """Whether another program holds what is needed."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


def reason(error: Exception) -> str:
    """Why SQLite or the file system gave up, in words where its own do not tell."""
    if isinstance(error, UnicodeDecodeError) or not str(error):
        return "its schema is damaged, with text that is not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    text = printable(str(error))
    if "too big" in text:
        return f"it has a value longer than {STORED_VALUE_BYTES // 1_000_000} MB"
    return text


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
    except SQLITE_ERRORS as error:
        raise DatabaseError(f"{name} cannot be read as an SQLite database: {reason(error)}") from None
    except OSError as error:
        raise DatabaseError(f"cannot open {name}: {error.strerror or error}") from None
