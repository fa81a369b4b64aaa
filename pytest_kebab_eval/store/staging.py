"""What is recorded of a run that is not stored yet, in an SQLite file into which several processes may write.

Each result is one commit, so a process that is killed loses none. The file is beside the database, or, for a
server, in the directory of reports; it is gone when the run is stored.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.errors import InputError, StoreError
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.store.address import Address
from pytest_kebab_eval.store.new_chunks import ChunkRow
from pytest_kebab_eval.store.sql import WRITE_TIMEOUT_S
from pytest_kebab_eval.store.sqlite import SQLITE_ERRORS, reason
from pytest_kebab_eval.text import brief, file_name_in_any_case, marked_file_name, printable, shown_path

RUNS_DIR = Path("runs")
_ENDING = ".unfinished"
_LONGEST_NAME = 255  # bytes, on most file systems
_APPLICATION_ID = 0x6B656202  # in the header of such a file
_SCHEMA = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    (
        "CREATE TABLE results (query_id TEXT PRIMARY KEY, result_json TEXT NOT NULL, session TEXT NOT NULL,"
        " again INTEGER NOT NULL DEFAULT 0)"
    ),
    "CREATE TABLE raised (query_id TEXT PRIMARY KEY, query TEXT NOT NULL, error TEXT NOT NULL)",
    "CREATE TABLE begun (test TEXT PRIMARY KEY, worker TEXT NOT NULL, query_id TEXT, query TEXT)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
)
_ADD = (
    "INSERT INTO results (query_id, result_json, session) VALUES (?, ?, ?) ON CONFLICT (query_id)"
    " DO UPDATE SET result_json = excluded.result_json, session = excluded.session, again = 0"
    " WHERE again OR results.session <> excluded.session"
)
_RESUME = "resume=True (pytest: --kebab-resume) goes on with them"
_ANEW = "record it as it was begun, or delete the file to start anew"


class Head(Value, frozen=True):
    """What must be the same when a recording goes on."""

    run_id: str
    suite: str
    store: str  # the address of the database, where the file is not beside it
    config: dict[str, Any]
    golden: str | None = None  # the fingerprint of the golden queries, if they are known
    commit_hash: str | None = None


class RecordedTwice(InputError):
    """A query has a result of this session already."""


class Begun(NamedTuple):
    """The golden query of a test that has begun; the text is None where it may be of several."""

    query_id: str | None
    query: str | None


# -- where ---------------------------------------------------------------------------------------------


def staging_path(db: Address, run_id: str, runs_dir: Path = RUNS_DIR) -> Path:
    """Where the unfinished recording of a run is kept: beside a file, or, for a server, with the reports."""
    directory, prefix = _place(db, runs_dir)
    name = f"{prefix}{file_name_in_any_case(run_id)}{_ENDING}"
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f"{marked_file_name(f'{prefix}{run_id}')}{_ENDING}"
    return directory / name


def _place(db: Address, runs_dir: Path) -> tuple[Path, str]:
    """The directory of the unfinished recordings of a database, and how their names begin."""
    if not isinstance(db, Path):
        return runs_dir, ""
    path = Path(os.path.realpath(db))
    return path.parent, f"{path.name}."


def unfinished_files(db: Address, runs_dir: Path = RUNS_DIR) -> list[Path]:
    """The unfinished recordings that are kept for a database."""
    directory, prefix = _place(db, runs_dir)
    with suppress(OSError):
        return sorted(path for path in directory.iterdir() if _is_unfinished(path.name, prefix))
    return []


def _is_unfinished(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name.endswith(_ENDING)


def unfinished_run(db: Address, run_id: str) -> str:
    """That a run was begun, and how it goes on, in words; empty if it was not."""
    path = staging_path(db, run_id)
    if not os.path.exists(path):  # noqa: PTH110  which is false for a name that no file can have
        return ""
    return f"it was begun and not finished: {shown_path(path)} has its results, and {_RESUME}"


# -- the file ------------------------------------------------------------------------------------------


class Staging:
    """The results of one unfinished run; without a path, they are gone with the process."""

    def __init__(self, path: Path | None, session: str = "") -> None:
        self.path = path
        self.session = session or os.urandom(8).hex()  # of all the processes that record together
        self._connections: dict[int, sqlite3.Connection] = {}  # one a process, as they must not be shared
        self._lock = RLock()
        self._is_closed = False

    def begin(self, head: Head, *, resume: bool, like: Sequence[Path]) -> Head:
        """Start a run, or go on with one; its head as it was begun.

        An `InputError` if there are results and they are not to be resumed, or if what they depend on has
        changed. A new file has the permissions of the one that it is `like`.
        """
        is_there = self.path is not None and self._make_file(self.path, like)
        with self._transaction() as raw:
            if is_there and raw.execute("SELECT 1 FROM sqlite_master").fetchone():
                if raw.execute("PRAGMA application_id").fetchone() != (_APPLICATION_ID,):
                    raise self._not_ours()
            else:
                for statement in _SCHEMA:
                    raw.execute(statement)
            found: dict[str, Any] = {}
            goes_on = len(self) > 0
            if goes_on:
                head, found = self._go_on(head, resume=resume)
            for statement in ("DELETE FROM facts", "DELETE FROM raised", "DELETE FROM begun"):
                raw.execute(statement)
            raw.execute("DELETE FROM results WHERE again")
            self.set("head", msgspec.json.encode(head).decode())
            self.set("config", msgspec.json.encode(found).decode())
            if goes_on:  # what results that are added must agree with
                self.set("config_before", msgspec.json.encode({**head.config, **found}).decode())
            self.set("session", self.session)
            self.set("run_id", head.run_id)
        return head

    def _not_ours(self) -> InputError:
        what = f"{self._shown} is not an unfinished run"
        return InputError(f"{what}; move it away, or give the run another id")

    def _make_file(self, path: Path, like: Sequence[Path]) -> bool:
        """Make the file, which no link may stand for; whether it was there."""
        old = next((other.stat() for other in like if other.exists()), None)
        mode = stat.S_IMODE(old.st_mode) if old else 0o666 if like else 0o600
        try:
            path.parent.mkdir(parents=True, exist_ok=True) if not like else None
            if os.path.lexists(path):
                if not stat.S_ISREG(path.lstat().st_mode):
                    raise OSError(errno.EINVAL, "it is not a regular file")
                return True
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        except OSError as error:
            raise StoreError(f"cannot record into {self._shown}: {error.strerror or error}") from None
        return False

    def _go_on(self, head: Head, *, resume: bool) -> tuple[Head, dict[str, Any]]:
        """The head as it was begun, and the configuration that was found out since."""
        name = f"run '{printable(head.run_id)}', which is unfinished"
        results = "1 result" if len(self) == 1 else f"{len(self)} results"
        there = f"{self._shown} has {results} of {name}"
        if not resume:
            raise InputError(f"{there}; {_RESUME}; delete the file to start anew")
        begun = msgspec.json.decode(self.get("head") or "", type=Head)
        if changed := _changes(begun, head):
            raise InputError(f"{there}, and {changed}; {_ANEW}")
        return begun, self.config

    @property
    def _shown(self) -> str:
        return shown_path(self.path) if self.path else "a temporary file"

    def _connection(self) -> sqlite3.Connection:
        found = self._connections.get(os.getpid())
        if found is None:
            if self._is_closed:
                raise InputError("the run is stored, or given up; nothing is recorded in it any more")
            if self.path is None and self._connections:  # a process that was forked
                raise InputError("a result is recorded in the process that started the run")
            found = sqlite3.connect(
                self.path or "", timeout=WRITE_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            self._connections[os.getpid()] = found
            found.execute("PRAGMA journal_mode = WAL")  # where the disk takes it
            found.execute("PRAGMA synchronous = NORMAL")
        return found

    @contextmanager
    def _errors(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection()
            except (*SQLITE_ERRORS, OSError) as error:
                if "not a database" in str(error):
                    raise self._not_ours() from None
                raise StoreError(f"the run was not recorded: {self._shown}: {reason(error)}") from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors() as raw:
            if raw.in_transaction:  # within another
                yield raw
                return
            raw.execute("BEGIN IMMEDIATE")
            try:
                yield raw
                raw.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # which may have rolled back
                    raw.execute("ROLLBACK")
                raise

    @property
    def goes_on(self) -> bool:
        """Whether there were results before."""
        return self.get("config_before") is not None

    # -- facts of the run ----------------------------------------------------------------------------

    def get(self, name: str) -> str | None:
        with self._errors() as raw:
            row = raw.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def set(self, name: str, value: str) -> None:
        with self._transaction() as raw:
            raw.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    @property
    def config(self) -> dict[str, Any]:
        """The configuration that was found out while recording."""
        found: dict[str, Any] = msgspec.json.decode(self.get("config") or "{}")
        return found

    def update_config(self, config: dict[str, Any], *, has_results: bool) -> None:
        """Take over a configuration; where results of a session before are there, it must be theirs."""
        with self._transaction():
            stored = self.get("config_before")
            if stored is not None:
                before: dict[str, Any] = msgspec.json.decode(stored)
                # Before there are results, some keys may be still to come.
                if changed := _config_change(before, config if has_results else {**before, **config}):
                    name = f"run '{printable(self.get('run_id') or '')}'"
                    self.set("refusal", f"{name} cannot go on: {changed}; {self.whereabouts}; {_ANEW}")
                    self.set("must_stop", "yes")
            else:
                self.set("config", msgspec.json.encode({**self.config, **config}).decode())
        if refusal := self.get("refusal"):
            raise InputError(refusal)

    def set_chunks(self, rows: Sequence[ChunkRow]) -> None:
        """Keep the chunks of the index, which all who record must agree on."""
        encoded = msgspec.json.encode(rows).decode()
        with self._transaction():
            if (self.get("chunks") or encoded) != encoded:
                raise InputError("the chunks of the index were given before, and they were others")
            self.set("chunks", encoded)

    def chunks(self) -> list[ChunkRow] | None:
        encoded = self.get("chunks")
        return msgspec.json.decode(encoded, type=list[ChunkRow]) if encoded else None

    # -- results -------------------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._errors() as raw:
            return int(raw.execute("SELECT count(*) FROM results").fetchone()[0])

    def __contains__(self, query_id: object) -> bool:
        with self._errors() as raw:
            found = raw.execute("SELECT 1 FROM results WHERE query_id = ?", (query_id,)).fetchone()
        return found is not None

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """The results, in the order in which they were recorded."""
        with self._errors() as raw:
            rows = raw.execute("SELECT query_id, result_json FROM results ORDER BY rowid")
        for query_id, result_json in rows:
            yield query_id, result_json.encode()

    def ids(self) -> tuple[str, ...]:
        with self._errors() as raw:
            return tuple(row[0] for row in raw.execute("SELECT query_id FROM results ORDER BY rowid"))

    def add(self, query_id: str, result_json: bytes) -> None:
        """Add a result; when this returns, it is kept. One of a session before is replaced."""
        with self._transaction() as raw:
            if self.get("session") != self.session:
                raise InputError(
                    "another process has stored this run, or goes on with it; nothing is recorded here"
                )
            if raw.execute(_ADD, (query_id, result_json.decode(), self.session)).rowcount != 1:
                name, run = printable(query_id), printable(self.get("run_id") or "")
                raise RecordedTwice(f"query '{name}' is recorded twice in run {run}")

    def mark_for_repeat(self, query_id: str) -> None:
        """Have the query recorded again, by a test that runs again, or if the run is resumed."""
        with self._transaction() as raw:
            raw.execute("UPDATE results SET again = 1 WHERE query_id = ?", (query_id,))

    # -- tests ---------------------------------------------------------------------------------------

    def test_begins(self, test: str, worker: str, query_id: str | None, query: str | None) -> None:
        with self._transaction() as raw:
            raw.execute("INSERT OR REPLACE INTO begun VALUES (?, ?, ?, ?)", (test, worker, query_id, query))

    def test_skipped(self, test: str) -> None:
        with self._transaction() as raw:
            raw.execute("DELETE FROM begun WHERE test = ?", (test,))

    def begun(self, test: str) -> Begun | None:
        with self._errors() as raw:
            row = raw.execute("SELECT query_id, query FROM begun WHERE test = ?", (test,)).fetchone()
        return Begun(*row) if row else None

    def lose(self, worker: str, error: str) -> None:
        """A worker died: the queries of its tests that have no result raised this error."""
        with self._transaction() as raw:
            raw.execute(
                "INSERT OR IGNORE INTO raised SELECT query_id, query, ? FROM begun WHERE worker = ?"
                " AND query_id IS NOT NULL AND query_id NOT IN (SELECT query_id FROM results)",
                (error, worker),
            )

    def test_raised(self, query_id: str, query: str, error: str) -> None:
        with self._transaction() as raw:
            raw.execute("INSERT OR REPLACE INTO raised VALUES (?, ?, ?)", (query_id, query, error))

    def raised(self) -> list[tuple[str, str, str]]:
        """Query, text and error of the tests that raised and recorded nothing."""
        query = "SELECT * FROM raised WHERE query_id NOT IN (SELECT query_id FROM results) ORDER BY rowid"
        with self._errors() as raw:
            return raw.execute(query).fetchall()

    # -- the end -------------------------------------------------------------------------------------

    @contextmanager
    def sealed(self) -> Iterator[None]:
        """Within it nobody adds a result: what is there is about to be stored."""
        self.set("session", "stored")
        try:
            yield
        except BaseException:
            with suppress(StoreError):
                self.set("session", self.session)
            raise

    @property
    def kept(self) -> str:
        """What is to be said when a recording ends before its time; empty if nothing is kept."""
        with suppress(StoreError):
            return f"{self.whereabouts}, and {_RESUME}" if self.path and len(self) else ""
        return f"what was recorded is in {self._shown}, and {_RESUME}"  # a full disk lets nobody read it

    @property
    def whereabouts(self) -> str:
        results = "the 1 result so far is" if len(self) == 1 else f"the {len(self)} results so far are"
        return f"{results} in {self._shown}"

    def close(self) -> None:
        self._is_closed = True
        found = self._connections.pop(os.getpid(), None)
        if found is not None:
            found.close()

    def remove(self) -> None:
        """Remove the file: the run is stored, or there is nothing to store."""
        self.close()
        for ending in ("", "-wal", "-shm", "-journal") if self.path else ():
            with suppress(OSError):
                Path(f"{self.path}{ending}").unlink()


def _changes(old: Head, new: Head) -> str:
    """What differs, in words; empty if nothing does."""
    if (old.run_id, old.store) != (new.run_id, new.store):
        return f"it is run '{printable(old.run_id)}' of another database"
    if old.suite != new.suite:
        return f"its suite is '{brief(old.suite)}', not '{brief(new.suite)}'"
    if old.commit_hash and new.commit_hash and old.commit_hash != new.commit_hash:
        begun, now = printable(old.commit_hash), printable(new.commit_hash)
        return f"it was begun at commit {begun}, and this is commit {now}"
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
