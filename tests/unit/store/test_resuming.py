"""A recording that did not come to its end, and goes on."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import InputError, RunRecorder, StoreError
from pytest_kebab_eval.store import recorder
from pytest_kebab_eval.store.staging import staging_path
from pytest_kebab_eval.store.working_tree import WorkingTree
from pytest_kebab_eval.text import shown_path
from tests.builders import dump, make_database, result, write_golden
from tests.forked import python
from tests.unit.store.conftest import rows

NAMES = [f"q{number}" for number in range(10)]


class Killed(BaseException):
    """Stands for what ends the process."""


def record(db: Path, *names: str, stop: bool = False, **given: Any) -> list[str]:
    """Record queries that have no result yet; which had one."""
    with RunRecorder(db, **{"run_id": "r", "commit_hash": "c", **given}) as run:
        there = [name for name in names if run.has(name)]
        for name in names:
            if name not in there:
                run.record(name, [f"of {name}"])
        if stop:
            raise Killed
    return there


def stop(db: Path, *names: str, **given: Any) -> None:
    with pytest.raises(Killed):
        record(db, *names, stop=True, **given)


def results(db: Path) -> list[Any]:
    return rows(db, "SELECT * FROM eval_query_results ORDER BY query_id")


def test_a_run_that_goes_on_equals_one_that_was_never_stopped(db: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole.sqlite"
    record(whole, *NAMES, config={"chunker_version": "v1"})
    stop(db, *NAMES[:4], config={"chunker_version": "v1"})
    stop(db, *NAMES[:7], config={"chunker_version": "v1"}, resume=True)
    there = record(db, *NAMES, config={"chunker_version": "v1"}, resume=True)
    assert there == NAMES[:7]
    assert results(db) == results(whole)
    runs = "SELECT run_id, suite, config_snapshot_json, aggregate_json, commit_hash FROM eval_runs"
    assert rows(db, runs) == rows(whole, runs)
    assert not staging_path(db, "r").exists()


def test_while_it_is_unfinished_the_database_has_nothing_of_it(db: Path) -> None:
    make_database(db, old={"q1": result("c1")})
    before = dump(db)
    stop(db, *NAMES)
    assert dump(db) == before


def test_without_resume_an_unfinished_run_is_named_and_left_alone(db: Path) -> None:
    stop(db, "q1", "q2")
    before = staging_path(db, "r").read_bytes()
    with pytest.raises(InputError) as raised:
        record(db, "q1")
    kept = shown_path(staging_path(db, "r"))
    assert str(raised.value) == (
        f"{kept} has 2 results of run 'r', which is unfinished; resume=True (pytest:"
        " --kebab-resume) goes on with them; delete the file to start anew"
    )
    assert staging_path(db, "r").read_bytes() == before


def test_resume_where_there_is_nothing_to_resume_starts_the_run(db: Path) -> None:
    assert record(db, "q1", resume=True) == []
    assert len(results(db)) == 1


def test_resume_needs_the_id_of_the_run(db: Path) -> None:
    with pytest.raises(InputError, match="resume=True needs the run_id"):
        RunRecorder(db, resume=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"suite": "other"}, "its suite is 'docs', not 'other'"),
        ({"config": {"a": 2}}, "'a' of its configuration was 1 and is 2"),
        ({"config": {}}, "'a' of its configuration was 1 and is absent"),
        ({"config": {"a": 1, "b": 3}}, "'b' of its configuration was absent and is 3"),
        ({"commit_hash": "d"}, "it was begun at commit c, and this is commit d"),
    ],
)
def test_what_the_results_depend_on_may_not_change(db: Path, changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"suite": "docs", "config": {"a": 1}}
    stop(db, "q1", **given)
    with pytest.raises(InputError, match=message):
        record(db, "q2", resume=True, **{**given, **changed})
    assert record(db, "q1", "q2", resume=True, **given) == ["q1"]


def test_the_golden_file_may_not_change_but_its_layout_may(db: Path, tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "one"}])
    stop(db, "q1", golden=golden)
    write_golden(golden, [{"id": "q1", "query": "another"}])
    with pytest.raises(
        InputError, match="which is unfinished, and the golden file has changed since; record"
    ):
        record(db, "q1", resume=True, golden=golden)
    golden.write_text("# a comment\n- {query: one, id: q1}\n")
    assert record(db, "q1", resume=True, golden=golden) == ["q1"]


def test_a_run_does_not_go_on_at_another_commit(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "working_tree", lambda _: WorkingTree("first"))
    stop(db, "q1", commit_hash=None)
    monkeypatch.setattr(recorder, "working_tree", lambda _: WorkingTree("second"))
    with pytest.raises(InputError, match="it was begun at commit first, and this is commit second"):
        record(db, "q2", commit_hash=None, resume=True)


def test_a_query_that_is_recorded_again_has_its_new_result(db: Path) -> None:
    stop(db, "q1", "q2")
    with RunRecorder(db, run_id="r", commit_hash="c", resume=True) as run:
        run.record("q1", ["new"])
        with pytest.raises(InputError, match="query 'q1' is recorded twice in run r"):
            run.record("q1")
    stored = {row[1]: json.loads(row[2])["hits_top_k"] for row in results(db)}
    assert [hit["chunk_id"] for hit in stored["q1"]] == ["new"]
    assert len(stored) == 2


@pytest.mark.parametrize("content", [b"something else", b"SQLite format 3\0 of another program"])
def test_a_file_of_something_else_is_refused_and_left_alone(db: Path, content: bytes) -> None:
    path = staging_path(db, "r")
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not an unfinished run; move it"):
        record(db, "q1", resume=True)
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights")
@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_file_is_refused(db: Path, tmp_path: Path, kind: str) -> None:
    path = staging_path(db, "r")
    make = {"link": lambda: path.symlink_to("target"), "pipe": lambda: os.mkfifo(path)}
    make.get(kind, path.mkdir)()
    with pytest.raises(StoreError, match="cannot record into"):
        record(db, "q1")
    assert not (tmp_path / "target").exists()


def test_of_two_that_go_on_with_one_run_the_later_has_it(db: Path) -> None:
    stop(db, "q1")
    run = RunRecorder(db, run_id="r", resume=True, commit_hash="c")
    run.open()
    record(db, "q2", resume=True)
    with pytest.raises(InputError, match="another process has stored this run, or goes on with it"):
        run.record("q3")
    run.close()
    assert [row[1] for row in results(db)] == ["q1", "q2"]


def test_threads_may_record_at_once(db: Path) -> None:
    names = [f"q{number}" for number in range(400)]
    with RunRecorder(db, run_id="r") as run, ThreadPoolExecutor(8) as pool:
        list(
            pool.map(lambda name: run.record(name, [{"chunk_id": f"of {name}", "text": "x" * 5_000}]), names)
        )
    stored = {row[1]: json.loads(row[2]) for row in results(db)}
    assert {name: result["hits_top_k"][0]["chunk_id"] for name, result in stored.items()} == {
        name: f"of {name}" for name in names
    }


FORKS = """
import os, sys
from pytest_kebab_eval import InputError, RunRecorder

