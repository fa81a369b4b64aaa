"""Tables of questions with what was retrieved, answered and expected -> a run and its golden queries.

What a tool writes is said by the names of its columns. A row without an id gets one that is made of its
question; one that is there again gets a number after it. A passage is text, or an object with a text and
perhaps an id; without one, it gets one that is made of its text, so that it has the same in every export.
Where passages are expected by their texts, those that were retrieved are known by their texts, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.importers.importer import (
    Imported,
    Importer,
    ImportOption,
    golden_entry,
    labels,
    result_json,
)
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Json, as_list, checked_id, opened, read_table
from pytest_kebab_eval.text import brief

Names = tuple[str, ...]
QUESTION = ("question", "query", "user_input", "input", "prompt", "q")
ANSWER = ("answer", "response", "output", "result", "actual_output", "generation", "completion")
REFERENCE = ("reference", "expected_output", "ground_truth", "expected_answer", "expected")
PASSAGES = (
    *("retrieved_contexts", "retrieval_context", "contexts", "context", "documents", "docs"),
    *("source_documents", "chunks", "retrieved_chunks", "retrieved_docs", "retrieved", "passages"),
    *("sources", "hits"),
)
EXPECTED = ("reference_contexts", "expected_contexts", "gold_contexts")
_TEXT_KEYS = ("page_content", "pageContent", "text", "content", "context", "chunk", "body", "snippet")
_CHUNK_KEYS = ("chunk_id", "chunkId")
_ID_KEYS = (*_CHUNK_KEYS, "id", "_id", "node_id", "doc_id", "document_id")
_DOCUMENT_KEYS = ("doc_id", "document_id", "doc_uri", "source", "file_path", "url", "path")


class Passage(NamedTuple):
    """A passage; its text and its document may be unknown."""

    id: str
    text: str | None = None
    doc_id: str | None = None

    def by_text(self) -> Passage:
        """The same passage with an id that is made of its text, if that is there."""
        return self._replace(id=text_id(self.text, "text")) if self.text and self.text.strip() else self


class Case(NamedTuple):
    """A row: the question, and what is known of it."""

    line: int
    question: str
    id: str | None = None
    retrieved: tuple[Passage, ...] = ()
    answer: str | None = None
    expected: tuple[Passage, ...] = ()
    references: tuple[str, ...] = ()
    variant: str = ""  # what tells several rows of one question apart
    more: Mapping[str, Any] = {}  # fields of the result
    golden: Mapping[str, Any] = {}  # more golden fields

    @property
    def expects_texts(self) -> bool:
        """Whether passages are expected that have no id of their own."""
        return any(passage.text is not None and passage == passage.by_text() for passage in self.expected)


def imported_cases(
    results: Source, cases: Iterable[Case], dataset: Source | None = None, expected: Iterable[Case] = ()
) -> Imported:
    """The run of all cases; what is expected is that of the dataset, or of the cases if there is none."""
    golden, known, by_text = dict[str, Json](), dict[str, str](), set[str]()
    for name, case in _with_ids(dataset, expected, {}) if dataset else ():
        golden[name] = _golden(dataset or results, name, case)
        known.setdefault(text_id(case.question, "q"), name)
        by_text |= {name} if case.expects_texts else set()

    def read() -> Iterator[tuple[str, bytes]]:
        for name, case in _with_ids(results, cases, known):
            if not dataset:
                golden[name] = _golden(results, name, case)
            retrieved = case.retrieved
            if name in by_text or case.expects_texts:
                retrieved = _distinct(passage.by_text() for passage in retrieved)
            hits = [
                {"rank": rank, "chunk_id": passage.id, "doc_id": passage.doc_id, "text": passage.text}
                for rank, passage in enumerate(retrieved, start=1)
            ]
            answer: Json = {"answer": case.answer, "grounded": True, "citations": []}
            said = None if case.answer is None else answer
            yield name, result_json(name, case.question, hits, said, **case.more)

    return Imported(read(), golden, files=(results, dataset) if dataset else None, noun="question")


def _with_ids(source: Source, cases: Iterable[Case], known: Mapping[str, str]) -> Iterator[tuple[str, Case]]:
    """The cases with their ids: their own, or that of the question in a dataset (`known`), or a new one."""
    lines: dict[str, int] = {}
    for case in cases:
        if not case.question.strip() and case.id is None:
            raise source.error(case.line, "this row has no question")
        made = text_id(case.question, "q")
        made = f"{known.get(made, made)}{case.variant}"
        free = (name for name in chain([made], (f"{made}-{n}" for n in count(2))) if name not in lines)
        yield checked_id(source, case.line, case.id or next(free), "id", lines), case


def _golden(source: Source, name: str, case: Case) -> Json:
    references = [reference for reference in case.references if reference.strip()]
    fields: Json = {
        "id": name,
        "query": case.question.strip() or name,
        "expected_chunk_ids": [passage.id for passage in case.expected],
        "expected_answer": references[0] if references else None,
        "claims": references,
    }
    return golden_entry(source, case.line, {**fields, **case.golden})


# -- what is in a cell -------------------------------------------------------------------------------


def text_id(text: str, prefix: str) -> str:
    """An id for a text, whatever its spacing."""
    spaced = " ".join(text.split())
    return f"{prefix}-{hashlib.sha256(spaced.encode(errors='surrogatepass')).hexdigest()[:12]}"


def passages(given: Any, ids: Any = None) -> tuple[Passage, ...]:
    """The passages of a list, a text or an object, each once; `ids` are theirs, if they are kept apart."""
    found = [passage for item in as_list(given) if (passage := _passage(item))]
    names = [str(name) for name in as_list(ids) if str(name).strip()]
    if names and not found:
        found = [Passage(name) for name in names]
    elif len(names) == len(found):
        found = [passage._replace(id=name) for passage, name in zip(found, names, strict=True)]
    return _distinct(found)


def _distinct(given: Iterable[Passage]) -> tuple[Passage, ...]:
    found: dict[str, Passage] = {}
    for passage in given:
        found.setdefault(passage.id, passage)
    return tuple(found.values())


def _passage(item: Any) -> Passage | None:
    """A text, or a passage of LangChain (also as it serializes itself), LlamaIndex, Haystack or the like."""
    if not isinstance(item, Mapping):
        text = "" if item is None else str(item)
        return Passage(text_id(text, "text"), text) if text.strip() else None
    within = (item[key] for key in ("kwargs", "node", "document") if isinstance(item.get(key), Mapping))
    inner = next(within, item)
    nested = [inner[key] for key in ("metadata", "meta") if isinstance(inner.get(key), Mapping)]
    found = _first_text([inner], _TEXT_KEYS)
    name = _first_text([*nested, inner], _CHUNK_KEYS) or _first_text([inner, *nested], _ID_KEYS)
    if name is None and not found:
        return None
    return Passage(name or text_id(found or "", "text"), found, _first_text([*nested, inner], _DOCUMENT_KEYS))


def _first_text(mappings: Iterable[Mapping[str, Any]], keys: Names) -> str | None:
    values = (mapping.get(key) for mapping in mappings for key in keys)
    texts = (str(value) for value in values if type(value) in (str, int))
    return next((text for text in texts if text.strip()), None)


def first(values: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first value under these names that is there; a cell that spells an object is opened."""
    return opened(next((values[name] for name in names if values.get(name) is not None), None))


