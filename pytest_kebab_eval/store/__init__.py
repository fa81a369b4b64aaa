"""A database -> runs; aggregates and recorded runs -> a database. Only here it matters which kind it is.

Each kind of store is a `Backend`: SQLite files, PostgreSQL databases and exported runs. These, and what
records, are imported when they are first used.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.errors import DatabaseError, InputError
from pytest_kebab_eval.model import Run, Value
from pytest_kebab_eval.store.address import (
    Address,
    PostgresAddress,
    address_for_a_command,
    files_of,
    is_database,
    is_export,
    placed,
    same_database,
    shown_address,
    to_address,
)
from pytest_kebab_eval.store.corpus import Chunk, Corpus
from pytest_kebab_eval.store.database import Database, RawRun, Rows
from pytest_kebab_eval.store.index_tables import IndexCoverage
from pytest_kebab_eval.store.run_names import (
    check_suite,
    find_run,
    find_runs,
    in_order,
    is_latest,
    is_newer,
    partial_words,
    runs_of,
    whole_runs,
)
from pytest_kebab_eval.text import printable

if TYPE_CHECKING:
    from pytest_kebab_eval.store.new_chunks import ChunkRow
    from pytest_kebab_eval.store.recorder import Recording, RunRecorder

__all__ = [
    "Address",
    "Chunk",
    "Corpus",
    "Database",
    "IndexCoverage",
    "Made",
    "Recording",
    "Room",
    "RunRecorder",
    "address_for_a_command",
    "backend_of",
    "check_suite",
    "files_of",
    "find_run",
    "find_runs",
    "has_run",
    "in_order",
    "is_database",
    "is_export",
    "is_latest",
    "is_newer",
    "open_both",
    "open_database",
    "partial_words",
    "placed",
    "runs_of",
    "same_database",
    "shown_address",
    "to_address",
    "whole_runs",
    "write_aggregates",
]


def __getattr__(name: str) -> Any:
    if name not in ("Recording", "RunRecorder"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.recorder"), name)
    return value


class Made(Enum):
    """What became of the tables of a database that were to be made."""

    NEW = "new"
    UPDATED = "updated"
    AS_THEY_WERE = "as they were"
    NOT_NEEDED = "not needed"


class Room(Value, frozen=True):
    """How many bytes a store took before and after removed runs were cleared away."""

    before: int
    after: int
    note: str = ""


class NewIndex(Value, frozen=True):
    """The chunks that are stored with a run."""

    chunks: list[ChunkRow]
    chunker_version: str | None


class Backend(ABC):
    """A store that is named, whether it is there or not."""

    @abstractmethod
    def read(self, mask: Sequence[str] = ()) -> AbstractContextManager[Database]:
        """Open it read-only; everything read in the block is of one state, even if others write.

        What looks like a secret in a run's configuration is masked, and so is what the patterns `mask` match.
        """

    @abstractmethod
    def is_there(self) -> bool:
        """Whether the store is there, as far as that can be known without opening it."""

    @abstractmethod
    def make_tables(self) -> Made:
        """Make the tables, or bring them up to date, where that is not left to the recorder."""

    def grants(self) -> Sequence[str]:
        """The SQL that lets others than the owner use the tables; none where there are no roles."""
        return ()

    @abstractmethod
    def check_text(self, text: str, what: str) -> None:
        """Raise an `InputError` that begins with `what` if the store cannot hold the text."""

    @abstractmethod
    def check_recordable(self, run_id: str, *, with_chunks: bool = False) -> None:
        """Raise an `InputError` early if a run of that id cannot be recorded there."""

    def now(self) -> str:
        """The time of a new run, as all who write to the store see it."""
        return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def write_run(self, run: Run, rows: Rows, chunks: list[ChunkRow] | None = None) -> None:
        """Store a run, its results and the chunks of its index, all of it or nothing."""
        from pytest_kebab_eval.store.plain import encode_json

        config = encode_json("config", run.config).decode()
        raw = RawRun(run.run_id, run.suite, config, run.commit_hash, run.created_at, "{}", rows)
        self.write_runs([raw], None if chunks is None else NewIndex(chunks, run.chunker_version))

    @abstractmethod
    def write_runs(self, runs: Sequence[RawRun], index: NewIndex | None = None) -> None:
        """Store runs as they are, all of them or none."""

    @abstractmethod
    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Remove runs, all of them or none; an `InputError` if a tag names one of them."""

    @abstractmethod
    def give_back_room(self) -> Room:
        """Give the room that removed runs took back, as far as others who use the store can go on."""

    @abstractmethod
    def remove_run(self, run_id: str, *, with_file: bool) -> None:
        """Remove a run that was just stored; and the file, if it was made for this run and has no other."""

    @abstractmethod
    def tag(self, name: str, run_id: str | None) -> None:
        """Have a tag name this run, or no run any more."""


