"""Citations of a hit or an answer, checked before they are stored."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Cited, Span
from pytest_kebab_eval.store.plain import check_keys, finite, id_text
from pytest_kebab_eval.text import brief, printable

CITATION_KINDS = ("line", "code", "page", "region", "time", "caption")

_RANGES = (
    ("start", "end"),
    ("line_start", "line_end"),
    ("char_start", "char_end"),
    ("start_ms", "end_ms"),
)
_CITED_KEYS = ("marker", "citation", "chunk_id")


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
    return {"marker": f"[{number}]", **cited, **_cited_passage(cited, what)}


def _cited_passage(cited: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The id and the passage of a citation, which needs one of them."""
    found: dict[str, Any] = {}
    if cited.get("chunk_id") is not None:
        found["chunk_id"] = id_text(cited["chunk_id"], f"the chunk_id of {what}")
    if cited.get("citation") is not None:
        found["citation"] = checked_citation(cited["citation"], what)
    if not found:
        raise InputError(f"{what} says neither which chunk_id nor which citation; give one of them")
    return found


def checked_citation(citation: Any, what: str) -> dict[str, Any]:
    """The citation, if its kind exists and it does not end before it starts."""
    given = msgspec.to_builtins(citation) if isinstance(citation, Span) else citation
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is {brief(repr(citation), 60)}; give a mapping with kind and path")
    _check_kind(given.get("kind"), what)
    for first, last in _RANGES:
        if given.get(first) is not None and given.get(last) is not None:
            start, end = finite(given[first], f"{first} of {what}"), finite(given[last], f"{last} of {what}")
            if end < start:
                raise InputError(
                    f"{what} ends before it starts: {first} {start:g}, {last} {end:g}; swap them"
                )
    return dict(given)


def _check_kind(kind: Any, what: str) -> None:
    if kind in CITATION_KINDS:
        return
    if kind is None:
        raise InputError(f"{what} has no kind; there is {', '.join(CITATION_KINDS)}")
    near = difflib.get_close_matches(str(kind), CITATION_KINDS, n=1)
    advice = f"did you mean '{near[0]}'?" if near else f"there is {', '.join(CITATION_KINDS)}"
    raise InputError(f"{what} has the kind '{printable(str(kind))}', which does not exist; {advice}")
