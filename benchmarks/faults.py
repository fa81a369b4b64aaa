"""Kills recorders and fills their disks, at random moments: nothing that was acknowledged may be lost.

    python benchmarks/faults.py [--kills 100] [--disks 50] [--seed 1]

Half of the kills (SIGKILL) are of one process, half of a pytest session with two workers of xdist. A disk is
a tmpfs of a random size where this may mount one, else a limit on the size of files. After each, the database
is sound and has the old run and, whole or not at all, the new one; what a recorder was told is kept is there;
and the same command goes on and stores all of it, with what was acknowledged as it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pytest_kebab_eval import RunRecorder

QUERIES = 60
DATABASE = "eval.sqlite"
# Each result says which process recorded it; `acknowledged` has a line for each that is said to be kept.
COMMON = """
import os, sys, time

def ask(recorder, number):
    time.sleep(0.002)
    name = f"q{number}"
    recorder.record(name, hits=["c1"], query=f"{name} by {os.getpid()} " + "?" * 2_000)
    os.write(ACKNOWLEDGED, f"{name} {os.getpid()}\\n".encode())

ACKNOWLEDGED = os.open(os.environ["ACKNOWLEDGED"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
"""
ALONE = f"""{COMMON}
from pytest_kebab_eval import RunRecorder
with RunRecorder("{DATABASE}", run_id="new", commit_hash="c", resume=True) as run:
    for number in range({QUERIES}):
        if not run.has(f"q{{number}}"):
            ask(run, number)
"""
TESTS = f"""{COMMON}
import pytest
@pytest.mark.parametrize("number", range({QUERIES}))
def test_search(kebab_recorder, number):
    if not kebab_recorder.has(f"q{{number}}"):
        ask(kebab_recorder, number)
"""
SESSION = ["-m", "pytest", "-q", "-n2", "-p", "no:cacheprovider", "--kebab-record=new", "--kebab-resume"]


def prepare(directory: Path) -> None:
    """A database with a run, and the tests."""
    with RunRecorder(directory / DATABASE, run_id="old", commit_hash="c") as run:
        for number in range(20):
            run.record(f"q{number}", hits=["c1"], query="?" * 2_000)
    (directory / "test_it.py").write_text(TESTS, encoding="utf-8")


def command(*, spread: bool) -> list[str]:
    given = [*SESSION, f"--kebab-db={DATABASE}", "test_it.py"] if spread else ["-c", ALONE]
    return [sys.executable, *given]


def start(directory: Path, acknowledged: Path, *, spread: bool, limited: int = 0) -> subprocess.Popen[bytes]:
    def limit() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limited, limited))

    return subprocess.Popen(
        command(spread=spread),
        cwd=directory,
        env={**os.environ, "ACKNOWLEDGED": str(acknowledged), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that its workers are killed with it
        preexec_fn=limit if limited else None,  # noqa: PLW1509  no threads here
    )


def results(path: Path, query: str) -> dict[str, str]:
    """What a file has of the new run: the query id, and who recorded it."""
    if not path.exists():
        return {}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), f"{path} is damaged"
        is_begun = connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # or killed before that
        rows = connection.execute(query).fetchall() if is_begun else ()
    return {name: json.loads(text)["query"].split()[2] for name, text in rows}


def stored(directory: Path) -> dict[str, str]:
    query = "SELECT query_id, result_json FROM eval_query_results WHERE run_id = 'new'"
    found = results(directory / DATABASE, query)
    with closing(sqlite3.connect(directory / DATABASE)) as connection:
        counts = dict(connection.execute("SELECT run_id, count(*) FROM eval_query_results GROUP BY run_id"))
        runs = {run_id for (run_id,) in connection.execute("SELECT run_id FROM eval_runs")}
    assert counts["old"] == 20, "the old run has changed"
    assert ("new" in runs) == bool(found), "the new run is half there"
    assert len(found) in (0, QUERIES), f"{len(found)} of {QUERIES} results are stored"
    return found


def check(directory: Path, acknowledged: Path) -> str:
    """What a fault left; an error if an acknowledged result is lost."""
    told = dict(line.split() for line in acknowledged.read_text().splitlines())
    found = stored(directory)
    if found:
        assert not told.items() - found.items(), "an acknowledged result is not the stored one"
        return "stored"
    kept = results(directory / f"{DATABASE}.new.unfinished", "SELECT query_id, result_json FROM results")
    assert not told.items() - kept.items(), f"lost {sorted(told.items() - kept.items())[:3]}"
    return "some kept" if kept else "nothing yet"


def finish(directory: Path, acknowledged: Path, *, spread: bool) -> None:
    """The same command goes on, and stores all."""
    if not stored(directory):
        process = start(directory, acknowledged, spread=spread)
        assert process.wait(120) == 0, "it could not go on"
    assert check(directory, acknowledged) == "stored"


@contextmanager
def disk(size: int) -> Iterator[tuple[Path, bool]]:
    """A directory with so much room, and whether that is a disk of its own."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", name]
        is_disk = os.geteuid() == 0 and subprocess.call(mount, stderr=subprocess.DEVNULL) == 0
        try:
            yield Path(name), is_disk
        finally:
            if is_disk:
                subprocess.run(["umount", name], check=True)


def kill(chosen: random.Random, *, spread: bool) -> str:
    with tempfile.TemporaryDirectory() as name:
        directory, acknowledged = Path(name), Path(name, "acknowledged")
        prepare(directory)
        acknowledged.touch()
        process, after = start(directory, acknowledged, spread=spread), chosen.randrange(QUERIES + 1)
        while process.poll() is None and len(acknowledged.read_bytes().splitlines()) < after:
            time.sleep(0.001)
        time.sleep(chosen.uniform(0, 0.05))
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        left = check(directory, acknowledged)
        finish(directory, acknowledged, spread=spread)
        return left


def fill(chosen: random.Random) -> str:
    with tempfile.TemporaryDirectory() as other:
        roomy, acknowledged = Path(other, "roomy"), Path(other, "acknowledged")
        roomy.mkdir()
        prepare(roomy)
        acknowledged.touch()
        size = chosen.randrange(120_000, 900_000)
        with disk(size) as (directory, is_disk):
            shutil.copytree(roomy, directory, dirs_exist_ok=True)
            process = start(directory, acknowledged, spread=False, limited=0 if is_disk else size)
            process.wait(120)
            shutil.rmtree(roomy)
            shutil.copytree(directory, roomy)  # as after making room
        left = check(roomy, acknowledged)
        finish(roomy, acknowledged, spread=False)
        return f"{left}, exit {process.returncode}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("--kills", 100), ("--disks", 50), ("--seed", 1)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()
    chosen = random.Random(given.seed)
    for spread, what in ((False, "one process"), (True, "two workers of xdist")):
        left = Counter(kill(chosen, spread=spread) for _ in range(given.kills // 2))
        print(f"{given.kills // 2} kills of {what}: {dict(left)}; nothing lost", flush=True)
    left = Counter(fill(chosen) for _ in range(given.disks))
    print(f"{given.disks} full disks: {dict(left)}; nothing lost")


if __name__ == "__main__":
    main()
