"""A database, opened for reading: its runs, and a run's results one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import msgspec

from pytest_kebab_eval.limits import CONFIG_DEPTH
from pytest_kebab_eval.model import QueryResult, Run, Unreadable
from pytest_kebab_eval.store.address import Address, shown_address
from pytest_kebab_eval.store.backend import ALL_IDS, IdRange, RunTables, backend_of
from pytest_kebab_eval.store.corpus import Corpus
from pytest_kebab_eval.store.plain import check_depth, text_of
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.text import printable
from pytest_kebab_eval.text.masking import mask_config, mask_text


@contextmanager
def open_database(address: Address, mask: Sequence[str] = ()) -> Iterator[Database]:
    """Open a database read-only; everything read in the block is of one state, even if others write.

    What looks like a secret in a run's configuration is masked, and so is what the patterns `mask` match.
    """
    with backend_of(address).read() as tables:
        yield Database(address, tables, mask)


class Database:
    """The runs of one open database."""

    def __init__(self, address: Address, tables: RunTables, mask: Sequence[str] = ()) -> None:
        self.address = address
        self._mask = mask
        self._tables = tables
        self.warnings: list[str] = []

    @property
    def name(self) -> str:
        """The database as messages name it."""
        return shown_address(self.address)

    @cached_property
    def corpus(self) -> Corpus:
        """The documents and chunks, if the database has any."""
        return Corpus(self._tables.corpus)

    def runs(self) -> list[Run]:
        """All runs, without their configuration, in no particular order."""
        return [
            Run(
                run_id=text_of(run_id),
                suite=text_of(suite),
                commit_hash=None if commit_hash is None else text_of(commit_hash),
                created_at=text_of(created_at),
            )
            for run_id, suite, commit_hash, created_at in self._tables.runs()
            if run_id is not None
        ]

    def with_config(self, run: Run) -> Run:
        """The run with its configuration; a snapshot that does not parse counts as empty, with a warning."""
        config = self._json_of(run.run_id, "config_snapshot_json")
        try:
            check_depth(config or {}, CONFIG_DEPTH)
        except RecursionError:
            config = None
        if config is None:
            self.warnings.append(
                f"the config snapshot of run {printable(run.run_id)} does not parse; it counts as empty"
            )
        masked = mask_config(config or {}, self._mask, keep=["chunker_version"])  # results are matched by it
        return msgspec.structs.replace(run, config=masked.config, digests=masked.digests)

    def stored_aggregate(self, run_id: str) -> dict[str, Any]:
        """The run's `aggregate_json`; empty if there is none or it does not parse."""
        return self._json_of(run_id, "aggregate_json") or {}

    def _json_of(self, run_id: str, column: str) -> dict[str, Any] | None:
        """An object that is stored with a run, empty if there is no such run; None if it does not parse."""
        row: Any = self._tables.run_value(run_id, column)
        try:
            return msgspec.json.decode(row[0] if row else b"{}", type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            return None

    def results(self, run_id: str, ids: IdRange = ALL_IDS) -> Iterator[QueryResult | Unreadable]:
        """The run's results, one at a time; an error if an index has lost some of them."""
        for query_id, result_json in self._tables.results(run_id, ids):
            if query_id is None:
                yield Unreadable("NULL", "the row has no query_id")
            else:
                result = decode_result(text_of(query_id), result_json)
                yield result if type(result) is QueryResult and result.error is None else _masked(result)
                del result  # so that the next one is decoded into the same memory

    def rows(self, run_id: str, query_ids: Sequence[str] | None = None) -> Iterator[tuple[str, object]]:
        """The run's results as they are stored; with ids only theirs, by their keys, in no certain order."""
        found = (
            self._tables.results(run_id, ALL_IDS)
            if query_ids is None
            else self._tables.results_of(run_id, query_ids)
        )
        return ((text_of(query_id), result_json) for query_id, result_json in found if query_id is not None)

    def tags(self) -> dict[str, str]:
        """Each tag, and the id of the run that it names, which may be gone."""
        return {text_of(name): text_of(run_id) for name, run_id in self._tables.tags()}

    def result_count(self, run_id: str) -> int:
        """How many results the run has."""
        return self._tables.result_count(run_id)

    def result_counts(self) -> dict[str, int]:
        """How many results each run has, by the table: a damaged index would not tell."""
        rows = self._tables.result_counts()
        return {text_of(run_id): count for run_id, count in rows if run_id is not None}

    def result(self, run_id: str, query_id: str) -> QueryResult | Unreadable | None:
        """One result of a run; None if the run has none for the query."""
        row = self._tables.result(run_id, query_id)
        return None if row is None else decode_row(query_id, row[0])

    def holds(self, run_id: str, rows: Iterable[tuple[str, bytes]]) -> bool:
        """Whether a run has these results (query id, `result_json`), byte for byte, and no others."""
        count = 0
        for query_id, result_json in rows:
            row = self._tables.result(run_id, query_id)
            if row is None or row[0] != result_json:
                return False
            count += 1
        return count == self.result_count(run_id)

    def read_result(self, run_id: str, query_id: str) -> QueryResult | Unreadable | None:
        """`result` for callers outside the block that opened the database: a `DatabaseError` if it fails."""
        with self._tables.errors():
            return self.result(run_id, query_id)


def decode_row(query_id: str, result_json: object) -> QueryResult | Unreadable:
    """A row as `Database.results` gives it."""
    return _masked(decode_result(query_id, result_json))


def _masked(result: QueryResult | Unreadable) -> QueryResult | Unreadable:
    """The result; what an error says of a password or a token is masked, since errors quote addresses."""
    if isinstance(result, Unreadable) or result.error is None:
        return result
    return msgspec.structs.replace(result, error=mask_text(result.error))
