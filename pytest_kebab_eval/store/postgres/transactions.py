"""A transaction in which none of the database's own code runs.

Names are found by `pg_catalog` alone, so that no schema has an operator or a function of its own in it, and
every table is named with its schema. The tables are locked before they are checked, so that what was checked
is what is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import EVAL_TABLES
from pytest_kebab_eval.store.postgres.connections import (
    SchemaConnection,
    connect,
    quoted,
    search_path_of,
)
from pytest_kebab_eval.store.postgres.tables import TABLES, check_findings, findings_in
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.text import brief

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection, Cursor

_READ = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_WRITE = "ISOLATION LEVEL READ COMMITTED"  # read-only where the role or the server says so
ROWS = "ROW EXCLUSIVE"  # the lock of one who writes rows, as others may
_LOOK = "ACCESS SHARE"  # the lock of one who reads
# This runs by the search path of the role or the database, so that even the operators are named in full.
_FIND = """
SELECT n.nspname, c.relname, c.relkind, pg_catalog.has_table_privilege(c.oid, 'SELECT'),
    pg_catalog.has_table_privilege(c.oid, 'UPDATE, DELETE, TRUNCATE')
FROM pg_catalog.unnest(COALESCE(%s::pg_catalog.name[], pg_catalog.current_schemas(false)))
        WITH ORDINALITY AS path (name, place)
    JOIN pg_catalog.pg_namespace AS n ON n.nspname OPERATOR(pg_catalog.=) path.name
    LEFT JOIN pg_catalog.pg_class AS c ON c.relnamespace OPERATOR(pg_catalog.=) n.oid
        AND c.relname OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.name[])
ORDER BY path.place
"""


class _Table(NamedTuple):
    is_table: bool
    is_readable: bool
    is_lockable: bool


@contextmanager
def transaction(
    address: PostgresAddress,
    lock_timeout_s: float,
    written: Mapping[str, str] | None = None,
) -> Iterator[SchemaConnection]:
    """A connection in a transaction on tables that are locked and checked; rolled back unless committed.

    `written` are the tables that are written, with the lock that each takes; without it, everything read is
    of one state.
    """
    with connect(address) as connection:
        schema, tables = _find(connection, address)
        locks = "".join(_locks(schema, tables, written or {}))
        mode = _READ if written is None else _WRITE
        findings = _begin(connection, mode, lock_timeout_s, locks + findings_in(schema))
        missing = [name for name in EVAL_TABLES if name not in tables]
        if missing:
            raise DatabaseError(
                f"{address.shown} has no table {' and no table '.join(missing)};"
                " make them with kebab-eval store init, or name the database that has the evaluation runs"
            )
        columns = check_findings(findings.fetchall(), address, written or ())
        yield SchemaConnection(connection, schema, columns)


@contextmanager
def unchecked_transaction(
    address: PostgresAddress, lock_timeout_s: float, first: str
) -> Iterator[SchemaConnection]:
    """The same where tables may not be there yet: those there are are checked after a first statement."""
    with connect(address) as connection:
        schema, _ = _find(connection, address)
        findings = _begin(connection, _WRITE, lock_timeout_s, f"{first}; {findings_in(schema)}")
        columns = check_findings(findings.fetchall(), address, TABLES)
        yield SchemaConnection(connection, schema, columns)


def _begin(connection: Connection, mode: str, lock_timeout_s: float, first: str) -> Cursor:
    """Begin, and send more statements along; rows that a policy hides are an error, not fewer rows."""
    answers = connection.execute(
        f"BEGIN TRANSACTION {mode}; SET LOCAL search_path TO pg_catalog, pg_temp;"
        f" SET LOCAL lock_timeout = {int(lock_timeout_s * 1000)};"
        " SET LOCAL idle_in_transaction_session_timeout = 0;"
        f" SET LOCAL row_security = off; SET LOCAL constraint_exclusion = off;{first}"
    )
    while answers.nextset():
        pass
    return answers


def _find(connection: Connection, address: PostgresAddress) -> tuple[str, dict[str, _Table]]:
    """The one schema of the search path that has the evaluation runs, or else the first, and its tables."""
    schemas: dict[str, dict[str, _Table]] = {}
    values = (search_path_of(address), list(TABLES))
    for schema, table, kind, *privileges in connection.execute(_FIND, values):
        tables = schemas.setdefault(text_of(schema), {})
        if table is not None:
            tables[text_of(table)] = _Table(text_of(kind) == "r", *privileges)
    if not schemas:
        raise DatabaseError(
            f"{address.shown} has none of the schemas of the search path; make one, or name another"
        )
    stores = [schema for schema, tables in schemas.items() if EVAL_TABLES[0] in tables]
    if len(stores) > 1:
        raise DatabaseError(
            f"{address.shown} is refused: {EVAL_TABLES[0]} is in the schemas"
            f" {brief(' and '.join(stores), 100)}; say which one is meant by search_path, as docs/postgres.md"
            " has it"
        )
    schema = stores[0] if stores else next(iter(schemas))
    return schema, schemas[schema]


def _locks(schema: str, tables: Mapping[str, _Table], written: Mapping[str, str]) -> Iterator[str]:
    """The statements that lock the tables, as far as the role may: in one order, so that nobody deadlocks."""
    for table in TABLES:
        found = tables.get(table)
        if found and found.is_table and (found.is_readable or found.is_lockable):
            mode = written.get(table, _LOOK) if found.is_lockable else _LOOK
            yield f" LOCK TABLE {quoted(schema)}.{table} IN {mode} MODE;"
