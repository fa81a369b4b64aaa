"""What every database has: its tables, and the statements that write to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.errors import DatabaseError, InputError, StoreError
from pytest_kebab_eval.model import Run, Value
from pytest_kebab_eval.store.address import Address, shown_address
from pytest_kebab_eval.store.database import (
    CORPUS_TABLES,
    EVAL_TABLES,
    TAGS_TABLE,
    Connection,
    Database,
    RawRun,
    Rows,
    can_hold,
    check_text,
)
from pytest_kebab_eval.store.results import text_of
from pytest_kebab_eval.text import brief, printable

if TYPE_CHECKING:
    from pytest_kebab_eval.store.new_chunks import ChunkRow

READ_TIMEOUT_S, AGGREGATES_TIMEOUT_S, WRITE_TIMEOUT_S = 5.0, 10.0, 60.0

# `{id}` is TEXT, in PostgreSQL compared by its bytes, as SQLite compares it.
SCHEMA = (
    """
CREATE TABLE {schema}eval_runs (
    run_id {id} PRIMARY KEY, suite TEXT NOT NULL, config_snapshot_json TEXT NOT NULL,
    aggregate_json TEXT NOT NULL DEFAULT '{}', commit_hash TEXT, created_at TEXT NOT NULL)
""",
    """
CREATE TABLE {schema}eval_query_results (
    run_id {id} NOT NULL REFERENCES {schema}eval_runs (run_id), query_id {id} NOT NULL,
    result_json TEXT NOT NULL, PRIMARY KEY (run_id, query_id))
""",
)
CORPUS_SCHEMA = (
    "CREATE TABLE {schema}documents (doc_id {id} PRIMARY KEY, workspace_path TEXT NOT NULL)",
    """
CREATE TABLE {schema}chunks (
    chunk_id {id} NOT NULL, doc_id {id} NOT NULL REFERENCES {schema}documents (doc_id), text TEXT NOT NULL,
    heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL, token_estimate BIGINT,
    chunker_version TEXT, UNIQUE (chunk_id, chunker_version))
