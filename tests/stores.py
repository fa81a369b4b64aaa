"""A store of each kind, made with runs as `builders.make_database` makes them, and looked at from outside."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from pytest_kebab_eval.store import Address, to_address
from tests.builders import Json, make_database

TABLES = ("eval_runs", "eval_query_results", "documents", "chunks")


class Store:
    """A database that tests fill and look at; `db` names it as a user would."""

    db: str

    @property
    def address(self) -> Address:
        return to_address(self.db)

    def make(self, **given: Any) -> Address:
        """Fill it with runs, as `builders.make_database` takes them."""
        raise NotImplementedError

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        raise NotImplementedError

    def execute(self, statement: str, *values: Any) -> None:
        """Change something; parameters are `?`."""
        raise NotImplementedError

    def aggregate_of(self, run_id: str) -> Any:
        """The stored aggregate of a run."""
        rows = self.rows("SELECT run_id, aggregate_json FROM eval_runs")
        return json.loads(dict(rows)[run_id])

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows, to show that nothing changed."""
        return {table: sorted(self.rows(f"SELECT * FROM {table}"), key=repr) for table in self.tables()}

    def tables(self) -> list[str]:
        """Which of the four tables there are."""
        raise NotImplementedError


class SqliteStore(Store):
    """An SQLite file, which is made when it is filled or recorded into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = str(path)

    def make(self, **given: Any) -> Address:
        return make_database(self.path, **given)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query).fetchall()

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(statement, values)

    def tables(self) -> list[str]:
        found = {name for (name,) in self.rows("SELECT name FROM sqlite_master")}
        return [table for table in TABLES if table in found]


class PostgresStore(Store):
    """A database of a server, which has its tables already."""

    def __init__(self, db: str) -> None:
        self.db = db

    def make(
        self,
        *,
        config: Json | None = None,
        configs: Mapping[str, Json | str] | None = None,
        corpus: Mapping[str, tuple[str, Sequence[Json]]] | None = None,
        corpus_version: str = "v1",
        **runs: Mapping[str, Json | str],
    ) -> Address:
        for day, (run_id, results) in enumerate(runs.items(), 1):
            own = (configs or {}).get(run_id, config or {"chunker_version": "v1"})
            snapshot = own if isinstance(own, str) else json.dumps(own)
            self.execute(
                "INSERT INTO eval_runs VALUES (?, 'suite', ?, '{}', NULL, ?)",
                *(run_id, snapshot, f"2026-01-{day:02}T00:00:00Z"),
            )
            for query_id, stored in results.items():
                text = json.dumps({"query_id": query_id, **stored}) if isinstance(stored, dict) else stored
                self.execute("INSERT INTO eval_query_results VALUES (?, ?, ?)", run_id, query_id, text)
        for doc_id in dict.fromkeys(doc_id for doc_id, _ in (corpus or {}).values()):
            self.execute("INSERT INTO documents VALUES (?, ?)", doc_id, f"{doc_id}.md")
        for chunk_id, (doc_id, spans) in (corpus or {}).items():
            self.execute(
                "INSERT INTO chunks VALUES (?, ?, ?, '[]', ?, 10, ?)",
                *(chunk_id, doc_id, f"text of {chunk_id}", json.dumps(list(spans)), corpus_version),
            )
        return self.address

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.db, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def execute(self, statement: str, *values: Any) -> None:
        import psycopg

        with psycopg.connect(self.db, autocommit=True) as connection:
            connection.execute(statement.replace("?", "%s"), values or None)

    def tables(self) -> list[str]:
        return [table for table in TABLES if self.rows(f"SELECT to_regclass('{table}')") != [(None,)]]
