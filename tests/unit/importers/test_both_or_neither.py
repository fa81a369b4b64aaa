"""Whatever fails, a run and its golden file are both there or neither is, and nothing else is left."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import InputError, StoreError, load_golden_set
from pytest_kebab_eval.store import open_database, sqlite
from tests.builders import dump, make_database, result
from tests.forked import python
from tests.unit.importers.test_import_run import bring

FILES = {"run.txt": "q1 Q0 d1 1 9.0 t\n", "qrels.txt": "q1 0 d1 1\n"}
BUSY = OSError(16, "Device or resource busy")


def fail(error: BaseException) -> Callable[..., None]:
    def raising(*_: Any, **__: Any) -> None:
        raise error

    return raising


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - FILES.keys()


def test_a_golden_file_that_cannot_take_its_place_leaves_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "replace", fail(BUSY))
    with pytest.raises(
        StoreError, match=r"the golden file .*g\.yaml was not written: Device or resource busy"
    ):
        bring(tmp_path, "trec", FILES)
    assert names(tmp_path) == set()


def test_an_import_that_was_killed_before_its_golden_file_took_its_place_is_finished_by_the_next(
    tmp_path: Path,
) -> None:
    bring(tmp_path, "trec", FILES)
    golden = (tmp_path / "g.yaml").read_text("utf-8")
    (tmp_path / "g.yaml").unlink()
    before = dump(tmp_path / "db.sqlite")
    summary = bring(tmp_path, "trec", FILES).summary
    assert summary.warnings[0].endswith(
        "db.sqlite has run 'r' already, with the same results; only the golden file was written"
    )
    assert (tmp_path / "g.yaml").read_text("utf-8") == golden
    assert dump(tmp_path / "db.sqlite") == before


def test_a_run_with_other_results_is_not_taken_for_one_to_finish(tmp_path: Path) -> None:
    bring(tmp_path, "trec", FILES)
    (tmp_path / "g.yaml").write_text("old", encoding="utf-8")
    with pytest.raises(InputError, match="has a run 'r' already; name the new one differently"):
        bring(tmp_path, "trec", FILES | {"run.txt": "q1 Q0 d2 1 9.0 t\n"})
    assert (tmp_path / "g.yaml").read_text("utf-8") == "old"


@pytest.mark.parametrize("error", [BUSY, KeyboardInterrupt()])
def test_a_golden_file_that_cannot_take_its_place_leaves_the_database_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    db = make_database(tmp_path / "db.sqlite", old={"q1": result("c1")})
    (tmp_path / "g.yaml").write_text("old", encoding="utf-8")
    before = dump(db)
    monkeypatch.setattr(Path, "replace", fail(error))
    with pytest.raises((StoreError, KeyboardInterrupt)):
        bring(tmp_path, "trec", FILES)
    assert dump(db) == before
    assert (tmp_path / "g.yaml").read_text("utf-8") == "old"
    assert names(tmp_path) == {"db.sqlite", "g.yaml"}


def test_a_run_that_cannot_be_removed_again_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_database(tmp_path / "db.sqlite", old={"q1": result("c1")})

    def lock_and_fail(*_: object) -> None:
        monkeypatch.setattr(sqlite, "_open", fail(sqlite3.OperationalError("database is locked")))
        raise BUSY

    monkeypatch.setattr(Path, "replace", lock_and_fail)
    with pytest.raises(StoreError, match=r"run 'r' could not be removed again from .*db\.sqlite: .*locked"):
        bring(tmp_path, "trec", FILES)


@pytest.mark.parametrize("statement", ["BEGIN", "CREATE", "INSERT", "COMMIT"])
def test_a_new_database_that_cannot_be_written_is_not_left_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    class FullDisk(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql.strip().startswith(statement):
                raise sqlite3.OperationalError("database or disk is full")
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path, **more: connect(path, factory=FullDisk, **more))
    with pytest.raises(StoreError, match=r"not recorded in .*db\.sqlite: database or disk is full"):
        bring(tmp_path, "trec", FILES)
    assert names(tmp_path) == set()


def test_a_database_that_another_process_made_meanwhile_gets_the_run_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def link_second(new: Path, target: Path) -> None:
        make_database(target, other={"q1": result("c1")})
        link(new, target)

    monkeypatch.setattr(os, "link", link_second)
    brought = bring(tmp_path, "trec", FILES)
    with open_database(brought.db) as database:
        assert {run.run_id for run in database.runs()} == {"other", "r"}
        assert database.result_count("r") == 1
    assert names(tmp_path) == {"db.sqlite", "g.yaml"}


DIE_AT_COMMIT = """
import os, sqlite3

class Dying(sqlite3.Connection):
    def execute(self, sql, *values):
        if sql == "COMMIT":
            os._exit(9)
        return super().execute(sql, *values)

connect = sqlite3.connect
sqlite3.connect = lambda path, **more: connect(path, factory=Dying, **more)
"""
IMPORT = """
from pytest_kebab_eval.cli import main
main()
"""
DIE_BEFORE_THE_DATABASE_HAS_ITS_NAME = """
import os
from pytest_kebab_eval import files
files._take_name = lambda *_: os._exit(9)
"""


posix = pytest.mark.skipif(sys.platform == "win32", reason="file locks of POSIX")


def run_import(directory: Path, script: str) -> int:
    """Import in a process of its own; returns its exit code."""
    for name, text in FILES.items():
        (directory / name).write_text(text, encoding="utf-8")
    given = ["--run", "run.txt", "--qrels", "qrels.txt", "--db", "db.sqlite", "--golden-out", "g.yaml"]
    command = python("-c", script + IMPORT, "import", "trec", *given, "--overwrite")
    return subprocess.run(command, cwd=directory, check=False, capture_output=True).returncode


@posix
@pytest.mark.parametrize(
    "script", [DIE_BEFORE_THE_DATABASE_HAS_ITS_NAME, DIE_AT_COMMIT], ids=["name", "commit"]
)
def test_what_an_import_left_that_died_is_removed_by_the_next(tmp_path: Path, script: str) -> None:
    assert run_import(tmp_path, script) == 9
    assert len(names(tmp_path)) >= 2  # a golden file and a database, neither with its name
    assert not names(tmp_path) & {"db.sqlite", "g.yaml"}
    assert run_import(tmp_path, "") == 0
    assert names(tmp_path) == {"db.sqlite", "g.yaml"}
    assert len(load_golden_set(tmp_path / "g.yaml").queries) == 1


@posix
def test_an_import_that_dies_at_the_commit_leaves_the_golden_file_and_the_runs(tmp_path: Path) -> None:
    db = make_database(tmp_path / "db.sqlite", old={"q1": result("c1")})
    (tmp_path / "g.yaml").write_text("old", encoding="utf-8")
    before = dump(db)
    assert run_import(tmp_path, DIE_AT_COMMIT) == 9
    assert dump(db) == before
    assert (tmp_path / "g.yaml").read_text("utf-8") == "old"
    assert run_import(tmp_path, "") == 0
    assert names(tmp_path) == {"db.sqlite", "g.yaml"}
