"""The results of an experiment of LangSmith, and the examples of a dataset, as CSV, JSONL or JSON.

Inputs, outputs and reference outputs are objects, or spread over columns (`inputs.question`), as in the SDK's
own tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pytest_kebab_eval.importers.cases import (
    EXPECTED_PASSAGES,
    Case,
    answer_in,
    first,
    grouped,
    import_tables,
    measured,
    milliseconds,
    passages_in,
    question_in,
    references_in,
    text_of,
)
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption, metadata_fields, optional
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow

_EXAMPLE_ID = ("example_id", "reference_example_id")
_REFERENCE = ("reference_outputs", "reference", "expected_outputs")
_NAMES = ("results", "examples", "runs")


def _read(sources: Mapping[str, Source]) -> Imported:
    case = partial(_case, names=() if "examples" in sources else _REFERENCE)
    return import_tables(sources, case, _example, "examples", _NAMES)


def _case(source: Source, row: TableRow, names: tuple[str, ...]) -> Case:
    """A run; what is expected of it is under `names`."""
    values = row.values
    outputs, reference = grouped(values, "outputs", "output"), grouped(values, *names)
    return Case(
        line=row.line,
        question=_question(source, row),
        id=text_of(first(values, _EXAMPLE_ID)),
        retrieved=passages_in(outputs),
        answer=answer_in(outputs),
        expected=passages_in(reference, EXPECTED_PASSAGES),
        references=references_in(reference),
        more={
            "error": text_of(values.get("error")) or None,
            **measured(elapsed_ms=milliseconds(first(values, ("execution_time", "latency")))),  # in seconds
        },
    )


def _example(source: Source, row: TableRow) -> Case:
    """An example of a dataset; what it calls its outputs is what is expected."""
    outputs = grouped(row.values, "outputs", "output")
    return Case(
        line=row.line,
        question=_question(source, row),
        id=text_of(first(row.values, ("id", *_EXAMPLE_ID))),
        expected=passages_in(outputs, EXPECTED_PASSAGES),
        references=references_in(outputs),
        rules=metadata_fields(grouped(row.values, "metadata")),
    )


def _question(source: Source, row: TableRow) -> str:
    inputs = grouped(row.values, "inputs", "input")
    if inputs is None:
        raise source.error(row.line, "there is no 'inputs', nor a column like 'inputs.question'")
    return question_in(inputs)


LANGSMITH = Importer(
    name="langsmith",
    help="An experiment of LangSmith, and perhaps its dataset.",
    options=(
        ImportOption(
            "results", "CSV, JSONL or JSON: inputs, outputs, reference, or columns like inputs.question."
        ),
        optional("examples", "The dataset, if its reference outputs are not in the results."),
    ),
    read=_read,
)
