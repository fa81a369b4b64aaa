"""An answer in any shape that a caller may hand in -> an answer as it is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Answer
from pytest_kebab_eval.store.citations import to_stored_citations
from pytest_kebab_eval.store.plain import check_keys, unwrapped
from pytest_kebab_eval.text import brief, printable

AnswerLike = str | Mapping[str, Any] | Answer

_KEYS = (
    *("answer", "grounded", "refused", "refusal_reason", "citations", "usage", "model", "embedding"),
    *("prompt_template_version", "retrieval", "created_at", "metadata"),
)
_HINTS = {
    "text": "answer",
    "content": "answer",
    "response": "answer",
    "sources": "citations",
    "refusal": "refused",
    "meta": "metadata",
}


def to_stored_answer(answer: AnswerLike | None) -> dict[str, Any] | None:
    """The answer; an `InputError` if it has another shape."""
    if answer is None:
        return None
    if isinstance(answer, str):
        return {"answer": str(answer), "grounded": True, "citations": []}
    if not isinstance(answer, (Answer, Mapping)):
        raise InputError(f"an answer is text or a mapping, not {brief(repr(answer), 40)}")
    given = msgspec.to_builtins(answer) if isinstance(answer, Answer) else dict(answer)
    check_keys(given, _KEYS, _HINTS, "the answer")
    grounded = _is_grounded(given)
    _check_text(given, grounded)
    citations = given.get("citations")
    stored = {"answer": "", **given, "grounded": grounded}
    stored.pop("refused", None)
    return stored | {"citations": to_stored_citations(() if citations is None else citations)}


def _is_grounded(given: Mapping[str, Any]) -> bool:
    """Whether the system stands by the answer: `grounded`, or not `refused`."""
    found: dict[str, bool] = {}
    for key in ("grounded", "refused"):
        value = unwrapped(given.get(key))
        if value is not None:
            found[key] = value
            if not isinstance(value, bool):
                raise InputError(f"{key} of the answer is {brief(repr(value), 40)}; give true or false")
    if len(found) == 2 and found["grounded"] == found["refused"]:
        value = str(found["grounded"]).lower()
        raise InputError(f"the answer has both grounded and refused {value}; give one of them")
    return found.get("grounded", not found.get("refused", False))


def _check_text(given: Mapping[str, Any], grounded: bool) -> None:
    if given.get("answer") is None and (grounded or "answer" in given):
        has = f"it has {', '.join(map(printable, given))}" if given else "it is empty"
        raise InputError(f"an answer needs its text under 'answer'; {has}")
    if not isinstance(given.get("answer", ""), str):
        raise InputError(f"the answer's text is {brief(repr(given['answer']), 40)}; give text")
