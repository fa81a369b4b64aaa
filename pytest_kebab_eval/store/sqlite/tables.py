"""Whether the tables of a database are plain tables, in which nothing runs when they are read or written."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.schema import CORPUS_TABLES, EVAL_TABLES, READ_COLUMNS, TAGS_TABLE
from pytest_kebab_eval.text import brief, shown_path

_GENERATED = (2, 3)  # `hidden` in SQLite's table_xinfo: computed when read, computed when written
_CALL = re.compile(r"(?:Function|PureFunc)\w*")
_PLAIN_FUNCTIONS = frozenset(  # which take no longer than their argument is long
    (
        *(
            "abs",
            "coalesce",
            "glob",
            "ifnull",
            "length",
            "like",
            "lower",
            "ltrim",
            "round",
            "rtrim",
            "substr",
        ),
        *("date", "datetime", "julianday", "strftime", "time", "trim", "typeof", "unixepoch", "upper"),
        *("json_array_length", "json_extract", "json_type", "json_valid", "->", "->>"),
    )
)


def check_tables(connection: sqlite3.Connection, path: Path, schema: str = "main") -> None:
    """Refuse a view, a virtual table, a generated column or a trigger where a plain table is expected."""
    kinds = _kinds(connection, schema)
    for table in (*EVAL_TABLES, *CORPUS_TABLES, TAGS_TABLE):
        kind = kinds.get(table, "table")
        if kind != "table":
            raise _refusal(path, f"{table} is a {kind}, not a table", "make it a table")
        _check_columns(connection, path, f"{schema}.", table)
    check_no_triggers(connection, path, EVAL_TABLES, schema)


def has_table(connection: sqlite3.Connection, table: str) -> bool:
    """Whether there is a table of that name, which is in lower case."""
    return table in _kinds(connection, "main")


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


def _kinds(connection: sqlite3.Connection, schema: str) -> dict[str, str]:
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


def _check_columns(connection: sqlite3.Connection, path: Path, schema: str, table: str) -> None:
    for _, name, *_, hidden in connection.execute(f"PRAGMA {schema}table_xinfo({table})"):
        if hidden in _GENERATED and text_of(name).lower() in READ_COLUMNS[table]:
            what = f"the column {text_of(name).lower()} of {table} is computed, not stored"
            raise _refusal(path, what, "store its values")


def _refusal(path: Path, what: str, advice: str) -> DatabaseError:
    return DatabaseError(f"{shown_path(path)} is refused: {what}; {advice}, or name another database")
