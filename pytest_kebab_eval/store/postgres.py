"""PostgreSQL as a store, with psycopg 3 from the extra `pytest-kebab-eval[postgres]`.

What is not in the address is libpq's: service files, `PGPASSWORD` and the like, `~/.pgpass`, `sslmode`.
No error has a password in it: an address that libpq would take apart, and quote, is refused before that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from pytest_kebab_eval.errors import DatabaseError, StoreError
from pytest_kebab_eval.limits import FETCHED_ROWS
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import (
    CORPUS_TABLES,
    EVAL_TABLES,
    TAGS_TABLE,
    Connection,
    Database,
    Row,
)
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.store.sql import (
    AGGREGATES_TIMEOUT_S,
    READ_TIMEOUT_S,
    TAGS_SCHEMA,
    WRITE_TIMEOUT_S,
    Store,
    check_has_runs,
    check_tables,
    make_missing_tables,
    store_aggregates,
)
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.masking import mask_text

try:
    import psycopg
    from psycopg.adapt import Loader
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    psycopg = None  # type: ignore[assignment]
else:

    class _Bytes(Loader):
        """Text as its bytes, as SQLite gives it."""

        def load(self, data: Any) -> bytes:
            return bytes(data)


CONNECT_TIMEOUT_S = 10
# A server that went away without a word is noticed after 30 + 3 * 10 seconds.
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_TABLES = (*EVAL_TABLES, *CORPUS_TABLES, TAGS_TABLE)
_TEXT_TYPES = (
    "text",
    "varchar",
    "bpchar",
    "name",
    "json",
    "jsonb",
    "uuid",
    "timestamptz",
    "timestamp",
)
_SEARCH_PATH = re.compile(r"\s*(?:-c\s*|--)search_path=(\w+(?:,\s*\w+)*)\s*", re.ASCII)
_ONE_AT_A_TIME = f"SELECT pg_advisory_xact_lock({0x6B656261622D6576})"  # of those who record, tag and remove
_MARK = "made by pytest-kebab-eval"  # the comment on a table that was made here
_NOW = """SELECT to_char(timezone('UTC', clock_timestamp()), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""
# The schemas of the search path, the columns of our tables in each, and what is refused there.
_FIND = """
WITH tables AS (
    SELECT path.place, n.nspname AS schema, c.oid, c.relname::text AS name, c.relkind::text AS kind
    FROM unnest(COALESCE(%s::name[], current_schemas(false))) WITH ORDINALITY AS path (name, place)
        JOIN pg_namespace AS n ON n.nspname = path.name
        LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = ANY (%s::name[])
)
SELECT place, schema, NULL, NULL, NULL FROM tables
UNION ALL SELECT place, schema, name, 'kind', CASE kind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'
    WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' ELSE 'thing' END
FROM tables WHERE kind <> 'r'
UNION ALL SELECT place, schema, name, 'policy', '' FROM tables WHERE kind = 'r' AND row_security_active(oid)
UNION ALL SELECT t.place, t.schema, t.name, 'trigger', g.tgname
FROM tables AS t JOIN pg_trigger AS g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal
UNION ALL SELECT t.place, t.schema, t.name, 'rule', r.rulename
FROM tables AS t JOIN pg_rewrite AS r ON r.ev_class = t.oid WHERE t.kind = 'r'
UNION ALL SELECT t.place, t.schema, t.name, 'column', a.attname
FROM tables AS t JOIN pg_attribute AS a ON a.attrelid = t.oid WHERE a.attnum > 0 AND NOT a.attisdropped
ORDER BY 1
"""


class PostgresConnection(Connection):
    """A transaction on the tables of one schema."""

    AMONG = "= ANY(?)"
    BY_BYTES = 'COLLATE "C"'
    HOLDS_NUL = False

    def __init__(self, raw: psycopg.Connection[Any], schema: str, columns: Mapping[str, set[str]]) -> None:
        self._raw = raw
        quoted = schema.replace('"', '""').replace("%", "%%")
        self._schema = f'"{quoted}".'
        self._columns = columns  # of each table
        self._numbers = count()

    def _sql(self, statement: str) -> str:
        return statement.replace("?", "%s").replace("{schema}", self._schema)

    def rows(self, statement: str, values: Sequence[Any] = (), *, are_many: bool = False) -> Iterable[Row]:
        if not are_many:
            return self._raw.execute(self._sql(statement), values)
        return self._stream(statement, values)

    def _stream(self, statement: str, values: Sequence[Any]) -> Iterator[Row]:
        with self._raw.cursor(f"kebab_{next(self._numbers)}") as cursor:
            cursor.itersize = FETCHED_ROWS
            cursor.execute(self._sql(statement), values)
            yield from cursor

    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._raw.execute(self._sql(statement), values).rowcount

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._raw.cursor() as cursor:
            cursor.executemany(self._sql(statement), rows)

    def many(self, values: Sequence[str]) -> list[str]:
        return [*values]

    def columns(self, table: str) -> set[str]:
        return self._columns.get(table, set())

    def are_own(self) -> bool:
        found = self.first(
            "SELECT obj_description(?::regclass)", (f"{self._schema}eval_runs".replace("%%", "%"),)
        )
        return found == (_MARK.encode(),)

    def mark_as_own(self) -> None:
        self.execute(f"COMMENT ON TABLE {{schema}}eval_runs IS '{_MARK}'")
        self.execute("CREATE INDEX chunks_by_document ON {schema}chunks (doc_id)")

    def now(self) -> str:
        (now,) = self._raw.execute(_NOW).fetchone() or ("",)
        return text_of(now)


class PostgresStore(Store):
    """A database of a server, which people make; its tables are made when a run is first recorded."""

    def __init__(self, address: PostgresAddress) -> None:
        super().__init__(address)
        self._address = address

    def is_there(self) -> bool:
        return True  # nothing here makes or removes a database of a server

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[Database]:
        with self._reading_errors(), self._connected() as raw:
            connection = self._begin(raw, "REPEATABLE READ, READ ONLY", READ_TIMEOUT_S)
            yield Database(self._address, connection, self._reading_errors, mask)

    @contextmanager
    def writing(
        self, failed: str, timeout_s: float = WRITE_TIMEOUT_S, *, with_corpus: bool = False
    ) -> Iterator[Connection]:
        with self._errors(failed), self._connected() as raw:
            written = (*CORPUS_TABLES, TAGS_TABLE) if with_corpus else (TAGS_TABLE,)
            connection = self._begin(raw, "READ COMMITTED", timeout_s, written)
            connection.execute(_ONE_AT_A_TIME)
            yield connection
            self._commit(raw)

    @contextmanager
    def recording(self, failed: str, *, with_corpus: bool = False) -> Iterator[Connection]:
        with self._errors(failed), self._connected() as raw:
            begin = (raw, "READ COMMITTED", WRITE_TIMEOUT_S, CORPUS_TABLES if with_corpus else ())
            connection = self._begin(*begin, has_runs=False)
            connection.execute(_ONE_AT_A_TIME)
            tables = {table for table in _TABLES if connection.columns(table)}
            if not tables:  # unless somebody made them while this one waited
                raw.rollback()
                connection = self._begin(*begin, has_runs=False, first=_ONE_AT_A_TIME)
                tables = {table for table in _TABLES if connection.columns(table)}
            # All at once, for those who record next may not make tables.
            make_missing_tables(connection, tables, self.name, 'TEXT COLLATE "C"', with_corpus=True)
            if not connection.columns(TAGS_TABLE):
                connection.execute(*TAGS_SCHEMA)
            yield connection
            self._commit(raw)

    @contextmanager
    def storing_aggregates(self, aggregates: Mapping[str, str]) -> Iterator[None]:
        with self._errors("the aggregates were not stored in"), self._connected() as raw:
            connection = self._begin(raw, "READ COMMITTED", AGGREGATES_TIMEOUT_S)
            store_aggregates(connection, aggregates, self.name)
            yield
            raw.commit()

    def give_back_room(self) -> None:
        """PostgreSQL does so by itself: the next runs fill it."""

    # -- connecting ----------------------------------------------------------------------------------

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        if psycopg is None:
            raise DatabaseError(
                f"{self.name} is read with psycopg 3, which is not installed here;"
                " install it with: pip install 'pytest-kebab-eval[postgres]'"
            )
        settings = self._settings()
        try:
            raw = psycopg.connect(self._address.conninfo, prepare_threshold=None, **settings)
        except (psycopg.Error, OSError, UnicodeError) as error:
            text = _text(error)
            raise DatabaseError(f"cannot connect to {self.name}: {text}; {_advice(text)}") from None
        for name in _TEXT_TYPES:
            raw.adapters.register_loader(name, _Bytes)
        try:
            yield raw
        finally:
            raw.close()

    def _settings(self) -> dict[str, Any]:
        """What libpq is told beside the address, where neither that nor the environment says it."""
        try:
            given = conninfo_to_dict(self._address.conninfo)
        except Exception:  # noqa: BLE001  what libpq says quotes parts of the address
            raise DatabaseError(
                f"{self.name} is refused: the address has a parameter that libpq does not know, or a value"
                " that it does not take; see 'Parameter Key Words' in PostgreSQL's documentation of libpq"
            ) from None
        defaults: dict[str, Any] = {"fallback_application_name": "kebab-eval", **_KEEPALIVES}
        if "PGCONNECT_TIMEOUT" not in os.environ:
            defaults["connect_timeout"] = CONNECT_TIMEOUT_S
        settings = {name: value for name, value in defaults.items() if name not in given}
        # PgBouncer refuses `options`; every table is named with its schema, so this need not be sent.
        own = {"options": ""} if self._search_path() is not None else {}
        return {**settings, **own, "client_encoding": "UTF8"}

    def _search_path(self) -> list[str] | None:
        """The schemas that `options` of the address names, if it says nothing else."""
        found = _SEARCH_PATH.fullmatch(str(conninfo_to_dict(self._address.conninfo).get("options") or ""))
        return [name.strip().lower() for name in found[1].split(",")] if found else None

    def _begin(
        self,
        raw: psycopg.Connection[Any],
        level: str,
        lock_timeout_s: float,
        written: Sequence[str] = (),
        *,
        has_runs: bool = True,
        first: str = "",
    ) -> PostgresConnection:
        """Begin a transaction on the first schema of the search path that has runs, or on the first of all.

        After that, names are found in `pg_catalog` alone. Rows that a policy hides are an error, not fewer.
        """
        raw.execute(
            f"SET TRANSACTION ISOLATION LEVEL {level}; SET LOCAL lock_timeout = {int(lock_timeout_s * 1000)};"
            " SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL row_security = off;"
            f" SET LOCAL client_min_messages = error; {first}"
        )
        schemas: dict[str, dict[str, set[str]]] = {}
        findings: dict[str, list[tuple[str, str, str]]] = {}
        for _, *row in raw.execute(_FIND, (self._search_path(), list(_TABLES))):
            schema, *what = (None if value is None else text_of(value) for value in row)
            tables = schemas.setdefault(schema or "", {})
            table, kind, name = (value or "" for value in what)
            if kind == "column":
                tables.setdefault(table, set()).add(name)
            elif kind:
                findings.setdefault(schema or "", []).append((table, kind, name))
        if not schemas:
            raise DatabaseError(f"{self.name} has none of the schemas of the search path; make one")
        schema = next(
            (name for name, tables in schemas.items() if EVAL_TABLES[0] in tables), next(iter(schemas))
        )
        if has_runs:
            check_has_runs(schemas[schema], self.name)
        check_tables(findings.get(schema, ()), self.name, written)
        raw.execute("SET LOCAL search_path TO pg_catalog, pg_temp")
        return PostgresConnection(raw, schema, schemas[schema])

    def _commit(self, raw: psycopg.Connection[Any]) -> None:
        """Make it last; where the connection is lost meanwhile, nobody can tell whether it does."""
        try:
            raw.commit()
        except psycopg.Error as error:
            if not _is_lost(error):
                raise
            raise StoreError(
                f"the connection to {self.name} was lost while the run was committed; see with kebab-eval"
                " runs whether it is there, whole, or record it again"
            ) from None

    # -- errors --------------------------------------------------------------------------------------

    @contextmanager
    def _reading_errors(self) -> Iterator[None]:
        try:
            yield
        except _errors_of_psycopg() as error:
            raise DatabaseError(f"cannot read the database {self.name}: {_reason(error)}") from None

    @contextmanager
    def _errors(self, failed: str) -> Iterator[None]:
        try:
            yield
        except _errors_of_psycopg() as error:
            raise StoreError(f"{failed} {self.name}: {_reason(error)}") from None


def _errors_of_psycopg() -> tuple[type[Exception], ...]:
    """What psycopg raises; the second for what PostgreSQL's text cannot hold."""
    return (UnicodeError,) if psycopg is None else (psycopg.Error, UnicodeError)


_LOCKED, _NO_COLUMN, _NO_TABLE, _DENIED, _READ_ONLY, _TOOK_TOO_LONG = (
    *("55P03", "42703", "42P01", "42501", "25006", "57014"),
)
# What PostgreSQL and PgBouncer say where no connection is left.
_NO_ROOM = ("too many", "connection slots", "no more connections", "query_wait_timeout")


def _is_lost(error: Exception) -> bool:
    """Whether the connection is gone, and not only the statement refused."""
    state = getattr(error, "sqlstate", None)
    return isinstance(error, psycopg.OperationalError) and (state is None or state.startswith(("08", "57P")))


def _reason(error: Exception) -> str:
    """Why PostgreSQL gave up, in words where its own do not tell."""
    state, text = getattr(error, "sqlstate", None), _text(error)
    if state == _LOCKED:
        return "it is locked by another program; try again when it is done"
    if any(words in text for words in _NO_ROOM):
        return f"{text}; {_advice(text)}"
    if _is_lost(error):
        return f"the connection was lost ({text}); try again when the server can be reached"
    if state == _DENIED:
        return f"{text}; see docs/postgres.md for what a role must be granted"
    if state in (_NO_COLUMN, _NO_TABLE):
        return f"{text}; its tables were made by another version, or by hand"
    if state == _READ_ONLY:
        return "it is read-only, as a standby is, or a role with default_transaction_read_only; name another"
    if state == _TOOK_TOO_LONG:
        return f"{text}; let the role take longer, with ALTER ROLE … SET statement_timeout, or try again"
    return text


def _advice(text: str) -> str:
    """What to do where no connection was made."""
    if "password" in text:
        return "check the role and its password, which may be in the address, PGPASSWORD or ~/.pgpass"
    if "does not exist" in text:
        return "make it, or name another"
    if any(words in text for words in _NO_ROOM):
        return "all connections that the server or its pool allows are taken; try again, or allow more"
    return "check the address, and that the server runs and can be reached"


def _text(error: Exception) -> str:
    """The first sentence of an error, on one line; of several attempts to connect, the last one's."""
    diagnostics = getattr(error, "diag", None)
    text = (diagnostics and diagnostics.message_primary) or str(error) or type(error).__name__
    lines = [line.strip() for line in str(text).splitlines() if line.strip()]
    attempts = [line for line in lines if line.startswith("- host:")]
    line = attempts[-1].partition("connection failed: ")[2] if attempts else lines[0]
    for prefix in ("connection failed: ", "consuming input failed: ", "FATAL:  "):  # psycopg's, PostgreSQL's
        line = line.removeprefix(prefix)
    return brief(mask_text(line), 300)
