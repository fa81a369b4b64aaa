"""A database of a server, opened for reading: the rows of its tables as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.limits import FETCHED_BYTES, FETCHED_ROWS, STORED_VALUE_BYTES
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.backend import ALL_IDS, IdRange, ResultRow
from pytest_kebab_eval.store.postgres.connections import READ, database_errors, too_long, transaction
from pytest_kebab_eval.store.postgres.corpus import PostgresCorpus
from pytest_kebab_eval.store.postgres.tables import check_tables
from pytest_kebab_eval.store.postgres.texts import can_hold
from pytest_kebab_eval.store.schema import TAGS_TABLE

if TYPE_CHECKING:
    from pytest_kebab_eval.store.postgres.connections import Connection

READ_TIMEOUT_S = 5.0
_KEYS_AT_A_TIME = 20  # whose results are in memory together


@contextmanager
def open_tables(address: PostgresAddress) -> Iterator[PostgresTables]:
    """Open a database in a transaction that only reads and sees one state, if it has the tables."""
    with database_errors(address), transaction(address, READ, READ_TIMEOUT_S) as connection:
        check_tables(connection, address)
        yield PostgresTables(address, connection)


class PostgresTables:
    """The eval tables of an open database."""

    def __init__(self, address: PostgresAddress, connection: Connection) -> None:
        self._address = address
        self._connection = connection

    @cached_property
    def corpus(self) -> PostgresCorpus:
        """The other two tables."""
        return PostgresCorpus(self._connection)

    def errors(self) -> AbstractContextManager[None]:
        """Within it, an error of PostgreSQL is a `DatabaseError`."""
        return database_errors(self._address)

    def runs(self) -> Iterable[tuple[Any, ...]]:
        """`run_id`, `suite`, `commit_hash` and `created_at` of all runs."""
        return self._connection.execute(
            "SELECT run_id::text, suite::text, commit_hash::text, created_at::text FROM eval_runs"
        )

    def run_value(self, run_id: str, column: str) -> tuple[Any, ...] | None:
        """One column of a run."""
        return self._row(f"SELECT {column}::text FROM eval_runs WHERE run_id = %s", run_id)

    def results(self, run_id: str, ids: IdRange) -> Iterator[ResultRow]:
        """The results of a run for these queries, streamed in the order of the bytes of their ids."""
        where, values = _where(run_id, ids)
        with self._connection.cursor("kebab_results", binary=True) as rows:
            rows.itersize = self._rows_at_a_time(where, values)
            rows.execute(
                f"SELECT query_id::text, result_json::text FROM eval_query_results WHERE {where}"
                ' ORDER BY query_id COLLATE "C"',
                values,
            )
            yield from rows

    def _rows_at_a_time(self, where: str, values: tuple[str, ...]) -> int:
        """As many as fit into memory, by the longest of them; an error if that one is too long."""
        longest = self._row(
            f"SELECT max(octet_length(result_json::text)) FROM eval_query_results WHERE {where}", *values
        )
        size = (longest[0] if longest else None) or 1
        if size > STORED_VALUE_BYTES:
            raise DatabaseError(f"cannot read the database {self._address.shown}: {too_long()}")
        return max(1, min(FETCHED_ROWS, FETCHED_BYTES // size))

    def results_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[ResultRow]:
        """The results of a run for a few queries, by their keys, in no particular order."""
        keys = [*filter(can_hold, query_ids)]
        for first in range(0, len(keys), _KEYS_AT_A_TIME):
            yield from self._connection.execute(
                "SELECT query_id::text, result_json::text FROM eval_query_results"
                " WHERE run_id = %s AND query_id = ANY(%s)",
                (run_id, keys[first : first + _KEYS_AT_A_TIME]),
                binary=True,
            )

    def result(self, run_id: str, query_id: str) -> tuple[Any, ...] | None:
        """The `result_json` of one query."""
        query = "SELECT result_json::text FROM eval_query_results WHERE run_id = %s AND query_id = %s"
        return self._row(query, run_id, query_id)

    def result_count(self, run_id: str) -> int:
        """How many results the run has."""
        row = self._row("SELECT count(*) FROM eval_query_results WHERE run_id = %s", run_id)
        return int(row[0]) if row else 0

    def result_counts(self) -> Iterable[tuple[Any, ...]]:
        """How many results each run has."""
        return self._connection.execute(
            "SELECT run_id::text, count(*) FROM eval_query_results GROUP BY run_id"
        )

    def tags(self) -> Iterable[tuple[Any, ...]]:
        """Each tag, and the id of the run that it names."""
        if self._row("SELECT to_regclass(%s)", TAGS_TABLE) == (None,):
            return ()
        return self._connection.execute(f"SELECT name::text, run_id::text FROM {TAGS_TABLE}")

    def _row(self, query: str, *values: str) -> tuple[Any, ...] | None:
        if not all(map(can_hold, values)):
            return None
        return self._connection.execute(query, values).fetchone()


def _where(run_id: str, ids: IdRange) -> tuple[str, tuple[str, ...]]:
    """The condition on the rows of a run, and its parameters."""
    if ids == ALL_IDS:
        return "run_id = %s", (run_id,)
    if ids.before is None:
        return 'run_id = %s AND query_id COLLATE "C" >= %s', (run_id, ids.first)
    return 'run_id = %s AND query_id COLLATE "C" >= %s AND query_id COLLATE "C" < %s', (
        run_id,
        ids.first,
        ids.before,
    )
