"""Tables of MLflow's evaluations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.importers.cases import text_id
from tests.integration.cli.import_cases import jsonl
from tests.unit.importers.test_cases import answer
from tests.unit.importers.test_import_run import bring, refusal

WHO = text_id("Who?", "q")
URIS = [{"content": "one", "doc_uri": "a.md"}, {"content": "two", "doc_uri": "b.md"}]


@pytest.mark.parametrize(
    "row",
    [
        {"question": "Who?", "retrieved_doc_ids": ["a", "b"], "source": ["b"]},
        {"inputs": {"question": "Who?"}, "outputs": ["a", "b"], "targets": ["b"]},
        {"inputs": "Who?", "outputs": "['a', 'b']", "ground_truth": "['b']"},
        {"inputs": "{'question': 'Who?'}", "retrieved_context": URIS, "ground_truth": ["b.md"]},
        {"inputs": "Who?", "retrieved_context": URIS, "expected_retrieved_context": [{"doc_uri": "b.md"}]},
        {
            "inputs": "Who?",
            "retrieved_context": str(URIS),
            "expectations": {"targets": [{"doc_uri": "b.md"}]},
        },
        {"inputs": "Who?", "retrieved_context": ["one", "two"], "ground_truth": ["two"]},
        {"inputs": "Who?", "outputs": {"answer": "x", "context": URIS}, "targets": [URIS[1]]},
    ],
)
def test_what_is_expected_is_found_by_id_document_or_text(tmp_path: Path, row: Any) -> None:
    brought = bring(tmp_path, "mlflow", {"results.jsonl": jsonl(row)})
    assert [query.id for query in brought.queries().queries] == [WHO]
    metrics = brought.metrics().values
    assert 0.5 in (metrics["mrr"], metrics["mrr_doc"])


def test_a_text_is_an_answer_and_a_reference(tmp_path: Path) -> None:
    row = {"inputs": "Who?", "outputs": "It is me.", "ground_truth": "me", "latency_ms": 20}
    brought = bring(tmp_path, "mlflow", {"results.jsonl": jsonl(row)})
    assert (answer(brought, WHO), brought.queries().queries[0].claims) == ("It is me.", ("me",))
    assert brought.result(WHO).elapsed_ms == 20


def test_a_trace_has_the_passages_of_its_retrievers(tmp_path: Path) -> None:
    def spanned(kind: str, outputs: Any) -> dict[str, Any]:
        return {
            "attributes": {"mlflow.spanType": json.dumps(kind), "mlflow.spanOutputs": json.dumps(outputs)}
        }

    wanted = {"serialization_format": "JSON_FORMAT", "value": '[{"doc_uri": "b.md"}]'}
    row = {
        "request": {"question": "Who?"},
        "response": "It is me.",
        "state": "ERROR",
        "execution_duration": 7,
        "spans": [spanned("CHAIN", ["x"]), spanned("RETRIEVER", URIS)],
        "assessments": [
            {"assessment_name": "expected_response", "expectation": {"value": "it is"}},
            {"assessment_name": "expected_retrieved_context", "expectation": {"serialized_value": wanted}},
            {"assessment_name": "correctness", "feedback": {"value": "yes"}},
        ],
    }
    brought = bring(tmp_path, "mlflow", {"results.jsonl": jsonl(row)})
    found, query = brought.result(WHO), brought.queries().queries[0]
    assert [(hit.text, hit.doc_id) for hit in found.hits] == [("one", "a.md"), ("two", "b.md")]
    assert (found.error, found.elapsed_ms) == ("ERROR", 7)
    assert (query.expected_doc_ids, query.claims) == (("b.md",), ("it is",))


def test_a_row_without_a_question_is_refused(tmp_path: Path) -> None:
    says = "results.jsonl:1: there is no column 'inputs', 'question' or 'request'"
    assert refusal(tmp_path, "mlflow", {"results.jsonl": jsonl({"outputs": "x"})}) == says


def test_columns_without_data_are_refused(tmp_path: Path) -> None:
    says = "results.json:1: 'columns' and 'data' must be lists"
    assert refusal(tmp_path, "mlflow", {"results.json": '{"columns": 1, "data": 2}'}) == says
