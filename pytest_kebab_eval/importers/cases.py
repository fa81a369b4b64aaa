"""Questions with what was retrieved, answered and expected, one a row -> a run and its golden queries.

A row without an id of its own gets one that is made of its question; a question that is there again gets a
number after it. A reference answer is text that an answer, and a retrieved passage, should contain.

A passage is text, or an object with a text and perhaps an id. One without an id gets one that is made of its
text, so that the same text has the same id in every export, as what was retrieved and as what is expected.
Where passages are expected by their texts, those that were retrieved are known by their texts, too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.importers.importer import (
    Imported,
    Json,
    golden_entry,
    joined_files,
    result_json,
    with_few_slices,
)
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import TableRow, as_list, opened, read_table
from pytest_kebab_eval.text import printable

QUESTION = ("question", "query", "user_input", "input", "prompt", "q", "text")
ANSWER = (
    *("answer", "response", "output", "result", "actual_output", "generation", "completion"),
    *("text", "content"),
)
REFERENCE = ("reference", "expected_output", "ground_truth", "expected_answer", "expected", *ANSWER)
PASSAGES = (
    *("retrieved_contexts", "retrieval_context", "contexts", "context", "documents", "docs"),
    *("source_documents", "chunks", "retrieved_chunks", "retrieved_docs", "retrieved", "passages"),
    *("sources", "hits"),
)
EXPECTED_PASSAGES = ("reference_contexts", "expected_contexts", "gold_contexts", *PASSAGES)

_TEXT_KEYS = ("page_content", "pageContent", "text", "content", "context", "chunk", "body", "snippet")
_ID_KEYS = ("chunk_id", "chunkId", "id", "_id", "node_id", "doc_id", "document_id")
_DOCUMENT_KEYS = ("doc_id", "document_id", "doc_uri", "source", "file_path", "url", "path")
_NESTED_KEYS = ("metadata", "meta")
_ROLES = ("role", "type")
_USERS = ("user", "human")
_MAX_AMOUNT = 1e12  # of milliseconds or dollars; a larger one is a mistake


class Case(NamedTuple):
    """A row: the question, and what is known of it."""

    line: int
    question: str
    id: str | None = None
    retrieved: tuple[Passage, ...] = ()
    answer: str | None = None
    expected: tuple[Passage, ...] = ()
    references: tuple[str, ...] = ()
    rules: Mapping[str, Any] = {}  # more golden fields
    more: Mapping[str, Any] = {}  # more fields of the result

    @property
    def expects_texts(self) -> bool:
        """Whether passages are expected that have no id of their own."""
        return any(passage.is_known_by_text for passage in self.expected)


MakeCase = Callable[[Source, TableRow], Case]


def import_tables(
    sources: Mapping[str, Source],
    case: MakeCase,
    expected: MakeCase,
    dataset: str = "dataset",
    names: Collection[str] = (),
) -> Imported:
    """The run of all rows of `results`, and what is expected by those of `dataset`, if it is there."""
    results, given = sources["results"], sources.get(dataset)
    cases = (case(results, row) for row in read_table(results, names))
    if given is None:
        return imported_cases(results, cases)
    return imported_cases(results, cases, given, (expected(given, row) for row in read_table(given, names)))


def imported_cases(
    results: Source, cases: Iterable[Case], dataset: Source | None = None, expected: Iterable[Case] = ()
) -> Imported:
    """The run of all cases; what is expected is that of the dataset, or of the cases if there is none."""
    golden: dict[str, Json] = {}
    if dataset is None:
        read = _results(results, _with_ids(results, cases, {}), set(), golden)
        return Imported(read, partial(with_few_slices, golden.values()), {})
    known: dict[str, str] = {}
    by_text: set[str] = set()
    for name, case in _with_ids(dataset, expected, {}):
        golden[name] = _golden(dataset, name, case)
        if case.expects_texts:
            by_text.add(name)
        if case.id:
            known.setdefault(text_id(case.question, "q"), case.id)
    if not golden:
        raise dataset.error(None, "there are no rows in this file")
    read = _results(results, _with_ids(results, cases, known), by_text, None)
    return joined_files(results, read, dataset, golden, noun="question")


def _results(
    source: Source, cases: Iterable[tuple[str, Case]], by_text: set[str], golden: dict[str, Json] | None
) -> Iterator[tuple[str, bytes]]:
    """The results as they are read; golden entries go into `golden`, if that is given."""
    for name, case in cases:
        if golden is not None:
            golden[name] = _golden(source, name, case)
        retrieved = case.retrieved
        if case.expects_texts or name in by_text:
            retrieved = distinct(passage.by_text() for passage in retrieved)
        hits = [passage.as_hit(rank) for rank, passage in enumerate(retrieved, start=1)]
        answer = None if case.answer is None else {"answer": case.answer, "grounded": True, "citations": []}
        with source.only_unicode(case.line):
            result = result_json(name, case.question, hits, answer, **case.more)
        yield name, result


def _with_ids(source: Source, cases: Iterable[Case], known: Mapping[str, str]) -> Iterator[tuple[str, Case]]:
    """The cases with their ids: their own, or that of the question in a dataset (`known`), or a new one."""
    lines: dict[str, int] = {}
    for case in cases:
        if not case.question.strip() and case.id is None:
            raise source.error(case.line, "this row has no question")
        made = text_id(case.question, "q")
        name = case.id or known.get(made) or next(free for free in numbered(made) if free not in lines)
        if name in lines:
            raise source.error(
                case.line, f"the id '{printable(name)}' is taken already, at line {lines[name]}"
            )
        lines[name] = case.line
        yield name, case


def _golden(source: Source, name: str, case: Case) -> Json:
    references = [reference for reference in case.references if reference.strip()]
    fields: Json = {
        "id": name,
        "query": case.question.strip() or name,
        "expected_chunk_ids": target_ids(case.expected),
        "expected_answer": references[0] if references else None,
        "claims": references,
    }
    return golden_entry(source, case.line, fields | dict(case.rules))


# -- passages ----------------------------------------------------------------------------------------


class Passage(NamedTuple):
    """A passage; its text and its document may be unknown."""

    id: str
    text: str | None = None
    doc_id: str | None = None
    group: int | None = None  # those of one list within a list: where they are expected, alternatives

    @property
    def is_known_by_text(self) -> bool:
        """Whether it has no id of its own."""
        return self.text is not None and self.id == text_id(self.text, "text")

    def by_text(self) -> Passage:
        """The same passage with an id that is made of its text, if that is there."""
        return self._replace(id=text_id(self.text, "text")) if self.text and self.text.strip() else self

    def as_hit(self, rank: int) -> Json:
        return {"rank": rank, "chunk_id": self.id, "doc_id": self.doc_id, "text": self.text}


def text_id(text: str, prefix: str) -> str:
    """An id for a text, whatever its spacing."""
    spaced = " ".join(text.split())
    return f"{prefix}-{hashlib.sha256(spaced.encode(errors='surrogatepass')).hexdigest()[:12]}"


def numbered(name: str) -> Iterator[str]:
    """The name, and then the same with a number after it, for one that is not taken."""
    return chain([name], (f"{name}-{number}" for number in count(2)))


def passages(given: Any, ids: Any = None) -> tuple[Passage, ...]:
    """The passages of a list, a text or an object, each once; `ids` are theirs, if they are kept apart."""
    found = [(_passage(item), group) for item, group in _members(as_list(given))]
    names = [(str(name), group) for name, group in _members(as_list(ids)) if str(name or "").strip()]
    if names and not found:
        found = [(Passage(name), group) for name, group in names]
    elif len(names) == len(found):
        found = [
            (item and item._replace(id=name), group)
            for (item, _), (name, group) in zip(found, names, strict=True)
        ]
    return distinct(item._replace(group=group) for item, group in found if item)


def _members(given: list[Any]) -> Iterator[tuple[Any, int | None]]:
    """The members of a list, and those of lists within it, each with the number of its list."""
    for number, item in enumerate(given):
        if isinstance(item, (list, tuple)):
            yield from ((member, number) for member in item)
        else:
            yield item, None


def target_ids(expected: Iterable[Passage]) -> list[str | list[str]]:
    """The ids of expected passages; alternatives are a list."""
    targets: dict[str | int, list[str]] = {}
    for passage in expected:
        targets.setdefault(passage.id if passage.group is None else passage.group, []).append(passage.id)
    return [names if len(names) > 1 else names[0] for names in targets.values()]


def distinct(given: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages without those whose id was there before."""
    found: dict[str, Passage] = {}
    for passage in given:
        found.setdefault(passage.id, passage)
    return tuple(found.values())


