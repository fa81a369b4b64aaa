"""What each kind of database, SQLite and PostgreSQL, does for the rest of this package.

A `Backend` is a database that is named, whether it is there or not; `RunTables` and `CorpusTables` are the
tables of one that is open. They give values as they are stored: text is bytes, nothing is decoded or checked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.address import Address, PostgresAddress, is_export

if TYPE_CHECKING:
    from pytest_kebab_eval.store.new_chunks import ChunkRow

ResultRow = tuple[object, object]  # query_id, result_json
Rows = Iterable[tuple[str, bytes]]  # query id, result_json


class IdRange(NamedTuple):
    """Query ids from the first on, and before another, in the order of their bytes."""

    first: str = ""
    before: str | None = None


ALL_IDS = IdRange()


class StoredRun(NamedTuple):
    """A run as it is stored, byte for byte; its results may be read more than once."""

    run_id: str
    suite: str
    config_json: str
    commit_hash: str | None
    created_at: str
    rows: Rows
    aggregate_json: str = "{}"


class CorpusTables(Protocol):
    """`documents` and `chunks` of an open database, which may have neither."""

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""

    def has_rows(self, table: str) -> bool:
        """Whether the table, which is there, has rows; an error if an index has lost some."""

    def chunk(self, chunk_id: str) -> tuple[object, object, object] | None:
        """`doc_id`, `source_spans_json` and `chunker_version` of a chunk."""

    def text(self, chunk_id: str) -> tuple[object] | None:
        """The text of a chunk."""

    def path(self, doc_id: str) -> tuple[object] | None:
        """The path of a document."""

    def documents(self) -> Iterable[tuple[object, object]]:
        """`workspace_path` and `doc_id` of all documents."""

    def spans(self) -> Iterable[tuple[object, object]]:
        """`doc_id` and `source_spans_json` of all chunks."""

    def spans_of(self, doc_id: str) -> Iterable[tuple[object]]:
        """`source_spans_json` of a document's chunks."""

    def is_indexed_by_document(self) -> bool:
        """Whether a document's chunks are found without looking at all chunks."""

    def chunk_ids(self) -> Iterable[tuple[object, object]]:
        """`chunk_id` and `doc_id` of all chunks."""

    def tokens(self) -> Iterable[tuple[object]]:
        """`token_estimate` of all chunks."""

    def counts(self) -> tuple[int, int, int]:
        """How many documents, documents without chunks, and chunks there are."""


class RunTables(Protocol):
    """The eval tables of an open database."""

    @property
    def corpus(self) -> CorpusTables:
        """The other two tables."""

    def errors(self) -> AbstractContextManager[None]:
        """Within it, an error of the database is a `DatabaseError`."""

    def runs(self) -> Iterable[tuple[object, object, object, object]]:
        """`run_id`, `suite`, `commit_hash` and `created_at` of all runs."""

    def run_value(self, run_id: str, column: str) -> tuple[object] | None:
        """One column of a run."""

    def results(self, run_id: str, ids: IdRange) -> Iterator[ResultRow]:
        """The results of a run for these queries; an error if an index has lost some of them."""

    def results_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[ResultRow]:
        """The results of a run for a few queries, by their keys, in no particular order."""

    def result(self, run_id: str, query_id: str) -> tuple[object] | None:
        """The `result_json` of one query."""

    def result_count(self, run_id: str) -> int:
        """How many results the run has."""

    def result_counts(self) -> Iterable[tuple[object, int]]:
        """How many results each run has."""

    def tags(self) -> Iterable[tuple[object, object]]:
        """Each tag, and the id of the run that it names."""


class AggregateWriter(Protocol):
    """The runs of a database in an open transaction; without `commit` nothing is stored."""

    def write(self, run_id: str, aggregate_json: str) -> bool:
        """Store the aggregate; False if there is no such run."""

    def commit(self) -> None:
        """Make it last; again is nothing, where several databases share a transaction."""


class Made(Enum):
    """What became of the tables of a database that were to be made."""

    NEW = "new"
    UPDATED = "updated"
    AS_THEY_WERE = "as they were"
    NOT_NEEDED = "not needed"


class Backend(Protocol):
    """A database that is named."""

    def read(self) -> AbstractContextManager[RunTables]:
        """Open it read-only; everything read in the block is of one state, even if others write."""

    def check_text(self, text: str, what: str) -> None:
        """Raise an `InputError` that begins with `what` if the database cannot hold the text."""

    def check_recordable(self, run_id: str, *, with_chunks: bool) -> None:
        """Raise an `InputError` if a run of that id cannot be recorded there."""

    def write_run(self, run: Run, rows: Rows, chunks: list[ChunkRow] | None) -> None:
        """Store a run, its results and the chunks of its index, all of it or nothing."""

    def write_runs(self, runs: Sequence[StoredRun]) -> None:
        """Store runs as they are elsewhere, all of them or none."""

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Remove runs, all of them or none; an `InputError` if a tag names one of them."""

    def tag(self, name: str, run_id: str | None) -> None:
        """Have a tag name this run, or no run any more."""

    def remove_run(self, run_id: str, *, with_file: bool) -> None:
        """Remove a run that was just stored; and the database, if it was made for this run alone."""

    def make_tables(self) -> Made:
        """Make the tables, or bring them up to date, where that is not left to the recorder."""

    def is_there(self) -> bool:
        """Whether the database is there, as far as that can be known without opening it."""


def backend_of(address: Address) -> Backend:
    """The kind of database that the address names."""
    if isinstance(address, PostgresAddress):
        from pytest_kebab_eval.store.postgres import PostgresDatabase

        return PostgresDatabase(address)
    if is_export(address):
        from pytest_kebab_eval.store.exports import ExportedRun

        return ExportedRun(address)
    from pytest_kebab_eval.store.sqlite import SqliteFile

    return SqliteFile(address)