with RunRecorder(sys.argv[1], run_id="r") as run:
    run.record("q1")
    child = os.fork()
    if child == 0:
        try:
            run.record("q2")
        except InputError as error:
            print(error, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    run.record("q3")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_records_too(db: Path) -> None:
    subprocess.run(python("-c", FORKS, db), check=True, capture_output=True, text=True)
    assert [row[1] for row in results(db)] == ["q1", "q2", "q3"]


def test_a_run_that_was_stored_before_the_process_was_killed_is_finished(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", die)
        with pytest.raises(Killed):
            record(db, "q1", "q2")
    before = dump(db)
    assert record(db, "q1", "q2", resume=True) == ["q1", "q2"]
    assert dump(db) == before
    assert not staging_path(db, "r").exists()


def test_what_was_kept_of_another_run_of_that_id_is_not_taken_for_the_stored_one(db: Path) -> None:
    stop(db, "q1")
    make_database(db, r={"q1": result("of another")})
    with pytest.raises(InputError, match="has a run 'r' already"):
        record(db, "q1", resume=True)
    assert staging_path(db, "r").exists()


def test_secrets_are_masked_in_what_is_kept(db: Path) -> None:
    def record_with_secrets() -> None:
        with RunRecorder(db, run_id="r", config={"api_key": "sk-secret-1"}) as run:
            run.record("q1", error="cannot reach postgresql://me:hunter2@host/db")
            raise Killed

    with pytest.raises(Killed):
        record_with_secrets()
    kept = staging_path(db, "r").read_bytes()
    assert b"sk-secret-1" not in kept
    assert b"hunter2" not in kept


@pytest.mark.skipif(sys.platform == "win32", reason="has other permissions")
def test_what_is_kept_has_the_permissions_of_the_database(db: Path) -> None:
    make_database(db, old={"q1": result("c1")})
    db.chmod(0o640)
    stop(db, "q1")
    assert stat.S_IMODE(staging_path(db, "r").stat().st_mode) == 0o640


def test_the_error_says_where_the_results_are(db: Path) -> None:
    with pytest.raises(Killed) as raised:
        record(db, "q1", "q2", stop=True)
    if sys.version_info >= (3, 11):
        (note,) = raised.value.__notes__
        kept = shown_path(staging_path(db, "r"))
        assert note == (
            f"kebab-eval: run r is not stored; the 2 results so far are in {kept}, and"
            " resume=True (pytest: --kebab-resume) goes on with them"
        )


def test_runs_whose_ids_differ_in_case_or_are_long_have_files_of_their_own(tmp_path: Path) -> None:
    names = ["r", "R", "a/b", "x" * 300, "x" * 301]
    paths = {str(staging_path(tmp_path / ("d" * 200), name)).lower() for name in names}
    assert len(paths) == 5
    assert all(len(Path(path).name) <= 255 and Path(path).parent == tmp_path for path in paths)
    for name in names:
        stop(tmp_path / "eval.sqlite", "q1", run_id=name)


# -- progress --------------------------------------------------------------------------------------


def test_progress_starts_with_what_is_there_and_counts_errors(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    class Progress:
        def __init__(self, *args: Any, **more: Any) -> None:
            made.append((args, more))

        def advance(self, *, errors: int) -> None:
            made.append(errors)

        def close(self) -> None:
            made.append("closed")

    golden = write_golden(tmp_path / "golden.yaml", [{"id": name, "query": "?"} for name in NAMES])
    stop(db, "q1", golden=golden)
    monkeypatch.setattr(recorder, "Progress", Progress)
    with RunRecorder(db, run_id="r", resume=True, golden=golden, progress=True) as run:
        run.record("q2")
        run.record("q3", error="down")
    assert made == [(("recording r", 10), {"done": 1, "delay_s": 0.0}), False, True, "closed"]
    made.clear()
    with RunRecorder(db, progress=False) as run:
        run.record("q1")
    assert made == []


def test_where_another_recorder_took_the_id_nobody_is_told_to_go_on(db: Path) -> None:
    run = RunRecorder(db, run_id="r").__enter__()
    run.record("q1", hits=["c1"])
    make_database(db, r={"q1": result("c9")})
    with pytest.raises(InputError) as raised:
        run.__exit__(None, None, None)
    kept = shown_path(staging_path(db, "r"))
    said = f"has a run 'r' already; name the new one differently; the 1 result so far is in {kept}, which"
    assert f"{said} can be deleted" in str(raised.value)
    assert "resume" not in str(raised.value)
