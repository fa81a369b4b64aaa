"""Whatever fails, a run and its golden file are both there or neither is, and nothing else is left."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import DatabaseError, InputError, StoreError, load_golden_set
from pytest_kebab_eval.importers import Source, Summary, import_run
from pytest_kebab_eval.store import open_database
from tests.builders import dump, make_database, result
from tests.forked import python
from tests.unit.importers.bringing import FORMATS, TREC, bring, refusal, with_bare_names, write_sources

BAD = {**TREC, "run.txt": f"{TREC['run.txt']}t3 Q0 d1 1\n"}
BUSY = OSError(16, "Device or resource busy")


def made(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - TREC.keys()


def test_an_import_says_what_it_brought(tmp_path: Path) -> None:
    brought = bring(tmp_path, "trec", TREC)
    assert brought.summary == Summary("r", queries=2, golden=2)
    with open_database(brought.db) as database:
        assert [(run.suite, run.commit_hash) for run in database.runs()] == [("s", None)]


def test_without_a_golden_file_only_the_run_is_stored(tmp_path: Path) -> None:
    assert bring(tmp_path, "trec", TREC, golden=None).summary == Summary("r", queries=2, golden=None)
    assert made(tmp_path) == {"db.sqlite"}


def test_two_runs_go_into_one_database(tmp_path: Path) -> None:
    before = dump(make_database(tmp_path / "db.sqlite", old={"q": result("c1")}))
    bring(tmp_path, "trec", TREC)
    assert set(before) < set(dump(tmp_path / "db.sqlite"))


@pytest.mark.parametrize("name", ["g.yaml", "g.yml", "g.json", "g.jsonl"])
def test_the_golden_file_is_of_the_format_that_its_ending_says(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("# old\n", "utf-8")  # which is replaced
    queries = bring(tmp_path, "trec", TREC, golden=name).queries().values()
    assert [(query.id, query.expected_chunk_ids) for query in queries] == [("t1", ("d1",)), ("t2", ("d1",))]


def test_importing_twice_writes_the_same_golden_file(tmp_path: Path) -> None:
    texts = set()
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        texts.add(bring(tmp_path / name, "trec", TREC).golden.read_bytes())
    assert len(texts) == 1


# -- ids that only one file has --------------------------------------------------------------------


def test_ids_of_one_file_alone_are_a_warning_that_has_both_counts(tmp_path: Path) -> None:
    files = {"run.txt": "x Q0 d 1 1 s\na Q0 d 1 1 s\n", "qrels.txt": "a 0 d 1\ny 0 d 1\nz 0 d 1\n"}
    summary = bring(tmp_path, "trec", files).summary
    assert (summary.queries, summary.golden) == (4, 3)
    assert with_bare_names(summary.warning or "", tmp_path, files) == (
        "run.txt has 2 topics and qrels.txt has 3 topics, 1 of them in both: 'x' is in run.txt alone,"
        " 'y' is in qrels.txt alone; say --allow-missing if that is right"
    )


def test_the_same_ids_in_another_order_are_no_warning(tmp_path: Path) -> None:
    files = {"run.txt": "b Q0 d 1 1 s\na Q0 d 1 1 s\n", "qrels.txt": "a 0 d 1\nb 0 d 1\n"}
    assert bring(tmp_path, "trec", files).summary.warning is None


# -- wrong use -------------------------------------------------------------------------------------


def test_wrong_use_is_named_before_any_work(tmp_path: Path) -> None:
    sources = write_sources(tmp_path, TREC)
    results = write_sources(tmp_path, {"results.jsonl": "{}\n"})
    nowhere = tmp_path / "nowhere"
    calls: list[tuple[str, dict[str, Any], dict[str, Path], str]] = [
        (
            "trec",
            {"run": Source("-"), "qrels": Source("-")},
            {},
            "only one of --run and --qrels can be standard",
        ),
        ("trec", sources, {"db": nowhere / "db"}, "there is no directory .*nowhere to make the database in"),
        (
            "trec",
            sources,
            {"golden_out": nowhere / "g"},
            "there is no directory .*nowhere to write the golden",
        ),
        (
            "trec",
            sources,
            {"golden_out": tmp_path / "run.txt"},
            "is read here; name another file for --golden-out",
        ),
        ("trec", sources, {"golden_out": tmp_path / "db.sqlite"}, "name another file for --golden-out"),
        ("kebab", results, {"golden_out": tmp_path / "g.yaml"}, "the format kebab has no golden queries"),
    ]
    for importer, given, more, says in calls:
        out: dict[str, Any] = {"db": tmp_path / "db.sqlite", "golden_out": None, **more}
        with pytest.raises(InputError, match=says):
            import_run(FORMATS[importer], given, run_id="r", suite=None, **out)
    assert made(tmp_path) == {"results.jsonl"}


# -- what fails ------------------------------------------------------------------------------------


def fail(error: BaseException) -> Callable[..., None]:
    def raising(*_: Any, **__: Any) -> None:
        raise error

    return raising


def test_a_bad_line_leaves_nothing(tmp_path: Path) -> None:
    assert refusal(tmp_path, "trec", BAD).startswith("run.txt:3: ")


def test_a_bad_line_leaves_what_was_there_byte_for_byte(tmp_path: Path) -> None:
    db = make_database(tmp_path / "db.sqlite", old={"q": result("c1")})
    (tmp_path / "g.yaml").write_text("# mine\n", "utf-8")
    before = db.read_bytes()
    with pytest.raises(InputError, match=r"run\.txt:3: "):
        bring(tmp_path, "trec", BAD)
    assert (db.read_bytes(), (tmp_path / "g.yaml").read_text("utf-8")) == (before, "# mine\n")
    assert made(tmp_path) == {"db.sqlite", "g.yaml"}


def test_a_run_that_is_there_already_is_not_replaced(tmp_path: Path) -> None:
    brought = bring(tmp_path, "trec", TREC)
    before, golden = dump(brought.db), brought.golden.read_bytes()
    with pytest.raises(InputError, match="has a run 'r' already"):
        bring(tmp_path, "trec", {**TREC, "run.txt": "t1 Q0 d7 1 9.0 t\n"})
    assert (dump(brought.db), brought.golden.read_bytes()) == (before, golden)


@pytest.mark.parametrize(
    ("error", "says"), [(DatabaseError, "cannot record into"), (InputError, "a database of something else")]
)
def test_a_run_that_cannot_be_stored_leaves_the_golden_file_alone(
    tmp_path: Path, error: type[Exception], says: str
) -> None:
    if error is DatabaseError:
        (tmp_path / "db.sqlite").mkdir()
    else:
        connection = sqlite3.connect(tmp_path / "db.sqlite")
        connection.execute("CREATE TABLE other (x)")
        connection.close()
    (tmp_path / "g.yaml").write_text("# old\n", "utf-8")
    with pytest.raises(error, match=says):
        bring(tmp_path, "trec", TREC)
    assert (tmp_path / "g.yaml").read_text("utf-8") == "# old\n"


@pytest.mark.parametrize("error", [BUSY, KeyboardInterrupt()])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_golden_file_that_cannot_take_its_place_leaves_all_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, is_new: bool
) -> None:
    if not is_new:
        make_database(tmp_path / "db.sqlite", old={"q1": result("c1")})
        (tmp_path / "g.yaml").write_text("old", "utf-8")
    before = None if is_new else dump(tmp_path / "db.sqlite")
    monkeypatch.setattr(Path, "replace", fail(error))
    with pytest.raises((StoreError, KeyboardInterrupt)):
        bring(tmp_path, "trec", TREC)
    assert made(tmp_path) == (set() if is_new else {"db.sqlite", "g.yaml"})
    if not is_new:
        assert (dump(tmp_path / "db.sqlite"), (tmp_path / "g.yaml").read_text("utf-8")) == (before, "old")


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
IMPORT = "\nfrom pytest_kebab_eval.cli import main\nmain()\n"


@pytest.mark.skipif(sys.platform == "win32", reason="as POSIX replaces files")
def test_an_import_that_dies_at_the_commit_leaves_the_golden_file_and_the_runs(tmp_path: Path) -> None:
    def run_import(script: str) -> int:
        options = ["--run", "run.txt", "--qrels", "qrels.txt", "--db", "db.sqlite", "--golden-out", "g.yaml"]
        command = python("-c", script + IMPORT, "import", "trec", *options, "--overwrite")
        return subprocess.run(command, cwd=tmp_path, check=False, capture_output=True).returncode

    write_sources(tmp_path, TREC)
    db = make_database(tmp_path / "db.sqlite", old={"q1": result("c1")})
    (tmp_path / "g.yaml").write_text("old", "utf-8")
    before = dump(db)
    assert run_import(DIE_AT_COMMIT) == 9
    assert (dump(db), (tmp_path / "g.yaml").read_text("utf-8")) == (before, "old")
    assert run_import("") == 0
    assert made(tmp_path) >= {"db.sqlite", "g.yaml"}  # what the dead one left is too new to go
    assert len(load_golden_set(tmp_path / "g.yaml").queries) == 2