def _passage(item: Any) -> Passage | None:
    """A text, or a passage of LangChain (also as it serializes itself), LlamaIndex, Haystack or the like."""
    if not isinstance(item, Mapping):
        text = "" if item is None else str(item)
        return Passage(text_id(text, "text"), text) if text.strip() else None
    inner = next(
        (item[key] for key in ("kwargs", "node", "document") if isinstance(item.get(key), Mapping)), item
    )
    nested = [inner[key] for key in _NESTED_KEYS if isinstance(inner.get(key), Mapping)]
    found = _first_text([inner], _TEXT_KEYS)
    name = _first_text([*nested, inner], _ID_KEYS[:2]) or _first_text([inner, *nested], _ID_KEYS)
    if name is None and not found:
        return None
    return Passage(name or text_id(found or "", "text"), found, _first_text([*nested, inner], _DOCUMENT_KEYS))


def _first_text(mappings: Iterable[Mapping[str, Any]], keys: Sequence[str]) -> str | None:
    """The first value under any of these keys that is text or a whole number, and not blank."""
    for mapping in mappings:
        for key in keys:
            value = mapping.get(key)
            if isinstance(value, (str, int)) and not isinstance(value, bool) and str(value).strip():
                return str(value)
    return None


# -- inputs and outputs ------------------------------------------------------------------------------


