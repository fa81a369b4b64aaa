"""Spans of OpenTelemetry, as OpenInference names their attributes, or OpenTelemetry's own GenAI conventions.

A trace is a query. Its first span with an input has question and answer; passages are those of its rerankers,
or else of its retrievers. Traces of one session are the turns of a conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

from pytest_kebab_eval.importers.cases import (
    ANSWER,
    EXPECTED_PASSAGES,
    REFERENCE,
    Case,
    Passage,
    answer_in,
    distinct,
    first,
    grouped,
    imported_cases,
    measured,
    passages,
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
from pytest_kebab_eval.importers.tables import TableRow, as_list, opened, read_table
from pytest_kebab_eval.store.run_names import moment_of

_PAGE = ("data", "examples")  # where an answer of the API of Phoenix has the rows
_TRACE_ID = ("context.trace_id", "traceId", "trace_id")
_SPAN_ID = ("context.span_id", "spanId", "span_id")
_PARENT_ID = ("parent_id", "parentSpanId", "parent_span_id")
_STARTED = ("start_time", "startTimeUnixNano")
_ENDED = ("end_time", "endTimeUnixNano")
_STATUS = ("status.status_code", "status.code", "status_code")
_MESSAGE = ("status.description", "status.message", "status_message")
_FAILED = ("ERROR", "STATUS_CODE_ERROR", 2)
_SESSION = ("session.id", "gen_ai.conversation.id")
_NUMBERED = re.compile(r"\.([0-9]{1,9})\.document\.(.+)", re.DOTALL)
_EXPECTED_IDS = ("expected_ids", "expected_chunk_ids", "reference_context_ids", "relevant_ids")
_SINCE_1970 = re.compile(r"[0-9]{10,19}")  # seconds, or parts of them down to nanoseconds
_DIGITS = 19  # of nanoseconds since 1970, until the year 2286


class _Span(NamedTuple):
    """What is wanted of a span."""

    line: int
    id: str | None
    parent: str | None
    started: int  # nanoseconds
    ended: int
    question: str | None
    output: Any
    retrieved: tuple[Passage, ...]
    reranked: tuple[Passage, ...]
    session: str | None
    error: str | None

    @property
    def elapsed_ms(self) -> float | None:
        return (self.ended - self.started) / 1e6 if self.started and self.ended else None


_Trace = list[_Span]  # its root first, then as they began


def _read(sources: Mapping[str, Source]) -> Imported:
    source, dataset = sources["spans"], sources.get("dataset")
    expected = [_expected(row) for row in read_table(dataset, _PAGE)] if dataset else []
    known = {case.id for case in expected} if dataset else None
    return imported_cases(source, _cases(source, known), dataset, expected)


def _cases(source: Source, known: set[str | None] | None) -> Iterator[Case]:
    """The traces that ask something; a turn goes by its question if a dataset has not the id of it."""
    traces = list(_asking(source))
    sessions = Counter(session for _, session in traces if session)
    turns: Counter[str] = Counter()
    for trace, session in traces:
        case = _case(trace)
        if session and sessions[session] > 1:
            turns[session] += 1
            name = _turn_id(session, turns[session])
            case = case._replace(
                id=name if known is None or name in known else None,
                rules=metadata_fields({"conversation": session}),
            )
        yield case


def _turn_id(conversation: str, turn: Any) -> str:
    return f"{conversation}#{turn}"


def _asking(source: Source) -> Iterator[tuple[_Trace, str | None]]:
    """The traces in which something is asked, as they began, and their sessions."""
    traces: dict[str, _Trace] = {}
    for row in chain.from_iterable(map(_spans_of, read_table(source, _PAGE))):
        name = text_of(_first_at(row.values, _TRACE_ID))
        if not name:
            raise source.error(row.line, "this is no span: there is no 'context.trace_id', nor a 'traceId'")
        traces.setdefault(name, []).append(_span(row))
    asked = False
    for trace in sorted(map(_in_order, traces.values()), key=lambda trace: trace[0].started):
        if any(span.question is not None for span in trace):
            asked = True
            yield trace, next((span.session for span in trace if span.session), None)
        elif found := [span for span in trace if span.retrieved or span.reranked]:
            raise source.error(
                found[0].line, "documents were retrieved in this trace, but none of its spans has an input"
            )
    if not asked:
        raise source.error(None, "none of its spans has an input; export them with 'input.value'")


def _in_order(trace: _Trace) -> _Trace:
    ids = {span.id for span in trace}
    return sorted(trace, key=lambda span: (span.parent in ids and span.parent is not None, span.started))


def _case(trace: _Trace) -> Case:
    asked = next(span for span in trace if span.question is not None)
    reranked = distinct(chain.from_iterable(span.reranked for span in trace))
    retrieved = distinct(chain.from_iterable(span.retrieved for span in trace))
    finding = {span.id: span for span in trace if span.retrieved}
    times = [span.elapsed_ms or 0 for span in finding.values() if span.parent not in finding]
    return Case(
        line=asked.line,
        question=asked.question or "",
        retrieved=reranked or retrieved or passages_in(asked.output),
        answer=None if asked.retrieved else answer_in(asked.output),
        more={
            "error": asked.error,
            **measured(elapsed_ms=asked.elapsed_ms),
            **({"timings_ms": measured(retrieval=sum(times))} if any(times) else {}),
        },
    )


def _expected(row: TableRow) -> Case:
    """A row of a dataset: what is expected is in its output, as in Phoenix, or in columns of its own."""
    values = row.values
    output = grouped(values, "output", "outputs", "expected_output")
    metadata = opened(values.get("metadata"))
    conversation, turn = text_of(values.get("conversation")), text_of(values.get("turn"))
    own = {"conversation": conversation} if conversation else {}
    apart = {name: value for name, value in values.items() if name not in ANSWER or name == "answer"}
    holder = output if isinstance(output, Mapping) else apart
    return Case(
        line=row.line,
        question=question_in(
            grouped(values, "input", "inputs") or first(values, ("question", "query")) or ""
        ),
        id=text_of(values.get("id")) or (_turn_id(conversation, turn) if conversation and turn else None),
        expected=passages(opened(first(holder, EXPECTED_PASSAGES)), ids=opened(first(holder, _EXPECTED_IDS))),
        references=references_in(output if output is not None else first(apart, REFERENCE)),
        rules=metadata_fields({**(metadata if isinstance(metadata, Mapping) else {}), **own}),
    )


# -- a span, in any of its forms ---------------------------------------------------------------------


def _spans_of(row: TableRow) -> Iterator[TableRow]:
    """A row, or the spans in a request of OTLP, which a line of the collector's file exporter is."""
    if "resourceSpans" not in row.values:
        yield row
        return
    for resource in _objects(row.values["resourceSpans"]):
        for scope in _objects(resource.get("scopeSpans")):
            for span in _objects(scope.get("spans")):
                yield TableRow(row.line, span)


