"""Makes a chosen system call fail, or kills the process at it.

Calls are counted where Python makes them: functions of `os`, `open` and what is written to the files that it
opens, `sqlite3.connect` and the statements of its connections. Only calls on paths under a root count. Two
faults are of the system: `size`, a limit on how large any file may become (which SQLite meets in the middle
of a transaction), and `page`, a limit on the pages of a database. With Python 3.10, calls that pathlib makes
are not counted.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import signal
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT, FAULT, LOG = "KEBAB_FAULTS_ROOT", "KEBAB_FAULTS_FAULT", "KEBAB_FAULTS_LOG"  # environment variables
ON_PATHS = ("open", "replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link", "truncate")
ON_DESCRIPTORS = ("write", "fsync", "fdatasync")
CALLS = (*ON_PATHS, *ON_DESCRIPTORS, "connect", "sql")
LIMITS = ("size", "page")
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.EMFILE, errno.EROFS, errno.EDQUOT)


class Fault(NamedTuple):
    """What is to happen at the n-th call of a kind; at every later one too, if it is lasting.

    Of a limit, `number` is the limit: bytes, or pages beyond those that there are.
    """

    call: str
    number: int
    kill: bool = False
    error: int = errno.EIO
    lasting: bool = False

    def __str__(self) -> str:
        what = "killed" if self.kill else errno.errorcode[self.error]
        return f"{self.call} {self.number}: {what}{', and later ones' if self.lasting else ''}"


class Injector:
    """Counts calls, and lets the fault happen."""

    def __init__(self, root: Path, fault: Fault | None = None, log: Path | None = None) -> None:
        self._root = os.path.realpath(root) + os.sep
        self._fault = fault
        self._counts = dict.fromkeys(CALLS, 0)
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT) if log else None
        self._os_write = os.write
        self._undo: list[tuple[Any, str, Any]] = []

    # -- installing ------------------------------------------------------------------------------

    def install(self) -> None:
        """From now on, in this process."""
        for name in ON_PATHS:
            self._wrap(os, name, self._on_path(name, getattr(os, name)))
        for name in ON_DESCRIPTORS:
            if hasattr(os, name):
                self._wrap(os, name, self._on_path(name, getattr(os, name)))
        opened = self._open(io.open)
        self._wrap(io, "open", opened)
        self._wrap(builtins, "open", opened)
        self._wrap(sqlite3, "connect", self._connect(sqlite3.connect))
        if self._fault and self._fault.call == "size":
            self._limit_size(self._fault)

    def restore(self) -> None:
        """Undo that."""
        while self._undo:
            setattr(*self._undo.pop())

    def _wrap(self, module: Any, name: str, wrapper: Any) -> None:
        self._undo.append((module, name, getattr(module, name)))
        setattr(module, name, wrapper)

    @staticmethod
    def _limit_size(fault: Fault) -> None:
        import resource

        # Python ignores the signal, so that a write beyond the limit fails; by default it is deadly.
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if fault.kill else signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.number, resource.RLIM_INFINITY))

    # -- calls -----------------------------------------------------------------------------------

    def reached(self, call: str) -> bool:
        """Count a call; whether it is the one to fail."""
        self._counts[call] += 1
        if self._log is not None:
            self._os_write(self._log, f"{call}\n".encode())
        fault = self._fault
        if fault is None or fault.call != call:
            return False
        number = self._counts[call]
        return number == fault.number or (fault.lasting and number > fault.number)

    def strike(self, path: str | None = None) -> None:
        """Let the fault happen."""
        assert self._fault is not None
        if self._fault.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(self._fault.error, os.strerror(self._fault.error), path)

    def is_ours(self, path: Any) -> bool:
        """Whether a path or a descriptor is of a file under the root."""
        with suppress(OSError, TypeError, ValueError):
            name = (
                str(Path(f"/proc/self/fd/{path}").readlink()) if isinstance(path, int) else os.fsdecode(path)
            )
            return (os.path.abspath(name) + os.sep).startswith(self._root)  # noqa: PTH100
        return False

    def _on_path(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(path: Any, *args: Any, **more: Any) -> Any:
            if self.is_ours(path) and self.reached(name):
                self.strike(str(path))
            return call(path, *args, **more)

        return wrapper

    def _open(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(file: Any, mode: str = "r", buffering: int = -1, *args: Any, **more: Any) -> Any:
            if not self.is_ours(file):
                return call(file, mode, buffering, *args, **more)
            if not isinstance(file, int) and self.reached("open"):
                self.strike(str(file))
            if not set(mode) & set("wax+"):
                return call(file, mode, buffering, *args, **more)
            return _opened(self, file, mode, buffering, *args, **more)

        return wrapper

    def _connect(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(database: Any, *args: Any, **more: Any) -> Any:
            path = str(database).removeprefix("file://").partition("?")[0]
            if not self.is_ours(path):
                return call(database, *args, **more)
            if self.reached("connect"):
                self.strike_sql("unable to open database file")
            connection = call(database, *args, **{"factory": _Connection, **more})
            connection.injector = self
            if self._fault and self._fault.call == "page":
                _limit_pages(connection, self._fault.number)
            return connection

        return wrapper

    def strike_sql(self, message: str) -> None:
        """Let the fault happen to a statement."""
        with suppress(OSError):
            self.strike()
        raise sqlite3.OperationalError(message)


class _Connection(sqlite3.Connection):
    injector: Injector | None = None

    def execute(self, *args: Any) -> sqlite3.Cursor:
        if self.injector and self.injector.reached("sql"):
            self.injector.strike_sql("disk I/O error")
        return super().execute(*args)

    def executemany(self, *args: Any) -> sqlite3.Cursor:
        if self.injector and self.injector.reached("sql"):
            self.injector.strike_sql("disk I/O error")
        return super().executemany(*args)


def _limit_pages(connection: sqlite3.Connection, more: int) -> None:
    with suppress(sqlite3.Error):
        (count,) = sqlite3.Connection.execute(connection, "PRAGMA page_count").fetchone()
        count = count.decode() if isinstance(count, bytes) else count
        sqlite3.Connection.execute(connection, f"PRAGMA max_page_count = {int(count) + more}")


class _Raw(io.FileIO):
    """A file whose writes are counted; the one that fails writes half of what it was given."""

    injector: Injector

    def write(self, data: Any) -> int:
        """Write, or fail halfway."""
        if self.injector.reached("write"):
            super().write(bytes(data)[: len(data) // 2])
            self.injector.strike()
        return super().write(data) or 0


def _opened(
    injector: Injector,
    file: Any,
    mode: str,
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """What `open` returns for a file to write to, made of a raw file of ours."""
    raw = _Raw(file, "".join(set(mode) - set("bt")), closefd, opener)
    raw.injector = injector
    if buffering == 0:
        return raw
    size = io.DEFAULT_BUFFER_SIZE if buffering < 2 else buffering
    buffered: Any = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
    return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


# -- other processes -----------------------------------------------------------------------------


def environment(root: Path, fault: Fault | None, log: Path | None) -> dict[str, str]:
    """What makes `sitecustomize` install an injector in every Python that is started."""
    return {ROOT: str(root), FAULT: json.dumps(fault), LOG: str(log or "")}


def install_from_environment() -> None:
    """Install what the environment asks for."""
    if ROOT in os.environ:
        fault = json.loads(os.environ[FAULT])
        log = os.environ[LOG]
        Injector(
            Path(os.environ[ROOT]), Fault(*fault) if fault else None, Path(log) if log else None
        ).install()
