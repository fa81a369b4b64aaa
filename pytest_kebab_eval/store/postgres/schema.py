"""The tables in PostgreSQL, and how a database comes to have them: `kebab-eval store init`.

Ids are compared and sorted by their bytes, as SQLite does (COLLATE "C"). JSON is text: what is stored comes
back byte for byte, and benchmarks/postgres_types.py measured that it is streamed faster than jsonb.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_kebab_eval.errors import DatabaseError, StoreError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.backend import Made
from pytest_kebab_eval.store.postgres.connections import (
    WRITE,
    check_installed,
    postgres_errors,
    reason,
    transaction,
)
from pytest_kebab_eval.store.postgres.tables import find_tables
from pytest_kebab_eval.store.schema import TAGS_TABLE

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection

INIT_TIMEOUT_S = 60.0
MIGRATIONS_TABLE = "kebab_eval_migrations"
_ONE_AT_A_TIME = 0x6B656261622D6576  # a lock of our own on the server, so that two calls do not meet

_FIRST = (
    f"CREATE TABLE {MIGRATIONS_TABLE} (version integer PRIMARY KEY, applied_at timestamptz DEFAULT now())",
    """
CREATE TABLE eval_runs (
    run_id text COLLATE "C" PRIMARY KEY, suite text NOT NULL, config_snapshot_json text NOT NULL,
    aggregate_json text NOT NULL DEFAULT '{}', commit_hash text, created_at text NOT NULL)
""",
    """
CREATE TABLE eval_query_results (
    run_id text COLLATE "C" NOT NULL REFERENCES eval_runs (run_id), query_id text COLLATE "C" NOT NULL,
    result_json text NOT NULL, PRIMARY KEY (run_id, query_id))
""",
    'CREATE TABLE documents (doc_id text COLLATE "C" PRIMARY KEY, workspace_path text NOT NULL)',
    """
CREATE TABLE chunks (
    chunk_id text COLLATE "C" PRIMARY KEY, doc_id text COLLATE "C" NOT NULL REFERENCES documents (doc_id),
    text text NOT NULL, heading_path_json text NOT NULL, source_spans_json text NOT NULL,
    token_estimate bigint, chunker_version text)
""",
    "CREATE INDEX chunks_by_document ON chunks (doc_id)",
    f'CREATE TABLE {TAGS_TABLE} (name text COLLATE "C" PRIMARY KEY, run_id text COLLATE "C" NOT NULL)',
)
MIGRATIONS = (_FIRST,)  # the first makes version 1; a later one goes to the end, and none is ever changed
_FASTER_COMPRESSION = "ALTER TABLE eval_query_results ALTER result_json SET COMPRESSION lz4"


def make_tables(address: PostgresAddress) -> Made:
    """Make the tables, or bring older ones up to date.

    All in one transaction. Tables that this did not make, or a newer version did, are a `DatabaseError`.
    """
    check_installed(address)
    try:
        with transaction(address, WRITE, INIT_TIMEOUT_S) as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
            before = _check_version(connection, address)
            for version, statements in enumerate(MIGRATIONS[before:], start=before + 1):
                _migrate(connection, version, statements)
            connection.execute("COMMIT")
    except postgres_errors() as error:
        raise StoreError(f"no tables were made in {address.shown}: {reason(error)}") from None
    return Made.NEW if before == 0 else Made.UPDATED if before < len(MIGRATIONS) else Made.AS_THEY_WERE


def version_of(connection: Connection) -> int | None:
    """The version of the tables; None if `store init` did not make them."""
    (table,) = connection.execute("SELECT to_regclass(%s)", (MIGRATIONS_TABLE,)).fetchone() or (None,)
    if table is None:
        return None
    (version,) = connection.execute(f"SELECT max(version) FROM {MIGRATIONS_TABLE}").fetchone() or (None,)
    return int(version or 0)


def _check_version(connection: Connection, address: PostgresAddress) -> int:
    version = version_of(connection)
    if version is None:
        others = sorted(find_tables(connection))
        if others:
            raise DatabaseError(
                f"{address.shown} has a table {' and a table '.join(others)} that kebab-eval store init did"
                " not make; name another database, or another schema by search_path"
            )
        return 0
    if version > len(MIGRATIONS):
        raise DatabaseError(
            f"the tables of {address.shown} are of version {version}, and this pytest-kebab-eval knows"
            f" {len(MIGRATIONS)}; install a newer one"
        )
    return version


def _migrate(connection: Connection, version: int, statements: tuple[str, ...]) -> None:
    for statement in statements:
        connection.execute(statement.encode())
    connection.execute(f"INSERT INTO {MIGRATIONS_TABLE} (version) VALUES (%s)", (version,))
    if version == 1:
        _compress_faster(connection)


def _compress_faster(connection: Connection) -> None:
    """Where the server has lz4: from version 14 on, unless it was built without."""
    import psycopg

    try:
        with connection.transaction():
            connection.execute(_FASTER_COMPRESSION)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.SyntaxError):
        pass
