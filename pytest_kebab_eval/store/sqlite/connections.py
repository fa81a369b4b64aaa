"""The one place that opens SQLite connections, and words their errors.

A database may come from anywhere, so nothing that it brings along can act through them: no view, no trigger,
no function with an effect, no extension. What is left, a file whose pages lead in circles, is stopped by a
bound on steps.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError, NoDatabase
from pytest_kebab_eval.limits import (
    FREE_SQL_STEPS,
    LIKE_PATTERN,
    SQL_STEPS_PER_BYTE,
    SQL_STEPS_PER_CHECK,
    STORED_VALUE_BYTES,
)
from pytest_kebab_eval.text import printable, shown_path

_OWN_FUNCTIONS = frozenset({"count", "like", "max", "min", "total"})  # that the SQL of this package calls
VACUUM_FUNCTIONS = _OWN_FUNCTIONS | {
    "coalesce",
    "quote",
    "json_valid",
}  # SQLite's own SQL, and kebab's checks


def connect(
    path: Path,
    mode: str,
    timeout: float,
    free_steps: int = FREE_SQL_STEPS,
    functions: AbstractSet[str] = _OWN_FUNCTIONS,
) -> sqlite3.Connection:
    """Open a database file; the mode is one of SQLite's URI parameters, such as `mode=ro`."""
    connection = sqlite3.connect(database_uri(path, mode), uri=True, timeout=timeout, isolation_level=None)
    try:
        _restrict(connection, functions)
        checks = iter(range((free_steps + size_of(path) * SQL_STEPS_PER_BYTE) // SQL_STEPS_PER_CHECK))
        connection.set_progress_handler(lambda: next(checks, None) is None, SQL_STEPS_PER_CHECK)
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


def _restrict(connection: sqlite3.Connection, functions: AbstractSet[str]) -> None:
    """Let the schema call nothing but these functions.

    Python 3.10 has no limits, and only 3.12 has the defensive mode.
    """
    if sys.version_info >= (3, 11):
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, STORED_VALUE_BYTES)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LIKE_PATTERN)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        for switch in (
            sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA,
            sqlite3.SQLITE_DBCONFIG_WRITABLE_SCHEMA,
            sqlite3.SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION,
            sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER,
            sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW,
        ):
            connection.setconfig(switch, False)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA foreign_keys = OFF")  # a foreign key may delete rows of other tables
    connection.execute("PRAGMA cell_size_check = ON")

    def authorize(action: int, _: str | None, second: str | None, __: str | None, inside: str | None) -> int:
        """Asked once for each statement that is compiled; `inside` is the name of a view or trigger."""
        if inside is not None or action == sqlite3.SQLITE_RECURSIVE:
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_FUNCTION and second not in functions:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK

    connection.set_authorizer(authorize)


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


class DamagedIndex(sqlite3.DatabaseError):
    """An index does not lead to the rows that its table has; the text says which."""


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
    if text == "interrupted":
        return "it takes more steps than a database of its size can need; it is damaged, or made to never end"
    if "not authorized" in text or "prohibited" in text:
        return f"a view, trigger or function in its schema would run, which is refused ({text})"
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
    except DamagedIndex as error:
        raise DatabaseError(
            f"{name} is damaged, and rows are lost: its index {printable(str(error))};"
            " restore it from a backup, or repair it with SQLite's REINDEX"
        ) from None
    except SQLITE_ERRORS as error:
        raise DatabaseError(f"{name} cannot be read as an SQLite database: {reason(error)}") from None
    except OSError as error:
        raise DatabaseError(f"cannot open {name}: {error.strerror or error}") from None
