"""What a store promises, of every kind: runs, names, results, aggregates, recorder."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import (
    InputError,
    RunRecorder,
    StoreError,
    compare_runs,
    compute_aggregate,
    store_aggregate,
)
from pytest_kebab_eval.errors import DatabaseError, NoSuchRun, RunNameError
from pytest_kebab_eval.model import QueryResult, Run, Unreadable
from pytest_kebab_eval.store import backend_of, find_run, open_database, write_aggregates
from tests.builders import result, write_golden
from tests.stores import Store

ODD_IDS = [
    "Z",
    "a",
    "a b",
    "a'; DROP TABLE eval_runs; --",
    "b",
    "q%s",
    "é",
    "日本",
    "\U0001f600",
]  # by their bytes


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of an unfinished run may go into the working directory."""
    monkeypatch.chdir(tmp_path)


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_is_read_with_all_its_columns(store: Store) -> None:
    store.make(configs={"a": {"chunker_version": "v7"}}, a={"q1": result("c1")})
    store.execute("UPDATE eval_runs SET commit_hash = 'abc123', suite = 'docs'")
    with open_database(store.address) as database:
        run = find_run(database, "a")
        assert (run.run_id, run.suite, run.commit_hash) == ("a", "docs", "abc123")
        assert (run.created_at, run.chunker_version) == ("2026-01-01T00:00:00Z", "v7")
        assert database.result_counts() == {"a": 1}
        assert (database.result_count("a"), database.result_count("b")) == (1, 0)


def test_a_run_is_found_by_id_prefix_time_and_commit(store: Store) -> None:
    store.make(**{"run-1": {}, "run-2": {}, "other": {}})
    store.execute("UPDATE eval_runs SET commit_hash = 'feed' WHERE run_id = 'run-1'")
    with open_database(store.address) as database:
        names = {
            name: find_run(database, name).run_id
            for name in ("run-2", "o", "latest", "latest~1", "commit:fe")
        }
    # they are made a day apart, in this order
    assert names == {
        "run-2": "run-2",
        "o": "other",
        "latest": "other",
        "latest~1": "run-2",
        "commit:fe": "run-1",
    }


@pytest.mark.parametrize("name", ["run", "nothing", "a\0b", "\ud800", "%", "_____"])
def test_a_name_that_fits_none_or_several_lists_what_there_is(store: Store, name: str) -> None:
    store.make(**{"run-1": {}, "run-2": {}})
    with open_database(store.address) as database, pytest.raises(RunNameError) as caught:
        find_run(database, name)
    assert isinstance(caught.value, NoSuchRun) == (name != "run")
    assert "run-1" in str(caught.value)
    assert database.name in str(caught.value)


@pytest.mark.parametrize("snapshot", ["", "no json", "[1]", '{"a": ', "null"])
def test_a_config_that_does_not_parse_counts_as_empty_with_a_warning(store: Store, snapshot: str) -> None:
    store.make(configs={"a": snapshot}, a={})
    with open_database(store.address) as database:
        assert find_run(database, "a").config == {}
        assert database.warnings == ["the config snapshot of run a does not parse; it counts as empty"]


def test_secrets_of_a_configuration_are_masked(store: Store) -> None:
    store.make(configs={"a": {"api_key": "sk-12345678901234567890", "host": "h"}}, a={})
    with open_database(store.address, mask=["host"]) as database:
        assert find_run(database, "a").config == {"api_key": "***", "host": "***"}


# -- results ---------------------------------------------------------------------------------------


def ids_of(store: Store) -> list[str]:
    with open_database(store.address) as database:
        return [found.query_id for found in database.results("a")]


def test_results_come_in_the_order_of_the_bytes_of_their_ids(store: Store) -> None:
    store.make(a=dict.fromkeys(reversed(ODD_IDS), result("c1")), b={"q": result("c1")})
    assert ids_of(store) == ODD_IDS


def test_more_rows_than_are_fetched_at_a_time_are_all_read(store: Store) -> None:
    expected = [f"q{number:04}" for number in range(1001)]
    with RunRecorder(store.db, run_id="a") as run:
        for query_id in expected:
            run.record(query_id, ["c1"])
    assert ids_of(store) == expected


def test_rows_are_read_as_they_are_stored_all_or_those_of_some_queries(store: Store) -> None:
    store.make(a={**dict.fromkeys(ODD_IDS, result("c1")), "b": "no JSON"}, b={"q": result("c1")})
    with open_database(store.address) as database:
        everything = dict(database.rows("a"))
        assert [*everything] == ODD_IDS
        assert everything["b"] == b"no JSON"
        asked = ["日本", "b", "no such query", "a'; DROP TABLE eval_runs; --", "not\0there"]
        assert dict(database.rows("a", asked)) == {name: everything[name] for name in [*asked[:2], asked[3]]}
        assert [*database.rows("a", [])] == [*database.rows("no such run", ["b"])] == []


