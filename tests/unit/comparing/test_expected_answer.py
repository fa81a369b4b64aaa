"""An expected answer is the target where no other is given: a hit is correct that has its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.model import ComparisonKind
from tests.builders import Json, answer, hit, result
from tests.unit.comparing.conftest import compared, compared_all

ENTRY: Json = {"expected_answer": "thirty days"}
HAS = hit("c1", text="It is kept for Thirty\u00a0days.")
HAS_NOT = hit("c1", text="It is kept.")


def test_it_is_found_where_a_hit_has_its_text_and_lost_where_none_has(tmp_path: Path) -> None:
    found = compared(tmp_path, ENTRY, result(HAS), result(HAS_NOT))
    assert (found.kind, found.a_hit_rank, found.b_hit_rank) == (ComparisonKind.REGRESSION, 1, None)
    assert (found.checks, found.lost) == (("retrieval",), ("thirty days",))


@pytest.mark.parametrize(
    ("entry", "b", "rank"),
    [
        (ENTRY, hit("c2", text="**Thirty** days"), 1),  # another chunk has it
        (ENTRY, hit("c1", snippet="thirty days", text=None), 1),  # a snippet, where there is no text
        (ENTRY, hit("c1", snippet="thirty days", text=""), None),  # a blank text is a text
        (ENTRY, hit("c1", text=None), None),
        (ENTRY | {"expected_doc_ids": ["c1"]}, hit("c1", text=None), 1),  # by its document alone
        (ENTRY | {"expected_doc_ids": ["c1"]}, hit("c1", text="something else"), None),
        (ENTRY | {"expected_chunk_ids": ["c1"]}, hit("c1", text="something else"), 1),
        (ENTRY | {"gold_supports": [{"path": "c1.md"}]}, hit("c1", text="something else"), 1),
    ],
)
def test_what_is_found(tmp_path: Path, entry: Json, b: Json, rank: int | None) -> None:
    assert compared(tmp_path, entry, result(HAS), result(b)).b_hit_rank == rank


def test_it_is_counted_as_matched_by_answer(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": ENTRY}, {"q1": result(HAS)}, {"q1": result(HAS)})
    assert report.deltas is not None
    assert report.deltas.matched_by["answer"] == 1
    assert report.aggregate_b.values["hit@5"] == 1.0


def test_a_hit_without_text_is_counted_as_matched_by_document(tmp_path: Path) -> None:
    entry = ENTRY | {"expected_doc_ids": ["c1"]}
    report = compared_all(tmp_path, {"q1": entry}, {"q1": result(HAS)}, {"q1": result(hit("c1"))})
    assert report.deltas is not None
    assert report.deltas.matched_by["document"] == 1


@pytest.mark.parametrize(("cited", "is_lost"), [("c1", False), ("c9", True)])
def test_a_citation_of_a_hit_that_has_it_is_of_a_target(tmp_path: Path, cited: str, is_lost: bool) -> None:
    a, b = (result(HAS, answer=answer(citations=[{"chunk_id": name}])) for name in ("c1", cited))
    assert ("attribution" in compared(tmp_path, ENTRY, a, b).checks) is is_lost


def test_where_no_passage_has_it_in_either_run_that_is_a_warning(tmp_path: Path) -> None:
    queries = [f"q{number}" for number in range(9)]
    results = dict.fromkeys(queries, result(HAS_NOT))
    report = compared_all(tmp_path, dict.fromkeys(queries, ENTRY), results, results)
    assert not report.problems
    assert any("nothing was measured" in text for text in report.warnings)
