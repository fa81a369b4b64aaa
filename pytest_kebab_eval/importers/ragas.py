"""Datasets and results of Ragas, as CSV, JSONL or JSON; columns as since version 0.2, or as before it."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.importers.cases import Case, first, import_tables, passages, text_of
from pytest_kebab_eval.importers.importer import Importer, ImportOption, metadata_fields, optional
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, as_list

_QUESTION = ("user_input", "question")
_CONTEXTS = ("retrieved_contexts", "contexts")
_ANSWER = ("response", "answer")
_REFERENCE = ("reference", "ground_truth", "ground_truths")
_METADATA = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")
_EXPECTED = ("reference_contexts",)


def _case(source: Source, row: TableRow) -> Case:
    values = row.values
    if not any(name in values for name in (*_CONTEXTS, *_ANSWER, "retrieved_context_ids")):
        raise source.error(
            row.line, "there is no column 'retrieved_contexts' or 'response', nor 'contexts' or 'answer'"
        )
    return _expected(source, row, _EXPECTED)._replace(
        retrieved=passages(first(values, _CONTEXTS), values.get("retrieved_context_ids")),
        answer=text_of(first(values, _ANSWER)),
    )


def _expected(source: Source, row: TableRow, contexts: tuple[str, ...] = (*_EXPECTED, "contexts")) -> Case:
    """A row of a test set; before version 0.2, its `contexts` are those that the question was made from."""
    values = row.values
    question = first(values, _QUESTION)
    if isinstance(question, list):
        raise source.error(
            row.line, "this is a conversation of several turns; only single questions can be imported"
        )
    if not isinstance(question, str):
        raise source.error(row.line, "there is no 'user_input', nor a 'question'")
    return Case(
        line=row.line,
        question=question,
        expected=passages(first(values, contexts), values.get("reference_context_ids")),
        references=tuple(str(text) for text in as_list(first(values, _REFERENCE)) if text is not None),
        rules=metadata_fields({name: values.get(name) for name in _METADATA}),
    )


RAGAS = Importer(
    name="ragas",
    help="A dataset or results of Ragas.",
    options=(
        ImportOption("results", "CSV, JSONL or JSON: user_input, retrieved_contexts, response, reference, …"),
        optional("testset", "The test set, if what is expected is in a file of its own."),
    ),
    read=partial(import_tables, case=_case, expected=_expected, dataset="testset"),
)
