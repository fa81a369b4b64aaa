"""A recorded run -> a database, in one transaction."""

from __future__ import annotations

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.address import Address
from pytest_kebab_eval.store.backend import Made, Rows, backend_of
from pytest_kebab_eval.store.new_chunks import ChunkRow


def is_there(db: Address) -> bool:
    """Whether the database is there, as far as that can be known without opening it."""
    return backend_of(db).is_there()


def make_tables(db: Address) -> Made:
    """Make the tables of a database, or bring them up to date."""
    return backend_of(db).make_tables()


def check_recordable(db: Address, run_id: str, *, with_chunks: bool = False) -> None:
    """Raise an `InputError` early if a run of that id cannot be recorded there."""
    backend_of(db).check_recordable(run_id, with_chunks=with_chunks)


def write_run(db: Address, run: Run, rows: Rows, chunks: list[ChunkRow] | None = None) -> None:
    """Store a run, its rows (query id, `result_json`) and the chunks of its index in one transaction.

    A file that is not there is made.
    """
    backend_of(db).write_run(run, rows, chunks)


def remove_run(db: Address, run_id: str, *, with_file: bool) -> None:
    """Remove a run that was just stored; and the file, if it was made for this run and has no other."""
    backend_of(db).remove_run(run_id, with_file=with_file)
