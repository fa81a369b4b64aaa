"""Measures `kebab-eval compare` with helping processes against one process, and what each step of it costs.

    python benchmarks/parallel.py DIRECTORY --queries 100000 [--hits 3] [--repeats 3] [--workers 2]
        [--golden jsonl|yaml] [--dask] [--steps | --stores]

The commands are run in turn; a ratio is that of the medians. Memory is that of all processes together: the
largest sum of their proportional set sizes (PSS), looked at twice a second: looking takes time of its own.
With --dask, a scheduler and as many workers are started first, and are no part of the time. --steps
measures each step in one process instead, and --stores reads the results of a run from each kind of file.
Data of that size in the directory is used again. A wall time means something only on cores that are free.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from generate import Data, generate
from measuring import clean_environment
from tables import PROMISES_HEAD, Row

COMPARE = (str(Path(sys.executable).with_name("kebab-eval")), "compare", "a", "b")
WALL_LIMIT, MEMORY_LIMIT, DASK_LIMIT = 0.70, 1.3, 0.8
LOOK_EVERY_S = 0.5


class Cost(NamedTuple):
    """What a command took; CPU seconds with those of the processes that it started."""

    wall: float
    peak_mb: float
    cpu: float


# -- processes -----------------------------------------------------------------------------------


def measured(directory: Path, *command: str, also: tuple[int, ...] = ()) -> Cost:
    """Run a command; `also` are processes whose memory counts, too."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=directory,
        env=clean_environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    memory = _Memory(process.pid, *also)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in {0, 1}:
        sys.exit(f"exit code {process.returncode}, in {directory}: {' '.join(command)}")
    return Cost(wall, memory.stop(), usage.ru_utime + usage.ru_stime)


class _Memory:
    """Looks at the memory of some processes and their children, again and again."""

    def __init__(self, *pids: int) -> None:
        self._pids = pids
        self._peak = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        pause = 0.02  # at first, for commands that are soon done
        while not self._done.wait(pause):
            pause = min(2 * pause, LOOK_EVERY_S)
            self._peak = max(self._peak, sum(map(pss_kb, _with_children(self._pids))))

    def stop(self) -> float:
        self._done.set()
        self._thread.join()
        return self._peak / 1024


def _with_children(pids: Iterable[int]) -> Iterator[int]:
    for pid in pids:
        yield pid
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                yield from _with_children(map(int, children.read_text().split()))


