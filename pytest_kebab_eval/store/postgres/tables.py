"""The tables in PostgreSQL: how a database comes to have them, and that they are plain ones.

`kebab-eval store init` makes them. Ids are compared and sorted by their bytes, as SQLite does (COLLATE "C").
JSON is text: what is stored comes back byte for byte, and benchmarks/postgres_types.py measured that it is
streamed faster than jsonb.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store import Made
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import CORPUS_TABLES, EVAL_TABLES, READ_COLUMNS, TAGS_TABLE
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
#
# Nothing that people put into the database may run when they are used: only functions in C and PostgreSQL's
# own, because nobody but a superuser makes those. What runs when rows are read is refused in all tables; what
# runs when they are written, in those that are about to be, and in the tables of runs.

_KINDS = {
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "p": "partitioned table",
    "S": "sequence",
    "c": "type",
}


class _Refusal(NamedTuple):
    what: str
    advice: str = "drop it"
    when_written: bool = False


# By what `_FINDINGS` calls it; of several findings the first is said.
_REFUSALS = {
    "kind": _Refusal("{table} is a {name}, not a table", "make it a table"),
    "children": _Refusal("{table} has tables that inherit from it", "move their rows"),
    "partition": _Refusal("{table} is a partition of another table", "detach it"),
    "computed": _Refusal("the column {name} of {table} is computed, not stored", "store its values"),
    "type": _Refusal("in {table}, {name}", "make it text"),
    "policy": _Refusal("the row-level security of {table} hides rows from this role", "disable it"),
    "index": _Refusal("the index '{name}' of {table} runs code of the database"),
    "statistics": _Refusal("the statistics '{name}' of {table} run code of the database", "drop them"),
    "trigger": _Refusal("the trigger '{name}' would run when {table} is written", when_written=True),
    "rule": _Refusal("the rule '{name}' would run when {table} is written", when_written=True),
    "check": _Refusal("the constraint '{name}' would run when {table} is written", when_written=True),
    "domain": _Refusal(
        "the domain of the column {name} would run when {table} is written", "make it text", when_written=True
    ),
    "default": _Refusal(
        "the expression of the column {name} would run when {table} is written", when_written=True
    ),
    "reference": _Refusal(
        "the foreign key '{name}' leads from {table} to another table, or from there", when_written=True
    ),
}
_TEXT, _NUMBERS = (25, 1043), (20, 21, 23, 700, 701, 1700)  # text, varchar; the types of numbers
_COLUMNS = {**READ_COLUMNS, MIGRATIONS_TABLE: ("version",)}
_WANTED = [
    (table, column, [*_TEXT, *(_NUMBERS if column in ("token_estimate", "version") else ())])
    for table, columns in _COLUMNS.items()
    for column in columns
]
# The search path is `pg_catalog`, which `pg_get_expr` and `format_type` leave out of what they give.
_FINDINGS = f"""
WITH tables AS (
    SELECT c.oid, c.relname::text AS name, c.relkind::text AS kind, c.relispartition
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = {{schema}} AND c.relname IN ({", ".join(f"'{table}'" for table in TABLES)})
), wanted (name, attname, types) AS (
    VALUES {", ".join(f"('{table}', '{column}', ARRAY{types}::oid[])" for table, column, types in _WANTED)}
), columns AS (
    SELECT t.name, a.*, w.types FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid
        LEFT JOIN wanted AS w ON w.name = t.name AND w.attname = a.attname
    WHERE a.attnum > 0 AND NOT a.attisdropped
), parts AS (
    SELECT t.name, 'index' AS what, c.relname AS part, 'pg_class'::regclass AS class, c.oid
    FROM tables AS t JOIN pg_index AS i ON i.indrelid = t.oid JOIN pg_class AS c ON c.oid = i.indexrelid
    UNION ALL
    SELECT t.name, 'statistics', s.stxname, 'pg_statistic_ext'::regclass, s.oid
    FROM tables AS t JOIN pg_statistic_ext AS s ON s.stxrelid = t.oid
), needs AS (
    SELECT p.*, d.refclassid, d.refobjid
    FROM parts AS p JOIN pg_depend AS d ON d.classid = p.class AND d.objid = p.oid
), operators AS (
    SELECT n.name, n.what, n.part, n.refobjid AS operator FROM needs AS n
    WHERE n.refclassid = 'pg_operator'::regclass
    UNION ALL
    SELECT n.name, n.what, n.part, o.amopopr FROM needs AS n
        JOIN pg_opclass AS k ON n.refclassid = 'pg_opclass'::regclass AND k.oid = n.refobjid
        JOIN pg_amop AS o ON o.amopfamily = k.opcfamily
), calls AS (
    SELECT n.name, n.what, n.part, n.refobjid AS function FROM needs AS n
    WHERE n.refclassid = 'pg_proc'::regclass
    UNION ALL
    SELECT o.name, o.what, o.part, p.oprcode FROM operators AS o JOIN pg_operator AS p ON p.oid = o.operator
    UNION ALL
    SELECT n.name, n.what, n.part, a.amproc FROM needs AS n
        JOIN pg_opclass AS k ON n.refclassid = 'pg_opclass'::regclass AND k.oid = n.refobjid
        JOIN pg_amproc AS a ON a.amprocfamily = k.opcfamily
)
SELECT name, 'kind', kind FROM tables WHERE kind <> 'r'
UNION ALL SELECT name, 'partition', '' FROM tables WHERE relispartition
UNION ALL SELECT name, 'children', '' FROM tables WHERE oid IN (SELECT inhparent FROM pg_inherits)
UNION ALL SELECT name, 'computed', attname FROM columns WHERE attgenerated <> '' AND types IS NOT NULL
UNION ALL
SELECT name, 'type', 'the column ' || attname || ' is of the type ' || format_type(atttypid, NULL)
FROM columns WHERE atttypid <> ALL (types)
UNION ALL SELECT name, 'policy', '' FROM tables WHERE kind = 'r' AND row_security_active(oid)
UNION ALL
SELECT c.name, c.what, c.part FROM calls AS c JOIN pg_proc AS p ON p.oid = c.function
WHERE p.oid >= 16384 AND p.prolang NOT IN (12, 13)
UNION ALL
SELECT n.name, n.what, n.part FROM needs AS n
    JOIN pg_type AS t ON n.refclassid = 'pg_type'::regclass AND t.oid = n.refobjid
