"""A database of a server, opened for reading: the rows of its tables as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.limits import FETCHED_BYTES, FETCHED_ROWS, STORED_VALUE_BYTES
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.database import Database
from pytest_kebab_eval.store.postgres.connections import SchemaConnection, can_hold, database_errors
from pytest_kebab_eval.store.results import first_row, text_of

_KEYS = ("chunk_id",)  # of which there are few rows each, so that all are taken at once
_NUMBERS = ("count(*)", "token_estimate")  # all else is read as text, whatever its type
# Tables with more rows than are kept in memory, and their order: of documents at one path, the first counts.
_STREAMED = {"documents": ' ORDER BY doc_id COLLATE "C"', "chunks": ""}


class PostgresDatabase(Database):
    """The tables of an open database."""

    def __init__(
        self, address: PostgresAddress, connection: SchemaConnection, mask: Sequence[str] = ()
    ) -> None:
        super().__init__(address, mask)
        self._address = address
        self._connection = connection
        self._read_to_the_end: list[str] = []  # cursors, which are closed together with the next statement

    def errors(self) -> AbstractContextManager[None]:
        return database_errors(self._address)

    def columns(self, table: str) -> set[str]:
        return self._connection.columns.get(table, set())

    def select(self, table: str, *columns: str, **equal: str) -> Iterable[tuple[Any, ...]]:
        if not all(map(can_hold, equal.values())):
            return ()
        values = ", ".join(column if column in _NUMBERS else f"{column}::text" for column in columns)
        query = f"SELECT {values} FROM {{schema}}.{table}"
        if equal:
            query += f" WHERE {' AND '.join(f'{column} = %s' for column in equal)}"
            return self._connection.execute(query, tuple(equal.values()))
        if table not in _STREAMED:
            return self._connection.execute(query)
        return self._stream("kebab_corpus", query + _STREAMED[table], (), FETCHED_ROWS)

    def has_rows(self, table: str) -> bool:
        rows = self._connection.execute(f"SELECT 1 FROM {{schema}}.{table} LIMIT 1")
        return first_row(rows) is not None

    def select_among(self, table: str, *columns: str, **among: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        ((column, values),) = among.items()
        named = ", ".join(f"{name}::text" for name in columns)
        query = f"SELECT {named} FROM {{schema}}.{table} WHERE {column} = ANY(%s) ORDER BY tableoid, ctid"
        given = ([*filter(can_hold, values)],)
        if column in _KEYS:
            yield from self._connection.execute(query, given, binary=True)
        else:
            yield from self._stream("kebab_among", query, given, FETCHED_ROWS)

    def is_indexed(self, table: str, column: str) -> bool:
        rows = self._connection.execute(
            "SELECT 1 FROM pg_index AS i JOIN pg_attribute AS a"
            " ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
            " WHERE i.indrelid = to_regclass(%s) AND a.attname = %s"
            " AND i.indisvalid AND i.indpred IS NULL LIMIT 1",
            (self._connection.name(table), column),
        )
        return first_row(rows) is not None

    def result_rows(self, run_id: str) -> Iterator[tuple[Any, Any]]:
        where, values = "run_id = %s", [run_id]
        query = f"SELECT query_id::text, result_json::text FROM {{schema}}.eval_query_results WHERE {where}"
        size = self._rows_at_a_time(where, values)
        yield from self._stream("kebab_results", f'{query} ORDER BY query_id COLLATE "C"', values, size)

    def _rows_at_a_time(self, where: str, values: Sequence[Any]) -> int:
        """As many as fit into memory, by the longest of them; an error if that one is too long."""
        query = (
            f"SELECT max(octet_length(result_json::text)) FROM {{schema}}.eval_query_results WHERE {where}"
        )
        can_be_there = all(can_hold(value) for value in values if isinstance(value, str))
        (longest,) = first_row(self._connection.execute(query, values) if can_be_there else ()) or (None,)
        if (longest or 0) > STORED_VALUE_BYTES:
            what = f"it has a value longer than {STORED_VALUE_BYTES // 1_000_000} MB"
            raise DatabaseError(f"cannot read the database {self.name}: {what}")
        return max(1, min(FETCHED_ROWS, FETCHED_BYTES // (longest or 1)))

    def _stream(self, name: str, query: str, values: Sequence[object], size: int) -> Iterator[Any]:
        """All rows, a few of them at a time; the first come with the answer to the statement."""
        fetch = f"FETCH FORWARD {size} FROM {name}"
        with self._connection.together():
            while self._read_to_the_end:
                self._connection.execute(f"CLOSE {self._read_to_the_end.pop()}")
            self._connection.execute(f"DECLARE {name} CURSOR FOR {query}", values or None)
            rows = self._connection.execute(fetch, binary=True)
        try:
            while found := rows.fetchall():
                yield from found
                if len(found) < size:
                    break
                rows = self._connection.execute(fetch, binary=True)
        finally:
            self._read_to_the_end.append(name)

    def result_rows_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        where, values = "run_id = %s AND query_id = ANY(%s)", (run_id, [*filter(can_hold, query_ids)])
        query = f"SELECT query_id::text, result_json::text FROM {{schema}}.eval_query_results WHERE {where}"
        size = f"SELECT sum(octet_length(result_json::text)) FROM {{schema}}.eval_query_results WHERE {where}"
        fitting = f"{query} AND ({size}) <= {FETCHED_BYTES}"  # in memory together, as nearly always
        rows = self._connection.execute(fitting, (*values, *values), binary=True).fetchall()
        yield from rows or self._stream("kebab_some", query, values, self._rows_at_a_time(where, values))

    def result_counts(self) -> dict[str, int]:
        rows = self._connection.execute(
            "SELECT run_id::text, count(*) FROM {schema}.eval_query_results GROUP BY run_id"
        )
        return {text_of(run_id): count for run_id, count in rows if run_id is not None}
