"""The metrics of a suite, run by run."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import DatabaseError
from pytest_kebab_eval.history import history
from tests.builders import dump, golden, make_database, result

GOLDEN = golden({"id": "q1", "expected_chunk_ids": ["c1"]}, {"id": "q2", "expected_chunk_ids": ["c2"]})
BOTH = {"q1": result("c1"), "q2": result("c2")}  # hit@1 1
ONE = {"q1": result("c1"), "q2": result("c9")}  # hit@1 1/2
NONE = {"q1": result("c9"), "q2": result("c9")}  # hit@1 0


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make_database(tmp_path / "db.sqlite", z=BOTH, y=ONE, x=NONE)


def execute(db: Path, sql: str, *values: str) -> None:
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(sql, values)
        connection.commit()


def values(db: Path, name: str, **more: Any) -> list[tuple[str, float | None]]:
    return [(point.run_id, point.values.get(name)) for point in history(db, GOLDEN, **more)]


def test_the_oldest_run_is_first_whatever_its_id(db: Path) -> None:
    assert values(db, "hit@1") == [("z", 1.0), ("y", 0.5), ("x", 0.0)]


def test_each_point_has_its_moment(db: Path) -> None:
    assert [point.created_at[:10] for point in history(db, GOLDEN)] == [
        "2026-01-01",
        "2026-01-02",
        "2026-01-03",
    ]


def test_moments_are_compared_in_utc(db: Path) -> None:
    # 23:30 two hours west of Greenwich is 01:30 of January 4, after all others.
    execute(db, "UPDATE eval_runs SET created_at = '2026-01-03T23:30:00-02:00' WHERE run_id = 'z'")
    assert [point.run_id for point in history(db, GOLDEN)] == ["y", "x", "z"]


def test_missing_aggregates_are_computed_and_nothing_is_stored(db: Path) -> None:
    before = dump(db)
    assert values(db, "mrr") == [("z", 1.0), ("y", 0.5), ("x", 0.0)]
    assert dump(db) == before


def test_a_stored_aggregate_stands_as_it_was_reported_then(db: Path) -> None:
    stored = json.dumps({"hit_at_k": {"1": 0.25}, "mrr": 0.75, "extra": {"own": 3.0}})
    execute(db, "UPDATE eval_runs SET aggregate_json = ? WHERE run_id = 'y'", stored)
    point = history(db, GOLDEN)[1]
    assert (point.values["hit@1"], point.values["mrr"], point.values["own"]) == (0.25, 0.75, 3.0)


@pytest.mark.parametrize("stored", ["oops", "[]", "{}", '{"mrr": null}', '{"mrr": "high"}', ""])
def test_a_stored_aggregate_without_values_is_computed(db: Path, stored: str) -> None:
    execute(db, "UPDATE eval_runs SET aggregate_json = ? WHERE run_id = 'y'", stored)
    assert history(db, GOLDEN)[1].values["mrr"] == 0.5


def store(db: Path, run_id: str, mrr: float, sha: str) -> None:
    stored = json.dumps({"mrr": mrr, "golden_sha256": sha})
    execute(db, "UPDATE eval_runs SET aggregate_json = ? WHERE run_id = ?", stored, run_id)


def test_an_aggregate_of_another_golden_file_is_computed_anew_and_nothing_is_stored(db: Path) -> None:
    store(db, "y", 0.9, "of another file")
    store(db, "x", 0.8, GOLDEN.fingerprint)
    before = dump(db)
    assert values(db, "mrr") == [("z", 1.0), ("y", 0.5), ("x", 0.8)]
    assert not any(point.of_other_golden for point in history(db, GOLDEN))
    assert dump(db) == before


def test_an_aggregate_of_another_golden_file_is_marked_where_the_results_are_gone(db: Path) -> None:
    for run_id, sha in (("y", "of another file"), ("x", GOLDEN.fingerprint)):
        store(db, run_id, 0.9, sha)
        execute(db, "DELETE FROM eval_query_results WHERE run_id = ?", run_id)
    assert values(db, "mrr") == [("z", 1.0), ("y", 0.9), ("x", 0.9)]
    assert [point.of_other_golden for point in history(db, GOLDEN)] == [False, True, False]


def test_what_is_computed_anew_counts_towards_the_results_allowed(db: Path) -> None:
    store(db, "y", 0.9, "of another file")
    assert values(db, "mrr", most_results=2) == [("x", 0.0)]
    assert values(db, "mrr", most_results=4) == [("y", 0.5), ("x", 0.0)]


def test_what_was_not_measured_is_not_there(db: Path) -> None:
    assert "groundedness" not in history(db, GOLDEN)[0].values


def test_only_the_last_runs_are_taken(db: Path) -> None:
    assert [run_id for run_id, _ in values(db, "mrr", last=2)] == ["y", "x"]


def test_only_the_runs_of_the_suite_are_taken(db: Path) -> None:
    execute(db, "UPDATE eval_runs SET suite = 'other' WHERE run_id = 'y'")
    assert [point.run_id for point in history(db, GOLDEN, "suite")] == ["z", "x"]
    assert [point.run_id for point in history(db, GOLDEN, "other")] == ["y"]
    assert history(db, GOLDEN, "none of that name") == []


def test_no_more_results_are_scored_than_allowed_and_the_newest_go_first(db: Path) -> None:
    # Each run has two results: with 5 allowed, the newest two runs are scored, and one is left.
    assert [run_id for run_id, _ in values(db, "mrr", most_results=5)] == ["y", "x"]


def test_what_is_stored_already_counts_nothing_towards_that(db: Path) -> None:
    for run_id in ("x", "y"):
        execute(db, "UPDATE eval_runs SET aggregate_json = '{\"mrr\": 0.1}' WHERE run_id = ?", run_id)
    assert values(db, "mrr", most_results=2) == [("z", 1.0), ("y", 0.1), ("x", 0.1)]


def test_a_database_without_runs_has_no_history(tmp_path: Path) -> None:
    assert history(make_database(tmp_path / "db.sqlite"), GOLDEN) == []


def test_no_database_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError):
        history(tmp_path / "none.sqlite", GOLDEN)
