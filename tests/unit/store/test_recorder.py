"""Recording a run: what cannot be recorded, and that a run is stored whole or not at all."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import (
    InputError,
    RunRecorder,
    compare_runs,
    compute_aggregate,
    load_golden_set,
)
from tests.builders import Json, hit, write_golden
from tests.unit.store.conftest import record_one, rows

NAN = float("nan")


def refusal(db: Path, *args: Any, **more: Any) -> str:
    """Why a query cannot be recorded; the run goes on without it."""
    with RunRecorder(db, run_id="r") as run:
        with pytest.raises(InputError) as caught:
            run.record("q1", *args, **more)
        run.record("q2", ["c1"])
    assert rows(db, "SELECT query_id FROM eval_query_results") == [("q2",)]
    return str(caught.value)


# -- what cannot be recorded ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{"hits": [("c1", NAN)]}, {"elapsed_ms": NAN}, {"cost_usd": float("inf")}], ids=str
)
def test_a_number_that_is_none_is_refused(db: Path, given: Json) -> None:
    assert "q1" in refusal(db, **given)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"hits": [hit("c1", rank=0)]}, "rank of hit 1: expected a whole number >= 1"),
        ({"elapsed_ms": -1}, "elapsed_ms: expected a number >= 0.0"),
        ({"judge": {"groundedness": 6}}, "groundedness of judge: expected a number <= 5.0"),
        (
            {"hits": ["c1", {"chunk_id": "c2", "text": 7}]},
            "text of hit 2: expected text or nothing, got a whole number",
        ),
        ({"timed_out": "no"}, "timed_out: expected true or false or nothing, got text"),
        ({"query": 7}, "query: expected text, got a whole number"),
    ],
    ids=["rank 0", "negative time", "score above 5", "text not text", "flag not flag", "query not text"],
)
def test_what_could_not_be_read_back_is_refused_in_plain_words(db: Path, given: Json, why: str) -> None:
    assert refusal(db, **given) == f"query 'q1' cannot be recorded: {why}"


@pytest.mark.parametrize(
    "given", [{"hits": ["c\ud800"]}, {"scope": {"mode": object()}}], ids=["no text", "object"]
)
def test_what_json_cannot_hold_is_refused(db: Path, given: Json) -> None:
    assert refusal(db, **given).startswith("'q1' cannot be recorded as JSON: ")


def test_the_id_of_a_query_may_be_a_number(db: Path) -> None:
    with RunRecorder(db, run_id="r") as run:
        run.record(7, ["c1"])
    assert rows(db, "SELECT query_id FROM eval_query_results") == [("7",)]


def test_an_empty_id_of_a_query_is_refused(db: Path) -> None:
    with pytest.raises(InputError, match="the id of a query is empty"), RunRecorder(db) as run:
        run.record("", ["c1"])


def test_a_query_is_recorded_only_once(db: Path) -> None:
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", ["c1"])
        with pytest.raises(InputError, match="query 'q1' is recorded twice in run r"):
            run.record("q1", ["c2"])
    ((text,),) = rows(db, "SELECT result_json FROM eval_query_results")
    assert json.loads(text)["hits_top_k"][0]["chunk_id"] == "c1"  # the first stands


def test_nothing_is_recorded_before_the_with_block(db: Path) -> None:
    with pytest.raises(InputError, match="inside its with block"):
        RunRecorder(db).record("q1", ["c1"])
    assert not db.exists()


def test_nothing_is_recorded_after_the_with_block(db: Path) -> None:
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", ["c1"])
    with pytest.raises(InputError, match="inside its with block"):
        run.record("q2", ["c1"])
    assert rows(db, "SELECT query_id FROM eval_query_results") == [("q1",)]


def test_a_hostile_id_is_inert_in_the_refusal(db: Path) -> None:
    with RunRecorder(db) as run:
        run.record("\x1b[31mq", [])
        with pytest.raises(InputError) as caught:
            run.record("\x1b[31mq", [])
    assert "\x1b" not in str(caught.value)


# -- the run -------------------------------------------------------------------------------------


def test_a_run_has_its_id_suite_config_and_no_aggregate_yet(db: Path) -> None:
    config = {"chunker_version": "v2", "config": {"k1": 0.9}}
    with RunRecorder(db, suite="docs", config=config, run_id="r", commit_hash="abc") as run:
        run.record("q1", ["c1"])
    (row,) = rows(
        db, "SELECT run_id, suite, config_snapshot_json, aggregate_json, commit_hash FROM eval_runs"
    )
    assert (row[0], row[1], json.loads(row[2]), row[3], row[4]) == ("r", "docs", config, "{}", "abc")


def test_the_moment_is_rfc_3339_in_utc(db: Path) -> None:
    record_one(db)
    ((moment,),) = rows(db, "SELECT created_at FROM eval_runs")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", moment)


def test_config_may_be_learnt_while_recording(db: Path) -> None:
    with RunRecorder(db, config={"chunker_version": "v1"}) as run:
        run.record("q1")
        run.config["index_version"] = 7
    ((config,),) = rows(db, "SELECT config_snapshot_json FROM eval_runs")
    assert json.loads(config) == {"chunker_version": "v1", "index_version": 7}


def test_the_mapping_that_was_given_is_not_changed(db: Path) -> None:
    given: Json = {}
    with RunRecorder(db, config=given) as run:
        run.record("q1", ["c1"])
        run.config["index_version"] = 7
    assert given == {}


def test_a_run_in_which_nothing_was_recorded_is_refused_and_not_stored(db: Path) -> None:
    with (
        pytest.raises(InputError, match="run r is not stored: nothing was recorded in it"),
        RunRecorder(db, run_id="r"),
    ):
        pass
    assert not db.exists()


def test_an_empty_run_id_is_not_a_new_one(db: Path) -> None:
    with pytest.raises(InputError, match="'' is no run id"):
        RunRecorder(db, run_id="")


@pytest.mark.parametrize("name", ["latest", "latest~2", "commit:abc", "tag:x", "tag:", "x,y", ",", "a\n,b"])
def test_a_way_to_name_runs_is_no_id_of_a_new_one(db: Path, name: str) -> None:
    with pytest.raises(InputError, match="is a way to name runs, so no run can have it as its id"):
        RunRecorder(db, run_id=name)


@pytest.mark.parametrize("name", ["latest-1", "tag-x", "mytag:x", "x;y"])
def test_what_only_looks_like_a_way_to_name_runs_is_an_id(db: Path, name: str) -> None:
    assert RunRecorder(db, run_id=name).run_id == name


def test_a_new_id_is_run_and_32_hex_digits(db: Path) -> None:
    assert re.fullmatch(r"run_[0-9a-f]{32}", RunRecorder(db).run_id)


def test_new_ids_sort_by_time(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # From one millisecond to the next, over the end of a second and of a power of 16.
    moments = [1_767_225_599_999, 1_767_225_600_000, 0x19B_7FFF_FFFF, 0x19B_8000_0000]
    assert moments == sorted(moments)
    clock = iter(moments)
    monkeypatch.setattr(time, "time_ns", lambda: next(clock) * 1_000_000)
    ids = [RunRecorder(db, commit_hash="c").run_id for _ in moments]
    assert ids == sorted(ids)


def test_new_ids_differ_also_within_a_moment(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_767_225_600_000_000_000)
    assert len({RunRecorder(db, commit_hash="c").run_id for _ in range(100)}) == 100


# -- the commit ----------------------------------------------------------------------------------


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in no git repository whatever is above it."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def git(directory: Path, *args: str) -> str:
    settings = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *settings, *args], cwd=directory, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def test_the_commit_is_that_of_the_working_directory(outside: Path, db: Path, monkeypatch: Any) -> None:
    git(outside, "init", "--quiet")
    git(outside, "commit", "--quiet", "--allow-empty", "-m", "one")
    (outside / "below").mkdir()
    monkeypatch.chdir(outside / "below")
    record_one(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(git(outside, "rev-parse", "HEAD"),)]


def test_outside_a_repository_there_is_no_commit(outside: Path, db: Path) -> None:
    record_one(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_in_a_repository_without_a_commit_there_is_none(outside: Path, db: Path) -> None:
    git(outside, "init", "--quiet")
    record_one(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_without_git_there_is_no_commit(outside: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(outside))
    record_one(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_a_commit_that_is_given_wins_over_git(outside: Path, db: Path) -> None:
    git(outside, "init", "--quiet")
    git(outside, "commit", "--quiet", "--allow-empty", "-m", "one")
    assert RunRecorder(db, commit_hash="abc").commit_hash == "abc"


# -- what was recorded, judged -------------------------------------------------------------------


def test_recorded_runs_are_scored_and_compared(tmp_path: Path, db: Path) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml",
        [
            {"id": "q1", "query": "one?", "expected_chunk_ids": ["c1"]},
            {"id": "q2", "query": "two?", "expected_chunk_ids": ["c2"]},
        ],
    )
    searches: dict[str, Callable[[str], list[str]]] = {
        "a": lambda text: ["c1", "c2"],  # q1 at rank 1, q2 at rank 2: mrr (1 + 1/2) / 2 = 0.75
        "b": lambda text: ["c1", "c9"],  # q1 at rank 1, q2 not: mrr (1 + 0) / 2 = 0.5
    }
    for run_id, search in searches.items():
        with RunRecorder(db, run_id=run_id, config={"chunker_version": "v1"}) as run:
            for query in load_golden_set(golden).queries:
                run.record(query.id, search(query.query), query=query.query)
    assert compute_aggregate("a", db=db, golden=golden).values["mrr"] == 0.75
    report = compare_runs("a", "b", db=db, golden=golden)
    assert report.deltas
    assert report.deltas.values["mrr"] == -0.25
    kinds = {query.query_id: query.kind for query in report.per_query}
    assert kinds == {"q1": "draw", "q2": "regression"}


def test_latest_is_the_run_that_was_recorded_last(tmp_path: Path, db: Path) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    for run_id, found in (("z", "c9"), ("a", "c1")):  # the later one sorts first by its id
        with RunRecorder(db, run_id=run_id) as run:
            run.record("q1", [found])
    assert compute_aggregate("latest", db=db, golden=golden).values["mrr"] == 1.0
    assert compute_aggregate("latest~1", db=db, golden=golden).values["mrr"] == 0.0


def test_an_id_is_recorded_as_it_is_compared(db: Path) -> None:
    with RunRecorder(db, run_id="r") as run:
        run.record(" u\u0308 ", ["c1"])
        assert run.has("\u00fc")
        with pytest.raises(InputError, match=r"twice|already"):
            run.record("\u00fc", ["c1"])
    assert rows(db, "SELECT query_id FROM eval_query_results") == [("\u00fc",)]
