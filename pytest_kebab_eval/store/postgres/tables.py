"""The tables in PostgreSQL: how a database comes to have them, and that they are plain ones.

`kebab-eval store init` makes them. Ids are compared and sorted by their bytes, as SQLite does (COLLATE "C").
JSON is text: what is stored comes back byte for byte, and is read faster than jsonb.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store import Made
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import CORPUS_TABLES, EVAL_TABLES, TAGS_TABLE
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.text import brief

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import SchemaConnection

MIGRATIONS_TABLE = "kebab_eval_migrations"
TABLES = (*EVAL_TABLES, *CORPUS_TABLES, TAGS_TABLE, MIGRATIONS_TABLE)
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


# -- whether they are plain tables -------------------------------------------------------------------

_KINDS = {"v": "view", "m": "materialized view", "f": "foreign table", "p": "partitioned table"}
# By what `_FINDINGS` calls it; of several findings the first is said.
_REFUSALS = {
    "kind": "{table} is a {name}, not a table; make it a table",
    "policy": "the row-level security of {table} hides rows from this role; disable it",
    "trigger": "the trigger '{name}' would run when {table} is written; drop it",
    "rule": "the rule '{name}' would run when {table} is written; drop it",
}
_WHEN_WRITTEN = ("trigger", "rule")  # what does not matter to who only reads documents and chunks
_FINDINGS = f"""
WITH tables AS (
    SELECT c.oid, c.relname::text AS name, c.relkind::text AS kind
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = {{schema}} AND c.relname IN ({", ".join(f"'{table}'" for table in TABLES)})
)
SELECT name, 'kind', kind FROM tables WHERE kind <> 'r'
UNION ALL SELECT name, 'policy', '' FROM tables WHERE kind = 'r' AND row_security_active(oid)
UNION ALL
SELECT t.name, 'trigger', g.tgname FROM tables AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid
WHERE NOT g.tgisinternal
UNION ALL
SELECT t.name, 'rule', r.rulename FROM tables AS t JOIN pg_rewrite AS r ON r.ev_class = t.oid
UNION ALL
SELECT t.name, 'column', a.attname FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid
WHERE a.attnum > 0 AND NOT a.attisdropped
"""


def findings_in(schema: str) -> str:
    """The statement that finds out what `check_findings` is given."""
    return _FINDINGS.format(schema=_literal(schema))


def quoted(name: str) -> str:
    """A name as it stands in a statement, in ASCII, because psycopg takes no other for this encoding."""
    escaped = name.replace('"', '""')
    if escaped.isascii():
        return f'"{escaped}"'
    escaped = escaped.replace("\\", "\\\\")
    return 'U&"' + "".join(char if char.isascii() else f"\\+{ord(char):06x}" for char in escaped) + '"'


def _literal(text: str) -> str:
    """A text as it stands in a statement, in ASCII, whatever `standard_conforming_strings` is."""
    plain = (char if char.isalnum() and char.isascii() else f"\\U{ord(char):08x}" for char in text)
    return f"E'{''.join(plain)}'"


def check_findings(
    findings: Iterable[Sequence[object]], address: PostgresAddress, written: Container[str]
) -> dict[str, set[str]]:
    """Refuse what is no plain table, by its name; a `DatabaseError`. Else, the columns of each table."""
    columns: dict[str, set[str]] = {}
    found = []
    for table, what, name in (tuple(map(text_of, finding)) for finding in findings):
        if what == "column":
            columns.setdefault(table, set()).add(name)
        else:
            found.append((table, what, name))
    order = list(_REFUSALS)
    for table, what, name in sorted(found, key=lambda row: (order.index(row[1]), TABLES.index(row[0]), row)):
        if what not in _WHEN_WRITTEN or table in EVAL_TABLES or table in written:
            shown = brief(_KINDS.get(name, "thing") if what == "kind" else name, 100)
            sentence = _REFUSALS[what].format(table=table, name=shown)
            raise DatabaseError(f"{address.shown} is refused: {sentence}, or name another database")
    return columns
