"""Exported runs, which can be committed: of each a line with its row, then one result a line, by query id.

A result is written as it is stored, unless it would not come back from that: it is then wrapped, as text.
An export that is opened is loaded into a database in memory.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, NoReturn, cast

import msgspec

from pytest_kebab_eval.errors import DatabaseError, InputError, NoDatabase, StoreError
from pytest_kebab_eval.files import is_stream, replacing
from pytest_kebab_eval.limits import STORED_VALUE_BYTES, UNPACKED_FREELY, UNPACKED_RATIO
from pytest_kebab_eval.model import Unreadable
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.store.address import Address, is_export, missing_directory
from pytest_kebab_eval.store.database import Database, RawRun
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.store.sql import Store, insert_run, make_missing_tables
from pytest_kebab_eval.store.sqlite import SqliteConnection, reading_errors
from pytest_kebab_eval.text import brief, shown_path
from pytest_kebab_eval.text.masking import mask_config

_VERSION = 1
_LONGEST = 2 * STORED_VALUE_BYTES  # bytes of a line; a result that is wrapped takes more than it is
_BEGINS = b'{"kebab_eval_export":'
_WRAPS = b'{"kebab_eval_row":'
_LINE_BREAK = re.compile(rb"[\r\n]")


class _RunRow(msgspec.Struct, frozen=True):
    """The run, as `eval_runs` has it."""

    run_id: str
    suite: str
    config_snapshot_json: str
    commit_hash: str | None
    created_at: str
    aggregate_json: str = "{}"


class _Header(msgspec.Struct, frozen=True):
    """The line before the results of a run."""

    kebab_eval_export: int
    run: _RunRow
    results: int


class _Row(msgspec.Struct, frozen=True):
    query_id: str
    result_json: str


class _Wrapped(msgspec.Struct, frozen=True):
    kebab_eval_row: _Row


class _Named(msgspec.Struct, frozen=True):
    query_id: str


_headers = msgspec.json.Decoder(_Header)
_wrapped_rows = msgspec.json.Decoder(_Wrapped)
_names = msgspec.json.Decoder(_Named)


def is_header(line: bytes) -> bool:
    """Whether a line is the first of an exported run, valid or not."""
    return line.startswith(_BEGINS)


# -- a file -> a database in memory ------------------------------------------------------------------


class ExportedRuns(Store):
    """What `kebab-eval export` wrote; nothing can be written to it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path

    def is_there(self) -> bool:
        return self._path.exists()

    @contextmanager
    def read(self, mask: Sequence[str] = ()) -> Iterator[Database]:
        if not self.is_there():
            raise NoDatabase(
                f"there is no exported run {self.name}; name a database with --kebab-db=FILE, or make it"
                " with kebab-eval export"
            )
        errors = partial(reading_errors, self._path)
        with errors(), closing(sqlite3.connect(":memory:", isolation_level=None)) as raw:
            connection = SqliteConnection(raw)
            connection.execute("BEGIN")
            make_missing_tables(connection, (), self.name, "TEXT")
            for run in self._runs():
                insert_run(connection, run, self.name)
            yield Database(self._path, connection, errors, mask)

    def _runs(self) -> Iterator[RawRun]:
        """The runs in the order of the file; the results of each are read before the next run."""
        with _opened(self._path) as file:
            lines = _NumberedLines(file, self._path)
            while (line := lines.next()) or not lines.number:
                header = _read_header(line, self.name, lines.number)
                run = header.run
                names = (run.run_id, run.suite, run.config_snapshot_json, run.commit_hash, run.created_at)
                yield RawRun(*names, run.aggregate_json, self._rows(lines, header.results))

    def _rows(self, lines: _NumberedLines, count: int) -> Iterator[tuple[str, bytes]]:
        last = ""
        for number in range(count):
            line = lines.next().strip()
            if not line or is_header(line):
                raise _damaged(self.name, lines.number, f"it has {number} of {count} results")
            query_id, result_json = read_row(line, self.name, lines.number)
            if number and query_id <= last:
                raise _damaged(self.name, lines.number, "its query ids are not in order")
            last = query_id
            yield query_id, result_json

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise InputError(
            f"{self.name} names an exported run, which is only read; name a database, to which"
            " kebab-eval import kebab brings it"
        )

    writing = recording = storing_aggregates = give_back_room = _refuse


