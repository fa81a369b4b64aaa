"""The one place that connects to PostgreSQL, begins transactions, and words errors.

What is not in the address is libpq's: service files, `PGPASSWORD` and the like, `~/.pgpass`, `sslmode`.
No error has a password in it: an address that libpq would take apart, and quote, is refused before that.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.errors import DatabaseError, InputError
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import EVAL_TABLES
from pytest_kebab_eval.store.plain import is_unicode
from pytest_kebab_eval.store.postgres.tables import TABLES, check_findings, findings_in, quoted
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.masking import mask_text

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError:
    psycopg = None  # type: ignore[assignment]

if TYPE_CHECKING:
    Connection = psycopg.Connection[tuple[Any, ...]]
    Cursor = psycopg.Cursor[tuple[Any, ...]]

CONNECT_TIMEOUT_S = 10
# A server that went away without a word is noticed after 30 + 3 * 10 seconds.
_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
_ENCODINGS = ("UTF8", "SQL_ASCII")
_SEARCH_PATH = re.compile(r"\s*(?:-c\s*|--)search_path=(\w+(?:,\s*\w+)*)\s*", re.ASCII)


class SchemaConnection:
    """A connection in a transaction; in its statements `{schema}` stands for the schema of the tables."""

    def __init__(self, raw: Connection, schema: str, columns: Mapping[str, set[str]]) -> None:
        self.raw, self.schema = raw, schema
        self.columns = columns  # of each table
        self._quoted = quoted(schema)

    def name(self, table: str) -> str:
        """The name of a table, as `to_regclass` takes it."""
        return '"' + self.schema.replace('"', '""') + f'".{table}'

    def sql(self, statement: str, *, has_values: bool) -> str:
        """The statement with the schema in it; where there are values, psycopg reads %% as %."""
        name = self._quoted.replace("%", "%%") if has_values else self._quoted
        return statement.replace("{schema}", name)

    def execute(self, statement: str, values: Sequence[Any] | None = None, *, binary: bool = False) -> Cursor:
        """Run a statement."""
        return self.raw.execute(self.sql(statement, has_values=values is not None), values, binary=binary)

    def together(self) -> AbstractContextManager[object]:
        """Statements within it are sent together, where libpq can, and their answers are there at its end."""
        return self.raw.pipeline() if psycopg.Pipeline.is_supported() else nullcontext()

    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each of these rows of values."""
        with self.raw.cursor() as cursor:
            cursor.executemany(self.sql(statement, has_values=True), rows)


@contextmanager
def connect(address: PostgresAddress) -> Iterator[Connection]:
    """Connect; text is given as its bytes, since it may be anything."""
    if psycopg is None:
        raise DatabaseError(
            f"{address.shown} is read with psycopg 3, which is not installed here;"
            " install it with: pip install 'pytest-kebab-eval[postgres]'"
        )
    settings = _settings(address)
    try:
        connection = psycopg.connect(
            address.conninfo, autocommit=True, prepare_threshold=None, client_encoding="SQL_ASCII", **settings
        )
    except (psycopg.Error, OSError, UnicodeError) as error:
        text = _text(error)
        raise DatabaseError(f"cannot connect to {address.shown}: {text}; {_advice(text)}") from None
    try:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in _ENCODINGS:
            raise DatabaseError(
                f"{address.shown} is refused: its encoding is {brief(str(encoding))}; make one of UTF8"
            )
        yield connection
    finally:
        connection.close()


def _settings(address: PostgresAddress) -> dict[str, Any]:
    """What libpq is told beside the address, where neither that nor the environment says it."""
    try:
        given = conninfo_to_dict(address.conninfo)
    except Exception:  # noqa: BLE001  what libpq says quotes parts of the address
        raise DatabaseError(
            f"{address.shown} is refused: the address has a parameter that libpq does not know, or a value"
            " that it does not take; see 'Parameter Key Words' in PostgreSQL's documentation of libpq"
        ) from None
    defaults: dict[str, Any] = {"fallback_application_name": "kebab-eval", **_KEEPALIVES}
    if "PGCONNECT_TIMEOUT" not in os.environ:
        defaults["connect_timeout"] = CONNECT_TIMEOUT_S
    settings = {name: value for name, value in defaults.items() if name not in given}
    return settings if search_path_of(address) is None else settings | {"options": ""}


def search_path_of(address: PostgresAddress) -> list[str] | None:
    """The schemas that `options` of the address names, if it says nothing else.

    It is not sent then, because every table is named with its schema, and PgBouncer refuses `options`.
    """
    found = _SEARCH_PATH.fullmatch(str(conninfo_to_dict(address.conninfo).get("options") or ""))
    return [name.strip().lower() for name in found[1].split(",")] if found else None


# -- transactions ------------------------------------------------------------------------------------
#
# Names are found by `pg_catalog` alone, and every table is named with its schema.

