"""The lines of an exported run: a header with the run's row, then one result a line, by query id.

A result is written as it is stored, unless it would not come back from that: it is then wrapped, as text.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.limits import STORED_VALUE_BYTES, UNPACKED_FREELY, UNPACKED_RATIO
from pytest_kebab_eval.model import Unreadable
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.text import brief, shown_path

VERSION = 1
_LONGEST = 2 * STORED_VALUE_BYTES  # bytes of a line; a result that is wrapped takes more than it is
_BEGINS = b'{"kebab_eval_export":'
_WRAPS = b'{"kebab_eval_row":'
_LINE_BREAK = re.compile(rb"[\r\n]")


class RunRow(msgspec.Struct, frozen=True):
    """The run, as `eval_runs` has it."""

    run_id: str
    suite: str
    config_snapshot_json: str
    commit_hash: str | None
    created_at: str
    aggregate_json: str = "{}"


class Header(msgspec.Struct, frozen=True):
    """The first line of a file: what is in it."""

    kebab_eval_export: int
    run: RunRow
    results: int


class _Row(msgspec.Struct, frozen=True):
    query_id: str
    result_json: str


class _Wrapped(msgspec.Struct, frozen=True):
    kebab_eval_row: _Row


class _Named(msgspec.Struct, frozen=True):
    query_id: str


_headers = msgspec.json.Decoder(Header)
_wrapped_rows = msgspec.json.Decoder(_Wrapped)
_names = msgspec.json.Decoder(_Named)


def write_header(header: Header) -> bytes:
    """The first line of a file."""
    return msgspec.json.encode(header) + b"\n"


def is_header(line: bytes) -> bool:
    """Whether a line is the first of an export, valid or not."""
    return line.startswith(_BEGINS)


def read_header(line: bytes, name: str) -> Header:
    """The header that the first line of a file of that name holds."""
    if not is_header(line):
        raise damaged(name, 1, "it does not begin as kebab-eval export writes it")
    try:
        header = _headers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise damaged(name, 1, brief(str(error), 100)) from None
    if header.kebab_eval_export > VERSION:
        raise damaged(name, 1, "a newer version of this package wrote it")
    return header


def write_row(query_id: str, result_json: bytes) -> bytes:
    """A line with a result."""
    if _comes_back(query_id, result_json):
        return result_json + b"\n"
    return msgspec.json.encode(_Wrapped(_Row(query_id, result_json.decode()))) + b"\n"


def _comes_back(query_id: str, result_json: bytes) -> bool:
    """Whether the result, as it is, is a line that is read as the same result of the same query."""
    if (
        _LINE_BREAK.search(result_json)
        or result_json != result_json.strip()
        or result_json.startswith(_WRAPS)
    ):
        return False
    try:
        is_named = _names.decode(result_json).query_id == query_id
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return is_named and not isinstance(decode_result(query_id, result_json), Unreadable)


def read_row(line: bytes, name: str, number: int) -> tuple[str, bytes]:
    """The query id and the result that a line of a file of that name holds."""
    line = line.strip()
    try:
        if line.startswith(_WRAPS):
            row = _wrapped_rows.decode(line).kebab_eval_row
            return row.query_id, row.result_json.encode()
        return _names.decode(line).query_id, line
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError, RecursionError) as error:
        raise damaged(name, number, brief(str(error), 100)) from None


def damaged(name: str, line: int, reason: str) -> DatabaseError:
    """The error of a file that cannot be read as an export."""
    return DatabaseError(f"{name}:{line}: this is no exported run: {reason}; export the run again")


def checked_rows(
    rows: Iterable[tuple[str, bytes, int]], name: str, count: int, size: int
) -> Iterator[tuple[str, bytes]]:
    """The rows of a file of that size, which are given with the bytes that each took.

    An error if they are not in order, not as many as the header says, or much more than the file.
    """
    number, last, unpacked = 1, "", 0
    for query_id, result_json, length in rows:
        number += 1
        if number > 2 and query_id <= last:
            raise damaged(name, number, "its query ids are not in order")
        unpacked += length
        if unpacked > most_unpacked(size):
            raise unpacks_to_too_much(name)
        last = query_id
        yield query_id, result_json
    if number - 1 != count:
        raise damaged(name, number, f"it has {number - 1} of {count} results")


def most_unpacked(size: int) -> int:
    """The bytes that a file of that size may unpack to."""
    return UNPACKED_FREELY + UNPACKED_RATIO * size


def unpacks_to_too_much(name: str) -> DatabaseError:
    """The error of a file that does."""
    return DatabaseError(
        f"{name} unpacks to more than {UNPACKED_RATIO} times its size; if that is right, unpack it first"
    )


class LinesFile:
    """The results of an exported run, one a line, by id; the file is read anew each time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = shown_path(path)

    def __len__(self) -> int:
        return self.header.results

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return checked_rows(self._rows(), self._name, len(self), self._path.stat().st_size)

    @cached_property
    def header(self) -> Header:
        """What the first line says."""
        with self._open() as file:
            return read_header(file.readline(_LONGEST), self._name)

    def _rows(self) -> Iterator[tuple[str, bytes, int]]:
        with self._open() as file:
            file.readline(_LONGEST)
            number = 1
            while line := file.readline(_LONGEST):
                number += 1
                yield *read_row(line, self._name, number), len(line)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        try:
            with self._path.open("rb") as raw:
                if self._path.name.lower().endswith(".gz"):
                    with gzip.GzipFile(fileobj=raw) as unpacked:
                        yield io.BufferedReader(cast("Any", unpacked), 1 << 20)  # for faster lines
                else:
                    yield raw
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DatabaseError(
                f"{self._name} is damaged gzip data, or was cut off; export it again"
            ) from None
        except OSError as error:
            raise DatabaseError(f"cannot read {self._name}: {error.strerror or error}") from None
