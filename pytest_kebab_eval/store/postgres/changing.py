"""Runs removed from a database of a server, and tags, each in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.postgres.connections import (
    WRITE,
    is_locked,
    postgres_errors,
    reason,
    transaction,
)
from pytest_kebab_eval.store.postgres.tables import check_tables
from pytest_kebab_eval.store.postgres.texts import check_text
from pytest_kebab_eval.store.schema import EVAL_TABLES, TAGS_TABLE
from pytest_kebab_eval.text import printable

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection

CHANGE_TIMEOUT_S = 60.0
_SET_TAG = (
    f"INSERT INTO {TAGS_TABLE} (name, run_id) VALUES (%s, %s)"
    " ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id"
)


def remove_runs(address: PostgresAddress, run_ids: Sequence[str]) -> None:
    """Remove runs, all of them or none; an `InputError` if a tag names one of them."""
    with _changing(address) as connection:
        connection.execute(f"LOCK TABLE {TAGS_TABLE} IN SHARE MODE")  # so that none is tagged meanwhile
        tagged = f"SELECT name::text, run_id::text FROM {TAGS_TABLE} WHERE run_id = ANY(%s) ORDER BY name"
        found = connection.execute(tagged, (list(run_ids),)).fetchone()
        if found:
            name, run_id = map(text_of, found)
            raise InputError(
                f"run '{printable(run_id)}' of {address.shown} is tagged '{printable(name)}'; nothing was"
                " removed"
            )
        for table in reversed(EVAL_TABLES):
            connection.execute(f"DELETE FROM {table} WHERE run_id = ANY(%s)", (list(run_ids),))


def set_tag(address: PostgresAddress, name: str, run_id: str | None) -> None:
    """Have a tag name this run, or no run any more."""
    check_text(name, "the tag")
    with _changing(address) as connection:
        if run_id is None:
            connection.execute(f"DELETE FROM {TAGS_TABLE} WHERE name = %s", (name,))
        else:
            connection.execute(_SET_TAG, (name, run_id))


@contextmanager
def _changing(address: PostgresAddress) -> Iterator[Connection]:
    """A transaction, which is committed at the end of the block."""
    try:
        with transaction(address, WRITE, CHANGE_TIMEOUT_S) as connection:
            check_tables(connection, address, written=(*EVAL_TABLES, TAGS_TABLE))
            yield connection
            connection.execute("COMMIT")
    except postgres_errors() as error:
        why = "it is locked by another program" if is_locked(error) else reason(error)
        raise StoreError(f"nothing was changed in {address.shown}: {why}") from None
