"""Spans of OpenTelemetry, in each of the forms that tools write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.importers.cases import text_id
from tests.integration.cli.import_cases import FIRST, PERL, PYTHON, SECOND, jsonl
from tests.integration.cli.trace_cases import span, spans
from tests.unit.importers.test_cases import answer, texts
from tests.unit.importers.test_import_run import Brought, bring, refusal

Spans = list[dict[str, Any]]


def brought_spans(directory: Path, *rows: Any, dataset: str | None = None) -> Brought:
    expected = {} if dataset is None else {"dataset.jsonl": dataset}
    return bring(directory, "spans", {"spans.jsonl": jsonl(*rows), **expected})


def ids(brought: Brought, query: str) -> list[str | None]:
    return [hit.chunk_id for hit in brought.result(query).hits]


# -- the forms -----------------------------------------------------------------------------------


def otlp_value(value: Any) -> Any:
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": otlp_attributes(value)}}
    return {"stringValue": value}


def otlp_attributes(given: dict[str, Any]) -> Any:
    return [{"key": key, "value": otlp_value(value)} for key, value in given.items()]


def otlp(rows: Spans) -> str:
    """A request to export, as the collector's file exporter writes one a line."""
    found = [
        {
            "traceId": row["context"]["trace_id"].removeprefix("0x"),
            "spanId": row["context"]["span_id"].removeprefix("0x"),
            "parentSpanId": (row["parent_id"] or "").removeprefix("0x"),
            "startTimeUnixNano": "1767261660000000000",
            "endTimeUnixNano": "1767261660250000000",
            "attributes": otlp_attributes(row["attributes"]),
            "status": {"code": 1},
        }
        for row in rows
    ]
    return jsonl({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": found}]}]})


def nested(rows: Spans) -> Spans:
    """The spans with attributes that are objects in objects."""
    retriever, chain = rows
    asked = {"value": retriever["attributes"]["input.value"]}
    documents = [
        {"document": {"content": text, "metadata": {"source": "notes.md"}}}
        for text in ("Guido made Python.", "Snakes.")
    ]
    inner = {"input": asked, "retrieval": {"documents": documents}}
    flat = chain["attributes"]
    outer = {"input": {"value": flat["input.value"]}, "output": {"value": flat["output.value"]}}
    return [retriever | {"attributes": inner}, chain | {"attributes": outer}]


def columns(row: dict[str, Any]) -> dict[str, Any]:
    """A span as a row of Phoenix's table."""
    attributes = row["attributes"]
    documents = [
        {f"document.{name}": value for name, value in item["document"].items()}
        for item in attributes.get("retrieval", {}).get("documents", [])
    ]
    return {
        "context.trace_id": row["context"]["trace_id"],
        "context.span_id": row["context"]["span_id"],
        "parent_id": row["parent_id"],
        "start_time": 1767261660000,
        "end_time": 1767261660250,
        "status_code": "OK",
        "attributes.input.value": attributes["input"]["value"],
        "attributes.output.value": attributes.get("output", {}).get("value"),
        "attributes.retrieval.documents": documents or None,
    }


def flat(row: dict[str, Any]) -> dict[str, Any]:
    """A span as in Phoenix's API, where metadata is spread over attributes, too."""
    source = {f"{key}.source": "notes.md" for key in row["attributes"] if key.endswith(".metadata")}
    others = {key: value for key, value in row["attributes"].items() if f"{key}.source" not in source}
    return row | {"attributes": others | source}


FORMS: dict[str, Callable[[Spans], tuple[str, str]]] = {
    "attributes": lambda rows: ("jsonl", jsonl(*rows)),
    "indented": lambda rows: ("json", "\n".join(json.dumps(row, indent=4) for row in rows)),
    "OTLP": lambda rows: ("jsonl", otlp(rows)),
    "nested": lambda rows: ("json", json.dumps(nested(rows))),
    "OTLP, nested": lambda rows: ("json", otlp(nested(rows))),
    "columns": lambda rows: ("jsonl", jsonl(*map(columns, nested(rows)))),
    "a page": lambda rows: ("json", json.dumps({"data": [*map(flat, rows)], "next_cursor": None})),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_is_the_same_query_in_every_form(tmp_path: Path, form: str) -> None:
    ending, content = FORMS[form](spans(1, FIRST))
    brought = bring(tmp_path, "spans", {f"spans.{ending}": content})
    found = brought.result(PYTHON)
    assert texts(brought, PYTHON) == ["Guido made Python.", "Snakes."]
    assert [hit.doc_id for hit in found.hits] == ["notes.md", "notes.md"]
    assert (found.query, answer(brought, PYTHON)) == (FIRST, "It was Guido van Rossum.")
    assert (found.elapsed_ms, found.timings_ms and found.timings_ms.retrieval) == (250, 250)


# -- traces --------------------------------------------------------------------------------------


def retriever(*names: str, of: str = "retrieval.documents") -> dict[str, str]:
    return {f"{of}.{at}.document.id": name for at, name in enumerate(names)}


def test_documents_come_in_the_order_of_the_calls_each_once(tmp_path: Path) -> None:
    rows = [
        span(1, 3, 1, retriever("b", "a")),
        span(1, 2, 1, retriever("c", "b")),
        span(1, 1, None, {"input.value": "Who?"}),
    ]
    assert ids(brought_spans(tmp_path, *rows), text_id("Who?", "q")) == ["c", "b", "a"]


@pytest.mark.parametrize("form", ["attributes", "nested"])
def test_a_text_that_is_json_stays_text(tmp_path: Path, form: str) -> None:
    found: dict[str, Any] = {"retrieval.documents.0.document.content": '{"a": 1}'}
    if form == "nested":
        found = {"retrieval": {"documents": [{"document.content": '{"a": 1}'}]}}
    brought = brought_spans(tmp_path, span(1, 1, None, {"input.value": "Who?", **found}))
    assert texts(brought, text_id("Who?", "q")) == ['{"a": 1}']


@pytest.mark.parametrize("attributes", [None, "x", [1], {"retrieval.documents": [1, {}]}, {"input": []}])
def test_attributes_that_are_none_are_not_read(tmp_path: Path, attributes: Any) -> None:
    rows = [span(1, 1, None, {"input.value": "Who?"}), span(1, 2, 1, attributes)]
    assert ids(brought_spans(tmp_path, *rows), text_id("Who?", "q")) == []


def test_a_reranker_has_the_last_word(tmp_path: Path) -> None:
    rows = [
        span(1, 1, None, {"input.value": "Who?"}),
        span(1, 2, 1, retriever("a", "b", "c")),
        span(1, 3, 1, retriever("c", "a", of="reranker.output_documents")),
    ]
    assert ids(brought_spans(tmp_path, *rows), text_id("Who?", "q")) == ["c", "a"]


def test_the_question_is_of_the_first_span_that_has_an_input(tmp_path: Path) -> None:
    rows = [
        span(1, 3, 2, {"input.value": "rewritten", **retriever("a")}),
        span(1, 2, 1, {"input.value": "Who?", "output.value": '{"answer": "Me."}'}),
        span(1, 1, None, {"http.route": "/ask"}),
        span(2, 1, None, {"http.route": "/health"}),
    ]
    brought = brought_spans(tmp_path, *rows)
    assert [query.query for query in brought.queries().queries] == ["Who?"]
    assert answer(brought, text_id("Who?", "q")) == "Me."


def test_retriever_spans_alone_are_queries_without_answers(tmp_path: Path) -> None:
    attributes = {"input.value": "Who?", "output.value": "2 documents", **retriever("a")}
    brought = brought_spans(tmp_path, span(1, 2, 1, attributes))
    assert (ids(brought, text_id("Who?", "q")), answer(brought, text_id("Who?", "q"))) == (["a"], None)


def test_an_error_of_the_root_is_that_of_the_query(tmp_path: Path) -> None:
    failed = span(1, 1, None, {"input.value": "Who?"})
    described = failed | {"status": {"status_code": "ERROR", "description": "no index"}}
    assert brought_spans(tmp_path, described).result(text_id("Who?", "q")).error == "no index"


def test_the_genai_conventions_are_read(tmp_path: Path) -> None:
    def message(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    chat = {
        "gen_ai.input.messages": message("user", "Who?"),
        "gen_ai.output.messages": message("assistant", "Me."),
        "gen_ai.conversation.id": "s",
    }
    search = {"gen_ai.retrieval.documents": '[{"id": "a", "score": 0.9}]', "gen_ai.retrieval.query.text": "x"}
    brought = brought_spans(tmp_path, span(1, 1, None, chat), span(1, 2, 1, search))
    name = text_id("Who?", "q")
    assert (ids(brought, name), answer(brought, name)) == (["a"], "Me.")


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        (
            retriever("a"),
            "spans.jsonl:1: documents were retrieved in this trace, but none of its spans has an input",
        ),
        ({}, "spans.jsonl: none of its spans has an input; export them with 'input.value'"),
    ],
)
def test_spans_without_an_input_are_refused(tmp_path: Path, attributes: Any, says: str) -> None:
    assert refusal(tmp_path, "spans", {"spans.jsonl": jsonl(span(1, 1, None, attributes))}) == says


# -- conversations -------------------------------------------------------------------------------


def test_traces_of_a_session_are_turns_in_the_order_of_their_times(tmp_path: Path) -> None:
    rows = [*spans(2, SECOND, session="s"), *spans(1, FIRST, session="s"), *spans(3, FIRST, session="alone")]
    brought = brought_spans(tmp_path, *rows)
    found = {query.id: (query.query, query.metadata) for query in brought.queries().queries}
    assert found == {
        "s#1": (FIRST, {"conversation": "s"}),
        "s#2": (SECOND, {"conversation": "s"}),
        PYTHON: (FIRST, {}),
    }


@pytest.mark.parametrize(
    ("named", "query"),
    [
        ({"conversation": "s", "turn": 2}, "s#2"),
        ({"id": "s#2"}, "s#2"),
        ({"id": "mine", "conversation": "s"}, "mine"),
    ],
    ids=["conversation and turn", "id", "question"],
)
def test_a_dataset_names_a_turn(tmp_path: Path, named: Any, query: str) -> None:
    rows = [*spans(1, FIRST, session="s"), *spans(2, SECOND, session="s")]
    row = {"question": SECOND, "expected_contexts": ["Pearls."], **named}
    brought = brought_spans(tmp_path, *rows, dataset=jsonl(row, {"question": FIRST, "id": "s#1"}))
    assert brought.metrics().values["mrr"] == 0.5
    assert brought.result(query).query == SECOND


@pytest.mark.parametrize(
    "row",
    [
        {"question": SECOND, "expected_ids": [text_id("Pearls.", "text")], "reference": "Larry"},
        {"input": SECOND, "expected_output": {"contexts": ["Pearls."], "answer": "Larry"}},
    ],
)
def test_what_is_expected_is_in_columns_or_in_an_output(tmp_path: Path, row: Any) -> None:
    brought = brought_spans(tmp_path, *spans(1, SECOND), dataset=jsonl(row))
    query = brought.queries().queries[0]
    assert (query.id, query.claims, brought.metrics().values["mrr"]) == (PERL, ("Larry",), 0.5)
