"""`python -m fuzzing.crowd`: many gates and recorders on one PostgreSQL database at once.

Each gate, in a process of its own, compares two of the stored runs at random and stores both aggregates. Each
recorder records one run after the other, some with the chunks of an index, some stopped half-way. Meanwhile
one process tags runs, and another prunes all but the newest. In the end there must be no deadlock on the
server, no error anywhere but of a run that was pruned, every run whole that was said to be stored and not to
be removed, no other run, every aggregate that of its run, and no tag without its run. Exits with 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval import InputError, RunRecorder, compute_aggregate
from pytest_kebab_eval.evaluate import evaluate, store
from pytest_kebab_eval.scoring.aggregates import aggregate_json
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import backend_of, open_database, to_address
from pytest_kebab_eval.store.moving import find_prunable, set_tag
from tests.builders import write_golden

QUERIES = 20
CHUNKS = 40
_AT_THE_START = ("first", "second", "third")
_UNFINISHED, _WITH_CHUNKS = 0.2, 0.1  # of the recordings
_KEPT = 40  # the newest runs, which are not pruned


class Job(NamedTuple):
    """What a process has to do."""

    db: str
    golden: Path
    until: float
    number: int


class Done(NamedTuple):
    """What a process did."""

    kind: str
    times: int
    stored: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


# -- one process -----------------------------------------------------------------------------------


def _times(until: float) -> Iterator[int]:
    """1, 2, … until the time is over; at least once, however long the process took to start."""
    yield 1
    number = 1
    while time.time() < until:
        number += 1
        yield number


def gate(job: Job) -> Done:
    """Compare and store until the time is over."""
    choose, count, errors = random.Random(job.number), 0, []
    address = to_address(job.db)
    for _ in _times(job.until):
        try:
            with open_database(address) as database:
                runs = sorted(run.run_id for run in database.runs())
            a, b = choose.sample(runs[: choose.choice((3, len(runs)))], 2)  # often the same few
            settings = Settings(a, b, address, address, job.golden)
            store(settings, evaluate(settings))
            count += 1
        except Exception as error:  # noqa: BLE001  whatever it is, it is wrong
            if not _is_gone(job.db, a, b):
                errors.append(f"gate {job.number}: {type(error).__name__}: {error}")
    return Done("gates", count, (), tuple(errors))


def _is_gone(db: str, *run_ids: str) -> bool:
    """Whether one of these was removed, so that who wanted it had to fail."""
    with open_database(to_address(db)) as database:
        return not all(map(database.has_run, run_ids))


def pruner(job: Job) -> Done:
    """Remove old runs until the time is over."""
    address, removed, errors, number = to_address(job.db), [], [], 0
    for number in _times(job.until):  # noqa: B007
        try:
            old = [run.run_id for run in find_prunable(address, _KEPT).to_remove]
            with suppress(InputError):  # one was tagged meanwhile
                backend_of(address).remove_runs(old)
                removed += old
            backend_of(address).give_back_room()
            time.sleep(0.5)
        except Exception as error:  # noqa: BLE001  as above
            errors.append(f"pruner {job.number}: {type(error).__name__}: {error}")
    return Done("pruners", number, (), tuple(errors), tuple(removed))


def tagger(job: Job) -> Done:
    """Tag runs, old ones as well, until the time is over."""
    choose, address, errors, number = random.Random(job.number), to_address(job.db), [], 0
    for number in _times(job.until):  # noqa: B007
        run_id = ""
        try:
            with open_database(address) as database:
                run_id = choose.choice(sorted(run.run_id for run in database.runs()))
            set_tag(address, f"tag-{choose.randrange(5)}", run_id)
            time.sleep(0.05)
        except Exception as error:  # noqa: BLE001  as above
            if not _is_gone(job.db, run_id):
                errors.append(f"tagger {job.number}: {type(error).__name__}: {error}")
    return Done("taggers", number, (), tuple(errors))


def recorder(job: Job) -> Done:
    """Record until the time is over."""
    choose, stored, errors, number = random.Random(job.number), [], [], 0
    for number in _times(job.until):
        run_id = f"run-{job.number}-{number:05}"
        try:
            if _record(job.db, run_id, choose):
                stored.append(run_id)
        except Exception as error:  # noqa: BLE001  as above
            errors.append(f"recorder {job.number}: {type(error).__name__}: {error}")
    return Done("recorders", number, tuple(stored), tuple(errors))


class _Stopped(Exception):
    """The retriever gave up half-way."""


def _record(db: str, run_id: str, choose: random.Random) -> bool:
    """Record a run; False if it was stopped, and nothing of it may be there."""
    is_stopped = choose.random() < _UNFINISHED
    chunks = _chunks(choose) if choose.random() < _WITH_CHUNKS else None
    with suppress(_Stopped):
        with _recorder(db, run_id, chunks) as run:
            for number in range(QUERIES):
                run.record(f"q{number:03}", _hits(choose, number), elapsed_ms=choose.randrange(500))
                if is_stopped and number == QUERIES // 2:
                    raise _Stopped
        return True
    return False


def _recorder(db: str, run_id: str, chunks: list[dict[str, Any]] | None = None) -> RunRecorder:
    config = {"chunker_version": "v1"}
    run = RunRecorder(db, suite="crowd", config=config, run_id=run_id, commit_hash="", chunks=chunks)
    run.keeps_unfinished = False
    return run


def _hits(choose: random.Random, number: int) -> list[str]:
    found = [f"c{choose.randrange(CHUNKS)}" for _ in range(5)]
    return list(dict.fromkeys([*found, f"c{number}"] if choose.random() < 0.7 else found))


def _chunks(choose: random.Random) -> list[dict[str, Any]]:
    numbers = choose.sample(range(CHUNKS), CHUNKS)  # in an order of its own: rows are locked in that order
    return [
        {
            "chunk_id": f"c{number}",
            "doc_id": f"d{number % 7}",
            "path": f"d{number % 7}.md",
            "start": 1,
            "end": 9,
        }
        for number in numbers
    ]


# -- all of them -----------------------------------------------------------------------------------


def crowd(
    db: str, directory: Path, *, seconds: float, gates: int, recorders: int
) -> tuple[list[Done], list[str]]:
    """Let them run, and say what they did and what is wrong."""
    backend_of(to_address(db)).make_tables()
    golden = write_golden(
        directory / "golden.yaml",
        [{"id": f"q{n:03}", "query": "?", "expected_chunk_ids": [f"c{n}"]} for n in range(QUERIES)],
    )
    choose = random.Random(0)
    for run_id in _AT_THE_START:
        with _recorder(db, run_id) as run:
            for number in range(QUERIES):
                run.record(f"q{number:03}", _hits(choose, number))
    deadlocks = _deadlocks(db)
    for run_id in _AT_THE_START:
        set_tag(to_address(db), f"keep-{run_id}", run_id)
    done = _run_all(db, golden, seconds, [gate] * gates + [recorder] * recorders + [pruner, tagger])
    wrong = [error for result in done for error in result.errors]
    if _deadlocks(db) != deadlocks:
        wrong.append(f"the server found {_deadlocks(db) - deadlocks} deadlocks")
    expected = {*_AT_THE_START, *(run_id for result in done for run_id in result.stored)}
    expected -= {run_id for result in done for run_id in result.removed}
    return done, [*wrong, *wrong_runs(db, expected), *wrong_tags(db), *wrong_aggregates(db, golden)]


def _run_all(db: str, golden: Path, seconds: float, kinds: Sequence[Callable[[Job], Done]]) -> list[Done]:
    context = multiprocessing.get_context("spawn")
    until = time.time() + seconds + 0.2 * len(kinds)  # while the last ones start
    with context.Pool(len(kinds)) as pool:
        jobs = [
            pool.apply_async(kind, (Job(db, golden, until, number),)) for number, kind in enumerate(kinds)
        ]
        return [job.get(timeout=seconds + 120) for job in jobs]


def _deadlocks(db: str) -> int:
    import psycopg

    with psycopg.connect(db, autocommit=True) as connection:
        row = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        (count,) = row.fetchone() or (0,)
        return int(count)


def wrong_runs(db: str, expected: set[str]) -> Iterator[str]:
    """Runs that are lost, not whole, or should not be there."""
    with open_database(to_address(db)) as database:
        counts = database.result_counts()
        there = {run.run_id for run in database.runs()}
    yield from (f"run {run_id} is lost" for run_id in sorted(expected - there))
    yield from (f"run {run_id} was not to be stored" for run_id in sorted((there | counts.keys()) - expected))
    for run_id in sorted(there & expected):
        if counts.get(run_id) != QUERIES:
            yield f"run {run_id} has {counts.get(run_id)} of {QUERIES} results"


def wrong_tags(db: str) -> Iterator[str]:
    """Tags whose run is not there: one that is tagged is not removed, and one that is removed not tagged."""
    with open_database(to_address(db)) as database:
        for name, run_id in database.tags().items():
            if not database.has_run(run_id):
                yield f"the tag {name} names {run_id}, which is not there"


def wrong_aggregates(db: str, golden: Path) -> Iterator[str]:
    """Aggregates that are not those of their runs; runs that nobody judged have none."""
    with open_database(to_address(db)) as database:
        stored = {run.run_id: database.stored_aggregate(run.run_id) for run in database.runs()}
    for run_id, aggregate in sorted(stored.items()):
        if aggregate and aggregate != _computed(run_id, db, golden):
            yield f"the aggregate of run {run_id} is not its own"
    if not any(stored.values()):
        yield "no aggregate was stored"


def _computed(run_id: str, db: str, golden: Path) -> Any:
    return msgspec.json.decode(aggregate_json(compute_aggregate(run_id, db=db, golden=golden)))


# -- the command -----------------------------------------------------------------------------------


@contextmanager
def _server(db: str | None) -> Iterator[str]:
    """The database that is given, or one on a server of its own."""
    from tests.stores import PostgresServer, find_programs

    if db is not None:
        yield db
        return
    programs = find_programs()
    if programs is None:
        raise InputError("no PostgreSQL server is installed here; name an empty database with --db")
    server = PostgresServer(programs)
    try:
        server.make()
        yield server.address
    finally:
        server.remove()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--gates", type=int, default=16)
    parser.add_argument("--recorders", type=int, default=4)
    parser.add_argument("--db", help="an empty database (default: a server of its own)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory, _server(given.db) as db:
        done, wrong = crowd(
            db, Path(directory), seconds=given.seconds, gates=given.gates, recorders=given.recorders
        )
    for kind in ("gates", "recorders", "pruners", "taggers"):
        counts = [result.times for result in done if result.kind == kind]
        least, most = min(counts, default=0), max(counts, default=0)
        print(f"{len(counts)} {kind}: {sum(counts)} in all, {least} to {most} each")
    stored, removed = (sum(len(getattr(result, name)) for result in done) for name in ("stored", "removed"))
    print(f"runs stored: {stored}; removed: {removed}; wrong: {len(wrong)}")
    for problem in wrong[:20]:
        print(f"  {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
