"""Recording a run: what can be given, what cannot, and that a run is there whole or not at all."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import (
    Answer,
    DatabaseError,
    Hit,
    InputError,
    RunRecorder,
    StoreError,
    compare_runs,
    compute_aggregate,
    load_golden_set,
)
from pytest_kebab_eval.model import Cited
from tests.builders import Json, dump, hit, make_database, result, write_golden

NAN = float("nan")


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "eval.sqlite"


def rows(db: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql).fetchall()


def recorded(db: Path, *args: Any, **more: Any) -> Json:
    """The `result_json` of a run of one query."""
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", *args, **more)
    ((text,),) = rows(db, "SELECT result_json FROM eval_query_results")
    found: Json = json.loads(text)
    return found


def refusal(db: Path, *args: Any, **more: Any) -> str:
    """Why a query cannot be recorded; the run goes on without it."""
    with RunRecorder(db, run_id="r") as run:
        with pytest.raises(InputError) as caught:
            run.record("q1", *args, **more)
        run.record("q2", ["c1"])
    assert rows(db, "SELECT query_id FROM eval_query_results") == [("q2",)]
    return str(caught.value)


# -- hits ----------------------------------------------------------------------------------------


def test_hits_as_ids_are_ranked_as_they_come(db: Path) -> None:
    assert recorded(db, ["c7", "c3"])["hits_top_k"] == [
        {"rank": 1, "chunk_id": "c7", "doc_id": "c7"},
        {"rank": 2, "chunk_id": "c3", "doc_id": "c3"},
    ]


def test_a_pair_of_an_id_and_a_number_is_a_hit_with_a_score(db: Path) -> None:
    (found,) = recorded(db, [("c1", 0.5)])["hits_top_k"]
    assert (found["chunk_id"], found["doc_id"], found["retrieval"]) == ("c1", "c1", {"fusion_score": 0.5})


def test_a_pair_of_two_texts_is_a_chunk_and_its_document(db: Path) -> None:
    assert recorded(db, [("c1", "d1")])["hits_top_k"] == [{"rank": 1, "chunk_id": "c1", "doc_id": "d1"}]


def test_a_whole_hit_is_kept_with_fields_that_nobody_reads(db: Path) -> None:
    whole = hit("c1", rank=4, retrieval={"fusion_score": 0.25, "lexical_rank": 2}, chunker_version="v1")
    assert recorded(db, [whole])["hits_top_k"] == [whole]


def test_a_whole_hit_without_a_rank_has_that_of_its_place(db: Path) -> None:
    found = recorded(db, [{"chunk_id": "c1", "doc_id": "d1"}, {"chunk_id": "c2"}])["hits_top_k"]
    assert [(hit["rank"], hit["chunk_id"], hit["doc_id"]) for hit in found] == [
        (1, "c1", "d1"),
        (2, "c2", "c2"),
    ]


def test_a_hit_object_keeps_its_rank(db: Path) -> None:
    (found,) = recorded(db, [Hit(rank=3, chunk_id="c1", doc_id="d1", heading_path=("Intro",))])["hits_top_k"]
    assert (found["rank"], found["chunk_id"], found["heading_path"]) == (3, "c1", ["Intro"])


def test_hits_may_come_from_a_generator(db: Path) -> None:
    found = recorded(db, (f"c{number}" for number in (1, 2)))["hits_top_k"]
    assert [hit["chunk_id"] for hit in found] == ["c1", "c2"]


def test_no_hits_is_a_query_that_found_nothing(db: Path) -> None:
    assert recorded(db)["hits_top_k"] == []


# -- answers and the rest ------------------------------------------------------------------------


def test_an_answer_as_text_is_a_grounded_answer(db: Path) -> None:
    assert recorded(db, answer="42")["answer"] == {"answer": "42", "grounded": True, "citations": []}


def test_no_answer_is_null(db: Path) -> None:
    assert recorded(db)["answer"] is None


def test_an_answer_as_a_mapping_keeps_what_it_says(db: Path) -> None:
    given = {"answer": "I do not know", "grounded": False, "refusal_reason": "no hits", "model": "m1"}
    assert recorded(db, answer=given)["answer"] == {**given, "citations": []}


def test_an_answer_object_is_stored_as_it_reads_back(db: Path) -> None:
    said = Answer(grounded=True, text="42", citations=(Cited(chunk_id="c1", marker="[1]"),))
    stored = recorded(db, answer=said)["answer"]
    assert (stored["answer"], stored["grounded"]) == ("42", True)
    assert stored["citations"] == [{"citation": None, "marker": "[1]", "chunk_id": "c1"}]


def test_a_citation_that_is_only_text_is_the_id_of_a_chunk(db: Path) -> None:
    stored = recorded(db, ["c1"], {"answer": "42", "citations": ["c1", "c2"]})["answer"]
    assert [(cited["marker"], cited["chunk_id"]) for cited in stored["citations"]] == [
        ("[1]", "c1"),
        ("[2]", "c2"),
    ]


def test_further_fields_are_given_by_their_names(db: Path) -> None:
    stored = recorded(db, query="why?", elapsed_ms=12.5, error="boom", cost_usd=0.25, timed_out=True)
    assert (stored["query"], stored["elapsed_ms"], stored["error"]) == ("why?", 12.5, "boom")
    assert (stored["cost_usd"], stored["timed_out"]) == (0.25, True)


# -- what cannot be recorded ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [{"hits": [("c1", NAN)]}, {"elapsed_ms": NAN}, {"cost_usd": float("inf")}], ids=str
)
def test_a_number_that_is_none_is_refused(db: Path, given: Json) -> None:
    assert "q1" in refusal(db, **given)


def test_a_text_for_the_list_of_hits_is_refused(db: Path) -> None:
    refusal(db, "c1")


def test_a_text_for_the_list_of_citations_is_refused(db: Path) -> None:
    refusal(db, ["c1"], {"answer": "42", "citations": "c1"})


@pytest.mark.parametrize("shape", [None, 3, ["c1", 0.5], ("c1", 0.5, "d1")], ids=repr)
def test_a_hit_of_no_known_shape_is_refused_with_those_there_are(db: Path, shape: object) -> None:
    message = refusal(db, ["c0", shape])
    assert message.startswith(f"query 'q1': hit 2 is {shape!r}; give an id, a pair")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"hits": [hit("c1", rank=0)]}, "rank"),
        ({"hits": [hit("c1", rank=2), hit("c2", rank=2)]}, "the same rank"),
        ({"elapsed_ms": -1}, "elapsed_ms"),
        ({"answer": {"answer": 7}}, "answer"),
        ({"judge": {"groundedness": 6}}, "groundedness"),
        ({"hits": [{"chunk_id": 7}]}, "hits_top_k[0]"),
    ],
    ids=["rank 0", "rank twice", "negative time", "answer not text", "score above 5", "id not text"],
)
def test_what_could_not_be_read_back_is_refused(db: Path, given: Json, why: str) -> None:
    message = refusal(db, **given)
    assert message.startswith("query 'q1' cannot be recorded: ")
    assert why in message


@pytest.mark.parametrize(
    "given", [{"hits": ["c\ud800"]}, {"scope": {"mode": object()}}], ids=["no text", "object"]
)
def test_what_json_cannot_hold_is_refused(db: Path, given: Json) -> None:
    assert refusal(db, **given).startswith("'q1' cannot be recorded as JSON: ")


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
    recorded(db)
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
        run.config["index_version"] = 7
    assert given == {}


def test_a_run_without_queries_is_a_run(db: Path) -> None:
    with RunRecorder(db, run_id="r"):
        pass
    assert rows(db, "SELECT run_id FROM eval_runs") == [("r",)]


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
    recorded(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(git(outside, "rev-parse", "HEAD"),)]


def test_outside_a_repository_there_is_no_commit(outside: Path, db: Path) -> None:
    recorded(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_in_a_repository_without_a_commit_there_is_none(outside: Path, db: Path) -> None:
    git(outside, "init", "--quiet")
    recorded(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_without_git_there_is_no_commit(outside: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(outside))
    recorded(db)
    assert rows(db, "SELECT commit_hash FROM eval_runs") == [(None,)]


def test_a_commit_that_is_given_wins_over_git(outside: Path, db: Path) -> None:
    git(outside, "init", "--quiet")
    git(outside, "commit", "--quiet", "--allow-empty", "-m", "one")
    assert RunRecorder(db, commit_hash="abc").commit_hash == "abc"


# -- whole or not at all -------------------------------------------------------------------------


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_goes_wrong_inside_leaves_no_file(tmp_path: Path, db: Path, error: type[BaseException]) -> None:
    def record() -> None:
        with RunRecorder(db) as run:
            run.record("q1", ["c1"])
            raise error

    with pytest.raises(error):
        record()
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


@pytest.mark.parametrize("given", [{"run_id": "r\udcff"}, {"suite": "s\udcff"}], ids=["run id", "suite"])
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
    recorded(db)
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
        ["CREATE TABLE eval_query_results (run_id TEXT)", "CREATE TABLE songs (title TEXT)"],
    ],
    ids=["no eval tables", "only runs", "only results"],
)
def test_the_database_of_something_else_is_refused_before_any_work(db: Path, statements: list[str]) -> None:
    before = make_foreign(db, *statements)
    with pytest.raises(InputError, match="is a database of something else"), RunRecorder(db):
        pytest.fail("the block was entered")
    assert db.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_kept(db: Path) -> None:
    db.write_text("Dear diary, " * 100, encoding="utf-8")
    before = db.read_bytes()
    with pytest.raises(DatabaseError, match=r"eval\.sqlite"), RunRecorder(db):
        pytest.fail("the block was entered")
    assert db.read_bytes() == before


def test_a_directory_that_is_not_there_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"eval\.sqlite"), RunRecorder(tmp_path / "none" / "eval.sqlite"):
        pass


def test_a_run_that_is_there_is_refused_before_any_work(db: Path) -> None:
    make_database(db, r={"q1": result("c1")})
    before = db.read_bytes()
    with pytest.raises(InputError, match="has a run 'r' already"), RunRecorder(db, run_id="r"):
        pytest.fail("the block was entered")
    assert db.read_bytes() == before


def test_a_run_that_came_while_recording_is_not_overwritten(db: Path) -> None:
    def record_late() -> None:
        with RunRecorder(db, run_id="r") as run:
            run.record("q1", ["late"])
            recorded(db, ["early"])

    with pytest.raises(InputError, match="has a run 'r' already"):
        record_late()
    ((text,),) = rows(db, "SELECT result_json FROM eval_query_results")
    assert json.loads(text)["hits_top_k"][0]["chunk_id"] == "early"


def test_a_recorder_may_not_record_the_same_run_again(db: Path) -> None:
    run = RunRecorder(db, run_id="r")
    with run:
        run.record("q1", ["c1"])
    with pytest.raises(InputError, match="has a run 'r' already"), run:
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
    command = [sys.executable, "-c", WRITER, str(db)]
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
    assert compute_aggregate("a", db=db, golden=golden).mrr == 0.75
    report = compare_runs("a", "b", db=db, golden=golden)
    assert report.deltas
    assert report.deltas.mrr == -0.25
    kinds = {query.query_id: query.kind for query in report.per_query}
    assert kinds == {"q1": "draw", "q2": "regression"}


def test_latest_is_the_run_that_was_recorded_last(tmp_path: Path, db: Path) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    for run_id, found in (("z", "c9"), ("a", "c1")):  # the later one sorts first by its id
        with RunRecorder(db, run_id=run_id) as run:
            run.record("q1", [found])
    assert compute_aggregate("latest", db=db, golden=golden).mrr == 1.0
    assert compute_aggregate("latest~1", db=db, golden=golden).mrr == 0.0
