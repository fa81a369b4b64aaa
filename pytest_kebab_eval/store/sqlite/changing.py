"""Runs removed from an SQLite file, and tags, each in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_kebab_eval.errors import InputError, NoDatabase, StoreError
from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.schema import EVAL_TABLES, TAGS_SCHEMA, TAGS_TABLE
from pytest_kebab_eval.store.sqlite.connections import SQLITE_ERRORS, connect, reason
from pytest_kebab_eval.store.sqlite.tables import (
    check_no_triggers,
    check_statement,
    check_tables,
    has_table,
)
from pytest_kebab_eval.text import printable, shown_path

CHANGE_TIMEOUT_S = 60.0
_SET_TAG = f"INSERT OR REPLACE INTO {TAGS_TABLE} (name, run_id) VALUES (?, ?)"


def remove_runs(db: Path, run_ids: Sequence[str]) -> None:
    """Remove runs, all of them or none; an `InputError` if a tag names one of them."""
    with _changing(db) as connection:
        for name, tagged in _tags(connection):
            if tagged in run_ids:
                raise InputError(
                    f"run '{printable(tagged)}' of {shown_path(db)} is tagged '{printable(name)}'; nothing"
                    " was removed"
                )
        for run_id in run_ids:
            for table in reversed(EVAL_TABLES):
                connection.execute(f"DELETE FROM {table} WHERE run_id = ?", (run_id,))


def set_tag(db: Path, name: str, run_id: str | None) -> None:
    """Have a tag name this run, or no run any more; the table of tags is made when it is first needed."""
    with _changing(db) as connection:
        if run_id is None:
            if has_table(connection, TAGS_TABLE):
                connection.execute(f"DELETE FROM {TAGS_TABLE} WHERE name = ?", (name,))
            return
        if not has_table(connection, TAGS_TABLE):
            connection.execute(TAGS_SCHEMA)
        check_statement(connection, db, _SET_TAG, parameters=2)
        connection.execute(_SET_TAG, (name, run_id))


def _tags(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    if not has_table(connection, TAGS_TABLE):
        return []
    rows = connection.execute(f"SELECT name, run_id FROM {TAGS_TABLE} NOT INDEXED")
    return [(text_of(name), text_of(run_id)) for name, run_id in rows]


@contextmanager
def _changing(db: Path) -> Iterator[sqlite3.Connection]:
    """A transaction, which is committed at the end of the block."""
    name = shown_path(db)
    if not db.exists():
        raise NoDatabase(f"there is no database {name}; name yours with --kebab-db=FILE")
    try:
        with closing(connect(db, "mode=rw", CHANGE_TIMEOUT_S)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            check_tables(connection, db)
            check_no_triggers(connection, db, [TAGS_TABLE])
            yield connection
            connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        why = "it is locked by another program" if "locked" in str(error) else reason(error)
        raise StoreError(f"nothing was changed in {name}: {why}") from None
    except (*SQLITE_ERRORS, OSError) as error:
        raise StoreError(f"nothing was changed in {name}: {reason(error)}") from None
