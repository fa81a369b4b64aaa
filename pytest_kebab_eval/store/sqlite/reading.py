"""An SQLite file, opened for reading: the rows of its tables as they are."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cached_property
from pathlib import Path

from pytest_kebab_eval.errors import DatabaseError, NoDatabase
from pytest_kebab_eval.store.backend import ALL_IDS, IdRange, ResultRow
from pytest_kebab_eval.store.plain import text_of
from pytest_kebab_eval.store.schema import EVAL_TABLES, TAGS_TABLE
from pytest_kebab_eval.store.sqlite.connections import SQLITE_ERRORS, connect, reason
from pytest_kebab_eval.store.sqlite.corpus import SqliteCorpus
from pytest_kebab_eval.store.sqlite.indexes import DamagedIndex, check_results, results_index
from pytest_kebab_eval.store.sqlite.tables import check_tables, has_table
from pytest_kebab_eval.text import printable, shown_path

READ_TIMEOUT_S = 5.0
_KEYS_AT_A_TIME = 500  # SQLite before 3.32 takes 999 parameters


@contextmanager
def open_tables(path: Path) -> Iterator[SqliteTables]:
    """Open a database read-only, if it has the tables."""
    with _database_errors(path):
        connection = _connect(path)
        try:
            missing = _missing_tables(connection)
            if missing:
                raise DatabaseError(
                    f"{shown_path(path)} has no table {' and no table '.join(missing)};"
                    " is it the database that the evaluation runs were stored in?"
                )
            check_tables(connection, path)
            yield SqliteTables(path, connection)
        finally:
            connection.close()


class SqliteTables:
    """The eval tables of an open file; read by the table where a damaged index would not tell."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    @cached_property
    def corpus(self) -> SqliteCorpus:
        """The other two tables."""
        return SqliteCorpus(self._connection)

    def errors(self) -> AbstractContextManager[None]:
        """Within it, an error of SQLite is a `DatabaseError`."""
        return _database_errors(self._path)

    def runs(self) -> Iterable[tuple[object, object, object, object]]:
        """`run_id`, `suite`, `commit_hash` and `created_at` of all runs."""
        return self._connection.execute(
            "SELECT run_id, suite, commit_hash, created_at FROM eval_runs NOT INDEXED"
        )

    def run_value(self, run_id: str, column: str) -> tuple[object] | None:
        """One column of a run."""
        query = f"SELECT {column} FROM eval_runs NOT INDEXED WHERE run_id = ?"
        row: tuple[object] | None = self._connection.execute(query, (run_id,)).fetchone()
        return row

    def results(self, run_id: str, ids: IdRange) -> Iterator[ResultRow]:
        """The results of a run for these queries; an error if an index has lost some of the run's.

        That takes all of the run, so it is looked at only where the range begins with the first id.
        """
        index = results_index(self._connection)
        if index and not ids.first:
            check_results(self._connection, index, run_id)
        by = index.clause if index else "NOT INDEXED"
        within, bounds = _within(ids)
        return self._connection.execute(
            f"SELECT query_id, result_json FROM eval_query_results {by} WHERE run_id = ?{within}",
            (run_id, *bounds),
        )

    def results_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[ResultRow]:
        """The results of a run for a few queries, by their keys, in no particular order."""
        for first in range(0, len(query_ids), _KEYS_AT_A_TIME):
            keys = query_ids[first : first + _KEYS_AT_A_TIME]
            yield from self._connection.execute(
                "SELECT query_id, result_json FROM eval_query_results"
                f" WHERE run_id = ? AND query_id IN ({', '.join('?' * len(keys))})",
                (run_id, *keys),
            )

    def result(self, run_id: str, query_id: str) -> tuple[object] | None:
        """The `result_json` of one query."""
        query = "SELECT result_json FROM eval_query_results WHERE run_id = ? AND query_id = ?"
        row: tuple[object] | None = self._connection.execute(query, (run_id, query_id)).fetchone()
        return row

    def result_count(self, run_id: str) -> int:
        """How many results the run has."""
        query = "SELECT count(*) FROM eval_query_results WHERE run_id = ?"
        return int(self._connection.execute(query, (run_id,)).fetchone()[0])

    def result_counts(self) -> Iterable[tuple[object, int]]:
        """How many results each run has."""
        return self._connection.execute(
            "SELECT run_id, count(*) FROM eval_query_results NOT INDEXED GROUP BY run_id"
        )

    def tags(self) -> Iterable[tuple[object, object]]:
        """Each tag, and the id of the run that it names."""
        if not has_table(self._connection, TAGS_TABLE):
            return ()
        return self._connection.execute(f"SELECT name, run_id FROM {TAGS_TABLE} NOT INDEXED")