def test_rows_of_more_queries_than_are_asked_for_at_a_time_are_all_read(store: Store) -> None:
    names = [f"q{number:04}" for number in range(1001)]
    with RunRecorder(store.db, run_id="a") as run:
        for query_id in names:
            run.record(query_id, ["c1"])
    with open_database(store.address) as database:
        assert sorted(query_id for query_id, _ in database.rows("a", names[1:])) == names[1:]


def test_one_result_is_read_by_its_id(store: Store) -> None:
    store.make(a={"q1": result("c1"), "é": result("c2")})
    with open_database(store.address) as database:
        found = database.result("a", "é")
        assert isinstance(found, QueryResult)
        assert [hit.chunk_id for hit in found.hits] == ["c2"]
        others = (("a", "q2"), ("b", "q1"), ("a", "q\0"))
        assert [database.result(*names) for names in others] == [None, None, None]


@pytest.mark.parametrize(
    ("stored", "reason"),
    [
        ("no json", "malformed"),
        ('{"query_id": "q1", "hits_top_k": 7}', "Expected `array`"),
        (
            json.dumps(
                {"query_id": "q1"} | result({"rank": 1, "chunk_id": "a"}, {"rank": 1, "chunk_id": "b"})
            ),
            "rank",
        ),
    ],
)
def test_a_result_that_does_not_parse_is_unreadable_and_the_others_are_not(
    store: Store, stored: str, reason: str
) -> None:
    store.make(a={"q1": stored, "q2": result("c1")})
    with open_database(store.address) as database:
        bad, good = database.results("a")
    assert isinstance(bad, Unreadable)
    assert reason in bad.reason
    assert (bad.query_id, good.query_id) == ("q1", "q2")


def test_results_are_kept_byte_for_byte(store: Store) -> None:
    text = '{"query_id": "q1",  "hits_top_k": [],"z":1, "z": "\\u0000 \\ud83d\\ude00 é",\n"elapsed_ms": 1e0}'
    with RunRecorder(store.db, run_id="a") as run:
        run.record_json("q1", text.encode())
    with open_database(store.address) as database:
        assert database.holds("a", [("q1", text.encode())])
        assert not database.holds("a", [("q1", text.encode() + b" ")])
        assert not database.holds("a", [])


def test_reading_sees_one_state_while_others_write(store: Store) -> None:
    store.make(a={"q1": result("c1")})
    if store.db.endswith("sqlite"):  # in its default mode, one that reads keeps others from writing
        store.execute("PRAGMA journal_mode = wal")
    with open_database(store.address) as database:
        before = database.result_counts()
        backend_of(store.address).write_run(Run(run_id="b"), [("q1", b'{"hits_top_k": []}')])
        assert database.result_counts() == before
    with open_database(store.address) as database:
        assert database.result_counts() == {"a": 1, "b": 1}


# -- aggregates ------------------------------------------------------------------------------------


def test_both_aggregates_are_stored(store: Store) -> None:
    store.make(a={}, b={}, c={})
    write_aggregates({(store.address, "b"): b'{"mrr": 0.5}', (store.address, "a"): '{"ü": 1}'.encode()})
    assert [store.aggregate_of(name) for name in "abc"] == [{"ü": 1}, {"mrr": 0.5}, {}]
    with open_database(store.address) as database:
        assert database.stored_aggregate("b") == {"mrr": 0.5}


@pytest.mark.parametrize("missing", ["nosuch", "a\0"])
def test_an_unknown_run_is_an_error_and_nothing_is_stored(store: Store, missing: str) -> None:
    store.make(a={})
    before = store.dump()
    with pytest.raises(StoreError, match="nothing was stored: there is no run"):
        write_aggregates({(store.address, "a"): b'{"n": 1}', (store.address, missing): b'{"n": 2}'})
    assert store.dump() == before


