"""A database that is open for reading: its runs, a run's results in the order of their ids or by key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.limits import CONFIG_DEPTH, FETCHED_BYTES, FETCHED_ROWS
from pytest_kebab_eval.model import QueryResult, Recorded, Run, Unreadable, Value
from pytest_kebab_eval.store.address import Address, shown_address
from pytest_kebab_eval.store.corpus import Corpus
from pytest_kebab_eval.store.results import decode_result, text_of
from pytest_kebab_eval.text import brief, printable
from pytest_kebab_eval.text.folding import are_folded, decomposed, fold_id
from pytest_kebab_eval.text.masking import mask_config, mask_text

EVAL_TABLES = ("eval_runs", "eval_query_results")
CORPUS_TABLES = ("documents", "chunks")
TAGS_TABLE = "kebab_eval_tags"  # which is made when a run is first tagged, also in a database of kebab's
RECORDED_KEY = "pytest_kebab_eval"  # of `config_snapshot_json`: how a run was recorded (`Recorded`)

Row = tuple[Any, ...]
Rows = Iterable[tuple[str, bytes]]  # query id, result_json


class RawRun(NamedTuple):
    """The columns of a run as they are stored, byte for byte, and its results, which may be read again."""

    run_id: str
    suite: str
    config_json: str
    commit_hash: str | None
    created_at: str
    aggregate_json: str
    rows: Rows


class Connection(ABC):
    """An open transaction. In statements `{schema}` stands before each table, and `?` for each value.

    Text is read as its bytes: nothing is decoded or checked.
    """

    AMONG: ClassVar[str]  # what stands after a column for: it has one of many values
    BY_BYTES: ClassVar[str]  # what stands after a column to sort by its bytes
    HOLDS_NUL: ClassVar[bool]  # whether a text may have one

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = (), *, are_many: bool = False) -> Iterable[Row]:
        """What a statement gives; many rows are streamed."""

    @abstractmethod
    def execute(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; the number of rows that it changed."""

    @abstractmethod
    def execute_each(self, statement: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement with each of these values."""

    @abstractmethod
    def many(self, values: Sequence[str]) -> Any:
        """Many values as one, for `AMONG`."""

    @abstractmethod
    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""

    @abstractmethod
    def are_own(self) -> bool:
        """Whether the tables were made here."""

    @abstractmethod
    def mark_as_own(self) -> None:
        """Leave a mark that they were."""

    @abstractmethod
    def now(self) -> str:
        """The time, as all who write to the store see it."""

    def first(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        return next(iter(self.rows(statement, values)), None)


class Database:
    """The runs of one open store."""

    def __init__(
        self,
        address: Address,
        connection: Connection,
        errors: Callable[[], AbstractContextManager[None]],
        mask: Sequence[str] = (),
    ) -> None:
        self.address = address
        self.warnings: list[str] = []
        self._connection = connection
        self._errors = errors  # within it, an error of the store is a `DatabaseError`
        self._mask = mask
        self._written: dict[str, Mapping[str, str]] = {}  # by run

    @property
    def name(self) -> str:
        """The database as messages name it."""
        return shown_address(self.address)

    @cached_property
    def corpus(self) -> Corpus:
        """The documents and chunks, if the database has any."""
        return Corpus(self)

    # -- rows as they are stored -----------------------------------------------------------------------

    def _may_hold(self, text: str) -> bool:
        """Whether the text may be in a table, perhaps one that others wrote."""
        return can_hold(text) or (self._connection.HOLDS_NUL and can_hold(text.replace("\0", "")))

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; none if there is no such table."""
        return self._connection.columns(table)

    def select(self, table: str, *columns: str, **equal: str) -> Iterable[Row]:
        """Columns of the rows of a table in which others have these values."""
        if not all(map(self._may_hold, equal.values())):
            return ()
        where = f" WHERE {' AND '.join(f'{column} = ?' for column in equal)}" if equal else ""
        statement = f"SELECT {', '.join(columns)} FROM {{schema}}{table}{where}"
        are_many = not equal and table in CORPUS_TABLES
        return self._connection.rows(statement, tuple(equal.values()), are_many=are_many)

    def select_among(self, table: str, *columns: str, **among: Sequence[str]) -> Iterable[Row]:
        """Columns of the rows in which another has one of these values, by one statement."""
        ((column, values),) = among.items()
        statement = (
            f"SELECT {', '.join(columns)} FROM {{schema}}{table} WHERE {column} {self._connection.AMONG}"
        )
        return self._connection.rows(statement, (self._among(values),), are_many=True)

    def _among(self, values: Sequence[str]) -> Any:
        """Values as one; also as systems write them that take letters and their accents apart."""
        apart = [decomposed(value) for value in values if not value.isascii()]
        return self._connection.many([*filter(can_hold, [*values, *apart])])

    def first(self, table: str, *columns: str, **equal: str) -> Row | None:
        """The first row that `select` gives; None if there is none."""
        return next(iter(self.select(table, *columns, **equal)), None)

    def has_rows(self, table: str) -> bool:
        """Whether a table that is there has any row."""
        return self._connection.first(f"SELECT 1 FROM {{schema}}{table} LIMIT 1") is not None

    # -- runs ------------------------------------------------------------------------------------------

    def runs(self) -> list[Run]:
        """All runs, without their configuration, in no particular order."""
        return [
            Run(
                run_id=text_of(run_id),
                suite=text_of(suite),
                commit_hash=None if commit_hash is None else text_of(commit_hash),
                created_at=text_of(created_at),
                recorded=_recorded(config),
            )
            for run_id, suite, commit_hash, created_at, config in self.select(
                "eval_runs", "run_id", "suite", "commit_hash", "created_at", "config_snapshot_json"
            )
            if run_id is not None
        ]

    def has_run(self, run_id: str) -> bool:
        return self.first("eval_runs", "run_id", run_id=run_id) is not None

    def with_config(self, run: Run) -> Run:
        """The run with its configuration; a snapshot that does not parse counts as empty, with a warning."""
        config = self._json_of(run.run_id, "config_snapshot_json")
        try:
            _check_depth(config or {}, CONFIG_DEPTH)
        except RecursionError:
            config = None
        if config is None:
            self.warnings.append(
                f"the config snapshot of run {printable(run.run_id)} does not parse; it counts as empty"
            )
        config = {key: value for key, value in (config or {}).items() if key != RECORDED_KEY}
        masked = mask_config(config, self._mask)
        return msgspec.structs.replace(run, config=masked.config, digests=masked.digests)

    def stored_aggregate(self, run_id: str) -> dict[str, Any]:
        """The run's `aggregate_json`; empty if there is none or it does not parse."""
        return self._json_of(run_id, "aggregate_json") or {}

    def _json_of(self, run_id: str, column: str) -> dict[str, Any] | None:
        """An object that is stored with a run, empty if there is no such run; None if it does not parse."""
        row = self.first("eval_runs", column, run_id=run_id)
        try:
            return msgspec.json.decode(row[0] if row else b"{}", type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, TypeError):
            return None

    def raw_run(self, run_id: str) -> RawRun:
        """A run as it is stored; its rows are read when they are asked for."""
        columns = ("suite", "config_snapshot_json", "commit_hash", "created_at", "aggregate_json")
        values = self.first("eval_runs", *columns, run_id=run_id) or (None,) * len(columns)
        suite, config, commit, created, aggregate = (
            None if value is None else self.plain_text(value, run_id) for value in values
        )
        names = (run_id, suite or "", config or "", commit, created or "")
        return RawRun(*names, aggregate or "{}", _RawRows(self, run_id))

    def plain_text(self, value: object, run_id: str) -> str:
        """A value of a run as text; an `InputError` if it is none."""
        try:
            if isinstance(value, bytes | str):
                return value.decode() if isinstance(value, bytes) else value
        except UnicodeDecodeError:
            pass
        raise InputError(
            f"run '{printable(run_id)}' in {self.name} has a value that is not text, so it cannot be copied"
        )

    def tags(self) -> dict[str, str]:
        """Each tag, and the id of the run that it names, which may be gone."""
        rows = self.select(TAGS_TABLE, "name", "run_id") if self.columns(TAGS_TABLE) else ()
        return {text_of(name): text_of(run_id) for name, run_id in rows}

    # -- results ---------------------------------------------------------------------------------------

    def result_rows(self, run_id: str) -> Iterable[Row]:
        """`query_id` and `result_json` of a run's results, streamed in the order of the ids' bytes."""
        by_bytes = self._connection.BY_BYTES
        statement = (
            "SELECT query_id, result_json FROM {schema}eval_query_results"
            f" WHERE run_id = ? ORDER BY query_id {by_bytes}"
        )
        return self._connection.rows(statement, (run_id,), are_many=True) if self._may_hold(run_id) else ()

    def rows(self, run_id: str, query_ids: Sequence[str] | None = None) -> Iterator[tuple[str, object]]:
        """The ids and `result_json` of a run, streamed in the order of the ids' bytes.

        With ids only theirs, by their keys, in no certain order.
        """
        if query_ids is None:
            yield from _texts(self.result_rows(run_id))
            return
        missing = {*query_ids}
        for query_id, result_json in _texts(self._rows_of(run_id, query_ids)):
            missing.difference_update((query_id, fold_id(query_id)))
            yield query_id, result_json
        written = self._written_ids(run_id) if missing else {}
        if rest := [written[query_id] for query_id in missing if query_id in written]:
            yield from _texts(self._rows_of(run_id, rest))

    def _rows_of(self, run_id: str, query_ids: Sequence[str]) -> Iterable[Row]:
        statement = (
            "SELECT query_id, result_json FROM {schema}eval_query_results"
            f" WHERE run_id = ? AND query_id {self._connection.AMONG}"
        )
        return self._connection.rows(statement, (run_id, self._among(query_ids)), are_many=True)

    def query_ids(self, run_id: str) -> list[str]:
        """The ids of a run's results, in the order of their bytes."""
        statement = (
            "SELECT query_id FROM {schema}eval_query_results"
            f" WHERE run_id = ? ORDER BY query_id {self._connection.BY_BYTES}"
        )
        found = self._connection.rows(statement, (run_id,), are_many=True)
        return [text_of(query_id) for (query_id,) in found if query_id is not None]

    def results(self, run_id: str) -> Iterator[QueryResult | Unreadable]:
        """The run's results, one at a time, in the order of their ids."""
        for query_id, result_json in self.result_rows(run_id):
            if query_id is None:
                yield Unreadable("NULL", "the row has no query_id")
            else:
                result = decode_result(text_of(query_id), result_json)
                yield result if type(result) is QueryResult and result.error is None else _masked(result)
                del result  # so that the next one is decoded into the same memory

    def results_of(self, run_id: str, query_ids: Sequence[str]) -> Iterator[QueryResult | Unreadable]:
        """The run's results of these queries, by one statement, in no certain order."""
        return (decode_row(query_id, row) for query_id, row in self.rows(run_id, query_ids))

    def _written_ids(self, run_id: str) -> Mapping[str, str]:
        """How the ids of a run's results are written that `fold_id` changes."""
        known = self._written.get(run_id)
        if known is None:
            ids = self.query_ids(run_id)
            changed = () if are_folded(ids) else ((fold_id(name), name) for name in ids)
            known = self._written[run_id] = {folded: name for folded, name in changed if folded != name}
        return known

    def result(self, run_id: str, query_id: str) -> QueryResult | Unreadable | None:
        """One result of a run; None if the run has none for the query."""
        return next(self.results_of(run_id, [query_id]), None)

    def read_result(self, run_id: str, query_id: str) -> QueryResult | Unreadable | None:
        """`result` for callers outside the block that opened the database: a `DatabaseError` if it fails."""
        with self._errors():
            return self.result(run_id, query_id)

    def result_count(self, run_id: str) -> int:
        (count,) = self.first("eval_query_results", "count(*)", run_id=run_id) or (0,)
        return int(count)

    def result_counts(self) -> Counter[str]:
        """How many results each run has."""
        rows = self._connection.rows(
            "SELECT run_id, count(*) FROM {schema}eval_query_results GROUP BY run_id"
        )
        return Counter({text_of(run_id): count for run_id, count in rows if run_id is not None})

    def holds(self, run_id: str, rows: Rows) -> bool:
        """Whether a run has these results, byte for byte, and no others; many are asked for at once."""
        count = 0
        for few in _few_at_a_time(rows):
            there = dict(self.rows(run_id, [query_id for query_id, _ in few]))
            if any(there.get(query_id) != result_json for query_id, result_json in few):
                return False
            count += len(few)
        return count == self.result_count(run_id)


def _texts(rows: Iterable[Row]) -> Iterator[tuple[str, object]]:
    return ((text_of(query_id), result_json) for query_id, result_json in rows if query_id is not None)


def can_hold(text: str) -> bool:
    """Whether a text can be stored: it has no NUL, and no lone surrogate; one that cannot is in no table."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def check_text(text: str, what: str) -> None:
    """An `InputError` that begins with `what` if a database cannot hold the text."""
    if not can_hold(text):
        raise InputError(
            f"{what} '{brief(text, 60)}' cannot be recorded: databases hold no NUL character and nothing that"
            " is not valid Unicode; give another"
        )


def _check_depth(value: Any, most: int) -> None:
    """Raise a `RecursionError` if lists and mappings are nested deeper than that."""
    level = [value]
    for _ in range(most + 1):
        nested = [member for member in level if isinstance(member, (list, dict))]
        if not nested:
            return
        level = [
            inner for member in nested for inner in (member.values() if isinstance(member, dict) else member)
        ]
    raise RecursionError("nested too deeply")


def _few_at_a_time(rows: Rows) -> Iterator[list[tuple[str, bytes]]]:
    """Rows, as many together as are asked of a store at once."""
    few, size = [], 0
    for row in rows:
        few.append(row)
        size += len(row[1])
        if size >= FETCHED_BYTES or len(few) == FETCHED_ROWS:
            yield few
            few, size = [], 0
    if few:
        yield few


class _RawRows:
    """The results of a run in an open store, read anew each time; one that is no text is an error."""

    def __init__(self, database: Database, run_id: str) -> None:
        self._database, self._run_id = database, run_id

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        as_text = self._database.plain_text
        for query_id, result_json in self._database.result_rows(self._run_id):
            yield as_text(query_id, self._run_id), as_text(result_json, self._run_id).encode()


class _Snapshot(Value, frozen=True):
    """What is read of the configurations of all runs."""

    recorded: Recorded = msgspec.field(name=RECORDED_KEY, default=Recorded())


def _recorded(config_json: object) -> Recorded:
    """How a run was recorded, if its configuration says; whatever else is there says nothing."""
    if isinstance(config_json, bytes) and RECORDED_KEY.encode() in config_json:
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return msgspec.json.decode(config_json, type=_Snapshot).recorded
    return Recorded()


def decode_row(query_id: str, result_json: object) -> QueryResult | Unreadable:
    """A row as `Database.results` gives it."""
    return _masked(decode_result(query_id, result_json))


def _masked(result: QueryResult | Unreadable) -> QueryResult | Unreadable:
    """The result; what an error says of a password or a token is masked, since errors quote addresses."""
    if isinstance(result, Unreadable) or result.error is None:
        return result
    return msgspec.structs.replace(result, error=mask_text(result.error))
