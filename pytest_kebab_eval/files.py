"""Writing files whole or not at all; a device or a pipe is written to and never replaced.

A file is written beside its path, under a hidden name that nobody can guess (`.PID-RANDOM-NAME`), and renamed
when it is complete. What a killed process left is removed, after an hour, when that file is next written.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from pytest_kebab_eval.limits import ABANDONED_AFTER_S, PIPE_READER_S
from pytest_kebab_eval.text import pattern, printable

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK = getattr(os, "O_NONBLOCK", 0)
_LONGEST_NAME = 255  # bytes, on most file systems
_OPEN_FILE = pattern(r"(?:/proc/(\d+)(?:/task/\d+)?|/dev)/fd/(\d+)")


def exists(path: Path) -> bool:
    """Whether there is something; False also where that cannot be known, and `Path.exists` might raise."""
    return os.path.exists(path)  # noqa: PTH110


def has_name_in_other_case(path: Path) -> bool:
    """Whether what is there is named `PR-1`, where the path says `pr-1`, as can be on Windows and macOS."""
    return exists(path) and all(entry.name != path.name for entry in path.parent.iterdir())


def same_file(path: Path, other: Path) -> bool:
    """Whether two paths lead to one file, which need not be there; False if there is no working directory."""
    try:
        return os.path.realpath(path) == os.path.realpath(other)
    except OSError:
        return False


@contextmanager
def replacing(
    path: Path, *, follow_link: bool = True, to_error: Callable[[OSError], Exception] | None = None
) -> Iterator[TextIO]:
    """Give a new text file to write to; it replaces the path unless the block raises.

    A link stays, and what it leads to is replaced; without `follow_link` it is refused. `to_error` makes the
    error to raise if the path cannot be written to.
    """
    with _errors_as(to_error):
        file, new, target = _start(path, follow_link=follow_link)
    try:
        yield file
        with _errors_as(to_error):
            file.close()
            if new is not None:
                new.replace(target)
    finally:
        with suppress(OSError):
            file.close()
        if new is not None:
            _remove(new)


def write_whole(path: Path, parts: Iterable[str], *, follow_link: bool = True) -> None:
    """Write the parts to the path; if the process is stopped midway, the old file is still there."""
    with replacing(path, follow_link=follow_link) as file:
        file.writelines(parts)


def append(path: Path, text: str) -> None:
    """Add text to a file, or write it to a device or a pipe."""
    with _open_stream(path) if is_stream(path) else path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(text)


@contextmanager
def creating(path: Path) -> Iterator[Path]:
    """Give a new, empty file; it gets the path's name unless the block raises.

    If another process took the name meanwhile, that is a `FileExistsError`.
    """
    target = Path(os.path.realpath(path))
    new, descriptor = _new_file(target, 0o666)
    try:
        yield new
        _take_name(new, target)
    finally:
        os.close(descriptor)
        _remove(new)


def _take_name(new: Path, target: Path) -> None:
    try:
        os.link(new, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        new.rename(target)


@contextmanager
def _errors_as(to_error: Callable[[OSError], Exception] | None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise to_error(error) if to_error else error from None


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


# -- new files -------------------------------------------------------------------------------------


def _start(path: Path, *, follow_link: bool) -> tuple[TextIO, Path | None, Path]:
    """The file to write to, its path if it is a new one, and the path that it is to replace."""
    if not follow_link and path.is_symlink():
        name = printable(path.name)
        raise OSError(errno.ELOOP, f"{name} is a link, which is not written through; remove the link")
    if is_stream(path):
        return _open_stream(path), None, path
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    old = target.stat() if target.exists() else None
    new, descriptor = _new_file(target, stat.S_IMODE(old.st_mode) if old else 0o666)
    if old:
        _copy_access(old, descriptor)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="\n"), new, target


def _copy_access(old: os.stat_result, descriptor: int) -> None:
    """Give a new file the owner and the permissions of the one that it replaces, as far as we may."""
    if hasattr(os, "fchown") and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(OSError):
            os.fchown(descriptor, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        with suppress(OSError):
            os.fchmod(descriptor, stat.S_IMODE(old.st_mode))


def _new_file(target: Path, mode: int) -> tuple[Path, int]:
    """A new file beside the target; its name leads nowhere that was planted."""
    remove_leftovers(target)
    new = target.with_name(f".{os.getpid()}-{os.urandom(8).hex()}-{_tail(target.name)}")
    return new, os.open(new, _NEW, mode)


def _tail(name: str) -> str:
    """The end of a name, so short that there is room for what is put before it."""
    return os.fsdecode(os.fsencode(name)[-(_LONGEST_NAME - 40) :])


# -- what killed processes left --------------------------------------------------------------------


def remove_leftovers(path: Path) -> None:
    """Remove the new files of processes that were killed before they could replace the path."""
    leftover = re.compile(
        rf"\.(\d+)-[0-9a-f]{{16}}-{re.escape(_tail(path.name))}(?:-journal|-wal|-shm)?"  # SQLite's own, too
    )
    with suppress(OSError), os.scandir(path.parent) as entries:
        for entry in entries:
            if leftover.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):
                    if time.time() - entry.stat(follow_symlinks=False).st_mtime > ABANDONED_AFTER_S:
                        _remove(Path(entry.path))


# -- devices, pipes, open files --------------------------------------------------------------------


def is_stream(path: Path) -> bool:
    """Whether the path is a device, a pipe or an open file such as `/dev/stdout`: nothing to be replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or _open_file(path) is not None


def _open_file(path: Path) -> re.Match[str] | None:
    """Where the path leads to a file that a process has open: `/proc/123/fd/1`."""
    for _ in range(40):  # links, as the system has it
        path = Path(os.path.realpath(path.parent), path.name)
        match = _OPEN_FILE.fullmatch(str(path))
        if match or not path.is_symlink():
            return match
        path = path.parent / path.readlink()
    return None


def _open_stream(path: Path) -> TextIO:
    """The stream itself; one of our own is not opened again, since that would start at its beginning."""
    match = _open_file(path)
    if match and match[1] in (None, str(os.getpid())):
        descriptor = os.dup(int(match[2]))
    else:
        descriptor = _open_pipe(path) if path.is_fifo() else os.open(path, os.O_WRONLY | os.O_APPEND)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")


def _open_pipe(path: Path) -> int:
    """Open a pipe once somebody reads from it, but do not wait for that forever."""
    until = time.monotonic() + PIPE_READER_S
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | _NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > until:
                raise OSError(errno.ENXIO, "nobody reads from this pipe") from None
            time.sleep(0.02)
        else:
            os.set_blocking(descriptor, True)
            return descriptor
