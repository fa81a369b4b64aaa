"""Rows of a run in a file, one record after the other; what a killed process left half written is seen.

A record is a line `KIND NAME_LENGTH LENGTH CRC`, a name and data: a result with its query id, the head of the
file, the configuration, or a query id whose result does not count any more.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import IO, NamedTuple

from pytest_kebab_eval.errors import InputError, StoreError

_FRAME = re.compile(rb"([A-Z]) (\d{1,10}) (\d{1,12}) ([0-9a-f]{8})\n")
_LONGEST_FRAME = 40  # bytes
ROW = b"R"


class Record(NamedTuple):
    """One record, and where it begins."""

    kind: bytes
    name: str
    data: bytes
    at: int


class RowFile:
    """Results by query id, in an open file; only their positions are in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = 0
        self._starts: dict[str, int] = {}
        self._process = os.getpid()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._starts)

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._starts

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """The results, in the order in which they were added."""
        with open(self._file.fileno(), "rb", closefd=False) as reading:
            for at in tuple(self._starts.values()):
                with file_errors():
                    reading.seek(at)
                    record = _read_record(reading, at, self._end)
                if record is None:
                    raise StoreError("the run was not recorded: what was recorded cannot be read again")
                yield record.name, record.data

    def ids(self) -> tuple[str, ...]:
        """The ids of the queries that have a result."""
        return tuple(self._starts)

    def add(self, query_id: str, result_json: bytes) -> None:
        """Add a result; it is with the operating system when this returns."""
        self._starts[query_id] = self._append(ROW, query_id, result_json)

    def drop(self, query_id: str) -> None:
        """Let the result of a query count no more."""
        self._starts.pop(query_id, None)

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            self._file.close()

    def remove(self) -> None:
        """Close the file and remove it; one without a name is gone when it is closed."""
        self.close()

    def _append(self, kind: bytes, name: str = "", data: bytes = b"") -> int:
        """Write a record whole or not at all, over what is left of one that failed; where it begins."""
        encoded = name.encode("utf-8")
        crc = zlib.crc32(data, zlib.crc32(encoded))
        record = b"%s %d %d %08x\n%s%s" % (kind, len(encoded), len(data), crc, encoded, data)
        self._check_process()
        with self._lock, file_errors():
            at = self._end
            self._file.seek(at)
            self._write(record)
            self._end += len(record)
        return at

    def _check_process(self) -> None:
        """A process that was forked shares the file, and would write where its parent does."""
        if os.getpid() != self._process:
            raise InputError(
                "a result is recorded in the process that started the run; have this one return it there"
            )

    def _write(self, record: bytes) -> None:
        written = self._file.write(record)
        while written < len(record):  # a file without a buffer may take less than it is given
            written += self._file.write(record[written:])


def read_records(file: IO[bytes], at: int, size: int) -> Iterator[Record]:
    """The records from a position on, up to the first that is not whole."""
    file.seek(at)
    while record := _read_record(file, at, size):
        yield record
        at = file.tell()


def _read_record(file: IO[bytes], at: int, size: int) -> Record | None:
    frame = _FRAME.fullmatch(file.readline(_LONGEST_FRAME))
    if frame is None:
        return None
    name_length, length = int(frame[2]), int(frame[3])
    if at + len(frame[0]) + name_length + length > size:
        return None
    name, data = file.read(name_length), file.read(length)
    if zlib.crc32(data, zlib.crc32(name)) != int(frame[4], 16):
        return None
    try:
        return Record(frame[1], name.decode("utf-8"), data, at)
    except UnicodeDecodeError:
        return None


@contextmanager
def file_errors() -> Iterator[None]:
    """An error of the file system as a `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"the run was not recorded: {error.strerror or error}") from None