def text_of(given: Any) -> str | None:
    """Text as it is; None stays None, and another value is written as JSON."""
    return given if given is None or isinstance(given, str) else msgspec.json.encode(given).decode()


def question_in(given: Any) -> str:
    """The question in an input: text, an object with one, or the last message of the user."""
    if isinstance(given, Mapping):
        found = first(given, (*QUESTION, "messages"))
        rest = {name: value for name, value in given.items() if name not in PASSAGES}
        found = next(iter(rest.values())) if found is None and len(rest) == 1 else found
        return text_of(rest) or "" if found is None else question_in(found)
    if isinstance(given, list):
        messages = [message for message in given if isinstance(message, Mapping)]
        asked = [m for m in messages if {m.get("role"), m.get("type")} & {"user", "human"}]
        given = asked[-1].get("content") if asked else given
    return text_of(given) or ""


def answer_in(given: Any) -> str | None:
    """The answer in an output: text, or what an object has under a usual name."""
    if isinstance(given, Mapping):
        found = first(given, (*ANSWER, "text", "content"))
        return answer_in(found) if isinstance(found, Mapping) else text_of(found)
    return None if isinstance(given, list) else text_of(given)


def references_in(given: Any) -> tuple[str, ...]:
    """The reference answers in an expected output."""
    found = first(given, (*REFERENCE, *ANSWER)) if isinstance(given, Mapping) else given
    return tuple(text for text in map(text_of, as_list(found)) if text)


