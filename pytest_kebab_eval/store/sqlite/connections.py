"""The one place that opens SQLite connections; what a database brings along cannot act through them.

A database may come from anywhere, so nothing in its schema runs: no view, no trigger, no function with an
effect, no extension. What is left, a file whose pages lead in circles, is stopped by a bound on steps.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Set as AbstractSet
from pathlib import Path

from pytest_kebab_eval.limits import (
    FREE_SQL_STEPS,
    LIKE_PATTERN,
    SQL_STEPS_PER_BYTE,
    SQL_STEPS_PER_CHECK,
    STORED_VALUE_BYTES,
)
from pytest_kebab_eval.text import printable

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
    if text == "interrupted":
        return "it takes more steps than a database of its size can need; it is damaged, or made to never end"
    if "not authorized" in text or "prohibited" in text:
        return f"a view, trigger or function in its schema would run, which is refused ({text})"
    if "too big" in text:
        return f"it has a value longer than {STORED_VALUE_BYTES // 1_000_000} MB"
    return text


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
