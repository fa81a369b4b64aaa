"""Hits in any shape that a caller may hand in -> hits as they are stored.

"c1"                            an id
("c1", 0.87), ("c1", "d1")      an id and its score, or its document
{"chunk_id": "c1", …}, Hit(…)   a whole hit
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.model import Hit
from pytest_kebab_eval.text import brief

HitLike = str | tuple[str, "float | str"] | Mapping[str, Any] | Hit
StoredHit = dict[str, Any]


def to_stored_hits(hits: Iterable[HitLike]) -> list[StoredHit]:
    """The hits with their ranks, in the order given; an `InputError` if a hit has another shape."""
    if isinstance(hits, (str, bytes)) or not isinstance(hits, Iterable):
        raise InputError(f"hits must be a list of hits, not {brief(repr(hits), 40)}")
    return [_to_stored_hit(rank, hit) for rank, hit in enumerate(hits, start=1)]


def _to_stored_hit(rank: int, hit: HitLike) -> StoredHit:
    if isinstance(hit, Hit):
        return dict(msgspec.to_builtins(hit))
    if isinstance(hit, str):
        return id_hit(rank, hit)
    if isinstance(hit, Mapping):
        return _from_mapping(rank, hit)
    if isinstance(hit, tuple) and len(hit) == 2 and isinstance(hit[1], (str, int, float)):
        return _from_pair(rank, *hit)
    raise InputError(
        f"hit {rank} is {brief(repr(hit), 60)}; give an id, a pair of an id and a score or a document id,"
        " or a whole hit"
    )


def id_hit(rank: int, chunk_id: str, **more: Any) -> StoredHit:
    """A hit that has only an id, so that its document has the same."""
    return {"rank": rank, "chunk_id": chunk_id, "doc_id": chunk_id, **more}


def _from_mapping(rank: int, hit: Mapping[str, Any]) -> StoredHit:
    if not (hit.get("chunk_id") or hit.get("doc_id")):
        raise InputError(f"hit {rank} has neither a chunk_id nor a doc_id: {brief(repr(dict(hit)), 60)}")
    return {"rank": rank, "doc_id": hit.get("chunk_id"), **hit}


def _from_pair(rank: int, chunk_id: str, other: float | str) -> StoredHit:
    if isinstance(other, str):
        return {"rank": rank, "chunk_id": chunk_id, "doc_id": other}
    if not math.isfinite(other):
        raise InputError(f"hit {rank} ({brief(chunk_id, 40)}) has the score {other}, which is no number")
    return id_hit(rank, chunk_id, retrieval={"fusion_score": float(other)})
