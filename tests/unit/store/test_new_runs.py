"""A recorded run is stored whole or not at all, and only where it belongs."""

from __future__ import annotations

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from pytest_kebab_eval import DatabaseError, InputError, RunRecorder
from tests.builders import Json, dump, make_database, result
from tests.forked import python
from tests.unit.store.conftest import record_one, rows

# -- whole or not at all -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_goes_wrong_inside_leaves_no_database(
    tmp_path: Path, db: Path, error: type[BaseException]
) -> None:
    def record() -> None:
        with RunRecorder(db, run_id="r") as run:
            run.record("q1", ["c1"])
            raise error

    with pytest.raises(error):
        record()
    assert [path.name for path in tmp_path.iterdir()] == [f"{db.name}.r.unfinished"]


def test_what_goes_wrong_before_anything_is_recorded_leaves_no_file(tmp_path: Path, db: Path) -> None:
    with pytest.raises(InputError, match="give an id"), RunRecorder(db) as run:
        run.record("q1", [0.5])
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_inside_leaves_a_database_as_it_was(db: Path) -> None:
    make_database(db, old={"q1": result("c1")})
    before = db.read_bytes()

    def record() -> None:
        with RunRecorder(db) as run:
            run.record("q1", ["c1"])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record()
    assert db.read_bytes() == before


def test_a_config_that_json_cannot_hold_leaves_no_file(tmp_path: Path, db: Path) -> None:
    with (
        pytest.raises(InputError, match="'config' cannot be recorded as JSON"),
        RunRecorder(db, config={"embedding": object()}) as run,
    ):
        run.record("q1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "given", [{"run_id": "r\udcff"}, {"run_id": 7}, {"suite": "s\udcff"}], ids=["run id", "number", "suite"]
)
def test_a_name_that_is_no_text_is_refused_and_leaves_no_file(tmp_path: Path, db: Path, given: Json) -> None:
    with pytest.raises(InputError), RunRecorder(db, **given) as run:
        run.record("q1")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_in_the_database_while_recording(db: Path) -> None:
    make_database(db, old={"q1": result("c1")})
    before = dump(db)
    with RunRecorder(db) as run:
        run.record("q1", ["c1"])
        assert dump(db) == before


def test_a_database_with_runs_is_added_to(db: Path) -> None:
    make_database(db, corpus={"c1": ("d1", [])}, old={"q1": result("c1")})
    before = set(dump(db))
    with RunRecorder(db, run_id="new") as run:
        run.record("q1", ["c1"])
    added = set(dump(db)) - before
    assert before <= set(dump(db))
    assert len(added) == 2  # a run, a result
    assert all("'new'" in line for line in added)


def test_an_empty_file_becomes_a_database(db: Path) -> None:
    db.touch()
    record_one(db)
    assert rows(db, "SELECT run_id FROM eval_runs") == [("r",)]


def make_foreign(path: Path, *statements: str) -> bytes:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return path.read_bytes()


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE songs (title TEXT)"],
        ["CREATE TABLE eval_runs (run_id TEXT)"],
        ["CREATE TABLE chunks (chunk_id TEXT)", "CREATE TABLE songs (title TEXT)"],
    ],
    ids=["other tables", "runs of another program", "an index"],
)
def test_the_database_of_something_else_is_refused_before_any_work(db: Path, statements: list[str]) -> None:
    before = make_foreign(db, *statements)
    with (
        pytest.raises(InputError, match=r"of something else|were not made by"),
        RunRecorder(db),
    ):
        pytest.fail("the block was entered")
    assert db.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_kept(db: Path) -> None:
    db.write_text("Dear diary, " * 100, encoding="utf-8")
    before = db.read_bytes()
    with pytest.raises(DatabaseError, match=r"eval\.sqlite"), RunRecorder(db):
        pytest.fail("the block was entered")
    assert db.read_bytes() == before


def refusal_on_entry(db: Path) -> str:
    """Why a recorder does not even start."""
    with pytest.raises(DatabaseError) as caught, RunRecorder(db):
        pytest.fail("the block was entered")
    return str(caught.value)


def test_a_directory_that_is_not_there_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal_on_entry(Path("none/eval.sqlite")) == (
        "cannot record into none/eval.sqlite: the directory none does not exist; make it first"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_directory_is_refused_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("notes").touch()
    assert refusal_on_entry(Path("notes/eval.sqlite")) == (
        "cannot record into notes/eval.sqlite: the directory notes is not a directory"
    )


def test_a_run_that_is_there_is_refused_before_any_work(db: Path) -> None:
    make_database(db, r={"q1": result("c1")})
    before = db.read_bytes()
    with pytest.raises(InputError, match=r"has a run 'r' already"), RunRecorder(db, run_id="r"):
        pytest.fail("the block was entered")
    assert db.read_bytes() == before


def test_a_run_that_came_while_recording_is_not_overwritten(db: Path) -> None:
    def record_late() -> None:
        with RunRecorder(db, run_id="r") as run:
            run.record("q1", ["late"])
            make_database(db, r={"q1": result("early")})

    with pytest.raises(InputError, match=r"has a run 'r' already.*; the 1 result so far"):
        record_late()
    ((text,),) = rows(db, "SELECT result_json FROM eval_query_results")
    assert json.loads(text)["hits_top_k"][0]["chunk_id"] == "early"


def test_a_recorder_may_not_record_the_same_run_again(db: Path) -> None:
    run = RunRecorder(db, run_id="r")
    with run:
        run.record("q1", ["c1"])
    with pytest.raises(InputError, match=r"has a run 'r' already"), run:
        pytest.fail("the block was entered")


WRITER = """
import sys
from pytest_kebab_eval import RunRecorder
with RunRecorder(sys.argv[1], run_id=sys.argv[2]) as run:
    for number in range(200):
        run.record(f"q{number}", ["c1"])
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_processes_that_write_to_one_new_file_at_once_all_succeed(db: Path) -> None:
    command = python("-c", WRITER, db)
    names = [f"r{number}" for number in range(5)]
    writers = [
        subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for name in names
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline().strip() == b"ready"
    for writer in writers:  # all of them are about to write
        assert writer.stdin
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 5
    counted = rows(db, "SELECT run_id, count(*) FROM eval_query_results GROUP BY run_id ORDER BY run_id")
    assert counted == [(name, 200) for name in names]
