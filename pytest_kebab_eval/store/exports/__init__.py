"""Exported runs as a store that is only read: a run in a text file, or in several, which can be committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import NoReturn

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.store.backend import ALL_IDS, IdRange, ResultRow
from pytest_kebab_eval.store.exports.files import Part, find_parts, parts_of
from pytest_kebab_eval.text import shown_path


class ExportedRun:
    """A run that `kebab-eval export` wrote; nothing can be written to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def read(self) -> Iterator[ExportTables]:
        """Open it."""
        parts = find_parts(self._path)
        try:
            yield ExportTables(parts)
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

    make_tables = check_text = check_recordable = write_run = write_runs = _refuse
    remove_runs = tag = remove_run = _refuse


class ExportTables:
    """What an open export has of the eval tables: one run."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._run = parts[0].header.run
        self._firsts = [part.header.first for part in parts]

    @property
    def corpus(self) -> NoCorpus:
        """There are neither documents nor chunks."""
        return NoCorpus()

    def errors(self) -> AbstractContextManager[None]:
        """The parts say themselves what is wrong."""
        return nullcontext()

    def runs(self) -> list[tuple[object, object, object, object]]:
        """`run_id`, `suite`, `commit_hash` and `created_at` of the run."""
        run = self._run
        return [(run.run_id, run.suite, run.commit_hash, run.created_at)]

    def run_value(self, run_id: str, column: str) -> tuple[object] | None:
        """One column of the run, text as bytes."""
        if run_id != self._run.run_id:
            return None
        value = getattr(self._run, column)
        return (None if value is None else value.encode(),)

    def results(self, run_id: str, ids: IdRange = ALL_IDS) -> Iterator[ResultRow]:
        """The results of the run for these queries, in the order of their ids."""
        for part in self._parts_with(ids) if run_id == self._run.run_id else ():
            for row in part.rows():
                if ids.before is not None and row.query_id >= ids.before:
                    return
                if row.query_id >= ids.first:
                    yield row

    def _parts_with(self, ids: IdRange) -> Iterator[Part]:
        """The parts that may have such ids: each goes on to where the next one begins."""
        ends = [*self._firsts[1:], None]
        for part, first, end in zip(self._parts, self._firsts, ends, strict=True):
            if (end is None or ids.first < end) and (ids.before is None or first < ids.before):
                yield part

    def results_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[ResultRow]:
        """The results of the run for a few queries, by their keys."""
        for query_id in query_ids:
            row = self.result(run_id, query_id)
            if row is not None:
                yield query_id, row[0]

    def result(self, run_id: str, query_id: str) -> tuple[object] | None:
        """The `result_json` of one query."""
        if run_id != self._run.run_id:
            return None
        found = [part.find(query_id) for part in self._parts_with(IdRange(query_id, f"{query_id}\0"))]
        return next(((row.result_json,) for row in found if row), None)

    def result_count(self, run_id: str) -> int:
        """How many results the run has."""
        return sum(part.header.results for part in self._parts) if run_id == self._run.run_id else 0

    def result_counts(self) -> list[tuple[object, int]]:
        """How many results the run has, by its id."""
        return [(self._run.run_id, self.result_count(self._run.run_id))]

    def tags(self) -> tuple[()]:
        """There are none."""
        return ()


class NoCorpus:
    """The tables of a store that has neither documents nor chunks."""

    def columns(self, *_: object) -> set[str]:
        """None: there is no such table."""
        return set()

    def has_rows(self, *_: object) -> bool:
        """No."""
        return False

    def chunk(self, *_: object) -> None:
        """There is none."""

    def text(self, *_: object) -> None:
        """There is none."""

    def path(self, *_: object) -> None:
        """There is none."""

    def documents(self) -> tuple[()]:
        """There are none."""
        return ()

    def spans(self) -> tuple[()]:
        """There are none."""
        return ()

    def spans_of(self, *_: object) -> tuple[()]:
        """There are none."""
        return ()

    def is_indexed_by_document(self) -> bool:
        """There is nothing to look for."""
        return True

    def chunk_ids(self) -> tuple[()]:
        """There are none."""
        return ()

    def tokens(self) -> tuple[()]:
        """There are none."""
        return ()

    def counts(self) -> tuple[int, int, int]:
        """None of each."""
        return 0, 0, 0