_READ = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"
_WRITE = "ISOLATION LEVEL READ COMMITTED"  # read-only where the role or the server says so
ROWS = "ROW EXCLUSIVE"  # the lock of one who writes rows, which PostgreSQL takes by itself
_FIND = """
SELECT n.nspname, c.relname
FROM unnest(COALESCE(%s::name[], current_schemas(false))) WITH ORDINALITY AS path (name, place)
    JOIN pg_namespace AS n ON n.nspname = path.name
    LEFT JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = ANY (%s::name[])
ORDER BY path.place
"""


@contextmanager
def transaction(
    address: PostgresAddress,
    lock_timeout_s: float,
    written: Mapping[str, str] | None = None,
) -> Iterator[SchemaConnection]:
    """A connection in a transaction on tables that are checked; rolled back unless committed.

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
        f" SET LOCAL row_security = off;{first}"
    )
    while answers.nextset():
        pass
    return answers


def _find(connection: Connection, address: PostgresAddress) -> tuple[str, set[str]]:
    """The one schema of the search path that has the evaluation runs, or else the first, and its tables."""
    schemas: dict[str, set[str]] = {}
    for schema, table in connection.execute(_FIND, (search_path_of(address), list(TABLES))):
        schemas.setdefault(text_of(schema), set()).add(text_of(table))
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


def _locks(schema: str, tables: AbstractSet[str], written: Mapping[str, str]) -> Iterator[str]:
    """The statements that lock tables in a way of their own, in one order, so that nobody deadlocks."""
    for table in TABLES:
        if table in tables and written.get(table, ROWS) != ROWS:
            yield f" LOCK TABLE {quoted(schema)}.{table} IN {written[table]} MODE;"


# -- errors --------------------------------------------------------------------------------------

# What psycopg raises; the last for what PostgreSQL's text cannot hold.
POSTGRES_ERRORS = (UnicodeError,) if psycopg is None else (psycopg.Error, UnicodeError)
_LOCKED, _NO_COLUMN, _NO_TABLE, _DENIED, _READ_ONLY = "55P03", "42703", "42P01", "42501", "25006"
_TAKEN, _TOOK_TOO_LONG = "23505", "57014"


READ_ONLY = "it is read-only, as a standby is, or a role with default_transaction_read_only; name another"


def _state(error: Exception) -> str | None:
    return getattr(error, "sqlstate", None)


def is_taken(error: Exception, table: str) -> bool:
    """Whether the table has a row of that key already."""
    return _state(error) == _TAKEN and table in str(error)


def is_lost(error: Exception) -> bool:
    """Whether the connection is gone, and not only the statement refused."""
    state = _state(error)
    return isinstance(error, psycopg.OperationalError) and (state is None or state.startswith(("08", "57P")))


def reason_or_lock(error: Exception, locked: str = "it is locked by another program") -> str:
    """Why PostgreSQL gave up; `locked` if another program holds what is needed."""
    return locked if _state(error) == _LOCKED else reason(error)


def reason(error: Exception) -> str:
    """Why PostgreSQL gave up, in words where its own do not tell."""
    state, text = _state(error), _text(error)
    if any(words in text for words in _NO_ROOM):
        return f"{text}; {_advice(text)}"
    if is_lost(error):
        return f"the connection was lost ({text}); try again when the server can be reached"
    if state == _DENIED:
        return f"{text}; see docs/postgres.md for what a role must be granted"
    if state in (_NO_COLUMN, _NO_TABLE):
        return f"{text}; its tables were made by another version, or by hand"
    if state == _READ_ONLY:
        return READ_ONLY
    if state == _TOOK_TOO_LONG:
        return f"{text}; let the role take longer, with ALTER ROLE … SET statement_timeout, or try again"
    return text


# What PostgreSQL and PgBouncer say where no connection is left.
_NO_ROOM = ("too many", "connection slots", "no more connections", "query_wait_timeout")


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


@contextmanager
def database_errors(address: PostgresAddress, doing: str = "read the database") -> Iterator[None]:
    """Turn errors of PostgreSQL into a `DatabaseError`, which says what cannot be done."""
    try:
        yield
    except POSTGRES_ERRORS as error:
        if _state(error) == _LOCKED:
            raise DatabaseError(
                f"{address.shown} is locked by another program, also for reading; try again when it is done"
            ) from None
        raise DatabaseError(f"cannot {doing} {address.shown}: {reason(error)}") from None


# -- text --------------------------------------------------------------------------------------------


def can_hold(text: str) -> bool:
    """Whether a text can be stored: it has no NUL, and no lone surrogate; one that cannot is in no table."""
    return is_unicode(text) and "\0" not in text


def check_text(text: str | None, what: str) -> None:
    """An `InputError` if the text cannot be stored."""
    if text is not None and not can_hold(text):
        raise InputError(
            f"{what} '{brief(text, 60)}' cannot be recorded in PostgreSQL, whose text holds no NUL character"
            " and nothing that is not valid Unicode; give another"
        )