def _within(ids: IdRange) -> tuple[str, tuple[str, ...]]:
    """The condition on `query_id`, and its parameters; none for all, since one may be NULL."""
    if ids == ALL_IDS:
        return "", ()
    if ids.before is None:
        return " AND query_id >= ?", (ids.first,)
    return " AND query_id >= ? AND query_id < ?", (ids.first, ids.before)


# -- opening -------------------------------------------------------------------------------------


def _connect(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise NoDatabase(f"there is no database {shown_path(path)}; name yours with --kebab-db=FILE")
    if not path.is_file():
        kind = "directory" if path.is_dir() else "special file"
        raise DatabaseError(f"{shown_path(path)} is a {kind}, not a database file")
    path = path.resolve()  # SQLite keeps its log beside the file, not beside a link to it
    try:
        return _connect_with(path, "mode=ro")
    except sqlite3.OperationalError as error:
        # SQLite reads a WAL database only where it can create its -shm file, or if told that nobody
        # writes (immutable). In a read-only directory nobody does; and no log may be left to be read.
        if "locked" in str(error):
            raise
        if "readonly" in str(error) and path.with_name(f"{path.name}-journal").exists():
            _roll_back(path)
            return _connect_with(path, "mode=ro")
        if not _uses_wal(path):
            raise
        log = path.with_name(f"{path.name}-wal")
        if log.exists() and log.stat().st_size > 0:
            raise DatabaseError(
                f"{shown_path(path)} has changes in {log.name} that can only be read where its directory"
                " can be written to; copy the files somewhere else, or close the program that wrote them"
            ) from None
        return _connect_with(path, "mode=ro&immutable=1")


def _connect_with(path: Path, parameters: str) -> sqlite3.Connection:
    connection = connect(path, parameters, READ_TIMEOUT_S)
    try:
        connection.text_factory = bytes
        connection.execute("BEGIN")
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _roll_back(path: Path) -> None:
    """Undo the unfinished transaction of a killed program, as SQLite does on opening for writing."""
    with closing(_connect_with(path, "mode=rw")):
        pass


def _uses_wal(path: Path) -> bool:
    """Whether the file's header names WAL (bytes 18 and 19: write and read version)."""
    with path.open("rb") as file:
        return file.read(20)[18:20] == b"\x02\x02"


def _missing_tables(connection: sqlite3.Connection) -> list[str]:
    names = {text_of(name).lower() for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    return [name for name in EVAL_TABLES if name not in names]


@contextmanager
def _database_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into a `DatabaseError`."""
    name = shown_path(path)
    try:
        yield
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise DatabaseError(
                f"{name} is locked by another program, also for reading; try again when it is done"
            ) from None
        if "no such column" in str(error):
            raise DatabaseError(
                f"{name} has an eval table without what this reads: {error}; it was made by another version"
            ) from None
        hint = "; another program left it unfinished: open it once where it can be written to"
        advice = hint if "readonly" in str(error) else ""
        raise DatabaseError(f"cannot read the database {name}: {reason(error)}{advice}") from None
    except DamagedIndex as error:
        raise DatabaseError(
            f"{name} is damaged, and rows are lost: its index {printable(str(error))};"
            " restore it from a backup, or repair it with SQLite's REINDEX"
        ) from None
    except SQLITE_ERRORS as error:
        raise DatabaseError(f"{name} cannot be read as an SQLite database: {reason(error)}") from None
    except OSError as error:
        raise DatabaseError(f"cannot open {name}: {error.strerror or error}") from None