WHERE t.typtype IN ('c', 'd')
UNION ALL
SELECT t.name, 'trigger', g.tgname FROM tables AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid
WHERE NOT g.tgisinternal
UNION ALL
SELECT t.name, 'rule', r.rulename FROM tables AS t JOIN pg_rewrite AS r ON r.ev_class = t.oid
UNION ALL
SELECT t.name, 'check', c.conname FROM tables AS t JOIN pg_constraint AS c ON c.conrelid = t.oid
WHERE c.contype = 'c'
UNION ALL
SELECT c.name, 'domain', c.attname FROM columns AS c JOIN pg_type AS t ON t.oid = c.atttypid
WHERE t.typtype = 'd'
UNION ALL
SELECT c.name, 'default', c.attname FROM columns AS c
    JOIN pg_attrdef AS d ON d.adrelid = c.attrelid AND d.adnum = c.attnum
WHERE NOT starts_with(d.adbin::text, '{{{{CONST ')
    AND pg_get_expr(d.adbin, d.adrelid) NOT IN ('now()', 'CURRENT_TIMESTAMP')
UNION ALL
SELECT t.name, 'reference', c.conname FROM tables AS t
    JOIN pg_constraint AS c ON c.contype = 'f' AND t.oid IN (c.conrelid, c.confrelid)
WHERE c.conrelid NOT IN (SELECT oid FROM tables) OR c.confrelid NOT IN (SELECT oid FROM tables)
UNION ALL SELECT name, 'column', attname FROM columns
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
        refusal = _REFUSALS[what]
        if table in EVAL_TABLES or table in written or not refusal.when_written:
            shown = brief(_KINDS.get(name, "thing") if what == "kind" else name, 100)
            sentence = refusal.what.format(table=table, name=shown)
            raise DatabaseError(
                f"{address.shown} is refused: {sentence}; {refusal.advice}, or name another database"
            )
    return columns
