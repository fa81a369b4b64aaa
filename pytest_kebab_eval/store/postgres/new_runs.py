"""A recorded run -> a database of a server, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pytest_kebab_eval.errors import DatabaseError, InputError, StoreError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.backend import Rows, StoredRun
from pytest_kebab_eval.store.new_chunks import ChunkRow
from pytest_kebab_eval.store.postgres.chunks import check_own, write_chunks
from pytest_kebab_eval.store.postgres.connections import (
    TAKEN,
    WRITE,
    database_errors,
    is_locked,
    is_lost,
    postgres_errors,
    reason,
    transaction,
)
from pytest_kebab_eval.store.postgres.tables import check_tables
from pytest_kebab_eval.store.postgres.texts import check_text
from pytest_kebab_eval.store.results import encode_json
from pytest_kebab_eval.store.schema import CORPUS_TABLES, EVAL_TABLES
from pytest_kebab_eval.text import printable

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection

RECORD_TIMEOUT_S = 60.0
_INSERT_RUN = (
    "INSERT INTO eval_runs (run_id, suite, config_snapshot_json, aggregate_json, commit_hash, created_at)"
    " VALUES (%s, %s, %s, %s, %s, %s)"
)
_COPY_RESULTS = "COPY eval_query_results (run_id, query_id, result_json) FROM STDIN (FORMAT BINARY)"


def check_recordable(address: PostgresAddress, run_id: str, *, with_chunks: bool = False) -> None:
    """Raise an `InputError` early if a run of that id cannot be recorded there."""
    check_text(run_id, "the run id")
    with database_errors(address), transaction(address, WRITE, RECORD_TIMEOUT_S) as connection:
        _check_new(connection, run_id, address)
        _check_writable(connection, address, (*EVAL_TABLES, *CORPUS_TABLES) if with_chunks else EVAL_TABLES)
        if with_chunks:
            check_own(connection, address)


def write_run(address: PostgresAddress, run: Run, rows: Rows, chunks: list[ChunkRow] | None = None) -> None:
    """Store a run, its rows (query id, `result_json`) and the chunks of its index in one transaction."""
    config = encode_json("config", run.config).decode()
    stored = StoredRun(run.run_id, run.suite, config, run.commit_hash, run.created_at, rows)
    with _writing(address, [stored]) as connection:
        if chunks is not None:
            check_own(connection, address)
            write_chunks(connection, chunks, run.chunker_version)


def write_runs(address: PostgresAddress, runs: Sequence[StoredRun]) -> None:
    """Store runs in one transaction."""
    with _writing(address, runs):
        pass


@contextmanager
def _writing(address: PostgresAddress, runs: Sequence[StoredRun]) -> Iterator[Connection]:
    """A transaction in which the runs are written, committed at the end of the block."""
    for run in runs:
        for what, text in (
            ("the run id", run.run_id),
            ("the suite", run.suite),
            ("the commit", run.commit_hash),
        ):
            check_text(text, what)
    name = ", ".join(run.run_id for run in runs)
    with _store_errors(address, name), transaction(address, WRITE, RECORD_TIMEOUT_S) as connection:
        for run in runs:
            _check_new(connection, run.run_id, address)
            _insert(connection, run)
        yield connection
        _commit(connection, address, name)


def _insert(connection: Connection, run: StoredRun) -> None:
    connection.execute(
        _INSERT_RUN,
        (run.run_id, run.suite, run.config_json, run.aggregate_json, run.commit_hash, run.created_at),
    )
    _copy_results(connection, run.run_id, run.rows)


def _copy_results(connection: Connection, run_id: str, rows: Rows) -> None:
    with connection.cursor().copy(_COPY_RESULTS) as copy:
        copy.set_types(("text", "text", "text"))
        for query_id, result_json in rows:
            check_text(query_id, "the query id")
            copy.write_row((run_id, query_id, result_json.decode()))


def _commit(connection: Connection, address: PostgresAddress, run_id: str) -> None:
    """Make it last; where the connection is lost meanwhile, nobody can tell whether it does."""
    try:
        connection.execute("COMMIT")
    except postgres_errors() as error:
        if not is_lost(error):
            raise
        raise StoreError(
            f"the connection to {address.shown} was lost while run '{printable(run_id)}' was committed; see"
            " with kebab-eval runs whether it is there, whole, or record it again"
        ) from None


def remove_run(address: PostgresAddress, run_id: str) -> None:
    """Remove a run that was just stored."""
    try:
        with transaction(address, WRITE, RECORD_TIMEOUT_S) as connection:
            connection.execute("DELETE FROM eval_query_results WHERE run_id = %s", (run_id,))
            connection.execute("DELETE FROM eval_runs WHERE run_id = %s", (run_id,))
            connection.execute("COMMIT")
    except DatabaseError as error:
        raise _not_removed(address, run_id, error) from None
    except postgres_errors() as error:
        raise _not_removed(address, run_id, error) from None


def _not_removed(address: PostgresAddress, run_id: str, error: Exception) -> StoreError:
    return StoreError(
        f"run '{printable(run_id)}' is in {address.shown} and could not be removed again: {reason(error)}"
    )


def _check_new(connection: Connection, run_id: str, address: PostgresAddress) -> None:
    """Refuse a database without the eval tables, and a run id that is already there."""
    check_tables(connection, address, written=(*EVAL_TABLES, *CORPUS_TABLES))
    if connection.execute("SELECT 1 FROM eval_runs WHERE run_id = %s", (run_id,)).fetchone():
        raise _taken(address, run_id)


def _taken(address: PostgresAddress, run_id: str) -> InputError:
    return InputError(
        f"{address.shown} has a run '{printable(run_id)}' already; name the new one differently"
    )


def _check_writable(connection: Connection, address: PostgresAddress, tables: tuple[str, ...]) -> None:
    """Refuse a role that may not write, and a server that does not, before the work is done."""
    (is_standby,) = connection.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
    if is_standby:
        raise DatabaseError(f"cannot record into {address.shown}: the server is read-only, as a standby is")
    rows = connection.execute(
        "SELECT name FROM unnest(%s::text[]) AS name"
        " WHERE NOT has_table_privilege(to_regclass(name), 'INSERT')",
        (list(tables),),
    )
    denied = [name.decode() for (name,) in rows]
    if denied:
        raise DatabaseError(
            f"cannot record into {address.shown}: the role may not insert into {' and '.join(denied)};"
            " see docs/postgres.md for what a role must be granted"
        )


@contextmanager
def _store_errors(address: PostgresAddress, run_id: str) -> Iterator[None]:
    """Turn errors of PostgreSQL into a `StoreError`."""
    try:
        yield
    except DatabaseError as error:
        raise StoreError(f"the run was not recorded: {error}") from None
    except postgres_errors() as error:
        if getattr(error, "sqlstate", None) == TAKEN and "eval_runs" in str(error):
            raise _taken(address, run_id) from None
        why = "it is locked by another program" if is_locked(error) else reason(error)
        raise StoreError(f"the run was not recorded in {address.shown}: {why}") from None
