"""Ids of queries, chunks and documents are the same in each Unicode form, and with spaces around them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, make_database, result, write_golden
from tests.unit.comparing.conftest import compared

NFC, NFD = "\u00fc-1", "u\u0308-1"


@pytest.mark.parametrize(
    ("expected", "found", "rank"),
    [
        (NFC, NFD, 1),
        (NFD, NFC, 1),
        ("c1", " c1", 1),
        ("c1 ", "c1", 1),
        ("c1", "c1\u00a0", 1),
        ("c1\n", "c1", 1),
        ("c 1", "c  1", None),
        ("c1", "C1", None),
        ("\u2460", "1", None),
        ("cli", "cl\u0456", None),
    ],
)
def test_chunk_ids(tmp_path: Path, expected: str, found: str, rank: int | None) -> None:
    comparison = compared(tmp_path, {"expected_chunk_ids": [expected]}, result(expected), result(found))
    assert (comparison.a_hit_rank, comparison.b_hit_rank) == (1, rank)


@pytest.mark.parametrize(
    "entry",
    [
        {"expected_doc_ids": [NFC]},
        {"relevance": {NFD: 2}},
        {"expected_chunk_ids": [[NFC, "other"]]},
        {"expected_chunk_ids": [NFD], "forbidden_chunk_ids": ["x"]},
    ],
)
def test_every_id_of_a_golden_query(tmp_path: Path, entry: Json) -> None:
    comparison = compared(tmp_path, entry, result(NFC), result(NFD))
    assert (comparison.a_hit_rank, comparison.b_hit_rank) == (1, 1)


def test_a_forbidden_id_is_found_in_any_form(tmp_path: Path) -> None:
    assert compared(tmp_path, {"forbidden_doc_ids": [NFC]}, result("x"), result(NFD)).checks == ("forbidden",)


def test_a_citation_by_chunk_id_is_of_its_hit(tmp_path: Path) -> None:
    a, b = (result(NFC, answer=answer(citations=[{"chunk_id": name}])) for name in (NFC, NFD))
    assert compared(tmp_path, {"expected_chunk_ids": [NFC]}, a, b).checks == ()


def test_the_index_knows_chunks_in_the_form_that_another_system_gave_them(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": f"{NFC}.md", "snippets": [f"text of {NFD}"]}]}
    hits = result(hit(NFC, doc_id=NFC, doc_path=None), hit("x", 2, doc_id="x"))
    comparison = compared(tmp_path, entry, hits, hits, corpus={NFD: (NFD, [])})
    assert (comparison.a_hit_rank, comparison.b_hit_rank) == (1, 1)


def judged(tmp_path: Path, golden: list[str], b: list[str]) -> tuple[Settings, Evaluation]:
    """Queries that A finds, and B does not, in results of these ids."""
    entries: list[Json] = [{"id": name, "query": "?", "expected_chunk_ids": ["c1"]} for name in golden]
    path = write_golden(tmp_path / "golden.yaml", entries)
    a = {name: result("c1") for name in golden}
    db = make_database(tmp_path / "kebab.sqlite", a=a, b=dict.fromkeys(b, result("x")))
    settings = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=path)
    return settings, evaluate(settings)


def outcomes(verdicts: dict[str, Verdict]) -> dict[str, str]:
    return {name: verdict.outcome.value for name, verdict in verdicts.items()}


def test_results_meet_whatever_order_their_written_ids_have(tmp_path: Path) -> None:
    # By their bytes: " z" before "a", and the decomposed "ü" before "v", the composed one after "z".
    settings, evaluation = judged(tmp_path, ["a", "b", NFC, "v", "z"], [" z", "a", "b ", NFD, "v"])
    assert set(outcomes(evaluation.verdicts).values()) == {"failed"}
    assert all(found.checks == ("retrieval",) for found in evaluation.report.per_query)
    evidence = failure_evidence(settings, find_inputs(settings), evaluation)
    assert all(known.b is not None and known.b.hits for known in evidence.values())


def test_two_results_under_one_id_are_unreadable_and_shown_apart(tmp_path: Path) -> None:
    _, evaluation = judged(tmp_path, ["a", NFC], ["a", "a ", NFC, NFD])
    assert evaluation.verdicts["a"].outcome is Outcome.FAILED
    assert r"'a' and as 'a\x20'" in evaluation.verdicts["a"].reason
    assert r"'u\u0308-1' and as '\xfc-1'" in evaluation.verdicts[NFC].reason


def test_a_result_that_names_its_query_in_another_form_is_its_own(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": NFC, "query": "?"}])
    stored = {NFC: result("c1", query_id=NFD)}
    db = make_database(tmp_path / "kebab.sqlite", a=stored, b=stored)
    found = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden))
    assert found.verdicts[NFC].outcome is Outcome.PASSED
