"""Runs that move between stores, tags, and old runs that go; the same for every kind of store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.errors import DatabaseError, NoSuchRun, StoreError
from pytest_kebab_eval.store import backend_of, find_run, open_database
from pytest_kebab_eval.store.moving import (
    find_prunable,
    set_tag,
    tags_by_run,
)
from tests.builders import result
from tests.stores import SqliteStore, Store

ODD = '{"config": {"temperature": 0.10, "note": "é — \\u00e9"},   "chunker_version": "v1"}'


def rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """The runs and results of a store, as they are."""
    runs = (
        "SELECT run_id, suite, config_snapshot_json, aggregate_json, commit_hash, created_at FROM eval_runs"
    )
    results = "SELECT run_id, query_id, result_json FROM eval_query_results"
    return {"runs": sorted(store.rows(runs), key=repr), "results": sorted(store.rows(results), key=repr)}


@pytest.fixture
def file(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "other.sqlite")


# -- tags ----------------------------------------------------------------------------------------


def test_a_tag_names_a_run_until_it_is_moved_or_removed(store: Store) -> None:
    store.make(a={}, b={})
    set_tag(store.address, "baseline", "a")
    assert found(store, "tag:baseline") == "a"
    set_tag(store.address, "baseline", "b")
    assert found(store, "tag:baseline") == "b"
    backend_of(store.address).tag("baseline", None)
    with pytest.raises(
        NoSuchRun, match=r"there is no tag 'baseline' in .*; kebab-eval tag RUN NAME sets one"
    ):
        found(store, "tag:baseline")


def found(store: Store, name: str) -> str:
    with open_database(store.address) as database:
        return find_run(database, name).run_id


def test_a_tag_may_be_named_alone_where_no_run_has_such_an_id(store: Store) -> None:
    store.make(a={}, release={}, rel={})
    for name in ("baseline", "rel"):
        set_tag(store.address, name, "a")
    with open_database(store.address) as database:
        found = {name: find_run(database, name).run_id for name in ("baseline", "rel", "relea")}
    assert found == {"baseline": "a", "rel": "rel", "relea": "release"}


def test_a_run_whose_id_looks_like_a_tag_is_found_by_its_id(store: Store) -> None:
    store.make(**{"tag:x": {}, "b": {}})
    set_tag(store.address, "x", "b")
    assert found(store, "tag:x") == "tag:x"


def test_a_tag_that_is_not_there_lists_those_that_are(store: Store) -> None:
    store.make(a={})
    set_tag(store.address, "v1", "a")
    set_tag(store.address, "baseline", "a")
    with pytest.raises(NoSuchRun, match="it has the tags baseline, v1"):
        found(store, "tag:v2")


def test_a_tag_of_a_run_that_is_gone_says_so(store: Store) -> None:
    store.make(a={}, b={})
    set_tag(store.address, "old", "a")
    store.execute("DELETE FROM eval_runs WHERE run_id = 'a'")
    with pytest.raises(NoSuchRun, match=r"the tag 'old' of .* names the run 'a', which is gone; tag another"):
        found(store, "tag:old")


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "é", "x" * 101, "a,b", "a\0"])
def test_a_name_that_cannot_be_typed_is_no_tag(store: Store, name: str) -> None:
    store.make(a={})
    with pytest.raises(InputError, match="cannot be a tag"):
        set_tag(store.address, name, "a")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE VIEW kebab_eval_tags AS SELECT 'x' AS name, 'a' AS run_id", "kebab_eval_tags is a view"),
        (
            "CREATE TRIGGER t AFTER INSERT ON kebab_eval_tags BEGIN DELETE FROM eval_runs; END",
            "the trigger 't' would run when kebab_eval_tags is written",
        ),
    ],
)
def test_tags_that_would_run_something_are_refused(tmp_path: Path, statement: str, message: str) -> None:
    store = SqliteStore(tmp_path / "kebab.sqlite")
    store.make(a={})
    if "TRIGGER" in statement:
        set_tag(store.address, "t", "a")
    store.execute(statement)
    with pytest.raises(DatabaseError, match=message):
        set_tag(store.address, "baseline", "a")


def test_tags_are_listed_by_run() -> None:
    assert tags_by_run({"b": "1", "a": "1", "c": "2"}) == {"1": ["a", "b"], "2": ["c"]}


# -- old runs ------------------------------------------------------------------------------------


def ids(store: Store) -> list[str]:
    return sorted(run_id for (run_id,) in store.rows("SELECT run_id FROM eval_runs"))


def test_the_newest_runs_of_each_suite_stay(store: Store) -> None:
    store.make(r1={"q": result("c")}, r2={}, r3={}, s1={}, s2={})  # a day apart, in this order
    store.execute("UPDATE eval_runs SET suite = 'other' WHERE run_id IN ('s1', 's2')")
    prunable = find_prunable(store.address, keep=1)
    assert [run.run_id for run in prunable.to_remove] == ["s1", "r2", "r1"]
    assert [run.run_id for run in find_prunable(store.address, 1, "other").to_remove] == ["s1"]
    backend_of(store.address).remove_runs([run.run_id for run in prunable.to_remove])
    assert ids(store) == ["r3", "s2"]
    assert store.rows("SELECT * FROM eval_query_results") == []


def test_a_tagged_run_is_never_removed(store: Store) -> None:
    store.make(r1={}, r2={}, r3={})
    set_tag(store.address, "baseline", "r1")
    prunable = find_prunable(store.address, keep=1)
    assert [run.run_id for run in prunable.to_remove] == ["r2"]
    assert [run.run_id for run in prunable.tagged] == ["r1"]
    with pytest.raises(InputError, match=r"run 'r1' of .* is tagged 'baseline'; nothing was removed"):
        backend_of(store.address).remove_runs(["r2", "r1"])
    assert ids(store) == ["r1", "r2", "r3"]


def on_branches(**branches: str | None) -> dict[str, Any]:
    """Configurations of runs by their ids, each of a branch."""
    return {run_id: {"pytest_kebab_eval": {"branch": branch}} for run_id, branch in branches.items()}


def test_runs_of_pull_requests_do_not_push_out_those_of_main(store: Store) -> None:
    store.make(
        configs=on_branches(m1="main", m2="main", p1="a", p2="b", p3="b"), m1={}, m2={}, p1={}, p2={}, p3={}
    )
    assert [run.run_id for run in find_prunable(store.address, keep=1).to_remove] == ["p2", "m1"]


def test_where_a_branch_is_named_all_others_count_together(store: Store) -> None:
    store.make(configs=on_branches(m1="main", m2="main", p1="a", p2="b"), m1={}, m2={}, p1={}, p2={}, p3={})
    prunable = find_prunable(store.address, keep=1, branches=["main"])
    assert [run.run_id for run in prunable.to_remove] == ["p2", "p1", "m1"]


# -- room ----------------------------------------------------------------------------------------

LONG = {f"q{number}": result("c1", text="x" * 3_000) for number in range(200)}


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_the_room_of_removed_runs_is_given_back(tmp_path: Path, journal: str) -> None:
    store = SqliteStore(tmp_path / "kebab.sqlite")
    store.make(r1=LONG, r2={"q": result("c1")})
    store.execute("CREATE TABLE theirs (x TEXT CHECK (json_valid(x)))")
    store.execute("INSERT INTO theirs VALUES ('{}')")
    store.execute(f"PRAGMA journal_mode = {journal}")
    backend_of(store.address).remove_runs(["r1"])
    room = backend_of(store.address).give_back_room()
    assert room is not None
    assert room.before > 600_000
    assert room.after == store.path.stat().st_size < 100_000
    assert store.rows("PRAGMA journal_mode") == [(journal.lower(),)]
    assert (ids(store), store.rows("SELECT x FROM theirs")) == (["r2"], [("{}",)])


def test_a_recorder_that_waits_meanwhile_loses_nothing(tmp_path: Path) -> None:
    """It has the file open: a new file in its place would not have its run."""
    store = SqliteStore(tmp_path / "kebab.sqlite")
    store.make(r1=LONG, r2={})
    backend_of(store.address).remove_runs(["r1"])
    with closing(sqlite3.connect(store.path, isolation_level=None)) as waiting:
        waiting.execute("SELECT count(*) FROM eval_runs").fetchone()
        backend_of(store.address).give_back_room()
        waiting.execute("INSERT INTO eval_runs VALUES ('r3', 's', '{}', '{}', NULL, '2026-02-01T00:00:00Z')")
    assert ids(store) == ["r2", "r3"]


@pytest.mark.parametrize("holds", ["reads", "writes"])
def test_a_file_that_others_hold_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: str
) -> None:
    monkeypatch.setattr("pytest_kebab_eval.store.sqlite.WRITE_TIMEOUT_S", 0.1)
    store = SqliteStore(tmp_path / "kebab.sqlite")
    store.make(r1=LONG, r2={})
    backend_of(store.address).remove_runs(["r1"])
    before = store.path.read_bytes()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE" if holds == "writes" else "BEGIN")
        other.execute("SELECT count(*) FROM eval_runs").fetchone()
        with pytest.raises(StoreError, match=r"was not given back in .*: it is locked by another program"):
            backend_of(store.address).give_back_room()
    assert store.path.read_bytes() == before
