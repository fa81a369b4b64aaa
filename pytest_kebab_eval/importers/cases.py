"""Questions with what was retrieved, answered and expected -> a run and its golden queries.

A row without an id gets one that is made of its question; one that is there again gets a number after it.
A passage is text, or an object with a text and perhaps an id; without one, it gets one that is made of its
text, so that it has the same in every export. Where passages are expected by their texts, those that were
retrieved are known by their texts, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.importers.importer import Imported, golden_entry, result_json
from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.tables import Json, as_list, checked_id, opened

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
