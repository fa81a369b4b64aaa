"""A database, opened for reading: its runs, and a run's results one at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from pytest_kebab_eval.errors import DatabaseError, NoDatabase
from pytest_kebab_eval.limits import CONFIG_DEPTH
from pytest_kebab_eval.model import QueryResult, Run, Unreadable
from pytest_kebab_eval.store.connections import SQLITE_ERRORS, connect, reason
from pytest_kebab_eval.store.corpus import Corpus
from pytest_kebab_eval.store.indexes import DamagedIndex, check_results, results_index
from pytest_kebab_eval.store.plain import check_depth
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.store.schema import EVAL_TABLES
from pytest_kebab_eval.store.tables import check_tables, text_of
from pytest_kebab_eval.text import printable, shown_path
from pytest_kebab_eval.text.masking import mask_config, mask_text

READ_TIMEOUT_S = 5.0


@contextmanager
def open_database(path: Path, mask: Sequence[str] = ()) -> Iterator[Database]:
    """Open a database read-only; everything read in the block is of one state, even if others write.

    What looks like a secret in a run's configuration is masked, and so is what the patterns `mask` match.
    """
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
            yield Database(path, connection, mask)
        finally:
            connection.close()


class Database:
    """The runs of one open database."""

    def __init__(self, path: Path, connection: sqlite3.Connection, mask: Sequence[str] = ()) -> None:
        self.path = path
        self._mask = mask
        self._connection = connection
        self.warnings: list[str] = []

    @cached_property
    def corpus(self) -> Corpus:
        """The documents and chunks, if the database has any."""
        return Corpus(self._connection)

    def runs(self) -> list[Run]:
        """All runs, without their configuration, in no particular order."""
        rows = self._connection.execute(
            "SELECT run_id, suite, commit_hash, created_at FROM eval_runs NOT INDEXED"
        )
        return [
            Run(
                run_id=text_of(run_id),
                suite=text_of(suite),
                commit_hash=None if commit_hash is None else text_of(commit_hash),
                created_at=text_of(created_at),
            )
            for run_id, suite, commit_hash, created_at in rows
            if run_id is not None
        ]

    def with_config(self, run: Run) -> Run:
        """The run with its configuration; a snapshot that does not parse counts as empty, with a warning."""
        row = self._connection.execute(
            "SELECT config_snapshot_json FROM eval_runs NOT INDEXED WHERE run_id = ?", (run.run_id,)
        ).fetchone()
        try:
            config = msgspec.json.decode(row[0] if row else b"{}", type=dict[str, Any])
            check_depth(config, CONFIG_DEPTH)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            config = {}
            self.warnings.append(
                f"the config snapshot of run {printable(run.run_id)} does not parse; it counts as empty"
            )
        masked = mask_config(config, self._mask, keep=["chunker_version"])  # by which results are matched
        return msgspec.structs.replace(run, config=masked.config, digests=masked.digests)

    def stored_aggregate(self, run_id: str) -> dict[str, Any]:
        """The run's `aggregate_json`; empty if there is none or it does not parse."""
        query = "SELECT aggregate_json FROM eval_runs NOT INDEXED WHERE run_id = ?"
        row = self._connection.execute(query, (run_id,)).fetchone()
        try:
            return msgspec.json.decode(row[0] if row else b"{}", type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            return {}

    def results(self, run_id: str) -> Iterator[QueryResult | Unreadable]:
        """The run's results, one at a time; an error if an index has lost some of them."""
        index = results_index(self._connection)
        if index:
            check_results(self._connection, index, run_id)
        by = index.clause if index else "NOT INDEXED"
        rows = self._connection.execute(
            f"SELECT query_id, result_json FROM eval_query_results {by} WHERE run_id = ?", (run_id,)
        )
        for query_id, result_json in rows:
            if query_id is None:
                yield Unreadable("NULL", "the row has no query_id")
            else:
                result = decode_result(text_of(query_id), result_json)
                yield result if type(result) is QueryResult and result.error is None else _masked(result)
                del result  # so that the next one is decoded into the same memory

    def result_count(self, run_id: str) -> int:
        """How many results the run has."""
        query = "SELECT count(*) FROM eval_query_results WHERE run_id = ?"
        return int(self._connection.execute(query, (run_id,)).fetchone()[0])

    def result_counts(self) -> dict[str, int]:
        """How many results each run has, by the table: a damaged index would not tell."""
        rows = self._connection.execute(
            "SELECT run_id, count(*) FROM eval_query_results NOT INDEXED GROUP BY run_id"
        )
        return {text_of(run_id): count for run_id, count in rows if run_id is not None}

    def result(self, run_id: str, query_id: str) -> QueryResult | Unreadable | None:
        """One result of a run; None if the run has none for the query."""
        row = self._connection.execute(
            "SELECT result_json FROM eval_query_results WHERE run_id = ? AND query_id = ?",
            (run_id, query_id),
        ).fetchone()
        return None if row is None else _masked(decode_result(query_id, row[0]))

    def holds(self, run_id: str, rows: Iterable[tuple[str, bytes]]) -> bool:
        """Whether a run has these results (query id, `result_json`), byte for byte, and no others."""
        statement = "SELECT result_json FROM eval_query_results WHERE run_id = ? AND query_id = ?"
        count = 0
        for query_id, result_json in rows:
            row = self._connection.execute(statement, (run_id, query_id)).fetchone()
            if row is None or row[0] != result_json:
                return False
            count += 1
        return count == self.result_count(run_id)

    def read_result(self, run_id: str, query_id: str) -> QueryResult | Unreadable | None:
        """`result` for callers outside the block that opened the database: a `DatabaseError` if it fails."""
        with _database_errors(self.path):
            return self.result(run_id, query_id)


def _masked(result: QueryResult | Unreadable) -> QueryResult | Unreadable:
    """The result; what an error says of a password or a token is masked, since errors quote addresses."""
    if isinstance(result, Unreadable) or result.error is None:
        return result
    return msgspec.structs.replace(result, error=mask_text(result.error))


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
