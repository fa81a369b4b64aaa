"""Passages, questions and answers in what other tools stored as it came.

A passage is text, or an object with a text and perhaps an id. One without an id gets one that is made of its
text, so that the same text has the same id in every export, as what was retrieved and as what is expected.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.importers.importer import Json
from pytest_kebab_eval.importers.sources import parsed_json
from pytest_kebab_eval.limits import PYTHON_CELL

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
_PYTHON_TEXT = re.compile(r"""\s*,?\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")""", re.DOTALL)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\n": "", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


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


# -- lists in cells ----------------------------------------------------------------------------------


def as_list(given: Any) -> list[Any]:
    """A list, also one that a cell spells as JSON, Python or NumPy do; another value is a list of one."""
    if isinstance(given, str):
        given = _parsed_list(given) or given
    if isinstance(given, Mapping):
        inner = next((given[key] for key in ("documents", "results", "chunks") if key in given), None)
        given = inner if isinstance(inner, list) else [given]
    if given is None or (isinstance(given, str) and given.strip() in {"", "[]"}):
        return []
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _parsed_list(cell: str) -> list[Any] | None:
    """The list that a cell spells: `["a", "b"]`, `['a', 'b']`, or NumPy's `['a' 'b']`; None if none."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    found = parsed_json(text)
    return found if isinstance(found, list) else _python_texts(text[1:-1]) or _python_objects(text)


def _python_texts(inside: str) -> list[Any] | None:
    found, at = [], 0
    while match := _PYTHON_TEXT.match(inside, at):
        found.append(_ESCAPE.sub(_unescaped, match[2] if match[1] is None else match[1]))
        at = match.end()
    return None if inside[at:].strip(" \t\r\n,") else found


def _unescaped(match: re.Match[str]) -> str:
    escape = match[1]
    if len(escape) > 1:
        number = int(escape[1:], 16)
        return chr(number) if number <= 0x10FFFF else match[0]
    return _ESCAPED.get(escape, escape)


def _python_objects(text: str) -> list[Any] | None:
    """A list of objects as Python prints it."""
    if "{" not in text or len(text) > PYTHON_CELL:
        return None
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return found if isinstance(found, list) else None


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


def opened(given: Any) -> Any:
    """A value; a cell of CSV that spells a JSON object, list or text is what it spells."""
    if isinstance(given, str) and given.lstrip()[:1] in {"{", "[", '"'}:
        parsed = parsed_json(given)
        return given if parsed is None else parsed
    return given


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
