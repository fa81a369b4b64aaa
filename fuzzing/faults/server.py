"""`python -m fuzzing.faults.server --kills 100`: kills of recorders into PostgreSQL, each of which goes on.

A server is started for it, with a directory of its own. Each recorder is killed at a write to what it keeps,
or at any moment, and then goes on; the run must be, byte for byte, that of one that was never killed.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from fuzzing.faults import children
from fuzzing.faults.injecting import Fault
from fuzzing.faults.scenarios import RECORDED, Scenario, record_into
from pytest_kebab_eval.store import backend_of, to_address
from tests.stores import PostgresServer, PostgresStore, Store, find_programs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzzing.faults.server", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--db", help="a database with the tables, instead of a server that is started")
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory, _server(given.db) as store:
        if store is None:
            print("no PostgreSQL server: neither initdb nor pg_ctl is installed, or psycopg is missing")
            return 0
        killed, unfinished, problems = run_kills(store, Path(directory), given.kills, given.seed)
    found = f"{killed} killed, {unfinished} of them with results kept, {len(problems)} problems"
    print(f"PostgreSQL, seed {given.seed}: {found}")
    print(*problems, sep="\n")
    return 1 if problems else 0


@contextmanager
def _server(db: str | None) -> Iterator[Store | None]:
    if db:
        yield PostgresStore(db)
        return
    programs = find_programs()
    try:
        import psycopg  # noqa: F401
    except ImportError:
        programs = None
    if programs is None:
        yield None
        return
    server = PostgresServer(programs)
    try:
        server.make()
        backend_of(to_address(server.address)).make_tables()
        yield PostgresStore(server.address)
    finally:
        server.remove()


def run_kills(store: Store, directory: Path, kills: int, seed: int) -> tuple[int, int, list[str]]:
    """Record until so many were killed: how many that are, how many had kept results, what was wrong."""
    choose = random.Random(seed)
    for name in ("work", "tmp"):
        (directory / name).mkdir()
    whole = children.run(_recorder(store, "whole"), directory)
    expected = _stored(store, "whole")
    problems = (
        [] if len(expected) == RECORDED + 1 else [f"the run is not whole without a kill: {whole.output}"]
    )
    killed = unfinished = 0
    numbers = count()
    while killed < kills:
        run_id = f"killed-{next(numbers)}"
        ended = _kill(_recorder(store, run_id), directory, choose, whole.seconds)
        kept = (directory / "work" / f"kebab-eval.{run_id}.unfinished").exists()
        killed, unfinished = killed + (ended.code < 0), unfinished + kept
        again = children.run(_recorder(store, run_id), directory)
        if _stored(store, run_id) != expected or (again.code and ended.code and kept):
            problems.append(f"{run_id}: the finished run is not that of one never killed: {again.output}")
        if any((directory / "work").iterdir()):
            problems.append(f"{run_id}: something is left behind")
    return killed, unfinished, problems


def _recorder(store: Store, run_id: str) -> Scenario:
    return Scenario(run_id, lambda: None, partial(record_into, store.db, run_id), (1,))


def _kill(scenario: Scenario, directory: Path, choose: random.Random, seconds: float) -> children.Ended:
    if choose.random() < 0.5:
        return children.run(scenario, directory, kill_after=choose.uniform(0, seconds))
    return children.run(scenario, directory, Fault("write", choose.randint(1, RECORDED), kill=True))


def _stored(store: Store, run_id: str) -> list[tuple[Any, ...]]:
    """A run as it is stored, but for its id and its time."""
    run = f"WHERE run_id = '{run_id}'"
    results = f"SELECT query_id, result_json FROM eval_query_results {run} ORDER BY query_id"
    runs = f"SELECT suite, config_snapshot_json, aggregate_json, commit_hash FROM eval_runs {run}"
    return [*store.rows(runs), *store.rows(results)]


if __name__ == "__main__":
    sys.exit(main())
