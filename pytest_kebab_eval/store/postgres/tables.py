"""The tables in PostgreSQL: how a database comes to have them, and whether they are plain tables.

`kebab-eval store init` makes them. Ids are compared and sorted by their bytes, as SQLite does (COLLATE "C").
JSON is text: what is stored comes back byte for byte, and benchmarks/postgres_types.py measured that it is
streamed faster than jsonb.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.backend import Made
from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.schema import CORPUS_TABLES, EVAL_TABLES, TAGS_TABLE
from pytest_kebab_eval.text import brief

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection

_KINDS = {
    "r": "table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "p": "partitioned table",
    "S": "sequence",
    "c": "type",
}
_CATALOG = """
SELECT name, c.relkind::text,
    (SELECT min(tgname) FROM pg_catalog.pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal)::text,
    (SELECT min(rulename) FROM pg_catalog.pg_rewrite WHERE ev_class = c.oid AND c.relkind = 'r')::text,
    (SELECT min(attname) FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attgenerated = 'v')::text,
    EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid)
FROM pg_catalog.unnest(%s::text[]) AS name
    JOIN pg_catalog.pg_class AS c ON c.oid = pg_catalog.to_regclass(name)
"""
CHECK_PRIVILEGES = (
    "SELECT name FROM unnest(%s::text[]) AS name WHERE NOT has_table_privilege(to_regclass(name), 'INSERT')"
)


def find_tables(connection: Connection) -> dict[str, list[Any]]:
    """What there is of the tables: the row of each in `_CATALOG`, by its name."""
    tables = [*EVAL_TABLES, *CORPUS_TABLES, TAGS_TABLE]
    return {text_of(table): row for table, *row in connection.execute(_CATALOG, (tables,))}


def check_tables(
    connection: Connection, address: PostgresAddress, written: Iterable[str] = EVAL_TABLES
) -> None:
    """Refuse a database without the eval tables, and what is no plain table."""
    found = find_tables(connection)
    missing = [name for name in EVAL_TABLES if name not in found]
    if missing:
        raise DatabaseError(
            f"{address.shown} has no table {' and no table '.join(missing)};"
            " make them with kebab-eval store init, or name the database that has the evaluation runs"
        )
    for table, (relkind, trigger, rule, computed, has_children) in found.items():
        kind = _KINDS.get(text_of(relkind), "thing")
        if kind != "table":
            raise _refusal(address, f"{table} is a {kind}, not a table", "make it a table")
        if has_children:
            raise _refusal(address, f"{table} has tables that inherit from it", "move their rows")
        if computed is not None:
            column = f"the column {brief(text_of(computed))} of {table}"
            raise _refusal(address, f"{column} is computed, not stored", "store its values")
        for what, name in (("trigger", trigger), ("rule", rule)):
            if name is not None and table in written:
                runs = f"the {what} '{brief(text_of(name))}' would run when {table} is written"
                raise _refusal(address, runs, "drop it")


def _refusal(address: PostgresAddress, what: str, advice: str) -> DatabaseError:
    return DatabaseError(f"{address.shown} is refused: {what}; {advice}, or name another database")


# -- store init --------------------------------------------------------------------------------------

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
_SECOND = (  # chunkers share ids, so both are the key; a version may be NULL
    "ALTER TABLE chunks DROP CONSTRAINT chunks_pkey",
    "ALTER TABLE chunks ALTER chunk_id SET NOT NULL, ADD UNIQUE (chunk_id, chunker_version)",
)
MIGRATIONS = (
    _FIRST,
    _SECOND,
)  # the first makes version 1; a later one goes to the end, and none is ever changed
CHUNKS_BY_VERSION = 2  # the version of the tables that keep the chunks of each chunker
_FASTER_COMPRESSION = "ALTER TABLE eval_query_results ALTER result_json SET COMPRESSION lz4"


def bring_up_to_date(connection: Connection, address: PostgresAddress) -> Made:
    """Make the tables, or change older ones; a `DatabaseError` if a newer version or something else did."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_ONE_AT_A_TIME,))
    before = _check_version(connection, address)
    for version, statements in enumerate(MIGRATIONS[before:], start=before + 1):
        for statement in statements:
            connection.execute(statement.encode())
        connection.execute(f"INSERT INTO {MIGRATIONS_TABLE} (version) VALUES (%s)", (version,))
        if version == 1:
            _compress_faster(connection)
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


def _compress_faster(connection: Connection) -> None:
    """Where the server has lz4: from version 14 on, unless it was built without."""
    import psycopg

    try:
        with connection.transaction():
            connection.execute(_FASTER_COMPRESSION)
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.SyntaxError):
        pass
