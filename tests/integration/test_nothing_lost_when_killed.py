"""`kill -9` while a run is recorded or imported: it is there whole or not at all, and can go on."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from pytest_kebab_eval.store import open_database
from tests.builders import make_database, result
from tests.forked import python

QUERIES = 1_000
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")

RECORD = """
import sys
from pytest_kebab_eval import RunRecorder

with RunRecorder(sys.argv[1], run_id="new", commit_hash="c", resume=True) as run:
    for number in range(1_000):
        if run.has(f"q{number}"):
            continue
        run.record(f"q{number}", hits=["c1"], query="?" * 4_000)
        if number == 500 and "wait" in sys.argv:
            print("halfway", flush=True)
            sys.stdin.readline()
    print("all given", flush=True)
"""
# Dies as the transaction is about to be committed, when most of it is in the file already.
DIE_AT_COMMIT = """
import os, signal, sqlite3, sys

connect = sqlite3.connect

def connect_to_die(*args, **more):
    def watch(statement):
        if statement.upper().startswith("COMMIT"):
            os.kill(os.getpid(), signal.SIGKILL)

    connection = connect(*args, **more)
    if "mode=rw" in str(args[0]):  # not the file of an unfinished run, in which each result is a commit
        connection.set_trace_callback(watch)
    return connection

sqlite3.connect = connect_to_die
"""
IMPORT = """
from pytest_kebab_eval.cli import main
main()
"""


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database with a run in it."""
    return make_database(tmp_path / "eval.sqlite", old={"q1": result("c1")})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `import kebab` takes."""
    path = tmp_path_factory.mktemp("results") / "per_query.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(QUERIES):
            stored = result("c1", query="?" * 4_000)  # more than SQLite keeps in memory
            file.write(json.dumps({"query_id": f"q{number}", **stored}) + "\n")
    return path


def recording(db: Path, *more: str) -> list[str]:
    return [RECORD, str(db), *more]


def importing(db: Path, results: str | Path) -> list[str]:
    given = ["import", "kebab", "--results", str(results), "--db", str(db), "--run-id", "new"]
    return [IMPORT, *given]


def start(script: list[str]) -> subprocess.Popen[bytes]:
    command = python("-c", *script)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def run(script: list[str]) -> None:
    subprocess.run(python("-c", *script), check=True, capture_output=True)


def die_at_commit(script: list[str]) -> None:
    code, *given = script
    done = subprocess.run(python("-c", DIE_AT_COMMIT + code, *given), check=False, capture_output=True)
    assert done.returncode == -9


def kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def counts(db: Path) -> tuple[int, int, int]:
    """After SQLite found the file sound: the new run, its results, and those of the old run."""
    with closing(sqlite3.connect(db)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)

        def count(table: str, run_id: str) -> int:
            sql = f"SELECT count(*) FROM {table} WHERE run_id = ?"
            return int(connection.execute(sql, (run_id,)).fetchone()[0])

        results = "eval_query_results"
        return count("eval_runs", "new"), count(results, "new"), count(results, "old")


def files(directory: Path) -> list[str]:
    """The files, but for the log of an unfinished run."""
    return sorted(path.name for path in directory.iterdir() if path.suffix in (".sqlite", ".unfinished"))


NOTHING_NEW, ALL_NEW = (0, 0, 1), (1, QUERIES, 1)


def test_killed_while_recording_nothing_of_the_run_is_there(db: Path) -> None:
    before = db.read_bytes()
    process = start(recording(db, "wait"))
    assert process.stdout
    assert process.stdout.readline() == b"halfway\n"
    kill(process)
    assert db.read_bytes() == before
    assert files(db.parent) == ["eval.sqlite", "eval.sqlite.new.unfinished"]
    run(recording(db))
    assert counts(db) == ALL_NEW
    assert files(db.parent) == ["eval.sqlite"]


def test_killed_while_recording_into_a_new_file_there_is_no_database(tmp_path: Path) -> None:
    process = start(recording(tmp_path / "new.sqlite", "wait"))
    assert process.stdout
    assert process.stdout.readline() == b"halfway\n"
    kill(process)
    assert files(tmp_path) == ["new.sqlite.new.unfinished"]


def test_killed_while_importing_nothing_of_the_run_is_there(db: Path, results: Path) -> None:
    before = db.read_bytes()
    lines = results.read_bytes().splitlines(keepends=True)
    process = start(importing(db, "-"))
    assert process.stdin
    process.stdin.write(b"".join(lines[: QUERIES // 2]))  # the rest never comes; it is waited for
    process.stdin.flush()
    kill(process)
    assert db.read_bytes() == before
    run(importing(db, results))
    assert counts(db) == ALL_NEW


@pytest.mark.parametrize("what", ["recording", "importing"])
@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_killed_at_the_commit_nothing_of_the_run_is_there(
    db: Path, results: Path, what: str, journal: str
) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
    command = recording(db) if what == "recording" else importing(db, results)
    die_at_commit(command)
    left = {"delete": "eval.sqlite-journal", "wal": "eval.sqlite-wal"}[journal]
    assert (db.parent / left).stat().st_size > 0  # it was in the middle of it
    assert counts(db) == NOTHING_NEW
    run(command)
    assert counts(db) == ALL_NEW


def test_killed_at_the_commit_the_database_can_be_read_at_once(db: Path) -> None:
    die_at_commit(recording(db))
    with open_database(db) as database:
        assert [run.run_id for run in database.runs()] == ["old"]


def test_killed_at_the_commit_to_a_new_file_the_same_command_succeeds(tmp_path: Path) -> None:
    command = recording(tmp_path / "new.sqlite")
    die_at_commit(command)
    run(command)
    assert counts(tmp_path / "new.sqlite") == (1, QUERIES, 0)


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_of_the_writing_the_run_is_whole_or_not_there(db: Path, seed: int) -> None:
    command = recording(db)
    process = start(command)
    assert process.stdout
    assert process.stdout.readline() == b"all given\n"  # what follows is the transaction
    time.sleep(random.Random(seed).uniform(0, 0.1))
    kill(process)
    assert counts(db) in (NOTHING_NEW, ALL_NEW)
    if counts(db) == NOTHING_NEW:
        run(command)
    assert counts(db) == ALL_NEW


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment_of_an_import_the_run_is_whole_or_not_there(
    db: Path, results: Path, seed: int
) -> None:
    command = importing(db, results)
    process = start(command)
    log = db.with_name("eval.sqlite-journal")
    while process.poll() is None and not log.exists():
        time.sleep(0.0005)
    time.sleep(random.Random(seed).uniform(0, 0.1))  # the transaction has begun
    kill(process)
    assert counts(db) in (NOTHING_NEW, ALL_NEW)
    if counts(db) == NOTHING_NEW:
        run(command)
    assert counts(db) == ALL_NEW