""",
)
TAGS_SCHEMA = (f"CREATE TABLE {{schema}}{TAGS_TABLE} (name TEXT PRIMARY KEY, run_id TEXT NOT NULL)",)
_HAS_RUN = "SELECT 1 FROM {schema}eval_runs WHERE run_id = ?"
_INSERT_RUN = (
    "INSERT INTO {schema}eval_runs (run_id, suite, config_snapshot_json, commit_hash, created_at,"
    " aggregate_json) VALUES (?, ?, ?, ?, ?, ?)"
)
_INSERT_RESULT = "INSERT INTO {schema}eval_query_results (run_id, query_id, result_json) VALUES (?, ?, ?)"
_UPDATE_AGGREGATE = "UPDATE {schema}eval_runs SET aggregate_json = ? WHERE run_id = ?"


class Room(Value, frozen=True):
    """How many bytes a store took before and after removed runs were cleared away."""

    before: int
    after: int


class NewIndex(NamedTuple):
    """The chunks that are stored with a run."""

    chunks: Sequence[ChunkRow]
    chunker_version: str | None


class RunIsThere(InputError):
    """The store has a run of that id already."""


class Store(ABC):
    """A store that is named, whether it is there or not; each kind says how it is opened."""

    def __init__(self, address: Address) -> None:
        self.name = shown_address(address)

    @abstractmethod
    def is_there(self) -> bool:
        """Whether the store is there, as far as that can be known without opening it."""

    @abstractmethod
    def read(self, mask: Sequence[str] = ()) -> AbstractContextManager[Database]:
        """Open it read-only; everything read in the block is of one state, even if others write.

        What looks like a secret in a run's configuration is masked, and so is what the patterns `mask` match.
        """

    @abstractmethod
    def writing(
        self, failed: str, timeout_s: float = WRITE_TIMEOUT_S, *, with_corpus: bool = False
    ) -> AbstractContextManager[Connection]:
        """A transaction of the only one who records, tags or removes; committed at the end of the block.

        An error is a `StoreError` that begins with `failed`. Views and triggers are refused.
        """

    @abstractmethod
    def recording(self, failed: str, *, with_corpus: bool = False) -> AbstractContextManager[Connection]:
        """`writing` of runs, which makes the tables where there are none, and refuses those of others."""

    @abstractmethod
    def storing_aggregates(self, aggregates: Mapping[str, str]) -> AbstractContextManager[None]:
        """Write `aggregate_json` of runs by their ids; the end of the block commits it."""

    @abstractmethod
    def give_back_room(self) -> Room | None:
        """Give the room that removed runs took back, as far as others who use the store can go on."""

    def check_recordable(self, run_id: str, *, with_chunks: bool = False) -> None:
        """An `InputError` if a run of that id cannot be recorded: it is tried, and rolled back."""
        run = RawRun(run_id, "", "{}", None, "", "{}", [("?", b"{}")])
        try:
            with self.recording("cannot record into", with_corpus=with_chunks) as connection:
                insert_run(connection, run, self.name)
                if with_chunks:
                    _write_chunks(connection, NewIndex((), "?"))
                raise _TriedError
        except _TriedError:
            pass
        except StoreError as error:
            raise DatabaseError(str(error)) from None

    def write_run(self, run: Run, rows: Rows, chunks: Sequence[ChunkRow] | None = None) -> None:
        """Store a run, its results and the chunks of its index, all of it or nothing."""
        from pytest_kebab_eval.store.plain import encode_json

        config = encode_json("config", run.config).decode()
        raw = RawRun(run.run_id, run.suite, config, run.commit_hash, run.created_at, "{}", rows)
        self.write_runs([raw], None if chunks is None else NewIndex(chunks, run.chunker_version))

    def write_runs(self, runs: Iterable[RawRun], index: NewIndex | None = None) -> None:
        """Store runs as they are, all of them or none; one without a time is made now."""
        try:
            with self.recording("the run was not recorded in", with_corpus=index is not None) as connection:
                for run in runs:
                    created_at = run.created_at or connection.now()
                    insert_run(connection, run._replace(created_at=created_at), self.name)
                if index is not None:
                    _write_chunks(connection, index)
        except DatabaseError as error:
            raise StoreError(f"the run was not recorded: {error}") from None

    def make_tables(self) -> None:
        """Make the tables, also those of an index, where they are not there."""
        with self.recording("no tables were made in", with_corpus=True):
            pass

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Remove runs, all of them or none; an `InputError` if a tag names one of them."""
        with self.writing("nothing was changed in") as connection:
            tags = f"SELECT name, run_id FROM {{schema}}{TAGS_TABLE}"
            for row in connection.rows(tags) if connection.columns(TAGS_TABLE) else ():
                name, run_id = map(text_of, row)
                if run_id in run_ids:
                    run = f"run '{printable(run_id)}' of {self.name}"
                    raise InputError(f"{run} is tagged '{printable(name)}'; nothing was removed")
            _delete(connection, run_ids)

    def remove_run(self, run_id: str, *, with_file: bool) -> None:  # noqa: ARG002  which only a file has
        """Remove a run that was just stored; and the file, if it was made for this run and has no other."""
        with self.writing(f"run '{printable(run_id)}' could not be removed again from") as connection:
            _delete(connection, [run_id])

    def tag(self, name: str, run_id: str | None) -> None:
        """Have a tag name this run, or no run any more."""
        with self.writing("nothing was changed in") as connection:
            if not connection.columns(TAGS_TABLE):
                connection.execute(*TAGS_SCHEMA)
            connection.execute(f"DELETE FROM {{schema}}{TAGS_TABLE} WHERE name = ?", (name,))
            if run_id is not None:
                if connection.first(_HAS_RUN, (run_id,)) is None:  # removed meanwhile
                    raise InputError(f"{self.name} has no run '{printable(run_id)}' any more; name another")
                connection.execute(f"INSERT INTO {{schema}}{TAGS_TABLE} VALUES (?, ?)", (name, run_id))


class _TriedError(Exception):
    """What was to be tried went well."""


def insert_run(connection: Connection, run: RawRun, name: str) -> None:
    """Add a run with its results; an `InputError` if it is there already, or cannot be stored."""
    for text, what in ((run.run_id, "run id"), (run.suite, "suite"), (run.commit_hash or "", "commit")):
        check_text(text, f"the {what}")
    if connection.first(_HAS_RUN, (run.run_id,)):
        raise RunIsThere(f"{name} has a run '{printable(run.run_id)}' already; name the new one differently")
    connection.execute(_INSERT_RUN, run[:-1])  # all but its results
    rows = ((run.run_id, query_id, result.decode()) for query_id, result in run.rows)
    connection.execute_each(_INSERT_RESULT, rows)


