"""The tables in PostgreSQL: how a database comes to have them.

`kebab-eval store init` makes them. Ids are compared and sorted by their bytes, as SQLite does (COLLATE "C").
JSON is text: what is stored comes back byte for byte, and benchmarks/postgres_types.py measured that it is
streamed faster than jsonb.
"""

from __future__ import annotations

import re

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store import Made
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import TAGS_TABLE
from pytest_kebab_eval.store.postgres.connections import SchemaConnection, quoted
from pytest_kebab_eval.store.postgres.refusals import MIGRATIONS_TABLE

# A lock of our own on the server, so that two calls do not meet.
ONE_AT_A_TIME = f"SELECT pg_advisory_xact_lock({0x6B656261622D6576})"

_FIRST = (
    (
        f"CREATE TABLE {{schema}}.{MIGRATIONS_TABLE}"
        " (version integer PRIMARY KEY, applied_at timestamptz DEFAULT now())"
    ),
    """
CREATE TABLE {schema}.eval_runs (
    run_id text COLLATE "C" PRIMARY KEY, suite text NOT NULL, config_snapshot_json text NOT NULL,
    aggregate_json text NOT NULL DEFAULT '{}', commit_hash text, created_at text NOT NULL)
""",
    """
CREATE TABLE {schema}.eval_query_results (
    run_id text COLLATE "C" NOT NULL REFERENCES {schema}.eval_runs (run_id),
    query_id text COLLATE "C" NOT NULL, result_json text NOT NULL, PRIMARY KEY (run_id, query_id))
""",
    'CREATE TABLE {schema}.documents (doc_id text COLLATE "C" PRIMARY KEY, workspace_path text NOT NULL)',
    """
CREATE TABLE {schema}.chunks (
    chunk_id text COLLATE "C" PRIMARY KEY,
    doc_id text COLLATE "C" NOT NULL REFERENCES {schema}.documents (doc_id),
    text text NOT NULL, heading_path_json text NOT NULL, source_spans_json text NOT NULL,
    token_estimate bigint, chunker_version text)
""",
    "CREATE INDEX chunks_by_document ON {schema}.chunks (doc_id)",
    (
        f"CREATE TABLE {{schema}}.{TAGS_TABLE}"
        ' (name text COLLATE "C" PRIMARY KEY, run_id text COLLATE "C" NOT NULL)'
    ),
)
_SECOND = (  # chunkers share ids, so both are the key; a version may be NULL
    "ALTER TABLE {schema}.chunks DROP CONSTRAINT chunks_pkey",
    "ALTER TABLE {schema}.chunks ALTER chunk_id SET NOT NULL, ADD UNIQUE (chunk_id, chunker_version)",
)
MIGRATIONS = (
    _FIRST,
    _SECOND,
)  # the first makes version 1; a later one goes to the end, and none is ever changed
CHUNKS_BY_VERSION = 2  # the version of the tables that keep the chunks of each chunker
_INSERT_VERSION = f"INSERT INTO {{schema}}.{MIGRATIONS_TABLE} (version) VALUES (%s)"
_FASTER_COMPRESSION = "ALTER TABLE {schema}.eval_query_results ALTER result_json SET COMPRESSION lz4"


# What a role that reads and judges needs, and one that records runs, tags and prunes them.
_GRANTS = {
    "kebab_reader": ("SELECT ON eval_runs, eval_query_results, documents, chunks, kebab_eval_tags",),
    "kebab_recorder": (
        "SELECT, INSERT, DELETE ON eval_runs, eval_query_results",
        "UPDATE (aggregate_json) ON eval_runs",
        "SELECT, INSERT, UPDATE, DELETE ON documents, chunks, kebab_eval_tags",
        "SELECT ON kebab_eval_migrations",
    ),
}


def grants_in(schema: str) -> list[str]:
    """The statements that let two roles use the tables of a schema, and do nothing else."""
    name = schema if re.fullmatch("[a-z_][a-z0-9_]*", schema) else quoted(schema)
    return [
        f"GRANT {what} TO {role};"
        for role, granted in _GRANTS.items()
        for what in (f"USAGE ON SCHEMA {name}", *(_qualified(given, name) for given in granted))
    ]


def _qualified(granted: str, schema: str) -> str:
    what, _, tables = granted.partition(" ON ")
    return f"{what} ON {', '.join(f'{schema}.{table}' for table in tables.split(', '))}"


def bring_up_to_date(connection: SchemaConnection, address: PostgresAddress) -> Made:
    """Make the tables, or change older ones; a `DatabaseError` if a newer version or something else did."""
    before = _check_version(connection, address)
    for version, statements in enumerate(MIGRATIONS[before:], start=before + 1):
        for statement in statements:
            connection.execute(statement)
        connection.execute(_INSERT_VERSION, (version,))
        if version == 1:
            _compress_faster(connection)
    return Made.NEW if before == 0 else Made.UPDATED if before < len(MIGRATIONS) else Made.AS_THEY_WERE


def version_of(connection: SchemaConnection) -> int | None:
    """The version of the tables; None if `store init` did not make them."""
    if MIGRATIONS_TABLE not in connection.columns:
        return None
    query = f"SELECT max(version) FROM {{schema}}.{MIGRATIONS_TABLE}"
    (version,) = connection.execute(query).fetchone() or (None,)
    return int(version or 0)


def _check_version(connection: SchemaConnection, address: PostgresAddress) -> int:
    version = version_of(connection)
    if version is None:
        others = sorted(connection.columns)
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


def _compress_faster(connection: SchemaConnection) -> None:
    """Where the server has lz4: from version 14 on, unless it was built without."""
    import psycopg

    try:
        with connection.raw.transaction():
            connection.execute(_FASTER_COMPRESSION)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.SyntaxError):
        pass
