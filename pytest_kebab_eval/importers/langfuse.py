"""Traces that Langfuse exported, the items of a dataset, and what links them, as CSV, JSONL or JSON.

A trace has a question and an answer; passages are in its output, or in those of its retriever observations.
A table of observations is enough: those without a parent are the traces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from pytest_kebab_eval.importers.cases import (
    EXPECTED_PASSAGES,
    Case,
    Passage,
    answer_in,
    distinct,
    imported_cases,
    measured,
    milliseconds,
    passages_in,
    question_in,
    references_in,
    text_of,
)
from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    Json,
    metadata_fields,
    optional,
)
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, opened, read_table

_PAGE = ("data",)  # where an answer of its API has the rows
_RETRIEVER = "RETRIEVER"
_ARCHIVED = "ARCHIVED"
_ERROR = "ERROR"

_Traces = Iterable[tuple[str, TableRow]]  # by id
_Passages = Mapping[str, tuple[Passage, ...]]


def _read(sources: Mapping[str, Source]) -> Imported:
    source, items = sources["traces"], sources.get("items")
    links = dict(_links(sources["run-items"])) if "run-items" in sources else None
    retrieved = _retrieved(_rows(sources["observations"])) if "observations" in sources else {}
    traces, inner = _traces(source)
    cases = _cases(source, traces, links, {**inner, **retrieved})
    return imported_cases(source, cases, items, _items(items) if items else ())


def _rows(source: Source) -> Iterator[TableRow]:
    return read_table(source, _PAGE)


def _traces(source: Source) -> tuple[_Traces, _Passages]:
    """The traces; if the rows are observations, those without a parent, and the passages of the others."""
    rows = _rows(source)
    first = next(rows)
    rows = chain([first], rows)
    if "traceId" not in first.values:
        return ((text_of(row.values.get("id")) or "", row) for row in rows), {}
    kept = [row for row in rows if _is_root(row) or _is_retriever(row)]
    roots: dict[str, TableRow] = {}
    for row in sorted(filter(_is_root, kept), key=_started):
        roots.setdefault(text_of(row.values.get("traceId")) or "", row)
    return roots.items(), _retrieved(kept)


def _cases(
    source: Source, traces: _Traces, links: Mapping[str, str] | None, retrieved: _Passages
) -> Iterator[Case]:
    """The traces; where some are linked to dataset items, only those are of the experiment."""
    count = 0
    for trace_id, (line, values) in traces:
        if links is not None and trace_id not in links:
            continue
        if "input" not in values:
            raise source.error(line, "there is no 'input'")
        count += 1
        output = opened(values.get("output"))
        yield Case(
            line=line,
            question=question_in(opened(values["input"])),
            id=links[trace_id] if links is not None else None,
            retrieved=retrieved.get(trace_id) or passages_in(output),
            answer=answer_in(output),
            more=_outcome(values),
        )
    if not count and links is None:
        raise source.error(
            None, "every observation in it has a parent; export the traces, or all observations"
        )
    if not count:
        raise source.error(
            None, "none of its traces is linked to a dataset item; name the run items of the same run"
        )


def _outcome(values: Json) -> Json:
    """Time, cost and error, where the table has them: in seconds, or as `latencyMs`."""
    times = measured(
        elapsed_ms=values.get("latencyMs") or milliseconds(values.get("latency")),
        cost_usd=values.get("totalCost"),
    )
    failed = values.get("traceId") is not None and values.get("level") == _ERROR
    return {"error": text_of(values.get("statusMessage")) or _ERROR if failed else None, **times}


def _items(source: Source) -> Iterator[Case]:
    for row in _rows(source):
        if row.values.get("status") == _ARCHIVED:
            continue
        expected = opened(row.values.get("expectedOutput"))
        yield Case(
            line=row.line,
            question=question_in(opened(row.values.get("input"))),
            id=text_of(row.values.get("id")),
            expected=passages_in(expected, EXPECTED_PASSAGES),
            references=references_in(expected),
            rules=metadata_fields(opened(row.values.get("metadata"))),
        )


def _links(source: Source) -> Iterator[tuple[str, str]]:
    for row in _rows(source):
        trace_id, item_id = row.values.get("traceId"), row.values.get("datasetItemId")
        if not (isinstance(trace_id, str) and isinstance(item_id, str)):
            raise source.error(row.line, "'traceId' or 'datasetItemId' is missing")
        yield trace_id, item_id


def _retrieved(rows: Iterable[TableRow]) -> dict[str, tuple[Passage, ...]]:
    """The passages that the retrievers of each trace returned, in the order in which these were called."""
    found: dict[str, list[Passage]] = {}
    for row in sorted(filter(_is_retriever, rows), key=_started):
        if isinstance(trace_id := row.values.get("traceId"), str):
            found.setdefault(trace_id, []).extend(passages_in(opened(row.values.get("output"))))
    return {trace_id: distinct(passages) for trace_id, passages in found.items()}


def _is_root(row: TableRow) -> bool:
    return not row.values.get("parentObservationId")


def _is_retriever(row: TableRow) -> bool:
    return bool(row.values.get("type") == _RETRIEVER)


def _started(row: TableRow) -> str:
    """When an observation began; the times of one file are spelled alike."""
    started: Any = opened(row.values.get("startTime"))
    return started if isinstance(started, str) else ""


LANGFUSE = Importer(
    name="langfuse",
    help="Traces of Langfuse, and perhaps their dataset.",
    options=(
        ImportOption("traces", "The traces, or all observations (CSV, JSONL or JSON): id, input, output."),
        optional("items", "The items of the dataset: id, input, expectedOutput."),
        optional("run-items", "Which trace is of which item: traceId, datasetItemId."),
        optional("observations", "The observations; those of type RETRIEVER have passages."),
    ),
    read=_read,
)
