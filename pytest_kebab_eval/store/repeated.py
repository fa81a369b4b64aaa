"""Judges the stored hits of queries, run after run: those that are stored as before are not decoded again.

From one run of a suite to the next, most queries find what they found before; times and answers differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.limits import CITED_PAIRS, REMEMBERED_BYTES
from pytest_kebab_eval.model import Hit, QueryResult, Unreadable, Value
from pytest_kebab_eval.store.results import decode_result
from pytest_kebab_eval.text.masking import mask_text

_AFTER_HITS = b'"answer"'  # the key after the hits in what kebab, the recorder and the importers write
_JSON_SPACE = b" \t\r\n"
_PATIENCE = 3  # results that may be remembered in vain for each that repeats, and for each query


class FirstRank(Value, frozen=True):
    """What is known of a stored result: the first correct rank among its hits, and its error."""

    rank: int | None
    error: str | None = None


class RepeatedHits:
    """Ranks results as if each was decoded; `judge` tells the first correct rank among a query's hits."""

    def __init__(self, queries: int, judge: Callable[[str, tuple[Hit, ...]], int | None]) -> None:
        self._judge = judge
        self._known: dict[str, _Known] = {}
        self._bytes = 0
        self._patience = _PATIENCE * queries

    def forget(self) -> None:
        """From here on, hits are judged in another way."""
        self._known.clear()
        self._bytes = 0

    def rank(self, query_id: str, result_json: object) -> FirstRank | Unreadable:
        """The next result of a query."""
        known, found = self._known.get(query_id), None
        if known is not None and type(result_json) is bytes and result_json.startswith(known.head):
            self._patience += _PATIENCE
            found = known.ranked(result_json)
        elif self._patience > 0 and type(result_json) is bytes:
            found = self._ranked_anew(query_id, result_json)
        if found is not None:
            return found
        result = decode_result(query_id, result_json)
        if isinstance(result, Unreadable):
            return result
        error = None if result.error is None else mask_text(result.error)
        return FirstRank(self._judge(query_id, result.hits), error)

    def _ranked_anew(self, query_id: str, result_json: bytes) -> FirstRank | None:
        """Decode the hits, and remember them if there is room; None if they cannot be told from the rest."""
        self._patience -= 1
        if self._patience == 0:
            self.forget()
            return None
        self._bytes -= len(self._known.pop(query_id, _NOTHING).head)
        beginning = _beginning(query_id, result_json)
        if beginning is None:
            return None
        head, hits = beginning
        known = _Known(head, len(hits), FirstRank(self._judge(query_id, hits)))
        if self._bytes + len(known.head) <= REMEMBERED_BYTES:
            self._bytes += len(known.head)
            self._known[query_id] = known
        return known.ranked(result_json)


def _beginning(query_id: str, result_json: bytes) -> tuple[bytes, tuple[Hit, ...]] | None:
    """A result up to the key after its hits, and the hits; None if that has more which is judged."""
    at = result_json.find(_AFTER_HITS)
    end = result_json.rfind(b",", 0, max(at, 0))
    if end < 0 or result_json[end + 1 : at].strip(_JSON_SPACE):
        return None
    # If a brace makes it an object, what follows the comma is the next key of that object.
    found = decode_result(query_id, result_json[:end] + b"}")
    if isinstance(found, Unreadable):
        return None
    plain = QueryResult(query_id=query_id, query=found.query, hits=found.hits)
    return (result_json[:at], found.hits) if found == plain else None


class _Known(NamedTuple):
    """The beginning of a query's last result: how many hits it has, and what they are worth."""

    head: bytes
    hits: int
    found: FirstRank

    def ranked(self, result_json: bytes) -> FirstRank | None:
        """A result that begins like that; None where all of it must be decoded to know."""
        try:
            rest = _decoder.decode(b"{" + result_json[len(self.head) :])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if rest.answer is not None and self.hits * len(rest.answer.citations) > CITED_PAIRS:
            return None
        return self.found if rest.error is None else FirstRank(self.found.rank, mask_text(rest.error))


_NOTHING = _Known(b"", 0, FirstRank(None))


class _Rest(QueryResult, frozen=True, kw_only=True):
    """What follows the hits; no key of the beginning may be there again, since the last one would count."""

    query_id: msgspec.UnsetType = msgspec.UNSET  # type: ignore[assignment]
    query: msgspec.UnsetType = msgspec.UNSET  # type: ignore[assignment]
    hits: msgspec.UnsetType = msgspec.field(name="hits_top_k", default=msgspec.UNSET)  # type: ignore[assignment]


_decoder = msgspec.json.Decoder(_Rest)
