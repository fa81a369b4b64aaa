"""Questions, answers and passages in the inputs and outputs that a tracing tool stored as they came."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.importers.importer import Json
from pytest_kebab_eval.importers.passages import Passage, as_list, passages
from pytest_kebab_eval.importers.records import parsed_json

QUESTION = ("question", "query", "user_input", "input", "prompt", "q", "text")
ANSWER = (
    "answer",
    "response",
    "output",
    "result",
    "actual_output",
    "generation",
    "completion",
    "text",
    "content",
)
REFERENCE = ("reference", "expected_output", "ground_truth", "expected_answer", "expected", *ANSWER)
PASSAGES = (
    *(
        "retrieved_contexts",
        "retrieval_context",
        "contexts",
        "context",
        "documents",
        "docs",
        "source_documents",
    ),
    *("chunks", "retrieved_chunks", "retrieved_docs", "retrieved", "passages", "sources", "hits"),
)
EXPECTED_PASSAGES = ("reference_contexts", "expected_contexts", "gold_contexts", *PASSAGES)
_ROLES = ("role", "type")
_USERS = frozenset({"user", "human"})
_MAX_AMOUNT = 1e12  # of milliseconds or dollars; a larger one is a mistake


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


def measured(**given: Any) -> Json:
    """Times and costs as fields of a result, without those that are no sensible number."""
    amounts = {name: _amount(value) for name, value in given.items()}
    return {name: amount for name, amount in amounts.items() if amount is not None}


def _amount(given: Any) -> float | None:
    if given is None or isinstance(given, bool):
        return None
    try:
        amount = float(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return amount if 0 <= amount < _MAX_AMOUNT else None


def milliseconds(seconds: Any) -> float | None:
    """A time in seconds, in milliseconds; None if it is none."""
    amount = _amount(seconds)
    return None if amount is None else amount * 1000


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
        messages = given.get("messages")
        found = first(given, QUESTION)
        if found is None and isinstance(messages, list):
            found = messages
        if found is None and len(given) == 1:
            found = next(iter(given.values()))
        return question_in(found) if found is not None and found is not given else text_of(given) or ""
    if isinstance(given, list):
        asked = [message for message in given if isinstance(message, Mapping) and _is_user(message)]
        return text_of(asked[-1].get("content")) or "" if asked else text_of(given) or ""
    return text_of(given) or ""


def _is_user(message: Mapping[str, Any]) -> bool:
    return any(message.get(key) in _USERS for key in _ROLES)


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