def test_the_public_functions_take_its_name(store: Store, tmp_path: Path) -> None:
    store.make(a={"q1": result("c1")}, b={"q1": result("c9", "c1")})
    golden = write_golden(tmp_path / "g.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}])
    assert compute_aggregate("b", db=store.db, golden=golden).values["mrr"] == 0.5
    store_aggregate("b", compute_aggregate("b", db=store.db, golden=golden), db=store.db)
    assert store.aggregate_of("b")["mrr"] == 0.5
    (compared,) = compare_runs("a", "b", db=store.db, golden=golden).per_query
    assert (compared.a_hit_rank, compared.b_hit_rank) == (1, 2)


# -- recording -------------------------------------------------------------------------------------


def record(store: Store, run_id: str = "r", then: Exception | None = None, **given: Any) -> None:
    with RunRecorder(store.db, run_id=run_id, commit_hash="feed", **given) as run:
        run.record("q1", ["c1"], answer="text", elapsed_ms=3)
        if then:
            raise then


def test_a_run_is_recorded_with_its_results(store: Store) -> None:
    record(store, suite="docs", config={"chunker_version": "v2"})
    with open_database(store.address) as database:
        run = find_run(database, "r")
        assert (run.suite, run.commit_hash, run.chunker_version) == ("docs", "feed", "v2")
        (found,) = database.results("r")
    assert isinstance(found, QueryResult)
    assert (found.hits[0].chunk_id, found.elapsed_ms) == ("c1", 3)
    assert store.aggregate_of("r") == {}


def test_a_run_whose_block_raises_is_not_there(store: Store) -> None:
    record(store, "before")
    before = store.dump()
    with pytest.raises(TypeError, match="boom"):
        record(store, "r", then=TypeError("boom"))
    assert store.dump() == before


def test_a_run_id_that_is_taken_is_refused_before_the_work_is_done(store: Store) -> None:
    record(store)
    before = store.dump()
    with (
        pytest.raises(InputError, match="has a run 'r' already; name the new one differently"),
        RunRecorder(store.db, run_id="r"),
    ):
        pytest.fail("it is refused at the start")
    assert store.dump() == before


def test_of_two_recorders_of_one_id_one_is_refused_and_the_other_whole(store: Store) -> None:
    with ExitStack() as stack:
        slow = RunRecorder(store.db, run_id="r")
        slow.keeps_unfinished = False  # which would refuse the other one at its start
        stack.enter_context(slow)
        slow.record("q2", ["c2"])
        record(store)
        with pytest.raises(InputError, match="has a run 'r' already"):
            stack.close()
    assert store.rows("SELECT query_id FROM eval_query_results") == [("q1",)]


def test_a_run_can_be_removed_again(store: Store) -> None:
    record(store, "kept")
    before = store.dump()
    record(store)
    backend_of(store.address).remove_run("r", with_file=False)
    assert store.dump() == before


def test_chunks_of_an_index_are_recorded_and_replaced_by_version(store: Store) -> None:
    old = [{"chunk_id": name, "doc_id": "d1", "path": "a.md", "text": name} for name in ("c1", "c2")]
    new = [{"chunk_id": "c1", "doc_id": "d2", "path": "b.md", "text": "c1, anew", "start": 1, "end": 2}]
    record(store, "r1", chunks=old, config={"chunker_version": "v1"})
    record(store, "r2", chunks=new, config={"chunker_version": "v2"})
    # v2 has a c1 of its own; both of v1 stay
    assert sorted(store.rows("SELECT chunk_id, doc_id, text, chunker_version FROM chunks")) == [
        ("c1", "d1", "c1", "v1"),
        ("c1", "d2", "c1, anew", "v2"),
        ("c2", "d1", "c2", "v1"),
    ]
    record(store, "r3", chunks=new, config={"chunker_version": "v1"})
    found = store.rows("SELECT chunk_id, chunker_version FROM chunks ORDER BY chunker_version")
    assert found == [("c1", "v1"), ("c1", "v2")]
    assert store.rows("SELECT * FROM documents") == [("d2", "b.md")]


# -- refused ---------------------------------------------------------------------------------------


def test_a_missing_table_is_named(store: Store) -> None:
    store.make(a={})
    store.execute("DROP TABLE eval_query_results")
    with pytest.raises(DatabaseError, match="has no table eval_query_results;"), open_database(store.address):
        pass


def test_a_table_without_a_column_is_said_to_be_of_another_version(store: Store) -> None:
    store.make(a={})
    store.execute("ALTER TABLE eval_runs RENAME COLUMN suite TO suites")
    with (
        pytest.raises(DatabaseError, match=r"suite.*another version"),
        open_database(store.address) as database,
    ):
        database.runs()


def test_a_view_where_a_table_is_expected_is_refused(store: Store) -> None:
    store.make(a={})
    store.execute("ALTER TABLE eval_query_results RENAME TO real_ones")
    store.execute("CREATE VIEW eval_query_results AS SELECT * FROM real_ones")
    expected = (
        "is refused: eval_query_results is a view, not a table; make it a table, or name another database"
    )
    with pytest.raises(DatabaseError, match=expected), open_database(store.address):
        pass
    with pytest.raises(StoreError, match=expected):
        write_aggregates({(store.address, "a"): b"{}"})
    with pytest.raises(InputError, match=expected):
        record(store)
