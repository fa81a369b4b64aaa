"""PostgreSQL as a store, with psycopg 3 from the extra `pytest-kebab-eval[postgres]`.

A database of a server is named and made by people; its tables are made by `kebab-eval store init`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from pytest_kebab_eval.errors import DatabaseError, InputError, StoreError
from pytest_kebab_eval.store import Backend, Made, NewIndex, Room, run_is_tagged, run_is_there
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import EVAL_TABLES, TAGS_TABLE, RawRun
from pytest_kebab_eval.store.postgres.connections import (
    POSTGRES_ERRORS,
    READ_ONLY,
    ROWS,
    SchemaConnection,
    can_hold,
    check_text,
    database_errors,
    is_lost,
    is_taken,
    reason,
    reason_or_lock,
    transaction,
    unchecked_transaction,
)
from pytest_kebab_eval.store.postgres.reading import PostgresDatabase
from pytest_kebab_eval.store.postgres.tables import (
    CHUNKS_BY_VERSION,
    ONE_AT_A_TIME,
    bring_up_to_date,
    grants_in,
    version_of,
)
from pytest_kebab_eval.store.results import first_row, text_of
from pytest_kebab_eval.text import printable

READ_TIMEOUT_S = 5.0
AGGREGATES_TIMEOUT_S = 10.0
WRITE_TIMEOUT_S = 60.0
_INSERT_RUN = (
    "INSERT INTO {schema}.eval_runs"
    " (run_id, suite, config_snapshot_json, commit_hash, created_at, aggregate_json)"
    " VALUES (%s, %s, %s, %s, %s, %s)"
)
_NOW = """SELECT to_char(timezone('UTC', clock_timestamp()), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
_COPY_RESULTS = "COPY {schema}.eval_query_results (run_id, query_id, result_json) FROM STDIN (FORMAT BINARY)"
_UPDATE_AGGREGATE = "UPDATE {schema}.eval_runs SET aggregate_json = %s WHERE run_id = %s"
_HAS_RUNS = "SELECT run_id::text FROM {schema}.eval_runs WHERE run_id = ANY(%s) LIMIT 1"
_SET_TAG = (
    f"INSERT INTO {{schema}}.{TAGS_TABLE} (name, run_id) VALUES (%s, %s)"
    " ON CONFLICT (name) DO UPDATE SET run_id = excluded.run_id"
)
_TAGGED = f"SELECT name::text, run_id::text FROM {{schema}}.{TAGS_TABLE} WHERE run_id = ANY(%s) ORDER BY name"


class PostgresStore(Backend):
    """A database of a server."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._name = address.shown

    def is_there(self) -> bool:
        return True  # nothing here makes or removes a database of a server

    def make_tables(self) -> Made:
        try:
            with unchecked_transaction(self._address, WRITE_TIMEOUT_S, ONE_AT_A_TIME) as connection:
                made = bring_up_to_date(connection, self._address)
                connection.execute("COMMIT")
        except POSTGRES_ERRORS as error:
            raise StoreError(f"no tables were made in {self._name}: {reason(error)}") from None
        return made

    def grants(self) -> Sequence[str]:
        with (
            database_errors(self._address),
            transaction(self._address, READ_TIMEOUT_S) as connection,
        ):
            return grants_in(connection.schema)

    def check_text(self, text: str, what: str) -> None:
        check_text(text, what)

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[PostgresDatabase]:
        with (
            database_errors(self._address),
            transaction(self._address, READ_TIMEOUT_S) as connection,
        ):
            yield PostgresDatabase(self._address, connection, mask)

    # -- recording -----------------------------------------------------------------------------------

    def check_recordable(self, run_id: str, *, with_chunks: bool = False) -> None:
        check_text(run_id, "the run id")
        with (
            database_errors(self._address, "record into"),
            transaction(self._address, WRITE_TIMEOUT_S, written := _recorded(with_chunks)) as connection,
        ):
            self._check_new(connection, [run_id])
            self._check_writable(connection, written)
            if with_chunks:
                self._check_own(connection)

    def now(self) -> str:
        """The server's time: the clocks of those who record differ."""
        try:
            with (
                database_errors(self._address),
                transaction(self._address, READ_TIMEOUT_S) as connection,
            ):
                (now,) = connection.execute(_NOW).fetchone() or ("",)
        except DatabaseError as error:
            raise StoreError(f"the run was not recorded: {error}") from None
        return text_of(now)

    def write_runs(self, runs: Sequence[RawRun], index: NewIndex | None = None) -> None:
        for run in runs:
            for text, what in ((run.run_id, "run id"), (run.suite, "suite"), (run.commit_hash, "commit")):
                check_text(text, f"the {what}")
        names = ", ".join(run.run_id for run in runs)
        try:
            written = _recorded(index is not None)
            with transaction(self._address, WRITE_TIMEOUT_S, written) as connection:
                self._check_new(connection, [run.run_id for run in runs])
                _insert(connection, runs)
                if index is not None:
                    self._check_own(connection)
                    _write_chunks(connection, index)
                self._commit(connection, names)
        except DatabaseError as error:
            raise StoreError(f"the run was not recorded: {error}") from None
        except POSTGRES_ERRORS as error:
            if is_taken(error, "eval_runs"):
                raise run_is_there(self._name, names) from None
            raise StoreError(f"the run was not recorded in {self._name}: {reason_or_lock(error)}") from None

    def _commit(self, connection: SchemaConnection, run_id: str) -> None:
        """Make it last; where the connection is lost meanwhile, nobody can tell whether it does."""
        try:
            connection.execute("COMMIT")
        except POSTGRES_ERRORS as error:
            if not is_lost(error):
                raise
            raise StoreError(
                f"the connection to {self._name} was lost while run '{printable(run_id)}' was committed; see"
                " with kebab-eval runs whether it is there, whole, or record it again"
            ) from None

    def _check_new(self, connection: SchemaConnection, run_ids: Sequence[str]) -> None:
        """Refuse run ids that are already there."""
        if there := first_row(connection.execute(_HAS_RUNS, (list(run_ids),))):
            raise run_is_there(self._name, text_of(there[0]))

    def _check_writable(self, connection: SchemaConnection, tables: Iterable[str]) -> None:
        """Refuse a role that may not write, and a server that does not, before the work is done."""
        if first_row(connection.execute("SHOW transaction_read_only")) != (b"off",):
            raise DatabaseError(f"cannot record into {self._name}: {READ_ONLY}")
        may = "SELECT has_table_privilege(%s, 'INSERT')"
        denied = [
            table
            for table in tables
            if first_row(connection.execute(may, (connection.name(table),))) != (True,)
        ]
        if denied:
            raise DatabaseError(
                f"cannot record into {self._name}: the role may not insert into {' and '.join(denied)};"
                " see docs/postgres.md for what a role must be granted"
            )

    def _check_own(self, connection: SchemaConnection) -> None:
        """Refuse to write chunks into tables that `store init` did not make, or made too long ago."""
        version = version_of(connection)
        if version is None:
            raise InputError(
                f"the tables of {self._name} were not made by kebab-eval store init, so chunks are not"
                " written there; leave out chunks=, or record into another database"
            )
        if version < CHUNKS_BY_VERSION:
            raise InputError(
                f"the tables of {self._name} are of version {version}, in which a chunk would replace that of"
                " another chunker with the same id; bring them up to date with kebab-eval store init"
            )

    # -- changing ------------------------------------------------------------------------------------

    def remove_run(self, run_id: str, *, with_file: bool) -> None:  # noqa: ARG002  there is no file
        try:
            with transaction(self._address, WRITE_TIMEOUT_S, _recorded()) as connection:
                _delete(connection, [run_id])
                connection.execute("COMMIT")
        except (DatabaseError, *POSTGRES_ERRORS) as error:
            where = f"run '{printable(run_id)}' is in {self._name}"
            raise StoreError(f"{where} and could not be removed again: {reason(error)}") from None

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        none_is_tagged_meanwhile = {TAGS_TABLE: "SHARE"}
        with self._changing(_recorded() | none_is_tagged_meanwhile) as connection:
            found = connection.execute(_TAGGED, (list(run_ids),)).fetchone()
            if found:
                name, run_id = map(text_of, found)
                raise run_is_tagged(self._name, run_id, name)
            _delete(connection, run_ids)

    def give_back_room(self) -> Room:
        """Have PostgreSQL vacuum the tables, which stops nobody: it fills the room with the next runs.

        Without this it does so by itself, later. Files that shrink take VACUUM FULL, which stops everybody.
        """
        said: list[str] = []
        try:
            with transaction(self._address, WRITE_TIMEOUT_S) as connection:
                before = _size(connection)
                connection.execute("COMMIT")
                connection.raw.add_notice_handler(
                    lambda notice: said.append(printable(notice.message_primary or ""))
                )
                connection.execute("VACUUM {schema}.eval_runs, {schema}.eval_query_results")
                after = _size(connection)
        except POSTGRES_ERRORS as error:
            raise StoreError(
                f"the room of removed runs was not given back in {self._name}: {reason_or_lock(error)}"
            ) from None
        note = "; ".join(said) or "what is free there is filled with new runs"
        return Room(before, after, note)

    def tag(self, name: str, run_id: str | None) -> None:
        check_text(name, "the tag")
        with self._changing({TAGS_TABLE: ROWS}) as connection:
            if run_id is None:
                connection.execute(f"DELETE FROM {{schema}}.{TAGS_TABLE} WHERE name = %s", (name,))
            elif first_row(connection.execute(_HAS_RUNS, ([run_id],))) is None:  # removed meanwhile
                raise InputError(f"{self._name} has no run '{printable(run_id)}' any more; name another")
            else:
                connection.execute(_SET_TAG, (name, run_id))

    @contextmanager
    def _changing(self, written: Mapping[str, str]) -> Iterator[SchemaConnection]:
        """A transaction, which is committed at the end of the block."""
        try:
            with transaction(self._address, WRITE_TIMEOUT_S, written) as connection:
                yield connection
                connection.execute("COMMIT")
        except POSTGRES_ERRORS as error:
            raise StoreError(f"nothing was changed in {self._name}: {reason_or_lock(error)}") from None

    @contextmanager
    def storing_aggregates(self, aggregates: Mapping[str, str]) -> Iterator[None]:
        """Write `aggregate_json` of runs by their ids; the end of the block commits it."""
        locked = "another program is writing to it; try again when it is done"
        try:
            with transaction(self._address, AGGREGATES_TIMEOUT_S, {EVAL_TABLES[0]: ROWS}) as connection:
                for run_id, aggregate in aggregates.items():
                    values = (aggregate, run_id)
                    if not can_hold(run_id) or connection.execute(_UPDATE_AGGREGATE, values).rowcount != 1:
                        name = f"'{printable(run_id)}' in {self._name}"
                        raise StoreError(f"nothing was stored: there is no run {name}")
                yield
                connection.execute("COMMIT")
        except DatabaseError as error:
            raise StoreError(f"the aggregates were not stored: {error}") from None
        except POSTGRES_ERRORS as error:
            raise StoreError(
                f"the aggregates were not stored in {self._name}: {reason_or_lock(error, locked)}"
            ) from None


def _recorded(with_chunks: bool = False) -> dict[str, str]:
    """The tables that a run is written to, and how they are locked: of those who write chunks, one goes."""
    tables = dict.fromkeys(EVAL_TABLES, ROWS)
    return tables | {"documents": ROWS, "chunks": "SHARE ROW EXCLUSIVE"} if with_chunks else tables


def _insert(connection: SchemaConnection, runs: Sequence[RawRun]) -> None:
    connection.execute_each(_INSERT_RUN, [run[:-1] for run in runs])  # all but their results
    with connection.raw.cursor().copy(connection.sql(_COPY_RESULTS, has_values=False)) as copy:
        copy.set_types(("text", "text", "text"))
        for run in runs:
            for query_id, result_json in run.rows:
                check_text(query_id, "the query id")
                copy.write_row((run.run_id, query_id, result_json.decode()))


def _delete(connection: SchemaConnection, run_ids: Sequence[str]) -> None:
    for table in reversed(EVAL_TABLES):
        connection.execute(f"DELETE FROM {{schema}}.{table} WHERE run_id = ANY(%s)", (list(run_ids),))


def _size(connection: SchemaConnection) -> int:
    """How many bytes the tables of runs take; names in full, because this also runs after a transaction."""
    size = "SELECT pg_catalog.pg_total_relation_size(%s::pg_catalog.regclass)"
    found = [first_row(connection.execute(size, (connection.name(table),))) for table in EVAL_TABLES]
    return sum(row[0] for row in found if row)


def _write_chunks(connection: SchemaConnection, index: NewIndex) -> None:
    """Make these the chunks of that chunker version; those of other versions stay, also with the same ids."""
    for row in index.chunks:
        for text in (row.chunk_id, row.doc_id, row.text, row.path):
            check_text(text, "of a chunk, the text")
    version = index.chunker_version
    connection.execute(
        "DELETE FROM {schema}.chunks WHERE chunker_version IS NOT DISTINCT FROM %s", (version,)
    )
    connection.execute_each(
        "INSERT INTO {schema}.documents (doc_id, workspace_path) VALUES (%s, %s)"
        " ON CONFLICT (doc_id) DO UPDATE SET workspace_path = excluded.workspace_path",
        {row.doc_id: row.path for row in index.chunks}.items(),
    )
    connection.execute_each(
        "INSERT INTO {schema}.chunks (chunk_id, doc_id, text, heading_path_json, source_spans_json,"
        " token_estimate, chunker_version) VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [(*row[:6], version) for row in index.chunks],
    )
    connection.execute(
        "DELETE FROM {schema}.documents WHERE doc_id NOT IN (SELECT doc_id FROM {schema}.chunks)"
    )
