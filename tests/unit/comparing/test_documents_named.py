"""Metrics over documents, where hits name none: null in such a run, and a problem on one side."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.report import CompareReport
from tests.builders import Json, hit, result
from tests.unit.comparing.conftest import compared_all

DOCS: Json = {"expected_chunk_ids": ["d1#1"], "expected_doc_ids": ["d1"]}
NAMED = result(hit("d1#1", doc_id="d1"))
OTHER = result(hit("d2#1", doc_id="d2"))
WITHOUT = result(hit("d1#1", doc_id=None, doc_path=None))
OWN_ID = result(hit("d1#1", doc_id="d1#1", doc_path=None))  # stored where the document is not known
SHARED: Json = {"expected_chunk_ids": ["d1"], "expected_doc_ids": ["d1"]}  # ids as TREC has them
EMPTY = result()


def compared(tmp_path: Path, a: Json, b: Json, entry: Json = DOCS) -> CompareReport:
    return compared_all(tmp_path, {"q1": entry}, {"q1": a}, {"q1": b})


@pytest.mark.parametrize(
    ("stored", "recall"),
    [(NAMED, 1.0), (OTHER, 0.0), (WITHOUT, None), (OWN_ID, None), (EMPTY, 0.0)],
    ids=["named", "another", "none", "its own id", "no hit"],
)
def test_metrics_of_documents_are_null_in_a_run_that_names_none(
    tmp_path: Path, stored: Json, recall: float | None
) -> None:
    report = compared(tmp_path, stored, stored)
    for name in ("recall@10_doc", "hit@1_doc", "mrr_doc", "ndcg@10_doc"):
        assert report.aggregate_b.value(name) == recall, name
        assert report.aggregate_b.counts[name] == (0 if recall is None else 1)
    assert not any("names a document" in problem for problem in report.problems)


def test_where_chunks_are_documents_their_ids_name_them(tmp_path: Path) -> None:
    report = compared(tmp_path, result("d1"), result("d1"), SHARED)
    assert report.aggregate_b.value("recall@10_doc") == 1.0


@pytest.mark.parametrize(
    ("a", "b", "run"),
    [
        (NAMED, WITHOUT, "b"),
        (WITHOUT, NAMED, "a"),
        (OTHER, OWN_ID, "b"),
        (NAMED, OTHER, None),
        (WITHOUT, OWN_ID, None),
        (NAMED, EMPTY, None),
    ],
)
def test_hits_that_name_documents_on_one_side_only_are_a_problem(
    tmp_path: Path, a: Json, b: Json, run: str | None
) -> None:
    problems = [found for found in compared(tmp_path, a, b).problems if "names a document" in found]
    assert len(problems) == (run is not None)
    assert all(problem.startswith(f"no hit of run {run} names a document") for problem in problems)
