"""Files, written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path, failed: Callable[[OSError], Exception] | None = None) -> Iterator[Path]:
    """A new file beside the path, to be written to, which takes its place if all went well.

    `failed` puts into words that it could not take it.
    """
    beside = path.with_name(f".{os.getpid()}-{path.name}")  # with its ending, which may say the format
    try:
        yield beside
        try:
            beside.replace(path)
        except OSError as error:
            raise failed(error) if failed else error from None
    finally:
        with suppress(OSError):
            beside.unlink()


def write_whole(path: Path, parts: Iterable[str]) -> None:
    """The whole file or none of it, also when something stops us midway."""
    with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)