def _delete(connection: Connection, run_ids: Iterable[str]) -> None:
    for table in reversed(EVAL_TABLES):
        connection.execute_each(
            f"DELETE FROM {{schema}}{table} WHERE run_id = ?", ((id_,) for id_ in run_ids)
        )


def _write_chunks(connection: Connection, index: NewIndex) -> None:
    """Make these the chunks of that chunker version; those of other versions stay, also with the same ids."""
    version = index.chunker_version
    is_null = version is None
    for row in index.chunks:
        for text in (row.chunk_id, row.doc_id, row.text, row.path):
            check_text(text, "of a chunk, the text")
    connection.execute(
        f"DELETE FROM {{schema}}chunks WHERE chunker_version {'IS NULL' if is_null else '= ?'}",
        () if is_null else (version,),
    )
    connection.execute_each(
        "INSERT INTO {schema}documents (doc_id, workspace_path) VALUES (?, ?)"
        " ON CONFLICT (doc_id) DO UPDATE SET workspace_path = excluded.workspace_path",
        {row.doc_id: row.path for row in index.chunks}.items(),
    )
    connection.execute_each(
        "INSERT INTO {schema}chunks (chunk_id, doc_id, text, heading_path_json, source_spans_json,"
        " token_estimate, chunker_version) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((*row[:6], version) for row in index.chunks),
    )
    connection.execute(
        "DELETE FROM {schema}documents WHERE doc_id NOT IN (SELECT doc_id FROM {schema}chunks)"
    )


def make_missing_tables(
    connection: Connection, tables: Iterable[str], name: str, id_type: str, *, with_corpus: bool = False
) -> None:
    """Make the tables of runs, and perhaps of an index, where they are missing.

    An `InputError` if others made what is there.
    """
    known = {*tables} & {*EVAL_TABLES, *CORPUS_TABLES}
    if known and not connection.are_own():
        raise InputError(
            f"the tables of {name} were not made by pytest-kebab-eval, so nothing is recorded there; record"
            " into another database, and give both to a comparison: --kebab-db-a and --kebab-db-b"
        )
    runs = () if known else SCHEMA
    corpus = CORPUS_SCHEMA if with_corpus and not known & {*CORPUS_TABLES} else ()
    for statement in (*runs, *corpus):
        connection.execute(statement.replace("{id}", id_type))
    if not known:
        connection.mark_as_own()


def store_aggregates(connection: Connection, aggregates: Mapping[str, str], name: str) -> None:
    """Write `aggregate_json` of runs by their ids; a `StoreError` if one of them is not there."""
    for run_id, aggregate in aggregates.items():
        can_be_there = connection.HOLDS_NUL or can_hold(run_id)
        if not can_be_there or connection.execute(_UPDATE_AGGREGATE, (aggregate, run_id)) != 1:
            raise StoreError(f"nothing was stored: there is no run '{printable(run_id)}' in {name}")


# -- what is refused -----------------------------------------------------------------------------------


def check_tables(found: Iterable[tuple[str, str, str]], name: str, written: Iterable[str]) -> None:
    """Refuse what stands in a table's place, or would run when it is written; a `DatabaseError`.

    `found` are tables with what there is, `kind`, `computed`, `policy`, `trigger` or `rule`, and its name.
    Triggers and rules matter on the tables of runs, and on others where they are written.
    """
    sentences = {
        "kind": "{table} is a {name}, not a table; make it a table",
        "computed": "the column {name} of {table} is computed, not stored; store its values",
        "policy": "the row-level security of {table} hides rows from this role; disable it",
        "trigger": "the trigger '{name}' would run when {table} is written; drop it",
        "rule": "the rule '{name}' would run when {table} is written; drop it",
    }
    for table, what, part in sorted(found, key=lambda row: ([*sentences].index(row[1]), row)):
        if what not in ("trigger", "rule") or table in (*EVAL_TABLES, *written):
            sentence = sentences[what].format(table=table, name=brief(part, 100))
            raise DatabaseError(f"{name} is refused: {sentence}, or name another database")


def check_has_runs(tables: Iterable[str], name: str) -> None:
    """An error if the tables of runs are not there."""
    if missing := [table for table in EVAL_TABLES if table not in tables]:
        raise DatabaseError(
            f"{name} has no table {' and no table '.join(missing)};"
            " is it the database that the evaluation runs were stored in?"
        )
