"""A PostgreSQL server on a local socket, with the runs of an SQLite file in it."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from commands import KEBAB_EVAL
from measuring import run

from pytest_kebab_eval.store import backend_of, to_address
from pytest_kebab_eval.store.database import CORPUS_TABLES

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
    """Copy runs and the index of an SQLite file.

    Runs are copied by another process, for the memory of this one counts as a command's.
    """
    import psycopg

    backend_of(to_address(db)).make_tables()
    for name in runs:
        exported = f"{name}.jsonl"
        run(KEBAB_EVAL, "export", name, exported, f"--db={path.name}", cwd=path.parent)
        run(KEBAB_EVAL, "import", "kebab", f"--results={exported}", f"--db={db}", cwd=path.parent)
    with psycopg.connect(db, autocommit=True) as server, closing(sqlite3.connect(path)) as file:
        for table in CORPUS_TABLES:
            with server.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                for row in file.execute(f"SELECT * FROM {table}"):
                    copy.write_row(row)
        server.execute("VACUUM ANALYZE")
