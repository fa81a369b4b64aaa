"""Traces that Langfuse exported, the items of a dataset, and what links them, as CSV, JSONL or JSON.

A trace has a question and an answer; passages are in its output, or in those of its retriever observations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_kebab_eval.importers.cases import Case, imported_cases
from pytest_kebab_eval.importers.fields import (
    EXPECTED_PASSAGES,
    answer_in,
    opened,
    passages_in,
    question_in,
    references_in,
    text_of,
)
from pytest_kebab_eval.importers.importer import Imported, Importer, ImportOption
from pytest_kebab_eval.importers.passages import Passage
from pytest_kebab_eval.importers.samples import Sample, has_keys
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import read_table

_RETRIEVER = "RETRIEVER"
_ARCHIVED = "ARCHIVED"


def _read(sources: Mapping[str, Source]) -> Imported:
    traces, items = sources["traces"], sources.get("items")
    links = dict(_links(sources["run-items"])) if "run-items" in sources else None
    retrieved = _retrieved(sources["observations"]) if "observations" in sources else {}
    return imported_cases(traces, _cases(traces, links, retrieved), items, _items(items) if items else ())


def _cases(
    source: Source, links: Mapping[str, str] | None, retrieved: Mapping[str, tuple[Passage, ...]]
) -> Iterator[Case]:
    """The traces; where some are linked to dataset items, only those are of the experiment."""
    count = 0
    for row in read_table(source):
        trace_id, output = text_of(row.values.get("id")) or "", opened(row.values.get("output"))
        if links is not None and trace_id not in links:
            continue
        if "input" not in row.values:
            raise source.error(row.line, "there is no 'input'")
        count += 1
        yield Case(
            line=row.line,
            question=question_in(opened(row.values["input"])),
            id=links[trace_id] if links is not None else None,
            retrieved=retrieved.get(trace_id) or passages_in(output),
            answer=answer_in(output),
        )
    if not count:
        raise source.error(
            None, "none of its traces is linked to a dataset item; name the run items of the same run"
        )


def _items(source: Source) -> Iterator[Case]:
    for row in read_table(source):
        if row.values.get("status") == _ARCHIVED:
            continue
        expected = opened(row.values.get("expectedOutput"))
        yield Case(
            line=row.line,
            question=question_in(opened(row.values.get("input"))),
            id=text_of(row.values.get("id")),
            expected=passages_in(expected, EXPECTED_PASSAGES),
            references=references_in(expected),
        )


def _links(source: Source) -> Iterator[tuple[str, str]]:
    for row in read_table(source):
        trace_id, item_id = row.values.get("traceId"), row.values.get("datasetItemId")
        if not (isinstance(trace_id, str) and isinstance(item_id, str)):
            raise source.error(row.line, "'traceId' or 'datasetItemId' is missing")
        yield trace_id, item_id


def _retrieved(source: Source) -> dict[str, tuple[Passage, ...]]:
    """The passages that the retrievers of each trace returned, in the order of the file."""
    found: dict[str, dict[str, Passage]] = {}
    for row in read_table(source):
        if row.values.get("type") == _RETRIEVER and isinstance(trace_id := row.values.get("traceId"), str):
            for passage in passages_in(opened(row.values.get("output"))):
                found.setdefault(trace_id, {}).setdefault(passage.id, passage)
    return {trace_id: tuple(by_id.values()) for trace_id, by_id in found.items()}


def _is_traces(sample: Sample) -> bool:
    own = {"sessionId", "userId", "timestamp", "release", "bookmarked"}
    return (
        has_keys("id", "input", "output")(sample) and "traceId" not in sample.keys and bool(own & sample.keys)
    )


LANGFUSE = Importer(
    name="langfuse",
    help="Traces of Langfuse, and perhaps their dataset.",
    options=(
        ImportOption("traces", "The traces (CSV, JSONL or JSON): id, input, output.", fits=_is_traces),
        ImportOption(
            "items",
            "The items of the dataset: id, input, expectedOutput.",
            required=False,
            fits=has_keys("id", "input", "expectedOutput"),
        ),
        ImportOption(
            "run-items",
            "Which trace is of which item: traceId, datasetItemId.",
            required=False,
            fits=has_keys("traceId", "datasetItemId"),
        ),
        ImportOption(
            "observations",
            "The observations; those of type RETRIEVER have passages.",
            required=False,
            fits=has_keys("traceId", "type", "output"),
        ),
    ),
    read=_read,
)