def pss_kb(pid: int) -> int:
    """What a process takes of memory, its share of what it has in common with others included."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:  # it has ended
        pass
    return 0


@contextlib.contextmanager
def cluster(directory: Path, workers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """A scheduler with workers: its address, and the ids of all processes."""
    where = directory / "scheduler.json"
    where.unlink(missing_ok=True)
    shared = ("--scheduler-file", str(where), "--no-dashboard", "--host", "127.0.0.1")
    commands = [("scheduler", *shared, "--port", "0")]
    commands += [("worker", *shared, "--nthreads", "1", "--no-nanny")] * workers
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [subprocess.Popen([sys.executable, "-m", "dask", *command], **quiet) for command in commands]
    try:
        while not where.is_file() or not where.read_text().endswith("}"):
            time.sleep(0.1)
        time.sleep(5)  # until the workers are there
        yield json.loads(where.read_text())["address"], tuple(process.pid for process in running)
    finally:
        for process in running:
            process.kill()
            process.wait()


def ratios(given: argparse.Namespace, directory: Path, golden: str) -> Iterator[Row]:
    what, against = f"{given.queries:,} queries, {golden}", "one process"
    command = (*COMPARE, "--golden", golden)
    more = ("--workers", str(given.workers))
    kinds: list[Callable[[], Cost]] = [
        lambda: measured(directory, *command),
        lambda: measured(directory, *command, *more),
    ]
    if given.dask:
        kinds.append(lambda: _with_cluster(directory, given.workers, *command))
    costs: list[list[Cost]] = [[] for _ in kinds]
    for _ in range(given.repeats):
        for kind, found in zip(kinds, costs, strict=True):
            found.append(kind())
    one, several, *dask = [Cost(*map(statistics.median, zip(*found, strict=True))) for found in costs]
    yield _wall(f"`--workers {given.workers}`, {what}", against, WALL_LIMIT, several, one)
    numbers = f"{several.peak_mb:.0f} MB / {one.peak_mb:.0f} MB"
    yield Row(
        "memory of all its processes",
        against,
        MEMORY_LIMIT,
        several.peak_mb / one.peak_mb,
        from_numbers=numbers,
    )
    numbers = f"{several.cpu:.1f} s / {one.cpu:.1f} s"
    yield Row("CPU time of all its processes", against, None, several.cpu / one.cpu, from_numbers=numbers)
    for cost in dask:
        yield _wall(f"a Dask cluster of {given.workers} workers, {what}", against, DASK_LIMIT, cost, one)


def _with_cluster(directory: Path, workers: int, *command: str) -> Cost:
    """With a cluster that is there only meanwhile: one that has nothing to do still takes some time."""
    with cluster(directory, workers) as (address, pids):
        return measured(directory, *command, "--scheduler", address, also=pids)


def _wall(what: str, against: str, limit: float, ours: Cost, theirs: Cost) -> Row:
    numbers = f"{ours.wall:.1f} s / {theirs.wall:.1f} s"
    return Row(what, against, limit, ours.wall / theirs.wall, from_numbers=numbers)


# -- steps ---------------------------------------------------------------------------------------


class Timed:
    """Workers of this process: how much time their functions take, and how many bytes travel."""

    count = 1

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.sent: dict[str, int] = {}
        self.returned: dict[str, int] = {}
        self.calls: dict[str, int] = {}

    def map(self, function: Callable[[Any], Any], tasks: Iterable[Any]) -> Iterator[Any]:
        name = function.__name__
        for task in tasks:
            given = pickle.dumps(task)
            started = time.process_time()
            found = pickle.dumps(function(pickle.loads(given)))
            for table, number in (
                (self.seconds, time.process_time() - started),
                (self.sent, len(given)),
                (self.returned, len(found)),
                (self.calls, 1),
            ):
                table[name] = table.get(name, 0) + number  # type: ignore[assignment]
            yield pickle.loads(found)


def steps(given: argparse.Namespace, directory: Path, golden: str) -> Iterator[str]:
    """What each step of a comparison in parts costs, in CPU time of one process."""
    from pytest_kebab_eval.evaluate import evaluate
    from pytest_kebab_eval.inputs import find_inputs
    from pytest_kebab_eval.parallel.golden import load_golden
    from pytest_kebab_eval.parallel.scoring import PartScorer
    from pytest_kebab_eval.settings import Settings

    path = directory / "kebab.sqlite"
    settings = Settings(run_a="a", run_b="b", db_a=path, db_b=path, golden=directory / golden)
    workers = Timed()
    clock = time.process_time
    started = clock()
    loaded = load_golden(settings.golden, workers)
    read = clock()
    inputs = find_inputs(settings, golden=loaded.golden)
    joined = 0.0

    def score(*asked: Any) -> Any:
        nonlocal joined
        begun = clock()
        scored = PartScorer(workers, settings, loaded).score(*asked)
        joined = clock() - begun - workers.seconds["score_part"]
        return scored

    evaluate(settings, inputs, score_parts=score)
    rest = clock() - read - joined - workers.seconds["score_part"]
    parsed = workers.seconds.get("read_part", 0.0)
    each = 1e6 / given.queries
    yield f"| a worker reads its part of the golden file | {parsed * each:.1f} |"
    yield f"| the caller cuts the file and joins the parts | {(read - started - parsed) * each:.1f} |"
    yield f"| a worker reads and scores both runs | {workers.seconds['score_part'] * each:.1f} |"
    yield f"| the caller sends and joins these parts, and the fingerprint | {joined * each:.1f} |"
    yield f"| the caller compares, counts and judges | {rest * each:.1f} |"
    for name, what in (("read_part", "golden file"), ("score_part", "runs")):
        if name in workers.sent:
            sent, back = workers.sent[name] / given.queries, workers.returned[name] / given.queries
            yield f"| bytes sent for a query of the {what}, and back | {sent:.0f}, {back:.0f} |"
    parts = workers.calls["score_part"]
    yield f"| parts of the runs | {parts} |"
    yield f"| joining a part of {given.queries // parts:,} queries, in ms | {1e3 * joined / parts:.0f} |"


# -- stores --------------------------------------------------------------------------------------


def stores(given: argparse.Namespace, directory: Path) -> Iterator[str]:
    """What it costs to read all results of a run from each kind of file, in CPU time."""
    from pytest_kebab_eval.store import open_database
    from pytest_kebab_eval.store.exports import export_run

    database = directory / "kebab.sqlite"
    for name in ("kebab.sqlite", "run.jsonl", "run.jsonl.gz"):
        path = directory / name
        if path != database and not path.is_file():
            export_run(database, "a", path)
        size = path.stat().st_size / (2 if path == database else 1)  # which has both runs
        started = time.process_time()
        with open_database(path) as opened:
            count = sum(1 for _ in opened.results("a"))
        taken = time.process_time() - started
        yield f"| {name} | {1e6 * taken / count:.1f} | {size / count:.0f} |"


# -- the program ---------------------------------------------------------------------------------


def prepared(given: argparse.Namespace) -> tuple[Path, str]:
    """The data, made if it is not there yet, and the name of the golden file."""
    directory = given.directory / f"{given.queries}x{given.hits}"
    if not (directory / "golden.yaml").is_file():
        shutil.rmtree(directory, ignore_errors=True)
        generate(directory, Data(given.queries, given.hits))
    name = f"golden.{given.golden}"
    if not (directory / name).is_file():
        with (directory / "golden.yaml").open(encoding="utf-8") as file, (directory / name).open("w") as new:
            new.writelines(f"{json.dumps(entry)}\n" for entry in yaml.load(file, yaml.CSafeLoader))
    return directory, name


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--hits", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--golden", choices=["jsonl", "yaml"], default="jsonl")
    parser.add_argument("--dask", action="store_true")
    parser.add_argument("--steps", action="store_true")
    parser.add_argument("--stores", action="store_true")
    given = parser.parse_args()
    directory, golden = prepared(given)
    if given.steps:
        print("| step | µs a query |", "| --- | ---: |", *steps(given, directory, golden), sep="\n")
    elif given.stores:
        head = "| file | µs a result | bytes a result |", "| --- | ---: | ---: |"
        print(*head, *stores(given, directory), sep="\n")
    else:
        print(*PROMISES_HEAD, *(row.line() for row in ratios(given, directory, golden)), sep="\n", flush=True)


if __name__ == "__main__":
    main()
