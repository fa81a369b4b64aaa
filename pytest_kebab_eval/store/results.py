"""The `result_json` of a query: what a caller records -> JSON, and JSON -> a `QueryResult`."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Amount, Answer, Hit, QueryResult, Unreadable
from pytest_kebab_eval.store.hits import HitLike, to_stored_hits
from pytest_kebab_eval.text import brief, printable

AnswerLike = str | Mapping[str, Any] | Answer

_OPTIONAL_FIELDS = ("mode", "scope", "timings_ms", "timed_out", "cost_usd", "judge")
_KNOWN_FIELDS = frozenset({"query", "elapsed_ms", "error", *_OPTIONAL_FIELDS})


# -- to JSON -------------------------------------------------------------------------------------


def to_stored(query_id: str, hits: Iterable[HitLike], answer: AnswerLike | None, **fields: Any) -> bytes:
    """A result as it is stored; an `InputError` if a part of it has the wrong shape.

    `fields` may be query, error, elapsed_ms, mode, scope, timings_ms, timed_out, cost_usd, judge.
    """
    _check_fields(fields)
    try:
        stored_hits, stored_answer = to_stored_hits(hits), _to_stored_answer(answer)
    except InputError as error:
        raise InputError(f"query '{printable(str(query_id))}': {error}") from None
    return encode_json(query_id, result_fields(query_id, stored_hits, stored_answer, **fields))


def result_fields(
    query_id: str, hits: Iterable[Any], answer: Mapping[str, Any] | None, **fields: Any
) -> dict[str, Any]:
    """The fields of a stored result; hits are in the order of their ranks."""
    return {
        "query_id": query_id,
        "query": "",
        "mode": "hybrid",
        "hits_top_k": list(hits),
        "answer": answer,
        "elapsed_ms": None,
        "error": None,
        **fields,
    }


def chunk_citation(number: int, chunk_id: str) -> dict[str, Any]:
    """An answer's citation that gives only the id of the cited chunk."""
    return {"marker": f"[{number}]", "citation": None, "chunk_id": chunk_id}


def encode_json(name: str, value: Any) -> bytes:
    """The value as JSON; an `InputError` with this name if JSON cannot hold it."""
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        reason = brief(str(error), 120)
        raise InputError(f"'{printable(name)}' cannot be recorded as JSON: {reason}") from None
    if b"null" in encoded and not _is_finite(msgspec.to_builtins(value)):
        raise InputError(f"'{printable(name)}' cannot be recorded: a number in it is not finite")
    return encoded


def _is_finite(value: Any) -> bool:
    """Whether the value holds no NaN or infinity, which are encoded as null."""
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _check_fields(fields: Mapping[str, Any]) -> None:
    for name in fields:
        if name not in _KNOWN_FIELDS:
            near = difflib.get_close_matches(name, [*_OPTIONAL_FIELDS, "elapsed_ms", "error"], n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; there is {', '.join(_OPTIONAL_FIELDS)}"
            raise InputError(f"a result has no field '{printable(name)}'{hint}")


def _to_stored_answer(answer: AnswerLike | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    if isinstance(answer, str):
        return {"answer": answer, "grounded": True, "citations": []}
    if not isinstance(answer, (Answer, Mapping)):
        raise InputError(f"an answer is text or a mapping, not {brief(repr(answer), 40)}")
    given = msgspec.to_builtins(answer) if isinstance(answer, Answer) else dict(answer)
    if "answer" not in given:
        raise InputError(
            f"an answer needs its text under 'answer'; it has {', '.join(map(printable, given))}"
        )
    return {"grounded": True, **given, "citations": _to_stored_citations(given.get("citations") or ())}


def _to_stored_citations(citations: Any) -> list[Any]:
    """The citations as they are; a text is the id of the cited chunk."""
    if isinstance(citations, (str, bytes)) or not isinstance(citations, Iterable):
        raise InputError(f"citations must be a list, not {brief(repr(citations), 40)}")
    return [
        chunk_citation(number, cited) if isinstance(cited, str) else cited
        for number, cited in enumerate(citations, start=1)
    ]


# -- from JSON -----------------------------------------------------------------------------------

_decoder = msgspec.json.Decoder(QueryResult)


def decode_result(query_id: str, result_json: object) -> QueryResult | Unreadable:
    """A stored result, its hits in rank order; the row's query id wins over the one in the JSON."""
    if not isinstance(result_json, bytes):
        what = "NULL" if result_json is None else f"a {type(result_json).__name__}"
        return Unreadable(query_id, f"result_json is not text but {what}")
    try:
        result = _decoder.decode(result_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _decode_errored(query_id, result_json) or Unreadable(query_id, brief(str(error), 200))
    hits = _in_rank_order(result.hits)
    if hits is None:
        return Unreadable(query_id, "two hits in hits_top_k have the same rank")
    if hits is result.hits and query_id == result.query_id:
        return result
    return msgspec.structs.replace(result, hits=hits, query_id=query_id)


class _Errored(msgspec.Struct):
    """A result that has an error and no hits."""

    error: str
    hits_top_k: None = None
    elapsed_ms: Amount | None = None


_errored_decoder = msgspec.json.Decoder(_Errored)


def _decode_errored(query_id: str, result_json: bytes) -> QueryResult | None:
    """The result of a query that errored, where hits may be missing; None if it is no such result."""
    try:
        stored = _errored_decoder.decode(result_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return QueryResult(query_id=query_id, hits=(), error=stored.error, elapsed_ms=stored.elapsed_ms)


def _in_rank_order(hits: tuple[Hit, ...]) -> tuple[Hit, ...] | None:
    """The hits by rank, or None if two share a rank; nearly always they are in order already."""
    previous = 0
    for hit in hits:
        if hit.rank <= previous:
            break
        previous = hit.rank
    else:
        return hits
    if len({hit.rank for hit in hits}) < len(hits):
        return None
    return tuple(sorted(hits, key=lambda hit: hit.rank))