def _objects(given: Any) -> Iterator[Json]:
    return (item for item in given if isinstance(item, dict)) if isinstance(given, list) else iter(())


def _attributes(given: Any) -> Json:
    return {str(item.get("key")): _value(item.get("value")) for item in _objects(given)}


def _value(given: Any) -> Any:
    """A value of OTLP: `{"stringValue": "x"}` is `x`."""
    kind, value = next(iter(given.items()), ("", None)) if isinstance(given, dict) else ("", None)
    inner = value.get("values") if isinstance(value, dict) else None
    if kind == "arrayValue":
        return [_value(item) for item in _objects(inner)]
    return _attributes(inner) if kind == "kvlistValue" else value


def _span(row: TableRow) -> _Span:
    given = grouped(row.values, "attributes")
    attributes = given if isinstance(given, dict) else _attributes(given)
    at, attribute = partial(_first_at, row.values), partial(_first_at, attributes)
    asked = attribute(("input.value",))
    question = (
        question_in(opened(asked))
        if asked is not None
        else _said(attribute(("gen_ai.input.messages",)), "user")
        or attribute(("gen_ai.retrieval.query.text",))
    )
    answered = attribute(("output.value",))
    failed = at(_STATUS) in _FAILED
    return _Span(
        line=row.line,
        id=text_of(at(_SPAN_ID)),
        parent=text_of(at(_PARENT_ID)) or None,
        started=_nanoseconds(at(_STARTED)),
        ended=_nanoseconds(at(_ENDED)),
        question=text_of(question),
        output=opened(answered)
        if answered is not None
        else _said(attribute(("gen_ai.output.messages",)), "assistant"),
        retrieved=_documents(attributes, "retrieval.documents")
        or passages(attribute(("gen_ai.retrieval.documents",))),
        reranked=_documents(attributes, "reranker.output_documents"),
        session=text_of(attribute(_SESSION)),
        error=text_of(at(_MESSAGE)) or "ERROR" if failed else None,
    )


