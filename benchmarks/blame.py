"""How long `kebab-eval blame` takes, against merely reading and decoding the results of all runs once.

python benchmarks/blame.py [DIRECTORY] --runs 200 --queries 1000

CPU and wall seconds within one process, the best of five; what is compared is measured in turns, since
machines are shared. 200 runs of 1,000 queries take 2 GB of disk. The results are those of benchmarks/site.py:
from run to run, one query in ten finds something else.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from generate import golden_yaml
from many_runs import Runs

from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.history.blame import Blame, walk_suite, watched_queries
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import open_database

REPEATS = 5


def read_all(path: Path) -> int:
    """Read and decode every result once."""
    with open_database(path) as database:
        return sum(1 for run in database.runs() for _ in database.results(run.run_id))


def blame(settings: Settings, golden: GoldenSet, count: int) -> list[Blame]:
    """What the command does, for the first queries."""
    watched = watched_queries(golden, [query.id for query in golden.queries[:count]])
    with walk_suite(settings, golden) as walk:
        return walk.blame(watched)


class Taken(NamedTuple):
    """The time of the fastest of a few calls."""

    cpu: float
    wall: float

    def __str__(self) -> str:
        return f"{self.cpu:7.2f} s of CPU, {self.wall:7.2f} s"


def in_turns(works: Sequence[Callable[[], object]]) -> list[Taken]:
    """The time of each, the best of a few."""
    taken = [[timed(work) for work in works] for _ in range(REPEATS)]
    return [Taken(*map(min, zip(*times, strict=True))) for times in zip(*taken, strict=True)]


def timed(work: Callable[[], object]) -> Taken:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Taken(time.process_time() - cpu, time.perf_counter() - wall)


def main(directory: Path, runs: int, queries: int) -> None:
    """Print each time, and how many times that of reading once it is."""
    path, golden_file = directory / "kebab.sqlite", directory / "golden.yaml"
    golden_file.write_text("".join(golden_yaml(queries)), encoding="utf-8")
    Runs(path, queries).add(runs)
    golden = load_golden_set(golden_file)
    settings = Settings(run_a=None, run_b="latest", db_a=path, db_b=path, golden=golden_file)
    counts = (queries, queries // 10, 1)
    blames = [partial(blame, settings, golden, count) for count in counts]
    reading, *taken = in_turns([partial(read_all, path), *blames])
    print(f"reading {runs * queries:,} results once   {reading}")
    for count, times in zip(counts, taken, strict=True):
        ratio = f"{times.cpu / reading.cpu:.2f} x of CPU, {times.wall / reading.wall:.2f} x"
        print(f"blame, {count:,} queries, {runs} runs   {times}   {ratio}")
    lost = sum(found.is_lost for found in blame(settings, golden, queries))
    print(f"{lost} queries are lost in the newest run")


@contextmanager
def _directory(given: Path | None) -> Iterator[Path]:
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        yield given
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield Path(temporary)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--queries", type=int, default=1_000)
    arguments = parser.parse_args()
    with _directory(arguments.directory) as chosen:
        main(chosen, arguments.runs, arguments.queries)