class _NumberedLines:
    """The lines of a file, which may not unpack to much more than it is."""

    def __init__(self, file: IO[bytes], path: Path) -> None:
        self.number = 0
        self._file, self._path = file, path
        self._room = UNPACKED_FREELY + UNPACKED_RATIO * path.stat().st_size

    def next(self) -> bytes:
        """The next line; empty at the end."""
        line = self._file.readline(_LONGEST)
        self.number += bool(line)
        self._room -= len(line)
        if self._room < 0:
            raise DatabaseError(
                f"{shown_path(self._path)} unpacks to more than {UNPACKED_RATIO} times its size; if that is"
                " right, unpack it first"
            )
        return line


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    name = shown_path(path)
    try:
        with path.open("rb") as raw:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile(fileobj=raw) as unpacked:
                    yield io.BufferedReader(cast("Any", unpacked), 1 << 20)  # for faster lines
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise DatabaseError(f"{name} is damaged gzip data, or was cut off; export it again") from None
    except OSError as error:
        raise DatabaseError(f"cannot read {name}: {error.strerror or error}") from None


def _read_header(line: bytes, name: str, number: int) -> _Header:
    if not is_header(line):
        what = "it does not begin as kebab-eval export writes it" if number < 2 else "it has more results"
        raise _damaged(name, max(1, number), what)
    try:
        header = _headers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(name, number, brief(str(error), 100)) from None
    if header.kebab_eval_export > _VERSION:
        raise _damaged(name, number, "a newer version of this package wrote it")
    return header


def read_row(line: bytes, name: str, number: int) -> tuple[str, bytes]:
    """The query id and the result that a line holds."""
    try:
        if line.startswith(_WRAPS):
            row = _wrapped_rows.decode(line).kebab_eval_row
            return row.query_id, row.result_json.encode()
        return _names.decode(line).query_id, line
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError, RecursionError) as error:
        raise _damaged(name, number, brief(str(error), 100)) from None


def _damaged(name: str, line: int, reason: str) -> DatabaseError:
    return DatabaseError(f"{name}:{line}: this is no exported run: {reason}; export the run again")


# -- runs of a store -> a file, whole or not at all ---------------------------------------------------


def export_runs(db: Address, run_ids: Sequence[str], path: Path) -> int:
    """Write runs to a file; what looks like a secret in a configuration is masked. How many results it has.

    A file that is there and is no export stays.
    """
    if not is_export(path):
        raise InputError(f"{shown_path(path)} must end in .jsonl or .jsonl.gz")
    if missing := missing_directory(path):
        raise InputError(f"cannot write {shown_path(path)}: {missing}")
    if os.path.lexists(path) and not is_stream(path) and not _begins_as_export(path):
        raise InputError(f"{shown_path(path)} is there already and is no exported run; name another file")
    with open_database(db) as database, _new_file(path) as out:
        return sum(_write_run(out, database, run_id) for run_id in run_ids)


def _write_run(out: IO[bytes], database: Database, run_id: str) -> int:
    count, written, last = database.result_count(run_id), 0, None
    run = _without_secrets(database.raw_run(run_id))
    out.write(msgspec.json.encode(_Header(_VERSION, _RunRow(*run[:-1]), count)) + b"\n")
    for query_id, result_json in run.rows:
        if last is not None and query_id <= last:
            raise DatabaseError(
                f"run '{brief(run_id)}' has the query '{brief(query_id)}' twice; its table has no primary key"
            )
        out.write(write_row(query_id, result_json))
        last, written = query_id, written + 1
    if written != count:
        raise DatabaseError(f"{written} of {count} results could be read; the run has changed")
    return written


def write_row(query_id: str, result_json: bytes) -> bytes:
    """The line of a result: as it is, if that is read as the same result of the same query; else wrapped."""
    is_plain = result_json == result_json.strip() and not _LINE_BREAK.search(result_json)
    if is_plain and not result_json.startswith((_WRAPS, _BEGINS)):
        try:
            is_named = _names.decode(result_json).query_id == query_id
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            is_named = False
        if is_named and not isinstance(decode_result(query_id, result_json), Unreadable):
            return result_json + b"\n"
    return msgspec.json.encode(_Wrapped(_Row(query_id, result_json.decode()))) + b"\n"


def _without_secrets(run: RawRun) -> RawRun:
    """The run; its configuration byte for byte, unless something in it has to be masked."""
    try:
        config = msgspec.json.decode(run.config_json, type=dict[str, Any])
        masked = mask_config(config).config
    except (msgspec.DecodeError, RecursionError):
        return run
    return run if masked == config else run._replace(config_json=msgspec.json.encode(masked).decode())


def _begins_as_export(path: Path) -> bool:
    try:
        with _opened(path) as file:
            return is_header(file.read(100))
    except DatabaseError:
        return False


@contextmanager
def _new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that replaces the path at the end; when it was packed, and as what, makes no difference."""

    def to_error(error: OSError) -> StoreError:
        return StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}")

    with replacing(path, to_error=to_error) as text:
        raw = cast("io.TextIOWrapper", text).buffer
        try:
            if path.name.lower().endswith(".gz"):
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield cast("IO[bytes]", packed)
            else:
                yield cast("IO[bytes]", raw)
        except OSError as error:
            raise to_error(error) from None