def passages_in(given: Mapping[str, Any], names: Names = PASSAGES) -> tuple[Passage, ...]:
    """The passages that an object has under one of these names."""
    return passages(first(given, names))


# -- which column has what ---------------------------------------------------------------------------

_LONGEST_VARIANT = 40  # characters of an id that are a provider or a prompt; of a longer one it has a hash


class Columns(NamedTuple):
    """Of several names, the first that is there; `a.b` is `b` in the object `a`."""

    question: Names = ()
    contexts: Names = ()
    ids: Names = ()
    answer: Names = ()
    expected: Names = ()
    expected_ids: Names = ()
    reference: Names = ()
    id: Names = ()
    error: Names = ("error",)
    seconds: Names = ()
    elapsed_ms: Names = ()
    cost_usd: Names = ()
    metadata: Names = ()
    variants: Names = ()  # each tells rows of one question apart, where it differs
    order: Names = ()  # a number, where rows are written as they end
    rows: Names = ()  # where a JSON document has the rows
    separator: Names = ()  # of passages in a text
    rules: Callable[[Json], Json] = lambda _: {}  # more golden fields of a row


def _cell(values: Any, names: Names) -> Any:
    for name in names if isinstance(values, Mapping) else ():
        outer, _, inner = name.partition(".")
        found = values.get(name)
        if found is None and inner:
            found = _cell(opened(values.get(outer)), (inner,))
        elif found is None:  # `inputs.question` is of `inputs`
            spread = [column for column in values if column.startswith(f"{name}.")]
            found = {
                column[len(name) + 1 :]: opened(values[column])
                for column in spread
                if values[column] is not None
            }
        if found not in (None, {}):
            return opened(found)
    return None


def _passages(values: Json, columns: Columns, names: Names, ids: Names, inner: Names) -> tuple[Passage, ...]:
    for name in names:
        cell = _cell(values, (name,))
        if columns.separator and isinstance(cell, str):
            cell = cell.split(columns.separator[0])
        is_object = isinstance(cell, Mapping)
        found = passages_in(cell, inner) if is_object else passages(cell, _cell(values, ids))
        if found:
            return found
    return passages(None, _cell(values, ids))


def _cases(source: Source, columns: Columns, seen: set[str], *, with_results: bool) -> Iterator[Case]:
    rows, told = read_table(source, columns.rows), list[str]()
    if columns.variants:
        rows = iter(held := sorted(rows, key=lambda row: _amount(_cell(row.value, columns.order)) or 0.0))
        told = [name for name in columns.variants if len({_variant(row.value, name) for row in held}) > 1]
    has_results = (*columns.contexts, *columns.ids, *columns.answer, *columns.error) if with_results else ()
    for line, values, _ in rows:
        heads = {column.partition(".")[0] for column in values}
        seen |= heads | values.keys()
        question, output = _cell(values, columns.question), _cell(values, columns.answer)
        if question is None:
            raise source.error(line, _no_column(columns.question[0], values))
        if has_results and heads.isdisjoint(name.partition(".")[0] for name in has_results):
            raise source.error(line, _no_column(has_results[0], values))
        within = passages_in(output) if isinstance(output, Mapping) else ()
        reference = _cell(values, columns.reference)
        expected = _passages(values, columns, columns.expected, columns.expected_ids, EXPECTED)
        if not expected and isinstance(reference, Mapping):
            expected = passages_in(reference, (*EXPECTED, *PASSAGES))
        seconds = _amount(_cell(values, columns.seconds))
        elapsed_ms = _amount(_cell(values, columns.elapsed_ms)) if seconds is None else seconds * 1000
        more = {"elapsed_ms": elapsed_ms, "error": text_of(_cell(values, columns.error)) or None}
        cost_usd = _amount(_cell(values, columns.cost_usd))
        yield Case(
            line=line,
            question=question_in(question),
            id=text_of(_cell(values, columns.id)),
            retrieved=within or _passages(values, columns, columns.contexts, columns.ids, PASSAGES),
            answer=answer_in(output),
            expected=expected,
            references=references_in(reference),
            variant="".join(_variant(values, name) for name in told),
            more=more if cost_usd is None else {**more, "cost_usd": cost_usd},
            golden={"metadata": labels(_cell(values, columns.metadata)), **columns.rules(values)},
        )


