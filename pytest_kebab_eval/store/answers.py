"""An answer and its citations, in any shape that a caller may hand in -> as they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Answer, Cited, Span
from pytest_kebab_eval.store.plain import check_keys, finite, id_text, nearest, unwrapped
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
CITATION_KINDS = ("line", "code", "page", "region", "time", "caption")

_RANGES = (
    ("start", "end"),
    ("line_start", "line_end"),
    ("char_start", "char_end"),
    ("start_ms", "end_ms"),
)
_CITED_KEYS = ("marker", "citation", "chunk_id")


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
    if given.get("answer") is None and (grounded or "answer" in given):
        has = f"it has {', '.join(map(printable, given))}" if given else "it is empty"
        raise InputError(f"an answer needs its text under 'answer'; {has}")
    if not isinstance(given.get("answer", ""), str):
        raise InputError(f"the answer's text is {brief(repr(given['answer']), 40)}; give text")
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


# -- citations -------------------------------------------------------------------------------------


def chunk_citation(number: int, chunk_id: str) -> dict[str, Any]:
    """An answer's citation that gives only the id of the cited chunk."""
    return {"marker": f"[{number}]", "citation": None, "chunk_id": chunk_id}


def to_stored_citations(citations: Any) -> list[dict[str, Any]]:
    """The citations of an answer; an id is that of the cited chunk, a mapping with a `kind` a passage."""
    if isinstance(citations, (str, bytes, Mapping, set, frozenset)) or not isinstance(citations, Iterable):
        raise InputError(f"citations must be a list, not {brief(repr(citations), 40)}")
    return [_to_stored_citation(number, cited) for number, cited in enumerate(citations, start=1)]


def _to_stored_citation(number: int, cited: Any) -> dict[str, Any]:
    what = f"citation {number} of the answer"
    if isinstance(cited, (Cited, Span)):
        cited = msgspec.to_builtins(cited)
    if not isinstance(cited, Mapping):
        return chunk_citation(number, id_text(cited, what))
    if "kind" in cited:
        return {"marker": f"[{number}]", "citation": checked_citation(cited, what)}
    check_keys(cited, _CITED_KEYS, {"id": "chunk_id", "doc_id": "citation"}, what)
    found: dict[str, Any] = {}
    if cited.get("chunk_id") is not None:
        found["chunk_id"] = id_text(cited["chunk_id"], f"the chunk_id of {what}")
    if cited.get("citation") is not None:
        found["citation"] = checked_citation(cited["citation"], what)
    if not found:
        raise InputError(f"{what} says neither which chunk_id nor which citation; give one of them")
    return {"marker": f"[{number}]", **cited, **found}


def checked_citation(citation: Any, what: str) -> dict[str, Any]:
    """The citation, if its kind exists and it does not end before it starts."""
    given = msgspec.to_builtins(citation) if isinstance(citation, Span) else citation
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is {brief(repr(citation), 60)}; give a mapping with kind and path")
    kind = given.get("kind")
    if kind is None:
        raise InputError(f"{what} has no kind; there is {', '.join(CITATION_KINDS)}")
    if kind not in CITATION_KINDS:
        advice = nearest(str(kind), CITATION_KINDS)
        raise InputError(f"{what} has the kind '{printable(str(kind))}', which does not exist; {advice}")
    for first, last in _RANGES:
        if given.get(first) is not None and given.get(last) is not None:
            start, end = finite(given[first], f"{first} of {what}"), finite(given[last], f"{last} of {what}")
            if end < start:
                raise InputError(
                    f"{what} ends before it starts: {first} {start:g}, {last} {end:g}; swap them"
                )
    return dict(given)
