"""A PostgreSQL server on a local socket, with the runs of an SQLite file in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from commands import KEBAB_EVAL
from measuring import run

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server of the tests

from tests.stores import PostgresServer, find_programs


@contextmanager
def local_database() -> Iterator[str | None]:
    """The address of an empty database; None where no server or no psycopg is installed."""
    programs = find_programs()
    if programs is None or not _has_psycopg():
        yield None
        return
    server = PostgresServer(programs)
    try:
        server.make()
        yield server.address
    finally:
        server.remove()


def _has_psycopg() -> bool:
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return False
    return True


def fill(db: str, path: Path, runs: Sequence[str]) -> None:
    """Copy runs of an SQLite file; in another process, for the memory of this one counts as a command's."""
    import psycopg

    for command in (("store", "init", "--db", db), ("copy", *runs, "--from", path.name, "--to", db)):
        run(KEBAB_EVAL, *command, cwd=path.parent)
    with psycopg.connect(db, autocommit=True) as server:
        server.execute("VACUUM ANALYZE")
