"""Exported runs as a store that is only read: a run in a text file, or in several, which can be committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.store.backend import Backend
from pytest_kebab_eval.store.database import ALL_IDS, Database, IdRange
from pytest_kebab_eval.store.exports.files import Part, find_parts, parts_of
from pytest_kebab_eval.text import shown_path


class ExportedRun(Backend):
    """A run that `kebab-eval export` wrote; nothing can be written to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[ExportDatabase]:
        """Open it."""
        parts = find_parts(self._path)
        try:
            yield ExportDatabase(self._path, parts, mask)
        finally:
            for part in parts:
                part.close()

    def is_there(self) -> bool:
        """Whether the file, or any part of it, is there."""
        return self._path.exists() or bool(parts_of(self._path))

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            f"{shown_path(self._path)} names an exported run, which is only read; name a database, to which"
            " kebab-eval import kebab brings it"
        )

    make_tables = check_text = check_recordable = write_runs = _refuse
    remove_runs = remove_run = tag = _refuse


class ExportDatabase(Database):
    """What an open export has of the tables: one run and its results, neither tags nor documents."""

    def __init__(self, path: Path, parts: Sequence[Part], mask: Sequence[str] = ()) -> None:
        super().__init__(path, mask)
        self._parts = parts
        self._run = parts[0].header.run
        self._count = sum(part.header.results for part in parts)

    def errors(self) -> AbstractContextManager[None]:
        """The parts say themselves what is wrong."""
        return nullcontext()

    def columns(self, table: str) -> set[str]:  # noqa: ARG002  as tables of tags and documents have it
        """None: there is no such table."""
        return set()

    def query(self, sql: str) -> tuple[()]:  # noqa: ARG002
        """Nothing: there is no SQL."""
        return ()

    def select(self, table: str, *columns: str, **equal: str) -> Iterable[tuple[Any, ...]]:
        """Columns of the run, or of its results."""
        if equal.get("run_id", self._run.run_id) != self._run.run_id:
            return ()
        if table == "eval_runs":
            values = (getattr(self._run, column) for column in columns)
            return [tuple(None if value is None else value.encode() for value in values)]
        if columns == ("count(*)",):
            return [(self._count,)]
        found = self.result_rows_of(self._run.run_id, [equal["query_id"]]) if "query_id" in equal else ()
        return ((result_json,) for _, result_json in found)

    def result_rows(self, run_id: str, ids: IdRange = ALL_IDS) -> Iterator[tuple[Any, Any]]:
        """The results of the run for these queries, in the order of their ids."""
        for part in self._parts_with(ids) if run_id == self._run.run_id else ():
            for row in part.rows():
                if ids.before is not None and row.query_id >= ids.before:
                    return
                if row.query_id >= ids.first:
                    yield row

    def _parts_with(self, ids: IdRange) -> Iterator[Part]:
        """The parts that may have such ids: each goes on to where the next one begins."""
        firsts = [part.header.first for part in self._parts]
        for part, first, end in zip(self._parts, firsts, [*firsts[1:], None], strict=True):
            if (end is None or ids.first < end) and (ids.before is None or first < ids.before):
                yield part

    def result_rows_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[tuple[Any, Any]]:
        """The results of the run for a few queries, by their keys."""
        for query_id in query_ids if run_id == self._run.run_id else ():
            found = [part.find(query_id) for part in self._parts_with(IdRange(query_id, f"{query_id}\0"))]
            yield from (row for row in found if row)

    def result_counts(self) -> dict[str, int]:
        """How many results the run has, by its id."""
        return {self._run.run_id: self._count}
