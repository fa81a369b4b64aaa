"""What the rows of a store hold -> text, and a `result_json` -> a `QueryResult`."""

from __future__ import annotations

from operator import lt
from typing import Any

import msgspec

from pytest_kebab_eval.limits import CITED_PAIRS
from pytest_kebab_eval.model import Amount, QueryResult, Unreadable
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.folding import are_folded, fold_id, told_apart

_decoder = msgspec.json.Decoder(QueryResult)
_FIRST_RANKS = list(range(1, 101))  # as ranks nearly always are


def text_of(value: object) -> str:
    """A value of a row as text, however the connection gives it."""
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def decode_result(query_id: str, result_json: object) -> QueryResult | Unreadable:
    """A stored result, hits in rank order, ids folded; it may leave out the query id, which the row has."""
    query_id = fold_id(query_id)
    if not isinstance(result_json, bytes):
        what = "NULL" if result_json is None else f"a {type(result_json).__name__}"
        return Unreadable(query_id, f"result_json is not text but {what}")
    try:
        result = _decoder.decode(result_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _decode_errored(query_id, result_json) or Unreadable(query_id, brief(str(error), 200))
    if not _has_plain_ids(result):
        result = _with_folded_ids(result)
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
    if fold_id(result.query_id) not in (query_id, ""):
        return _of_another_query(query_id, result.query_id)
    return msgspec.structs.replace(result, hits=hits, query_id=query_id)


def _has_plain_ids(result: QueryResult) -> bool:
    """Whether the ids of hits and citations are plainly as they are compared; nearly always they are."""
    hits = result.hits
    if result.answer and not are_folded([cited.chunk_id or "" for cited in result.answer.citations]):
        return False
    names = [hit.chunk_id for hit in hits] + [hit.doc_id for hit in hits]
    try:
        return are_folded(names)  # type: ignore[arg-type]
    except TypeError:  # some have none
        return are_folded(filter(None, names))


def _with_folded_ids(result: QueryResult) -> QueryResult:
    replace, answer = msgspec.structs.replace, result.answer
    hits = [replace(hit, chunk_id=_folded(hit.chunk_id), doc_id=_folded(hit.doc_id)) for hit in result.hits]
    if answer and answer.citations:
        cited = [replace(source, chunk_id=_folded(source.chunk_id)) for source in answer.citations]
        answer = replace(answer, citations=tuple(cited))
    return replace(result, hits=tuple(hits), answer=answer)


def _folded(name: str | None) -> str | None:
    return None if name is None else fold_id(name)


class _Errored(msgspec.Struct):
    """A result that has an error and no hits."""

    error: str
    query_id: Any = None
    hits_top_k: None = None
    elapsed_ms: Amount | None = None


_errored_decoder = msgspec.json.Decoder(_Errored)


def _of_another_query(query_id: str, named: str) -> Unreadable:
    _, named = told_apart(query_id, named)
    what = f"its query_id is '{brief(named, 60)}', so that it is the result of another query"
    return Unreadable(query_id, f"{what}; record it again")


def _decode_errored(query_id: str, result_json: bytes) -> QueryResult | Unreadable | None:
    """The result of a query that errored, where hits may be missing; None if it is no such result."""
    try:
        stored = _errored_decoder.decode(result_json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(stored.query_id, str) and fold_id(stored.query_id) not in (query_id, ""):
        return _of_another_query(query_id, stored.query_id)
    return QueryResult(query_id=query_id, hits=(), error=stored.error, elapsed_ms=stored.elapsed_ms)
