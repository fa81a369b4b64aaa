"""`eval_runs.aggregate_json` of a database of a server, written in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_kebab_eval.errors import DatabaseError, StoreError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.postgres.connections import (
    WRITE,
    is_locked,
    postgres_errors,
    reason,
    transaction,
)
from pytest_kebab_eval.store.postgres.tables import check_tables
from pytest_kebab_eval.store.postgres.texts import can_hold

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection

WRITE_TIMEOUT_S = 10.0


class PostgresAggregates:
    """The runs of a database, in an open transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, run_id: str, aggregate_json: str) -> bool:
        """Store the aggregate; False if there is no such run."""
        update = "UPDATE eval_runs SET aggregate_json = %s WHERE run_id = %s"
        return can_hold(run_id) and self._connection.execute(update, (aggregate_json, run_id)).rowcount == 1

    def commit(self) -> None:
        """Make it last."""
        self._connection.execute("COMMIT")


@contextmanager
def open_for_aggregates(address: PostgresAddress) -> Iterator[PostgresAggregates]:
    """Begin a transaction on the database."""
    with _store_errors(address), transaction(address, WRITE, WRITE_TIMEOUT_S) as connection:
        check_tables(connection, address)
        yield PostgresAggregates(connection)


@contextmanager
def _store_errors(address: PostgresAddress) -> Iterator[None]:
    """Turn errors of PostgreSQL into a `StoreError`."""
    try:
        yield
    except DatabaseError as error:
        raise StoreError(f"the aggregates were not stored: {error}") from None
    except postgres_errors() as error:
        why = (
            "another program is writing to it; try again when it is done"
            if is_locked(error)
            else reason(error)
        )
        raise StoreError(f"the aggregates were not stored in {address.shown}: {why}") from None
