"""Datasets (JSON, CSV, JSONL) and test runs (JSON) of DeepEval.

In CSV and JSONL, DeepEval joins the passages of a case with `|`, and splits them there when it reads them.
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from pytest_kebab_eval.importers.cases import (
    Case,
    Passage,
    first,
    import_tables,
    measured,
    milliseconds,
    passages,
    text_of,
)
from pytest_kebab_eval.importers.importer import Importer, ImportOption, Json, metadata_fields, optional
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, opened

_NAMES = ("testRunData", "testCases", "test_cases", "test_results", "goldens")
_METADATA = (
    *("custom_column_key_values", "customColumnKeyValues"),
    *("additional_metadata", "additionalMetadata", "metadata"),
)
_WITH_SOURCE = re.compile(r"deepeval_source=(.*?),deepeval_context=(.*)", re.DOTALL)


def _case(source: Source, row: TableRow) -> Case:
    values = row.values
    question = values.get("input")
    if not isinstance(question, str):
        what = (
            "a conversation; only single questions can be imported" if "turns" in values else "no test case"
        )
        raise source.error(row.line, f"this row has no 'input': it is {what}")
    reference = text_of(first(values, ("expected_output", "expectedOutput")))
    return Case(
        line=row.line,
        question=question,
        retrieved=_passages(first(values, ("retrieval_context", "retrievalContext"))),
        answer=text_of(first(values, ("actual_output", "actualOutput"))),
        expected=_passages(values.get("context")),
        references=(reference,) if reference else (),
        rules=metadata_fields(_metadata(values)),
        more=measured(
            elapsed_ms=milliseconds(first(values, ("completion_time", "completionTime"))),
            cost_usd=first(values, ("token_cost", "tokenCost")),
        ),
    )


def _metadata(values: Json) -> Json:
    """What a dataset, and what a test run knows beside a case; columns of its own count, too."""
    found = (opened(values.get(name)) for name in _METADATA)
    return {name: value for given in found if isinstance(given, dict) for name, value in given.items()}


def _passages(given: Any) -> tuple[Passage, ...]:
    parts = given.split("|") if isinstance(given, str) else given
    if not isinstance(parts, list):
        return ()
    return passages([_with_source(part) for part in parts])


def _with_source(part: Any) -> Any:
    """A passage that names its source, which a dataset has as text, and a test run as an object."""
    match = _WITH_SOURCE.fullmatch(part) if isinstance(part, str) else None
    return {"source": match[1], "text": match[2]} if match else part


DEEPEVAL = Importer(
    name="deepeval",
    help="A test run or a dataset of DeepEval.",
    options=(
        ImportOption(
            "results", "A test run (JSON), or a dataset (JSON, CSV, JSONL): input, retrieval_context, …"
        ),
        optional("dataset", "The dataset, if what is expected is in a file of its own."),
    ),
    read=partial(import_tables, case=_case, expected=_case, names=_NAMES),
)
