"""Writing files whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, to_error: Callable[[OSError], Exception] | None = None) -> Iterator[Path]:
    """Give a new file beside the path to write to; it replaces the path unless the block raises.

    `to_error` makes the error to raise if the path cannot be replaced.
    """
    new = path.with_name(f".{os.getpid()}-{path.name}")  # keeps the ending, since it may decide the format
    try:
        yield new
        try:
            new.replace(path)
        except OSError as error:
            raise to_error(error) if to_error else error from None
    finally:
        with suppress(OSError):
            new.unlink()


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """Write the parts to the path; if the process is stopped midway, the old file is still there."""
    with replacing(path) as new, new.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)
