"""A PostgreSQL server on a local socket, with the runs of an SQLite file in it."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import make_tables, to_address, write_run

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the server of the tests

from tests.postgres_server import PostgresServer, find_programs


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


def fill(db: str, path: Path) -> None:
    """Copy all runs of an SQLite file."""
    address = to_address(db)
    make_tables(address)
    with closing(sqlite3.connect(path)) as connection:
        runs = "SELECT run_id, suite, config_snapshot_json, commit_hash, created_at FROM eval_runs"
        for run_id, suite, config, commit, created_at in connection.execute(runs).fetchall():
            rows = connection.execute(
                "SELECT query_id, result_json FROM eval_query_results WHERE run_id = ?", (run_id,)
            )
            run = Run(run_id, suite, json.loads(config), commit, created_at)
            write_run(address, run, ((query_id, text.encode()) for query_id, text in rows))
    import psycopg

    with psycopg.connect(db, autocommit=True) as server:
        server.execute("VACUUM ANALYZE")
