"""A database -> runs; aggregates and recorded runs -> a database. Only here it matters which kind it is.

`open_database(address)` gives a `Database`: `runs()`, the results of one in the order of their ids' bytes,
streamed (`results`, or `rows` as they are stored), those of a few by key (`results_of`, `rows` with ids), its
ids (`query_ids`), tags, and the index (`corpus`), which reads in bulk. `backend_of(address)` gives the
`Store` that runs are written to: an SQLite file, a PostgreSQL database, or exported runs, only to be read.
These, and what records, are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pytest_kebab_eval.errors import DatabaseError, StoreError
from pytest_kebab_eval.store.address import (
    Address,
    PostgresAddress,
    files_of,
    is_database,
    is_export,
    placed,
    same_database,
    shown_address,
    to_address,
)
from pytest_kebab_eval.store.corpus import Chunk, Corpus, IndexCoverage, with_configuration
from pytest_kebab_eval.store.database import Database
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

if TYPE_CHECKING:
    from pytest_kebab_eval.store.recorder import Recording, RunRecorder
    from pytest_kebab_eval.store.sql import Store

__all__ = [
    "Address",
    "Chunk",
    "Corpus",
    "Database",
    "IndexCoverage",
    "Recording",
    "RunRecorder",
    "backend_of",
    "check_suite",
    "files_of",
    "find_run",
    "find_runs",
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
    "with_configuration",
    "write_aggregates",
]


def __getattr__(name: str) -> Any:
    if name not in ("Recording", "RunRecorder"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.recorder"), name)
    return value


def backend_of(address: Address) -> Store:
    """The store that the address names."""
    if isinstance(address, PostgresAddress):
        from pytest_kebab_eval.store.postgres import PostgresStore

        return PostgresStore(address)
    if is_export(address):
        from pytest_kebab_eval.store.exports import ExportedRuns

        return ExportedRuns(address)
    from pytest_kebab_eval.store.sqlite import SqliteStore

    return SqliteStore(address)


def open_database(address: Address, mask: Sequence[str] = ()) -> AbstractContextManager[Database]:
    """Open a store read-only; see `Store.read`."""
    return backend_of(address).read(mask)


@contextmanager
def open_both(a: Address, b: Address) -> Iterator[tuple[Database, Database]]:
    """Open two stores, or one, if both addresses are the same."""
    with ExitStack() as stack:
        of_b = stack.enter_context(open_database(b))
        yield of_b if a == b else stack.enter_context(open_database(a)), of_b


def has_run(address: Address, run_id: str) -> bool:
    """Whether the run is there; of a store that cannot be read, `check_recordable` says why."""
    with suppress(DatabaseError), open_database(address) as database:
        return database.has_run(run_id)
    return False


def write_aggregates(aggregates: Mapping[tuple[Address, str], bytes]) -> None:
    """Store `aggregate_json`, the only column ever written in a foreign database, by database and run id.

    Where A and B are in two stores, there are two transactions, committed one right after the other once all
    is written. Rows are written in the order of their names, so that gates that share runs do not wait for
    each other.
    """
    by_store: dict[Address, dict[str, str]] = {}
    for address, run_id in sorted(aggregates, key=lambda key: (shown_address(key[0]), key[1])):
        if not is_export(address):
            known = next((other for other in by_store if same_database(address, other)), address)
            by_store.setdefault(known, {})[run_id] = aggregates[address, run_id].decode()
    try:
        with ExitStack() as stack:
            for address, found in by_store.items():
                stack.enter_context(backend_of(address).storing_aggregates(found))
    except DatabaseError as error:  # gone, say, after it was judged
        raise StoreError(f"the aggregates were not stored: {error}") from None