class RunIsThere(InputError):
    """The store has a run of that id already."""


def run_is_there(name: str, run_id: str) -> RunIsThere:
    """The error of a new run whose id the store of that name has already."""
    return RunIsThere(f"{name} has a run '{printable(run_id)}' already; name the new one differently")


def run_is_tagged(name: str, run_id: str, tag: str) -> InputError:
    """The error of a run that is to be removed and has a tag."""
    run = f"run '{printable(run_id)}' of {name}"
    return InputError(f"{run} is tagged '{printable(tag)}'; nothing was removed")


def backend_of(address: Address) -> Backend:
    """The store that the address names."""
    if isinstance(address, PostgresAddress):
        from pytest_kebab_eval.store.postgres import PostgresStore

        return PostgresStore(address)
    if is_export(address):
        from pytest_kebab_eval.store.exports import ExportedRun

        return ExportedRun(address)
    from pytest_kebab_eval.store.sqlite import SqliteStore

    return SqliteStore(address)


def open_database(address: Address, mask: Sequence[str] = ()) -> AbstractContextManager[Database]:
    """Open a store read-only; see `Backend.read`."""
    return backend_of(address).read(mask)


@contextmanager
def open_both(a: Address, b: Address, mask: Sequence[str] = ()) -> Iterator[tuple[Database, Database]]:
    """Open two stores, or one, if both addresses are the same."""
    with ExitStack() as stack:
        of_b = stack.enter_context(open_database(b, mask))
        yield of_b if a == b else stack.enter_context(open_database(a, mask)), of_b


def has_run(address: Address, run_id: str) -> bool:
    """Whether the run is there; of a store that cannot be read, `check_recordable` says why."""
    with suppress(DatabaseError), open_database(address) as database:
        return database.has_run(run_id)
    return False


def write_aggregates(aggregates: Mapping[tuple[Address, str], bytes]) -> None:
    """Store `aggregate_json`, the only column ever written in a foreign database, by database and run id.

    All of it in one transaction, or nothing. Where A and B are on two servers, or one is in a file, there are
    two, committed one right after the other. Rows are written in the order of their names, so that gates that
    share runs do not wait for each other.
    """
    by_store: dict[Address, dict[str, str]] = {}
    for address, run_id in sorted(aggregates, key=lambda key: (shown_address(key[0]), key[1])):
        if not is_export(address):
            by_store.setdefault(address, {})[run_id] = aggregates[address, run_id].decode()
    files = {
        address: found for address, found in by_store.items() if not isinstance(address, PostgresAddress)
    }
    with ExitStack() as stack:
        if files:
            from pytest_kebab_eval.store.sqlite import storing_aggregates

            stack.enter_context(storing_aggregates(files))
        for address, found in by_store.items():
            if isinstance(address, PostgresAddress):
                from pytest_kebab_eval.store.postgres import PostgresStore

                stack.enter_context(PostgresStore(address).storing_aggregates(found))
