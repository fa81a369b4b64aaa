"""What is recorded of a run that is not stored yet, in a file: a recording that was killed can go on.

Each result is given to the operating system at once, so a process that is killed loses none. The file is made
to reach the disk with the first result after five seconds; a power cut may lose what came since.

A record is a line `KIND NAME_LENGTH LENGTH CRC`, a name and data: a result with its query id, the head of the
file, the configuration, or a query id whose result does not count any more.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import IO, Any

import msgspec

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import lock_file, open_beside
from pytest_kebab_eval.limits import JOURNAL_SYNC_S
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.store.address import Address
from pytest_kebab_eval.text import brief, file_name_in_any_case, marked_file_name, printable, shown_path

_MAGIC = b"kebab-eval unfinished run, version 1\n"
_ROW, _HEAD, _AGAIN, _CONFIG = b"R", b"H", b"A", b"C"
_FRAME = re.compile(rb"([A-Z]) (\d{1,10}) (\d{1,12}) ([0-9a-f]{8})\n")
_LONGEST_FRAME = 40  # bytes
_RESUME = "resume=True (pytest: --kebab-resume) goes on with them"
_ANEW = "record it as it was begun, or delete the file to start anew"
_ENDING = ".unfinished"
_LONGEST_NAME = 255  # bytes, on most file systems


# -- records -----------------------------------------------------------------------------------------


class _Record(Value, frozen=True):
    kind: bytes
    name: str
    data: bytes
    end: int


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
                    record = _read_record(reading, at, self._end)
                if record is None:
                    raise StoreError("the run was not recorded: what was recorded cannot be read again")
                yield record.name, record.data

    def ids(self) -> tuple[str, ...]:
        return tuple(self._starts)

    def add(self, query_id: str, result_json: bytes) -> None:
        """Add a result; it is with the operating system when this returns."""
        self._starts[query_id] = self._append(_ROW, query_id, result_json)

    def drop(self, query_id: str) -> None:
        """Let the result of a query count no more."""
        self._starts.pop(query_id, None)

    def close(self) -> None:
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
        if os.getpid() != self._process:  # one that was forked would write where its parent does
            raise InputError(
                "a result is recorded in the process that started the run; have this one return it there"
            )
        with self._lock, file_errors():
            at = self._end
            self._file.seek(at)
            written = 0
            while written < len(record):  # a file without a buffer may take less than it is given
                written += self._file.write(record[written:])
            self._end += len(record)
        return at


def _read_record(file: IO[bytes], at: int, size: int) -> _Record | None:
    """The record at this position; None if it is not whole."""
    file.seek(at)
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
        return _Record(frame[1], name.decode("utf-8"), data, file.tell())
    except UnicodeDecodeError:
        return None


@contextmanager
def file_errors() -> Iterator[None]:
    """An error of the file system as a `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"the run was not recorded: {error.strerror or error}") from None


# -- an unfinished run -------------------------------------------------------------------------------


class Head(Value, frozen=True):
    """What must be the same when a recording goes on; the commit is that of its beginning."""

    run_id: str
    suite: str
    store: str  # the address of the database, where the file is not beside it
    config: dict[str, Any]
    golden: str | None = None  # the fingerprint of the golden queries, if they are known
    commit_hash: str | None = None


def journal_path(db: Address, run_id: str) -> Path:
    """Where the unfinished recording of a run is kept: beside a file, or, for a server, where we are."""
    beside = _beside(db)
    name = f"{beside.name}.{file_name_in_any_case(run_id)}{_ENDING}"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f"{marked_file_name(f'{beside.name}.{run_id}')}{_ENDING}"
    return beside.with_name(name)


def _beside(db: Address) -> Path:
    return Path(os.path.realpath(db)) if isinstance(db, Path) else Path.cwd() / "kebab-eval"


def unfinished_files(db: Address) -> list[Path]:
    """The unfinished recordings that are kept for a database."""
    beside = _beside(db)
    with suppress(OSError):
        found = [path for path in beside.parent.iterdir() if path.name.endswith(_ENDING)]
        return sorted(path for path in found if path.name.startswith(f"{beside.name}."))
    return []


def unfinished_run(db: Address, run_id: str) -> str:
    """That a run was begun, and how it goes on, in words; empty if it was not."""
    path = journal_path(db, run_id)
    if not os.path.exists(path):  # noqa: PTH110  which is false for a name that no file can have
        return ""
    return f"it was begun and not finished: {shown_path(path)} has its results, and {_RESUME}"


def open_journal(path: Path, head: Head, *, resume: bool, like: tuple[Path, ...]) -> Journal:
    """Start the journal of a run, or go on with it; a new file has the permissions of the one it is `like`.

    An `InputError` if another process has it, if it has results and is not to be resumed, or if what the
    results depend on has changed.
    """
    while True:
        try:
            journal = Journal(path, open_beside(path, *like), head)
        except OSError as error:
            raise StoreError(f"cannot record into {shown_path(path)}: {error.strerror or error}") from None
        try:
            if journal.lock():
                journal.begin(resume=resume)
                return journal
        except BaseException:
            journal.close()
            raise
        journal.close()  # another process finished that run, and removed the file


class Journal(RowFile):
    """The results of one unfinished run; made by `open_journal`."""

    def __init__(self, path: Path, file: IO[bytes], head: Head) -> None:
        super().__init__(file)
        self.path = path
        self.head = head
        self.config: dict[str, Any] = {}  # what the process before found out
        self.config_before: dict[str, Any] | None = None  # all of the process before; None: there was none
        self._synced = time.monotonic()

    def lock(self) -> bool:
        """Keep other processes out; False if the file is no longer the one of that name."""
        if not lock_file(self._file.fileno()):
            raise InputError(
                f"run '{printable(self.head.run_id)}' is being recorded by another process, which has"
                f" {shown_path(self.path)} open; wait for it to end"
            )
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            return False

    def begin(self, *, resume: bool) -> None:
        """Read what is there; start anew if there is no result."""
        begun = self._load()
        if begun is None or not len(self):
            try:
                self._start()
            except BaseException:
                self.remove()
                raise
            return
        results = "1 result" if len(self) == 1 else f"{len(self)} results"
        name = f"run '{printable(self.head.run_id)}', which is unfinished"
        there = f"{shown_path(self.path)} has {results} of {name}"
        if not resume:
            raise InputError(f"{there}; {_RESUME}; delete the file to start anew")
        if changed := _changes(begun, self.head):
            raise InputError(f"{there}, and {changed}; {_ANEW}")
        self.head, self.config_before = begun, {**begun.config, **self.config}

    def _start(self) -> None:
        with file_errors():
            self._file.seek(0)
            self._file.truncate(0)
            self._file.write(_MAGIC)
        self._end = len(_MAGIC)
        self._append(_HEAD, data=msgspec.json.encode(self.head))
        self.config = {}

    def _load(self) -> Head | None:
        """Read the results, and the head; what is half written at the end is dropped."""
        head: Head | None = None
        with file_errors():
            size = os.fstat(self._file.fileno()).st_size
            beginning = self._file.read(len(_MAGIC))
            if beginning != _MAGIC[: len(beginning)]:
                raise InputError(
                    f"{shown_path(self.path)} is not an unfinished run of this version of kebab-eval;"
                    " move it away, or give the run another id"
                )
            with open(self._file.fileno(), "rb", closefd=False) as reading:
                self._end = len(_MAGIC)
                while record := _read_record(reading, self._end, size):
                    if record.kind == _ROW:
                        self._starts[record.name] = self._end
                    elif record.kind == _AGAIN:
                        self._starts.pop(record.name, None)
                    elif record.kind == _CONFIG:
                        self.config = _decode(self.path, record.data, dict[str, Any])
                    elif record.kind == _HEAD:
                        head = _decode(self.path, record.data, Head)
                    self._end = record.end
            if len(self):
                self._file.truncate(self._end)
        return head

    def add(self, query_id: str, result_json: bytes) -> None:
        """Add a result, and now and then have the disk keep it."""
        super().add(query_id, result_json)
        now = time.monotonic()
        if now - self._synced >= JOURNAL_SYNC_S:
            with file_errors():
                os.fsync(self._file.fileno())
            self._synced = now

    def update_config(self, config: dict[str, Any]) -> None:
        """Keep the configuration as it is known now, unless results of the process before are there."""
        self.check_goes_on(self.config, {key: config.get(key) for key in self.config})
        if self.config_before is None:
            self._append(_CONFIG, data=msgspec.json.encode({**self.config, **config}))

    def check_goes_on(self, before: dict[str, Any], now: dict[str, Any]) -> None:
        """Refuse to add results of another configuration to those of the process before."""
        if changed := _config_change(before, now):
            where = f"{changed}; {self.whereabouts}; {_ANEW}"
            raise InputError(f"run '{printable(self.head.run_id)}' cannot go on: {where}")

    def mark_for_repeat(self, query_id: str) -> None:
        """Have the query recorded again, if the run is resumed."""
        self._append(_AGAIN, query_id)

    @property
    def kept(self) -> str:
        """What is to be said when a recording ends before its time; empty if nothing is kept."""
        return f"{self.whereabouts}, and {_RESUME}" if len(self) else ""

    @property
    def whereabouts(self) -> str:
        results = "the 1 result so far is" if len(self) == 1 else f"the {len(self)} results so far are"
        return f"{results} in {shown_path(self.path)}"

    def remove(self) -> None:
        """Remove the file: the run is stored, or there is nothing to store."""
        try:
            with suppress(OSError):
                self.path.unlink()
        finally:
            self.close()
        if os.name == "nt":  # which removes no open file
            with suppress(OSError):
                self.path.unlink()


def _decode(path: Path, data: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError:
        raise InputError(f"{shown_path(path)} is damaged; delete it to start the run anew") from None


def _changes(old: Head, new: Head) -> str:
    """What differs, in words; empty if nothing does."""
    if (old.run_id, old.store) != (new.run_id, new.store):
        return f"it is run '{printable(old.run_id)}' of another database"
    if old.suite != new.suite:
        return f"its suite is '{brief(old.suite)}', not '{brief(new.suite)}'"
    if None not in (old.golden, new.golden) and old.golden != new.golden:
        return "the golden file has changed since"
    return _config_change(old.config, new.config)


def _config_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first key of two configurations that differs, in words; empty if none does."""
    for key in sorted({*old, *new}):
        if key not in old or key not in new or old[key] != new[key]:
            was, now = (brief(repr(config[key]), 40) if key in config else "absent" for config in (old, new))
            return f"'{brief(key, 40)}' of its configuration was {was} and is {now}"
    return ""