def _at(given: Any, path: str) -> Any:
    """The value under a dotted name, whether objects, columns or names are split at the dots."""
    if not isinstance(given, Mapping):
        return None
    if (found := given.get(path)) is not None:
        return found
    splits = ((path[: dot.start()], path[dot.end() :]) for dot in re.finditer(r"\.", path))
    values = (_at(given[head], rest) for head, rest in splits if head in given)
    return next((value for value in values if value is not None), None)


def _first_at(given: Any, paths: tuple[str, ...]) -> Any:
    return next((value for path in paths if (value := _at(given, path)) is not None), None)


def _documents(attributes: Json, name: str) -> tuple[Passage, ...]:
    """The documents under a name: a list, or attributes with a number for each (`….0.document.id`)."""
    if (whole := _at(attributes, name)) is not None:
        objects = [item for item in as_list(whole) if isinstance(item, Mapping)]
        return passages([_document(_unprefixed(item)) for item in objects])
    numbered: dict[int, Json] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}.") and (match := _NUMBERED.fullmatch(key, len(name))):
            numbered.setdefault(int(match[1]), {})[match[2]] = value
    return passages([_document(numbered[number]) for number in sorted(numbered)])


def _unprefixed(item: Mapping[str, Any]) -> Json:
    inner = item.get("document")
    if isinstance(inner, Mapping):
        return dict(inner)
    return {key.removeprefix("document."): value for key, value in item.items()}


def _document(fields: Json) -> Json:
    return {
        **{name: fields[name] for name in ("id", "content") if name in fields},
        "metadata": grouped(fields, "metadata"),
    }


def _said(messages: Any, role: str) -> str | None:
    """The last text of this role in messages of the GenAI conventions."""
    said = [
        part["content"]
        for message in _objects(opened(messages))
        if message.get("role") == role
        for part in _objects(message.get("parts"))
        if part.get("type") == "text" and isinstance(part.get("content"), str)
    ]
    return said[-1] if said else None


def _nanoseconds(given: Any) -> int:
    """A time since 1970; 0 if it is none."""
    text = str(given)
    if _SINCE_1970.fullmatch(text):
        return int(text.ljust(_DIGITS, "0"))
    moment = moment_of(text)
    if moment is None:
        return 0
    seconds = int((moment.second - datetime(1970, 1, 1)).total_seconds())
    return seconds * 10**9 + moment.nanosecond


SPANS = Importer(
    name="spans",
    help="Spans of OpenTelemetry or OpenInference, and perhaps their dataset.",
    options=(
        ImportOption(
            "spans", "JSONL, JSON or CSV: spans as OTLP, Phoenix or OpenTelemetry's SDK write them."
        ),
        optional("dataset", "What is expected: question or id, expected_ids, reference_contexts, reference."),
    ),
    read=_read,
)
