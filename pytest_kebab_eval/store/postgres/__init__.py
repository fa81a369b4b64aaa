"""PostgreSQL as a store, with psycopg 3 from the extra `pytest-kebab-eval[postgres]`.

A database of a server is named and made by people; its tables are made by `kebab-eval store init`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.address import PostgresAddress
from pytest_kebab_eval.store.backend import Made, Rows, StoredRun
from pytest_kebab_eval.store.new_chunks import ChunkRow
from pytest_kebab_eval.store.postgres.changing import remove_runs, set_tag
from pytest_kebab_eval.store.postgres.new_runs import check_recordable, remove_run, write_run, write_runs
from pytest_kebab_eval.store.postgres.reading import PostgresTables, open_tables
from pytest_kebab_eval.store.postgres.schema import make_tables
from pytest_kebab_eval.store.postgres.texts import check_text


class PostgresDatabase:
    """A database of a server."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address

    def make_tables(self) -> Made:
        """Make the tables, or bring those of an older version up to date."""
        return make_tables(self._address)

    def is_there(self) -> bool:
        """It is: nothing here makes or removes a database of a server."""
        return True

    def read(self) -> AbstractContextManager[PostgresTables]:
        """Open it in one repeatable-read, read-only transaction."""
        return open_tables(self._address)

    def check_text(self, text: str, what: str) -> None:
        """Raise an `InputError` that begins with `what` if the text has a NUL."""
        check_text(text, what)

    def check_recordable(self, run_id: str, *, with_chunks: bool) -> None:
        """Raise an `InputError` if a run of that id cannot be recorded there."""
        check_recordable(self._address, run_id, with_chunks=with_chunks)

    def write_run(self, run: Run, rows: Rows, chunks: list[ChunkRow] | None) -> None:
        """Store a run, its results and the chunks of its index, all of it or nothing."""
        write_run(self._address, run, rows, chunks)

    def write_runs(self, runs: Sequence[StoredRun]) -> None:
        """Store runs as they are elsewhere, all of them or none."""
        write_runs(self._address, runs)

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Remove runs, all of them or none."""
        remove_runs(self._address, run_ids)

    def tag(self, name: str, run_id: str | None) -> None:
        """Have a tag name this run, or no run any more."""
        set_tag(self._address, name, run_id)

    def remove_run(self, run_id: str, *, with_file: bool) -> None:  # noqa: ARG002  there is no file
        """Remove a run that was just stored."""
        remove_run(self._address, run_id)
