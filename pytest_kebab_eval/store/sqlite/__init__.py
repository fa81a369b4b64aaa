"""SQLite files as a store."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store.backend import Made, Rows, StoredRun
from pytest_kebab_eval.store.sqlite.reading import SqliteTables, open_tables

if TYPE_CHECKING:
    from pytest_kebab_eval.store.new_chunks import ChunkRow


class SqliteFile:
    """A database file, which may not be there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def make_tables(self) -> Made:
        """The recorder makes the tables with the file."""
        return Made.NOT_NEEDED

    def is_there(self) -> bool:
        """Whether there is a file, or anything else, of that name."""
        return self._path.exists()

    def read(self) -> AbstractContextManager[SqliteTables]:
        """Open it read-only; everything read in the block is of one state, even if others write."""
        return open_tables(self._path)

    def check_text(self, text: str, what: str) -> None:
        """Any text can be stored."""

    def check_recordable(self, run_id: str, *, with_chunks: bool) -> None:
        """Raise an `InputError` if a run of that id cannot be recorded there."""
        from pytest_kebab_eval.store.sqlite import new_runs

        new_runs.check_recordable(self._path, run_id, with_chunks=with_chunks)

    def write_run(self, run: Run, rows: Rows, chunks: list[ChunkRow] | None) -> None:
        """Store a run, its results and the chunks of its index, all of it or nothing."""
        from pytest_kebab_eval.store.sqlite import new_runs

        new_runs.write_run(self._path, run, rows, chunks)

    def write_runs(self, runs: Sequence[StoredRun]) -> None:
        """Store runs as they are elsewhere, all of them or none."""
        from pytest_kebab_eval.store.sqlite import new_runs

        new_runs.write_runs(self._path, runs)

    def remove_runs(self, run_ids: Sequence[str]) -> None:
        """Remove runs, all of them or none."""
        from pytest_kebab_eval.store.sqlite import changing

        changing.remove_runs(self._path, run_ids)

    def tag(self, name: str, run_id: str | None) -> None:
        """Have a tag name this run, or no run any more."""
        from pytest_kebab_eval.store.sqlite import changing

        changing.set_tag(self._path, name, run_id)

    def remove_run(self, run_id: str, *, with_file: bool) -> None:
        """Remove a run that was just stored; and the file, if it was made for this run alone."""
        from pytest_kebab_eval.store.sqlite import new_runs

        new_runs.remove_run(self._path, run_id, with_file=with_file)
