"""The `result_json` of a query: what a caller records -> JSON, and JSON -> a `QueryResult`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from operator import lt
from typing import TYPE_CHECKING, Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.limits import CITED_PAIRS
from pytest_kebab_eval.model import Amount, QueryResult, Unreadable
from pytest_kebab_eval.store.plain import place, plain
from pytest_kebab_eval.text import brief, printable, similar

if TYPE_CHECKING:
    from pytest_kebab_eval.store.answers import AnswerLike
    from pytest_kebab_eval.store.hits import HitLike

_OPTIONAL_FIELDS = ("mode", "scope", "timings_ms", "timed_out", "cost_usd", "judge")
_KNOWN_FIELDS = frozenset({"query", "elapsed_ms", "error", *_OPTIONAL_FIELDS})


# -- to JSON -------------------------------------------------------------------------------------


def to_stored(
    query_id: str,
    hits: Iterable[HitLike] | Mapping[Any, Any],
    answer: AnswerLike | None,
    *,
    error: str | BaseException | None = None,
    documents: Mapping[str, Any] | None = None,
    **fields: Any,
) -> bytes:
    """A result as it is stored; an `InputError` if a part of it has the wrong shape."""
    from pytest_kebab_eval.store.answers import to_stored_answer
    from pytest_kebab_eval.store.hits import to_stored_hits

    unknown = next((name for name in fields if name not in _KNOWN_FIELDS), None)
    if unknown is not None:
        near = similar(unknown, [*_OPTIONAL_FIELDS, "hits", "answer", "elapsed_ms", "error"])
        hint = f"; did you mean '{near}'?" if near else f"; there is {', '.join(_OPTIONAL_FIELDS)}"
        raise InputError(f"a result has no field '{printable(unknown)}'{hint}")
    try:
        stored_hits, stored_answer = to_stored_hits(hits, documents), to_stored_answer(answer)
        fields["error"] = error_text(error)
    except InputError as refusal:
        raise InputError(f"query '{printable(query_id)}': {refusal}") from None
    return encode_json(query_id, result_fields(query_id, stored_hits, stored_answer, **fields))


def result_fields(
    query_id: str, hits: Iterable[Any], answer: Mapping[str, Any] | None, **fields: Any
) -> dict[str, Any]:
    """The fields of a stored result; hits are in the order of their ranks."""
    return {
        "query_id": query_id,
        "query": "",
        "hits_top_k": list(hits),
        "answer": answer,
        "elapsed_ms": None,
        "error": None,
        **fields,
    }


def encode_json(name: str, value: Any) -> bytes:
    """The value as JSON; an `InputError` with this name if JSON cannot hold it."""
    try:
        return msgspec.json.encode(plain(value))
    except InputError as error:
        reason = str(error)
    except UnicodeEncodeError as error:
        reason = f"{brief(repr(error.object), 60)} is not valid Unicode"
    except RecursionError:
        reason = "it is nested too deeply"
    raise InputError(f"'{printable(name)}' cannot be recorded as JSON: {reason}")


def error_text(error: Any) -> str | None:
    """Why a query failed; an exception is its type and its text."""
    if isinstance(error, BaseException):
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if error is not None and not isinstance(error, str):
        raise InputError(f"error is {brief(repr(error), 40)}; give text or an exception")
    return error


_TYPE_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def in_words(reason: str) -> str:
    """Why a result cannot be read back, without the paths and type names of the decoder."""
    found = re.fullmatch(r"(?s)(.*) - at `(?:key in )?\$(.*)`", reason)
    if not found:
        return reason
    parts = re.findall(r"[^.\[\]]+", found[2])
    where = place(tuple(int(part) if part.isdigit() else part for part in parts))
    expected = re.sub(r"`([^`]*)`", lambda name: _type_words(name[1]), found[1])
    return f"{where}: {expected[:1].lower()}{expected[1:]}"


def _type_words(names: str) -> str:
    return " or ".join(_TYPE_WORDS.get(name, f"'{name}'") for name in names.split(" | "))


# -- from JSON -----------------------------------------------------------------------------------

_decoder = msgspec.json.Decoder(QueryResult)
_FIRST_RANKS = list(range(1, 101))  # as ranks nearly always are


def decode_result(query_id: str, result_json: object) -> QueryResult | Unreadable:
    """A stored result, its hits in rank order; it may leave out the query id, which the row has."""
    if not isinstance(result_json, bytes):
        what = "NULL" if result_json is None else f"a {type(result_json).__name__}"
        return Unreadable(query_id, f"result_json is not text but {what}")
    try:
        result = _decoder.decode(result_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _decode_errored(query_id, result_json) or Unreadable(query_id, brief(str(error), 200))
    hits = result.hits
    ranks = [hit.rank for hit in hits]
    if ranks != _FIRST_RANKS[: len(ranks)] and not all(map(lt, ranks, ranks[1:])):
        if len({*ranks}) < len(ranks):
            return Unreadable(query_id, "two hits in hits_top_k have the same rank")
        hits = tuple(sorted(hits, key=lambda hit: hit.rank))
    if result.answer and len(hits) * len(result.answer.citations) > CITED_PAIRS:
        count = sum(not cited.chunk_id for cited in result.answer.citations)
        if len(hits) * count > CITED_PAIRS:
            return Unreadable(
                query_id, f"{count:,} citations without a chunk_id, of {len(hits):,} hits, are too many"
            )
    if hits is result.hits and query_id == result.query_id:
        return result
    if result.query_id not in (query_id, ""):
        return _of_another_query(query_id, result.query_id)
    return msgspec.structs.replace(result, hits=hits, query_id=query_id)


class _Errored(msgspec.Struct):
    """A result that has an error and no hits."""

    error: str
    query_id: Any = None
    hits_top_k: None = None
    elapsed_ms: Amount | None = None


_errored_decoder = msgspec.json.Decoder(_Errored)


def _of_another_query(query_id: str, named: str) -> Unreadable:
    what = f"its query_id is '{brief(named, 60)}', so that it is the result of another query"
    return Unreadable(query_id, f"{what}; record it again")


def _decode_errored(query_id: str, result_json: bytes) -> QueryResult | Unreadable | None:
    """The result of a query that errored, where hits may be missing; None if it is no such result."""
    try:
        stored = _errored_decoder.decode(result_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(stored.query_id, str) and stored.query_id not in (query_id, ""):
        return _of_another_query(query_id, stored.query_id)
    return QueryResult(query_id=query_id, hits=(), error=stored.error, elapsed_ms=stored.elapsed_ms)
