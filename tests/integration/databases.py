"""Databases that another program holds, or that may not be written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, begin: str) -> Iterator[None]:
    """Another program has a transaction open."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(begin)
        yield


def write_protect(path: Path) -> None:
    """Mark a database as read-only in its header, which binds root, too: byte 18 is the write version."""
    content = bytearray(path.read_bytes())
    content[18] = 3
    path.write_bytes(content)
