"""The pipeline and the public functions of section 6: where they read, and what they write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import pytest_kebab_eval
from pytest_kebab_eval import (
    AggregateMetrics,
    ChunkerError,
    CompareReport,
    ComparisonKind,
    DatabaseError,
    GoldenError,
    KebabEvalError,
    RunNameError,
    StoreError,
    compare_runs,
    compute_aggregate,
    load_golden_set,
    render_report_md,
    store_aggregate,
)
from pytest_kebab_eval.comparing.deltas import Deltas
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluation import Evaluation, evaluate, read_evidence, store
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.settings import Settings
from tests.builders import (
    Json,
    aggregate_of,
    answer,
    dump,
    hit,
    line,
    make_database,
    render_report_json,
    result,
    write_golden,
)

C1: Json = {"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Run a finds c1 at rank 1, run b at rank 2."""
    return make_database(tmp_path / "runs.sqlite", a={"q1": result("c1")}, b={"q1": result("x", "c1")})


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return write_golden(tmp_path / "golden.yaml", [C1])


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the environment that the tests run in is used."""
    for name in ("KEBAB_EVAL_DB", "KEBAB_EVAL_GOLDEN", "KEBAB_EVAL_RUN_A", "KEBAB_EVAL_RUN_B"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "no-data"))


def deltas_of(report: CompareReport) -> Deltas:
    assert report.deltas is not None
    return report.deltas


def side_a(report: CompareReport) -> AggregateMetrics:
    assert report.aggregate_a is not None
    return report.aggregate_a


# -- compute_aggregate and store_aggregate ---------------------------------------------------------


def test_an_aggregate_is_computed_from_a_database_and_a_golden_file(db: Path, golden: Path) -> None:
    assert compute_aggregate("a", db=db, golden=golden).mrr == 1.0
    assert compute_aggregate("b", db=db, golden=golden).mrr == 0.5


def test_paths_may_be_text(db: Path, golden: Path) -> None:
    assert compute_aggregate("b", db=str(db), golden=str(golden)).mrr == 0.5


def test_computing_twice_gives_the_same_bytes(db: Path, golden: Path) -> None:
    first, second = (msgspec.json.encode(compute_aggregate("b", db=db, golden=golden)) for _ in range(2))
    assert first == second


def test_computing_and_comparing_write_nothing(db: Path, golden: Path) -> None:
    before = dump(db)
    compute_aggregate("a", db=db, golden=golden)
    compare_runs("a", "b", db=db, golden=golden)
    assert dump(db) == before


def test_a_stored_aggregate_is_in_its_run_alone(db: Path, golden: Path) -> None:
    store_aggregate("b", compute_aggregate("b", db=db, golden=golden), db=db)
    assert aggregate_of(db, "b")["hit_at_k"] == {"1": 0.0, "3": 1.0, "5": 1.0, "10": 1.0}
    assert aggregate_of(db, "a") == {}


def test_a_stored_aggregate_is_what_was_computed(db: Path, golden: Path) -> None:
    aggregate = compute_aggregate("b", db=db, golden=golden)
    store_aggregate("b", aggregate, db=db)
    assert aggregate_of(db, "b") == json.loads(msgspec.json.encode(aggregate))


def test_storing_again_replaces_what_was_stored(db: Path, golden: Path) -> None:
    for run_id in ("a", "b"):
        store_aggregate("b", compute_aggregate(run_id, db=db, golden=golden), db=db)
    assert aggregate_of(db, "b")["mrr"] == 0.5


@pytest.mark.parametrize("run_id", ["nobody", "", "A"])
def test_storing_for_an_unknown_run_is_an_error_and_changes_nothing(
    db: Path, golden: Path, run_id: str
) -> None:
    before = dump(db)
    with pytest.raises(StoreError):
        store_aggregate(run_id, compute_aggregate("a", db=db, golden=golden), db=db)
    assert dump(db) == before


def test_storing_into_a_database_that_is_not_there_makes_none(tmp_path: Path, db: Path, golden: Path) -> None:
    aggregate = compute_aggregate("a", db=db, golden=golden)
    with pytest.raises(KebabEvalError):
        store_aggregate("a", aggregate, db=tmp_path / "new.sqlite")
    assert not (tmp_path / "new.sqlite").exists()


def test_an_unknown_run_is_an_error_that_lists_those_there_are(db: Path, golden: Path) -> None:
    with pytest.raises(RunNameError, match=r"(?s)nobody.*\bb\b.*\ba\b"):
        compute_aggregate("nobody", db=db, golden=golden)


def test_a_run_may_be_named_by_when_it_was_made(db: Path, golden: Path) -> None:
    report = compare_runs("latest~1", "latest", db=db, golden=golden)
    assert (report.run_a, report.run_b) == ("a", "b")


@pytest.mark.parametrize("missing", ["db", "golden"])
def test_a_file_that_is_not_there_is_an_error_that_names_it(
    tmp_path: Path, db: Path, golden: Path, missing: str
) -> None:
    paths = {"db": db, "golden": golden} | {missing: tmp_path / "nowhere.x"}
    with pytest.raises((DatabaseError, GoldenError), match=r"nowhere\.x"):
        compute_aggregate("a", **paths)


# -- compare_runs ------------------------------------------------------------------------------------


def test_two_runs_of_one_database_are_compared(db: Path, golden: Path) -> None:
    report = compare_runs("a", "b", db=db, golden=golden)
    assert (report.run_a, report.run_b) == ("a", "b")
    assert (side_a(report).mrr, report.aggregate_b.mrr, deltas_of(report).mrr) == (1.0, 0.5, -0.5)
    assert [(comparison.query_id, comparison.note) for comparison in report.per_query] == [("q1", "rank 1→2")]


def test_the_order_of_the_runs_is_that_of_the_arguments(db: Path, golden: Path) -> None:
    assert deltas_of(compare_runs("b", "a", db=db, golden=golden)).mrr == 0.5


def test_a_run_compared_with_itself_is_all_draws(db: Path, golden: Path) -> None:
    report = compare_runs("b", "b", db=db, golden=golden)
    assert [comparison.kind for comparison in report.per_query] == [ComparisonKind.DRAW]
    assert set(deltas_of(report).by_name().values()) <= {0.0, None}


def test_an_aggregate_in_a_comparison_is_that_of_the_run_alone(db: Path, golden: Path) -> None:
    report = compare_runs("a", "b", db=db, golden=golden)
    assert report.aggregate_a == compute_aggregate("a", db=db, golden=golden)
    assert report.aggregate_b == compute_aggregate("b", db=db, golden=golden)


def test_a_strict_comparison_refuses_different_chunkers(tmp_path: Path, golden: Path) -> None:
    configs = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}}
    rows = {"q1": result("c1")}
    path = make_database(tmp_path / "two.sqlite", a=rows, b=rows, configs=configs)
    assert (
        deltas_of(compare_runs("a", "b", db=path, golden=golden)).chunker_version_match == "fallback_doc_span"
    )
    with pytest.raises(ChunkerError, match="v2"):
        compare_runs("a", "b", db=path, golden=golden, strict_chunker_version=True)


def test_runs_in_two_databases_are_compared(tmp_path: Path, golden: Path) -> None:
    db_a = make_database(tmp_path / "a.sqlite", same={"q1": result("c1")})
    db_b = make_database(tmp_path / "b.sqlite", same={"q1": result("x")})
    report = evaluate(Settings(run_a="same", run_b="same", db_a=db_a, db_b=db_b, golden=golden)).report
    assert [comparison.note for comparison in report.per_query] == ["hit→miss"]


def test_both_aggregates_are_stored_each_where_its_run_is(tmp_path: Path, golden: Path) -> None:
    db_a = make_database(tmp_path / "a.sqlite", same={"q1": result("c1")})
    db_b = make_database(tmp_path / "b.sqlite", same={"q1": result("x")})
    chosen = Settings(run_a="same", run_b="same", db_a=db_a, db_b=db_b, golden=golden)
    store(chosen, evaluate(chosen))
    assert (aggregate_of(db_a, "same")["mrr"], aggregate_of(db_b, "same")["mrr"]) == (1.0, 0.0)


def test_the_aggregate_of_a_run_with_an_unreadable_result_is_not_stored(tmp_path: Path, golden: Path) -> None:
    path = make_database(tmp_path / "runs2.sqlite", a={"q1": result("c1")}, b={"q1": "{not json"})
    chosen = Settings(run_a="a", run_b="b", db_a=path, db_b=path, golden=golden)
    evaluation = evaluate(chosen)
    store(chosen, evaluation)
    assert (aggregate_of(path, "a")["mrr"], aggregate_of(path, "b")) == (1.0, {})
    assert [(comparison.side, comparison.query_id) for comparison in evaluation.report.unreadable] == [
        ("b", "q1")
    ]


def test_a_config_snapshot_that_does_not_parse_counts_as_empty_with_a_warning(
    tmp_path: Path, golden: Path
) -> None:
    rows = {"q1": result("c1")}
    path = make_database(tmp_path / "runs2.sqlite", a=rows, b=rows, configs={"a": "{", "b": {}})
    report = compare_runs("a", "b", db=path, golden=golden)
    assert deltas_of(report).chunker_version_match == "exact"  # both without a version
    assert len(report.warnings) == 1
    assert "run a" in report.warnings[0]


# -- where the functions look ------------------------------------------------------------------------


def test_the_environment_names_the_database_and_the_golden_file(
    db: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_DB", str(db))
    monkeypatch.setenv("KEBAB_EVAL_GOLDEN", str(golden))
    aggregate = compute_aggregate("b")
    store_aggregate("b", aggregate)
    assert aggregate_of(db, "b")["mrr"] == 0.5
    assert deltas_of(compare_runs("a", "b")).mrr == -0.5


def test_an_argument_wins_over_the_environment(
    tmp_path: Path, db: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_DB", str(tmp_path / "nowhere.sqlite"))
    monkeypatch.setenv("KEBAB_EVAL_GOLDEN", str(tmp_path / "nowhere.yaml"))
    assert compute_aggregate("b", db=db, golden=golden).mrr == 0.5


def test_by_default_they_are_here_and_under_fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_database(tmp_path / "kebab.sqlite", a={"q1": result("x", "c1")})
    write_golden(tmp_path / "fixtures" / "golden_queries.yaml", [C1])
    monkeypatch.chdir(tmp_path)
    assert compute_aggregate("a").mrr == 0.5


def test_without_a_database_here_kebabs_own_is_used(
    tmp_path: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "kebab").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    make_database(tmp_path / "data" / "kebab" / "kebab.sqlite", a={"q1": result("x", "c1")})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "empty")
    assert compute_aggregate("a", golden=golden).mrr == 0.5


def test_a_golden_set_is_loaded_in_the_files_order_with_its_lock(tmp_path: Path) -> None:
    path = write_golden(tmp_path / "queries.yaml", [C1 | {"id": name} for name in ("z", "a", "m")])
    lock = {"chunker_version": "v7", "chunks": {"c1": {"doc_id": "d1", "spans": [line(start=1, end=9)]}}}
    (tmp_path / "queries.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    golden_set = load_golden_set(str(path))
    assert [query.id for query in golden_set.queries] == ["z", "a", "m"]
    assert golden_set.lock is not None
    assert golden_set.lock.chunker_version == "v7"


# -- the same input gives the same bytes ---------------------------------------------------------------


def varied(tmp_path: Path) -> tuple[Path, Path]:
    """Runs with something of everything."""
    names = [f"q{n}" for n in range(12)]
    entries = [{**C1, "id": name, "difficulty": "hard", "must_contain": ["uv"]} for name in names]
    a = {name: result("c1", answer=answer("uv", cites=[line("c1.md", 1, 2)])) for name in names}
    b = {name: result(hit("c1", 1 + n % 5), answer=answer("uv"), error=None) for n, name in enumerate(names)}
    configs = {"a": {"index_version": "1"}, "b": {"index_version": "2"}}
    db = make_database(tmp_path / "varied.sqlite", a=a, b=b, configs=configs)
    return db, write_golden(tmp_path / "varied.yaml", entries)


@pytest.mark.parametrize("render", [render_report_json, render_report_md])
def test_a_report_twice_is_the_same_bytes(tmp_path: Path, render: Callable[[Any], str]) -> None:
    db, golden = varied(tmp_path)
    first, second = (render(compare_runs("a", "b", db=db, golden=golden)) for _ in range(2))
    assert first == second


def test_a_report_is_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    db, golden = varied(tmp_path)
    script = (
        "import sys; from pytest_kebab_eval import compare_runs, render_report_md as md;"
        "from tests.builders import render_report_json as js;"
        "r = compare_runs('a', 'b', db=sys.argv[1], golden=sys.argv[2]);"
        "sys.stdout.buffer.write((js(r) + md(r)).encode())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, db, golden],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert b"q11" in outputs.pop()


def test_the_aggregate_of_a_comparison_stored_before_does_not_change_the_next(tmp_path: Path) -> None:
    db, golden = varied(tmp_path)
    before = render_report_json(compare_runs("a", "b", db=db, golden=golden))
    store_aggregate("a", compute_aggregate("a", db=db, golden=golden), db=db)
    assert render_report_json(compare_runs("a", "b", db=db, golden=golden)) == before


# -- report.md and report.json -----------------------------------------------------------------------


def test_the_markdown_report_has_the_deltas_and_the_queries_that_changed(tmp_path: Path) -> None:
    names = {"won": ("x", "c1"), "lost": ("c1", "x"), "same": ("c1", "c1")}
    golden = write_golden(tmp_path / "golden.yaml", [C1 | {"id": name} for name in names])
    a = {name: result(before) for name, (before, _) in names.items()}
    b = {name: result(after) for name, (_, after) in names.items()} | {"lost": result("x")}
    text = render_report_md(
        compare_runs("a", "b", db=make_database(tmp_path / "db.sqlite", a=a, b=b), golden=golden)
    )
    rows = [comparison for comparison in text.splitlines() if comparison.startswith("|")]
    assert any("`won`" in row and "miss→hit" in row for row in rows)
    assert any("`lost`" in row and "hit→miss" in row for row in rows)
    assert not any("`same`" in row for row in rows)
    assert any("hit@5" in row and "0.6667" in row for row in rows)


def test_the_json_report_has_the_fields_of_a_compare_report(db: Path, golden: Path) -> None:
    report = json.loads(render_report_json(compare_runs("a", "b", db=db, golden=golden)))
    wanted = {"run_a", "run_b", "aggregate_a", "aggregate_b", "deltas", "per_query", "config_changes"}
    assert wanted <= report.keys()
    assert report["deltas"]["mrr"] == -0.5
    assert report["deltas"]["chunker_version_match"] == "exact"
    assert report["deltas"]["matched_by"] == {"chunk": 1, "anchor": 0, "span": 0, "text": 0, "document": 0}
    (comparison,) = report["per_query"]
    assert comparison == {
        "query_id": "q1",
        "kind": "loss",
        "a_hit_rank": 1,
        "b_hit_rank": 2,
        "note": "rank 1→2",
        "cause": None,
        "checks": [],
        "lost": [],
        "gained": [],
        "overlap": 0.5,  # c1 is all that both have, of c1 and x
        "rbo": 0.45,  # 1/9 x (0.81 x 1/2) + 1/2 x 0.81
    }


@pytest.mark.parametrize("name", pytest_kebab_eval.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(pytest_kebab_eval, name) is not None


@pytest.mark.parametrize(
    "name",
    [
        *("AggregateMetrics", "CompareReport", "QueryComparison", "ComparisonKind", "GoldenQuery"),
        *("QueryResult", "Hit", "Answer", "compute_aggregate", "store_aggregate", "compare_runs"),
        *("render_report_md", "load_golden_set"),
    ],
)
def test_what_the_contract_calls_public_is_public(name: str) -> None:
    assert name in pytest_kebab_eval.__all__


# -- a run judged without a baseline -----------------------------------------------------------------


def judged_alone(tmp_path: Path, golden: Path, stored: Json) -> Evaluation:
    path = make_database(tmp_path / "alone.sqlite", b={"q1": stored})
    return evaluate(Settings(run_a=None, run_b="b", db_a=path, db_b=path, golden=golden))


def test_alone_a_run_has_null_for_the_other_side_and_the_deltas(tmp_path: Path, golden: Path) -> None:
    report = json.loads(render_report_json(judged_alone(tmp_path, golden, result("x", "c1")).report))
    assert (report["run_a"], report["aggregate_a"], report["deltas"]) == (None, None, None)
    assert report["aggregate_b"]["mrr"] == 0.5


@pytest.mark.parametrize(
    ("stored", "outcome"),
    [
        (result("c1"), Outcome.PASSED),
        (result("x"), Outcome.PASSED),  # a miss is for the gates to judge
        (result(error="timeout"), Outcome.FAILED),
    ],
)
def test_alone_a_query_fails_only_if_it_errored(
    tmp_path: Path, golden: Path, stored: Json, outcome: Outcome
) -> None:
    assert judged_alone(tmp_path, golden, stored).verdicts["q1"].outcome is outcome


def test_alone_only_the_aggregate_of_that_run_is_stored(tmp_path: Path, db: Path, golden: Path) -> None:
    chosen = Settings(run_a=None, run_b="b", db_a=db, db_b=db, golden=golden)
    store(chosen, evaluate(chosen))
    assert (aggregate_of(db, "a"), aggregate_of(db, "b")["mrr"]) == ({}, 0.5)


def test_alone_a_run_is_matched_as_it_is_when_scored_alone(tmp_path: Path, golden: Path) -> None:
    lock = {"chunker_version": "v1", "chunks": {"c1": {"doc_id": "d1", "spans": [line(start=1, end=9)]}}}
    (tmp_path / "golden.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    found = hit("n1", doc_id="d1", citation=line("d1.md", 1, 5))
    path = make_database(tmp_path / "v2.sqlite", b={"q1": result(found)}, config={"chunker_version": "v2"})
    report = evaluate(Settings(run_a=None, run_b="b", db_a=path, db_b=path, golden=golden)).report
    assert report.aggregate_b.hit_at_k["1"] == 1.0
    assert report.aggregate_b == compute_aggregate("b", db=path, golden=golden)


# -- what is kept for messages -------------------------------------------------------------------


def test_of_a_failing_query_no_more_is_kept_than_its_message_shows(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "g.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}])
    long = "x" * 10_000
    found = [f"a{n}" for n in range(7)]
    db = make_database(
        tmp_path / "k.sqlite",
        a={"q1": result(*found, "c1", "a9")},
        b={"q1": result(*(hit(f"b{rank}", rank, text=long, snippet=None) for rank in range(1, 13)))},
    )
    settings = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)
    evaluation = evaluate(settings)
    shown = evaluation.evidence["q1"]
    assert shown.a is not None
    assert shown.b is not None
    assert [comparison.rank for comparison in shown.b.hits] == [
        1,
        2,
        3,
        4,
        5,
        8,
    ]  # the first, and what took c1's place
    assert len(msgspec.json.encode(shown)) < 3000
    (comparison,) = evaluation.report.per_query
    (query,) = load_golden_set(golden).queries
    ((_, whole),) = read_evidence(settings, find_inputs(settings))
    texts = [
        explain(query, evaluation.verdicts["q1"], comparison, evidence, "g.yaml:1")
        for evidence in (shown, whole)
    ]
    assert texts[0] == texts[1]
    assert "instead   b8" in texts[0]
