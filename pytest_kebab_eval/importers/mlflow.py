"""Tables of MLflow's evaluations: `eval_results_table.json`, those of `mlflow.genai`, or what pandas wrote.

Passages are texts, objects (`content`, `doc_uri`), or ids; of a trace, they are those of its retriever spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pytest_kebab_eval.importers.cases import (
    PASSAGES,
    Case,
    Passage,
    answer_in,
    distinct,
    first,
    import_tables,
    measured,
    passages,
    passages_in,
    question_in,
    text_of,
)
from pytest_kebab_eval.importers.importer import Importer, ImportOption, Json, optional
from pytest_kebab_eval.importers.sources import Source, distinct_texts
from pytest_kebab_eval.importers.tables import TableRow, as_list, opened

_QUESTION = ("request", "inputs", "question", "query", "input")
_OUTPUT = ("response", "outputs", "predictions", "prediction", "output", "answer")
_CONTEXTS = ("retrieved_context", *PASSAGES)
_IDS = ("retrieved_doc_ids", "retrieved_document_ids", "retrieved_ids")
_REFERENCE = ("expected_response", "expected_response/value", "ground_truth", "targets", "target")
_EXPECTED = ("expected_retrieved_context", "ground_truth", "targets", "target")
_EXPECTED_IDS = ("ground_truth_doc_ids", "relevant_doc_ids", "source")
_ERROR = "ERROR"
_DURATION = ("execution_duration", "execution_duration_ms", "latency_ms")  # in milliseconds


def _case(source: Source, row: TableRow) -> Case:
    values = row.values
    output = _opened(first(values, _OUTPUT))
    listed = _texts(output)  # what a retriever predicts are ids
    ids, contexts = first(values, _IDS) or listed, first(values, _CONTEXTS)
    if output is None and ids is None and contexts is None and values.get("spans") is None:
        raise source.error(
            row.line, "there is no column 'outputs', 'retrieved_context' or 'retrieved_doc_ids'"
        )
    retrieved = _of_retrievers(values.get("spans")) or passages(contexts, ids) or passages_in(output)
    return _expected(source, row, retrieved)._replace(
        retrieved=retrieved,
        answer=None if listed else answer_in(output),
        more={
            "error": text_of(values.get("error")) or (_ERROR if values.get("state") == _ERROR else None),
            **measured(elapsed_ms=first(values, _DURATION)),
        },
    )


def _expected(source: Source, row: TableRow, retrieved: tuple[Passage, ...] = ()) -> Case:
    """What is expected: documents by `doc_uri`, passages, or the text of an answer.

    A list of texts is of documents if those that were retrieved have some, and of ids unless they have none.
    """
    given = _opened(row.values.get("expectations"))
    values = (
        row.values | _assessed(row.values.get("assessments")) | (given if isinstance(given, dict) else {})
    )
    question = _opened(first(values, _QUESTION))
    if question is None:
        raise source.error(row.line, "there is no column 'inputs', 'question' or 'request'")
    expected = first(values, _EXPECTED)
    objects = [item for item in as_list(expected) if isinstance(item, Mapping)]
    documents = [item["doc_uri"] for item in objects if isinstance(item.get("doc_uri"), str)]
    texts = _texts(expected) or _texts(first(values, _EXPECTED_IDS)) or []
    if any(passage.doc_id for passage in retrieved):
        documents, texts = documents or texts, []
    by_text = any(passage.is_known_by_text for passage in retrieved)
    return Case(
        line=row.line,
        question=question_in(question),
        expected=()
        if documents
        else passages(objects or texts)
        if objects or by_text
        else passages((), texts),
        references=tuple(filter(None, [_reference(first(values, _REFERENCE))])),
        rules={"expected_doc_ids": distinct_texts(documents)},
    )


def _opened(given: Any) -> Any:
    """A value; a cell that spells an object or a list, as JSON or Python do, is what it spells."""
    found = opened(given)
    if isinstance(found, str) and found.lstrip().startswith("{"):
        spelled = as_list(f"[{found}]")[0]
        return spelled if isinstance(spelled, dict) else found
    if isinstance(found, str) and found.lstrip().startswith("["):
        return found if (listed := as_list(found)) == [found] else listed
    return found


def _texts(given: Any) -> list[Any] | None:
    """The members of a list of texts or numbers; None if it is no such list."""
    found = _opened(given)
    is_plain = isinstance(found, list) and found and all(isinstance(item, (str, int)) for item in found)
    return found if is_plain else None


def _reference(given: Any) -> str | None:
    return given if isinstance(given, str) and _opened(given) is given else None


def _assessed(assessments: Any) -> Json:
    """What is expected of a trace, by name; lists are in there as JSON."""
    found = {}
    for item in as_list(assessments):
        given = item.get("expectation") if isinstance(item, Mapping) else None
        if isinstance(given, Mapping) and isinstance(name := item.get("assessment_name"), str):
            whole = given.get("serialized_value")
            found[name] = opened(whole.get("value")) if isinstance(whole, Mapping) else given.get("value")
    return found


def _of_retrievers(spans: Any) -> tuple[Passage, ...]:
    """What the retrievers of a trace returned, in the order in which these were called."""
    found = [span for span in as_list(spans) if isinstance(span, Mapping)]
    attributes = [span["attributes"] for span in found if isinstance(span.get("attributes"), Mapping)]
    return distinct(
        passage
        for values in attributes
        if opened(values.get("mlflow.spanType")) == "RETRIEVER"
        for passage in passages_in(opened(values.get("mlflow.spanOutputs")))
    )


MLFLOW = Importer(
    name="mlflow",
    help="A table of an evaluation by MLflow, and perhaps its dataset.",
    options=(
        ImportOption("results", "JSON, JSONL or CSV: eval_results_table.json, or a table of traces."),
        optional("dataset", "The dataset, if what is expected is in a file of its own."),
    ),
    read=partial(import_tables, case=_case, expected=_expected),
)
