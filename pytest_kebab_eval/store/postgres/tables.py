"""Whether the tables of a database are plain tables, in which nothing runs when they are read or written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store.address import PostgresAddress
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


class Found(NamedTuple):
    """What a name of a table leads to; names are the first of their kind."""

    kind: str
    trigger: str | None
    rule: str | None
    computed: str | None
    has_children: bool


def find_tables(connection: Connection) -> dict[str, Found]:
    """What there is of the tables."""
    rows = connection.execute(_CATALOG, ([*EVAL_TABLES, *CORPUS_TABLES, TAGS_TABLE],))
    return {
        text_of(name): Found(
            _KINDS.get(text_of(kind), "thing"), _name(trigger), _name(rule), _name(computed), children
        )
        for name, kind, trigger, rule, computed, children in rows
    }


def _name(value: object) -> str | None:
    return None if value is None else text_of(value)


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
    for table, what in found.items():
        _check_plain(address, table, what)
        if table in written:
            _check_nothing_runs(address, table, what)


def _check_plain(address: PostgresAddress, table: str, found: Found) -> None:
    if found.kind != "table":
        raise _refusal(address, f"{table} is a {found.kind}, not a table", "make it a table")
    if found.has_children:
        raise _refusal(address, f"{table} has tables that inherit from it", "move their rows")
    if found.computed is not None:
        what = f"the column {brief(found.computed)} of {table} is computed, not stored"
        raise _refusal(address, what, "store its values")


def _check_nothing_runs(address: PostgresAddress, table: str, found: Found) -> None:
    for kind, name in (("trigger", found.trigger), ("rule", found.rule)):
        if name is not None:
            what = f"the {kind} '{brief(name)}' would run when {table} is written"
            raise _refusal(address, what, "drop it")


def _refusal(address: PostgresAddress, what: str, advice: str) -> DatabaseError:
    return DatabaseError(f"{address.shown} is refused: {what}; {advice}, or name another database")