def first(values: Mapping[str, Any], names: Iterable[str]) -> Any:
    """The first value under these names that is there."""
    return next((values[name] for name in names if values.get(name) is not None), None)


def text_of(given: Any) -> str | None:
    """Text as it is; None stays None, and another value is written as JSON."""
    if given is None or isinstance(given, str):
        return given
    try:
        return msgspec.json.encode(given).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, which is written as its escape
        return json.dumps(given)


def grouped(values: Json, *names: str) -> Any:
    """What is under one of these names, or what is spread over columns: `inputs.question`."""
    whole = opened(first(values, names))
    if whole is not None:
        return whole
    spread = {
        column.partition(".")[2]: opened(value)
        for column, value in values.items()
        if column.partition(".")[0] in names and "." in column and value is not None
    }
    return spread or None


def question_in(given: Any) -> str:
    """The question in an input: text, an object with one, or the last message of the user."""
    if isinstance(given, Mapping):
        found = first(given, QUESTION)
        if found is None and isinstance(given.get("messages"), list):
            found = given["messages"]
        if found is None and len(given) == 1:
            found = next(iter(given.values()))
        return question_in(found) if found is not None and found is not given else text_of(given) or ""
    if isinstance(given, list):
        asked = [
            message
            for message in given
            if isinstance(message, Mapping) and any(message.get(key) in _USERS for key in _ROLES)
        ]
        given = asked[-1].get("content") if asked else given
    return text_of(given) or ""


def answer_in(given: Any, names: Iterable[str] = ANSWER) -> str | None:
    """The answer in an output: text, or what an object has under one of these names."""
    if isinstance(given, Mapping):
        found = first(given, names)
        return answer_in(found, names) if isinstance(found, Mapping) else text_of(found)
    return None if isinstance(given, list) else text_of(given)


def references_in(given: Any) -> tuple[str, ...]:
    """The reference answers in an expected output."""
    found = first(given, REFERENCE) if isinstance(given, Mapping) else given
    return tuple(text for text in map(text_of, as_list(found)) if text)


def passages_in(given: Any, names: Iterable[str] = PASSAGES) -> tuple[Passage, ...]:
    """The passages in an output: a list is all passages, and an object has them under one of these names."""
    if isinstance(given, list):
        return passages(given)
    return passages(opened(first(given, names))) if isinstance(given, Mapping) else ()


def measured(**given: Any) -> Json:
    """Times and costs as fields of a result, without those that are no sensible number."""
    return {name: amount for name, value in given.items() if (amount := _amount(value)) is not None}


def milliseconds(seconds: Any) -> float | None:
    """A time in seconds, in milliseconds; None if it is none."""
    amount = _amount(seconds)
    return None if amount is None else amount * 1000


def _amount(given: Any) -> float | None:
    if given is None or isinstance(given, bool):
        return None
    try:
        amount = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < _MAX_AMOUNT else None
