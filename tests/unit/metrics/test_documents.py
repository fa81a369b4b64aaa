"""Metrics over documents, for golden files that expect nothing finer: by hand, and against trec_eval."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import CompareReport, compute_aggregate
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, hit, make_database, result, write_golden

pytrec_eval = pytest.importorskip("pytrec_eval")

DOCS = [f"d{n}" for n in range(12)]


def values(directory: Path, expected: list[str], *chunks: str | Json) -> dict[str, float | None]:
    golden = write_golden(
        directory / "golden.yaml", [{"id": "q1", "query": "?", "expected_doc_ids": expected}]
    )
    db = make_database(directory / "kebab.sqlite", a={"q1": result(*chunks)})
    return compute_aggregate("a", db=db, golden=golden).values


def test_a_document_stands_where_its_first_chunk_does_among_distinct_documents(tmp_path: Path) -> None:
    found = values(tmp_path, ["d2", "d9"], "d1#1", "d1#2", "d1#3", "d2#1", "d2#2")
    assert found["mrr_doc"] == 0.5  # d1, then d2
    assert (found["hit@1_doc"], found["hit@3_doc"]) == (0.0, 1.0)
    assert found["precision@3_doc"] == 0.3333  # d2 of three places
    assert found["ndcg@3_doc"] == 0.3869  # (1 / log2 3) / (1 / log2 2 + 1 / log2 3) = 0.63093 / 1.63093


def test_recall_over_documents_stays_as_kebab_counts_it_in_chunks(tmp_path: Path) -> None:
    found = values(tmp_path, ["d2"], "d1#1", "d1#2", "d1#3", "d2#1")
    assert found["recall@3_doc"] == 0.0  # d2 is not among the documents of the top three chunks
    assert found["hit@3_doc"] == 1.0  # but among the first three documents


def test_hits_without_a_document_take_no_place(tmp_path: Path) -> None:
    found = values(tmp_path, ["d2"], hit("x", 1, doc_id=None), "d2#1")
    assert found["mrr_doc"] == 1.0


@given(
    expected=st.lists(st.sampled_from(DOCS), min_size=1, max_size=5, unique=True),
    chunks=st.lists(st.tuples(st.sampled_from(DOCS), st.integers(0, 3)), unique=True, max_size=25),
)
def test_metrics_over_documents_are_trec_evals_of_the_distinct_documents(
    expected: list[str], chunks: list[tuple[str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        ours = values(Path(directory), expected, *(f"{doc}#{number}" for doc, number in chunks))
    distinct = list(dict.fromkeys(doc for doc, _ in chunks))
    measures = {"success.1,3,5,10", "P.1,3,5,10", "ndcg_cut.1,3,5,10"}
    evaluator = pytrec_eval.RelevanceEvaluator({"q1": dict.fromkeys(expected, 1)}, measures)
    run = {doc: 1000.0 - position for position, doc in enumerate(distinct)}
    theirs = evaluator.evaluate({"q1": run})["q1"] if run else {}
    for k in (1, 3, 5, 10):
        for name, measure in (("hit", "success"), ("precision", "P"), ("ndcg", "ndcg_cut")):
            assert ours[f"{name}@{k}_doc"] == pytest.approx(theirs.get(f"{measure}_{k}", 0), abs=0.500001e-4)


# -- any cutoff --------------------------------------------------------------------------------------


def gated(directory: Path, entry: Json, chunks: list[str], *gates: str) -> CompareReport:
    golden = write_golden(directory / "golden.yaml", [{"id": "q1", "query": "?", **entry}])
    db = make_database(directory / "kebab.sqlite", b={"q1": result(*chunks)})
    chosen = Settings(None, "b", db, db, golden, gates=gates)
    return evaluate(chosen, find_inputs(chosen)).report


def test_a_gate_may_name_any_cutoff_up_to_a_thousand(tmp_path: Path) -> None:
    chunks = [f"x{n}" for n in range(99)] + ["c1"]
    report = gated(tmp_path, {"expected_chunk_ids": ["c1"]}, chunks, "recall@100 >= 0.9", "recall@99 >= 0.9")
    assert [gate.passed for gate in report.gates] == [True, False]
    assert report.aggregate_b.values["recall@100"] == 1.0  # so that the number can be traced


def test_a_gate_on_chunks_where_only_documents_are_expected_names_the_metric_to_use(tmp_path: Path) -> None:
    report = gated(
        tmp_path, {"expected_doc_ids": ["d1"]}, ["d1#1"], "hit@5 >= 0.9", "precision@5_chunk >= 0.1"
    )
    advice = "the golden file expects documents, not chunks: gate on"
    assert [gate.reason for gate in report.gates] == [
        f"nothing was measured for hit@5; {advice} 'hit@5_doc'",
        f"nothing was measured for precision@5_chunk; {advice} 'precision@5_doc'",
    ]
