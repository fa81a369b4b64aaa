"""What is recorded of a run that is not stored yet, in a file: a recording that was killed can go on.

Each result is given to the operating system at once, so a process that is killed loses none. The file is made
to reach the disk with the first result after five seconds; a power cut may lose what came since.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.files import lock_file, open_beside
from pytest_kebab_eval.limits import JOURNAL_SYNC_S
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.store.address import Address
from pytest_kebab_eval.store.row_file import ROW, RowFile, file_errors, read_records
from pytest_kebab_eval.text import brief, file_name_in_any_case, marked_file_name, printable, shown_path

_MAGIC = b"kebab-eval unfinished run, version 1\n"
_HEAD, _AGAIN, _CONFIG = b"H", b"A", b"C"
_RESUME = "resume=True (pytest: --kebab-resume) goes on with them"
ANEW = "record it as it was begun, or delete the file to start anew"
_ENDING = ".unfinished"
_LONGEST_NAME = 255  # bytes, on most file systems


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
            journal = Journal(path, open_beside(path, *like))
        except OSError as error:
            raise StoreError(f"cannot record into {shown_path(path)}: {error.strerror or error}") from None
        try:
            if journal.lock(head.run_id):
                journal.begin(head, resume=resume)
                return journal
        except BaseException:
            journal.close()
            raise
        journal.close()  # another process finished that run, and removed the file


class Journal(RowFile):
    """The results of one unfinished run; made by `open_journal`."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        super().__init__(file)
        self.path = path
        self.head: Head | None = None
        self.config: dict[str, Any] = {}  # as of the process before
        self._synced = time.monotonic()

    # -- starting --------------------------------------------------------------------------------

    def lock(self, run_id: str) -> bool:
        """Keep other processes out; False if the file is no longer the one of that name."""
        if not lock_file(self._file.fileno()):
            raise InputError(
                f"run '{printable(run_id)}' is being recorded by another process, which has"
                f" {shown_path(self.path)} open; wait for it to end"
            )
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        except OSError:
            return False

    def begin(self, head: Head, *, resume: bool) -> None:
        """Read what is there; start anew if there is no result."""
        self._load()
        if self.head is None or not len(self):
            try:
                self._start(head)
            except BaseException:
                self.remove()
                raise
        elif not resume:
            raise InputError(f"{self._description(head)}; {_RESUME}; delete the file to start anew")
        else:
            self._check_same(self.head, head)

    def _start(self, head: Head) -> None:
        with file_errors():
            self._file.seek(0)
            self._file.truncate(0)
            self._file.write(_MAGIC)
        self._end = len(_MAGIC)
        self._append(_HEAD, data=msgspec.json.encode(head))
        self.head, self.config = head, {}

    def _load(self) -> None:
        """Read the results; what is half written at the end is dropped."""
        with file_errors():
            size = os.fstat(self._file.fileno()).st_size
            beginning = self._file.read(len(_MAGIC))
            if beginning != _MAGIC[: len(beginning)]:
                raise InputError(
                    f"{shown_path(self.path)} is not an unfinished run of this version of kebab-eval;"
                    " move it away, or give the run another id"
                )
            with open(self._file.fileno(), "rb", closefd=False) as reading:
                for record in read_records(reading, len(_MAGIC), size):
                    self._take(record.kind, record.name, record.data, record.at)
                    self._end = reading.tell()
            if len(self):
                self._file.truncate(self._end)

    def _take(self, kind: bytes, name: str, data: bytes, at: int) -> None:
        if kind == ROW:
            self._starts[name] = at
        elif kind == _AGAIN:
            self._starts.pop(name, None)
        elif kind == _CONFIG:
            self.config = _decode(self.path, data, dict[str, Any])
        elif kind == _HEAD:
            self.head = _decode(self.path, data, Head)

    def _check_same(self, old: Head, new: Head) -> None:
        changed = _changes(old, new)
        if changed:
            raise InputError(f"{self._description(new)}, and {changed}; {ANEW}")

    def _description(self, head: Head) -> str:
        results = "1 result" if len(self) == 1 else f"{len(self)} results"
        return f"{shown_path(self.path)} has {results} of run '{printable(head.run_id)}', which is unfinished"

    # -- recording -------------------------------------------------------------------------------

    def add(self, query_id: str, result_json: bytes) -> None:
        """Add a result, and now and then have the disk keep it."""
        super().add(query_id, result_json)
        now = time.monotonic()
        if now - self._synced >= JOURNAL_SYNC_S:
            with file_errors():
                os.fsync(self._file.fileno())
            self._synced = now

    def add_config(self, config: dict[str, Any]) -> None:
        """Keep the configuration as it is known now."""
        self._append(_CONFIG, data=msgspec.json.encode(config))

    def mark_for_repeat(self, query_id: str) -> None:
        """Have the query recorded again, if the run is resumed."""
        self._append(_AGAIN, query_id)

    @property
    def kept(self) -> str:
        """What is to be said when a recording ends before its time; empty if nothing is kept."""
        return f"{self.whereabouts}, and {_RESUME}" if len(self) else ""

    @property
    def whereabouts(self) -> str:
        """How many results there are, and where."""
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
    return config_change(old.config, new.config)


def config_change(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The first key of two configurations that differs, in words; empty if none does."""
    for key in sorted({*old, *new}):
        if key not in old or key not in new or old[key] != new[key]:
            was, now = (brief(repr(config[key]), 40) if key in config else "absent" for config in (old, new))
            return f"'{brief(key, 40)}' of its configuration was {was} and is {now}"
    return ""
