"""The public functions of section 6: where they read, and what they write."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from pytest_kebab_eval import (
    ComparisonKind,
    DatabaseError,
    GoldenError,
    KebabEvalError,
    RunNameError,
    StoreError,
    compare_runs,
    compute_aggregate,
    load_golden_set,
    store_aggregate,
)
from pytest_kebab_eval.comparing.aggregates import aggregate_json
from pytest_kebab_eval.errors import ChunkerError
from pytest_kebab_eval.evaluate import evaluate, store
from pytest_kebab_eval.settings import Settings
from tests.builders import aggregate_of, deltas_of, dump, line, make_database, result, side_a, write_golden
from tests.unit.conftest import FINDS_C1

# -- compute_aggregate and store_aggregate ---------------------------------------------------------


def test_an_aggregate_is_computed_from_a_database_and_a_golden_file(db: Path, golden: Path) -> None:
    assert compute_aggregate("a", db=db, golden=golden).values["mrr"] == 1.0
    assert compute_aggregate("b", db=db, golden=golden).values["mrr"] == 0.5


def test_paths_may_be_text(db: Path, golden: Path) -> None:
    assert compute_aggregate("b", db=str(db), golden=str(golden)).values["mrr"] == 0.5


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
    assert aggregate_of(db, "b") == json.loads(aggregate_json(aggregate))


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


# -- compare_runs ----------------------------------------------------------------------------------


def test_two_runs_of_one_database_are_compared(db: Path, golden: Path) -> None:
    report = compare_runs("a", "b", db=db, golden=golden)
    assert (report.run_a, report.run_b) == ("a", "b")
    assert (
        side_a(report).values["mrr"],
        report.aggregate_b.values["mrr"],
        deltas_of(report).values["mrr"],
    ) == (1.0, 0.5, -0.5)
    assert [(comparison.query_id, comparison.note) for comparison in report.per_query] == [("q1", "rank 1→2")]


def test_the_order_of_the_runs_is_that_of_the_arguments(db: Path, golden: Path) -> None:
    assert deltas_of(compare_runs("b", "a", db=db, golden=golden)).values["mrr"] == 0.5


def test_runs_with_the_same_results_are_all_draws(tmp_path: Path, golden: Path) -> None:
    rows = {"q1": result("c1")}
    db = make_database(tmp_path / "same.sqlite", a=rows, b=rows)
    report = compare_runs("a", "b", db=db, golden=golden)
    assert [comparison.kind for comparison in report.per_query] == [ComparisonKind.DRAW]
    assert set(deltas_of(report).values.values()) <= {0.0, None}


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


# -- where the functions look ----------------------------------------------------------------------


def test_the_environment_names_the_database_and_the_golden_file(
    db: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_DB", str(db))
    monkeypatch.setenv("KEBAB_EVAL_GOLDEN", str(golden))
    aggregate = compute_aggregate("b")
    store_aggregate("b", aggregate)
    assert aggregate_of(db, "b")["mrr"] == 0.5
    assert deltas_of(compare_runs("a", "b")).values["mrr"] == -0.5


def test_an_argument_wins_over_the_environment(
    tmp_path: Path, db: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_DB", str(tmp_path / "nowhere.sqlite"))
    monkeypatch.setenv("KEBAB_EVAL_GOLDEN", str(tmp_path / "nowhere.yaml"))
    assert compute_aggregate("b", db=db, golden=golden).values["mrr"] == 0.5


def test_by_default_they_are_here_and_under_fixtures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_database(tmp_path / "kebab.sqlite", a={"q1": result("x", "c1")})
    write_golden(tmp_path / "fixtures" / "golden_queries.yaml", [FINDS_C1])
    monkeypatch.chdir(tmp_path)
    assert compute_aggregate("a").values["mrr"] == 0.5


def test_without_a_database_here_kebabs_own_is_used(
    tmp_path: Path, golden: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data" / "kebab").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    make_database(tmp_path / "data" / "kebab" / "kebab.sqlite", a={"q1": result("x", "c1")})
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "empty")
    assert compute_aggregate("a", golden=golden).values["mrr"] == 0.5


def test_a_golden_set_is_loaded_in_the_files_order_with_its_lock(tmp_path: Path) -> None:
    path = write_golden(tmp_path / "queries.yaml", [FINDS_C1 | {"id": name} for name in ("z", "a", "m")])
    lock = {"chunker_version": "v7", "chunks": {"c1": {"doc_id": "d1", "spans": [line(start=1, end=9)]}}}
    (tmp_path / "queries.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    golden_set = load_golden_set(str(path))
    assert [query.id for query in golden_set.queries] == ["z", "a", "m"]
    assert golden_set.lock is not None
    assert golden_set.lock.chunker_version == "v7"
