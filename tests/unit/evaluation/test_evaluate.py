"""`evaluate`: a run judged without a baseline, and what is kept for messages."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from pytest_kebab_eval import compute_aggregate, load_golden_set
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence, store
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.open_runs import read_evidence
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.settings import Settings
from tests.builders import (
    Json,
    aggregate_of,
    hit,
    line,
    make_database,
    render_report_json,
    result,
    write_golden,
)

# -- a run judged without a baseline ---------------------------------------------------------------


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
    assert report.aggregate_b.values["hit@1"] == 1.0
    assert report.aggregate_b == compute_aggregate("b", db=path, golden=golden)


# -- what is kept for messages ---------------------------------------------------------------------


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
    inputs = find_inputs(settings)
    evaluation = evaluate(settings, inputs)
    shown = failure_evidence(settings, inputs, evaluation)["q1"]
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
    ((_, whole),) = read_evidence(settings, inputs, inputs.golden.queries)
    texts = [
        explain(query, evaluation.verdicts["q1"], comparison, evidence, "g.yaml:1")
        for evidence in (shown, whole)
    ]
    assert texts[0] == texts[1]
    assert "instead   b8" in texts[0]