def _variant(values: Json, name: str) -> str:
    told = text_of(_cell(values, (name,))) or ""
    return f"@{told if len(told) <= _LONGEST_VARIANT else text_id(told, 'of')}"


def _amount(given: Any) -> float | None:
    """A time or a cost; None if it is no sensible number."""
    try:
        amount = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < 1e12 and not isinstance(given, bool) else None


def _no_column(name: str, there: Iterable[str]) -> str:
    return f"there is no column '{brief(name, 60)}'; there is {brief(', '.join(there), 200)}"


def _read(given: Mapping[str, Any], columns: Columns, of_dataset: Columns) -> Imported:
    named: dict[str, Any] = {name: (given[name],) for name in _COLUMN_HELP if name in given}
    if "ids" in named and "expected" in named:
        named |= {"expected": (), "expected_ids": named["expected"]}
    results, dataset, seen = given["results"], given.get("dataset"), set[str]()
    expected = _cases(dataset, of_dataset._replace(**named), seen, with_results=False) if dataset else ()
    rows = _cases(results, columns._replace(**named), seen, with_results=True)
    imported = imported_cases(results, rows, dataset, expected)

    def checked() -> Iterator[tuple[str, bytes]]:
        yield from imported.results
        unknown = [name for names in named.values() for name in names if name.partition(".")[0] not in seen]
        if unknown:
            raise results.error(None, _no_column(unknown[0], sorted(seen)))

    return imported._replace(results=checked())


_COLUMN_HELP = {
    "question": "the question",
    "contexts": "the passages that were retrieved",
    "ids": "their ids; what is expected is ids then, too",
    "answer": "the answer",
    "expected": "the passages that are expected",
    "reference": "the answer that is expected",
}
_OPTIONS = (
    ImportOption("results", "The table: CSV, JSONL or JSON."),
    ImportOption("dataset", "What is expected, if it is in a table of its own.", required=False),
    *(ImportOption(name, f"The column of {text}.", False, False) for name, text in _COLUMN_HELP.items()),
)


def table_importer(name: str, help_: str, columns: Columns, of_dataset: Columns | None = None) -> Importer:
    """The importer of a tool; in its dataset, columns may mean something else."""
    return Importer(name, help_, _OPTIONS, partial(_read, columns=columns, of_dataset=of_dataset or columns))


def columns_of(names: str) -> Columns:
    """Columns from `question=input,query answer=output`."""
    said = (part.partition("=") for part in names.split())
    return Columns(**{field: tuple(names.split(",")) for field, _, names in said})  # type: ignore[arg-type]


_ANY = columns_of("ids=ids,retrieved_ids expected_ids=expected_ids id=id,query_id,qid")._replace(
    question=QUESTION, contexts=PASSAGES, answer=ANSWER, expected=EXPECTED, reference=REFERENCE
)
_RAGAS = columns_of(
    "question=user_input,question contexts=retrieved_contexts,contexts ids=retrieved_context_ids"
    " answer=response,answer expected=reference_contexts expected_ids=reference_context_ids"
    " reference=reference,ground_truth,ground_truths"
)
_DEEPEVAL = columns_of(  # which joins passages with | in CSV and JSONL
    "question=input contexts=retrieval_context,retrievalContext answer=actual_output,actualOutput"
    " expected=context reference=expected_output,expectedOutput separator=|"
    " seconds=completion_time,completionTime cost_usd=token_cost,tokenCost"
    " rows=testRunData,testCases,test_cases,test_results,goldens"
)
_LANGSMITH = columns_of(
    "question=inputs,input answer=outputs,output reference=reference_outputs,reference,expected_outputs"
    " id=example_id,reference_example_id seconds=execution_time,latency rows=results,examples,runs"
)
_OLD = ("reference_contexts", "contexts")  # before version 0.2, those that the question was made from
_EXAMPLES = _LANGSMITH._replace(answer=(), reference=("outputs", "output"), id=("id", "example_id"))

TABLE = table_importer("table", "Any table of questions with what was retrieved and answered.", _ANY)
RAGAS = table_importer("ragas", "A dataset or results of Ragas.", _RAGAS, _RAGAS._replace(expected=_OLD))
DEEPEVAL = table_importer("deepeval", "A test run or a dataset of DeepEval.", _DEEPEVAL)
LANGSMITH = table_importer("langsmith", "Experiment and dataset of LangSmith.", _LANGSMITH, _EXAMPLES)
