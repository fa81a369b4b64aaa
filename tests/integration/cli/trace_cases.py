"""Runs in the formats of traces, as `import_cases` has them in all others."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.cli.import_cases import ASKED, CASES, FIRST, PERL, PYTHON, SECOND, Case, jsonl


def spans(
    number: int, question: str, *, lost: bool = False, session: str | None = None
) -> list[dict[str, Any]]:
    """A trace: a chain, and the retriever that it calls, as OpenTelemetry's SDK for Python writes them."""
    contexts, answer, _ = ASKED[question]
    retriever: dict[str, Any] = {"openinference.span.kind": "RETRIEVER", "input.value": question}
    for at, text in enumerate(contexts[1:] if lost else contexts):
        retriever |= {
            f"retrieval.documents.{at}.document.content": text,
            f"retrieval.documents.{at}.document.metadata": '{"source": "notes.md"}',
        }
    chain = {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"question": question}),
        "output.value": answer,
        **({"session.id": session} if session else {}),
    }
    return [span(number, 2, 1, retriever), span(number, 1, None, chain)]


def span(trace: int, own: int, parent: int | None, attributes: Any, status: str = "OK") -> dict[str, Any]:
    """A span; it begins in second `own` of minute `trace`, and takes a quarter of one."""
    start = f"2026-01-01T10:{trace:02}:{own:02}"
    return {
        "name": "x",
        "context": {"trace_id": f"0x{trace:032x}", "span_id": f"0x{own:016x}", "trace_state": "[]"},
        "parent_id": None if parent is None else f"0x{parent:016x}",
        "start_time": f"{start}.000000Z",
        "end_time": f"{start}.250000Z",
        "status": {"status_code": status},
        "attributes": attributes,
    }


def example(number: int, question: str) -> dict[str, Any]:
    contexts, _, reference = ASKED[question]
    output = {"answer": reference, "reference_contexts": contexts[:1]}
    return {"id": f"example-{number}", "input": {"question": question}, "output": output}


SPANS = Case(
    "spans",
    {
        "spans": jsonl(*spans(1, FIRST), *spans(2, SECOND)),
        "dataset": jsonl(example(1, FIRST), example(2, SECOND)),
    },
    ["example-1", "example-2"],
    (
        ({"spans": jsonl(*spans(1, FIRST), {"name": "x"})}, "spans:3: this is no span: "),
        ({"dataset": jsonl(example(1, FIRST)) + "{oops\n"}, "dataset:2: this is not JSON: "),
    ),
    {"spans": jsonl(*spans(1, FIRST), *spans(2, SECOND, lost=True))},
    ["example-2"],
)


def mlflow(question: str, *, lost: bool = False) -> list[Any]:
    contexts, answer, reference = ASKED[question]
    found = [{"content": text, "doc_uri": f"{text.split()[0]}.md"} for text in contexts]
    return [
        question,
        reference,
        [{"doc_uri": found[0]["doc_uri"]}],
        answer,
        found[1:] if lost else found,
        0.5,
    ]


def mlflow_table(*rows: list[Any]) -> str:
    columns = ["inputs", "ground_truth", "expected_retrieved_context", "outputs", "retrieved_context"]
    return json.dumps({"columns": [*columns, "exact_match/score"], "data": rows})


MLFLOW = Case(
    "mlflow",
    {"results": mlflow_table(mlflow(FIRST), mlflow(SECOND))},
    sorted([PYTHON, PERL]),
    (
        ({"results": jsonl({"inputs": "?"})}, "results:1: there is no column 'outputs'"),
        ({"results": mlflow_table(mlflow(FIRST), ["?"])}, "results:1: number 2 of 'data' is no list of 6"),
    ),
    {"results": mlflow_table(mlflow(FIRST), mlflow(SECOND, lost=True))},
    [PERL],
)

EVERY_CASE = [*CASES, SPANS, MLFLOW]
