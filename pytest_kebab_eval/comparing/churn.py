"""Which queries' results moved most between two runs, whether or not anything is expected of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pytest_kebab_eval.comparing.movement import beside
from pytest_kebab_eval.model import Hit, QueryResult, Unreadable, Value
from pytest_kebab_eval.scoring.aggregates import rounded
from pytest_kebab_eval.scoring.facts import distinct_hits
from pytest_kebab_eval.scoring.hit_keys import Ranked

Results = Iterable[QueryResult | Unreadable]


class Moved(Value, frozen=True):
    """A query whose results are not the same in both runs."""

    rbo: float
    overlap: float  # within the cutoff
    query_id: str
    top_changed: bool  # whether the first hit is another one
    hits_a: int
    hits_b: int
    errored: str | None = None  # A | B: the run in which it errored, and so found nothing


class Churn(NamedTuple):
    """The queries that moved, the most moved first, and how many were compared."""

    moved: tuple[Moved, ...]
    compared: int
    only_in_a: int
    only_in_b: int
    not_compared: int  # in both, but errored in both, or not readable in one


class _Ranking(NamedTuple):
    """A query's hits in few bytes; None of them counts where it errored."""

    keys: array[int]
    ranks: tuple[int, ...] | None = None
    errored: bool = False

    @property
    def ranked(self) -> Ranked:
        return Ranked(self.keys, self.ranks)


def measure_churn(a: Results, b: Results, k: int, *, by_document: bool = False) -> Churn:
    """Compare the rankings of all queries that both runs have; by document, where the chunkers differ."""
    in_a = dict(_rankings(a, by_document=by_document))
    moved: list[Moved] = []
    only_in_b = not_compared = compared = 0
    for query_id, ranking_b in _rankings(b, by_document=by_document):
        if query_id not in in_a:
            only_in_b += 1
            continue
        ranking_a = in_a.pop(query_id)
        if ranking_a is None or ranking_b is None or (ranking_a.errored and ranking_b.errored):
            not_compared += 1
            continue
        compared += 1
        if ranking_a != ranking_b:
            moved.append(_moved(query_id, ranking_a, ranking_b, k))
    moved.sort(key=lambda query: (query.rbo, query.overlap, query.query_id))
    return Churn(tuple(moved), compared, len(in_a), only_in_b, not_compared)


def _moved(query_id: str, a: _Ranking, b: _Ranking, k: int) -> Moved:
    rankings = beside(a.ranked, b.ranked)
    return Moved(
        rbo=rounded(rankings.rbo()),
        overlap=rounded(rankings.overlap(k)),
        query_id=query_id,
        top_changed=a.keys[:1] != b.keys[:1],
        hits_a=len(a.keys),
        hits_b=len(b.keys),
        errored="A" if a.errored else "B" if b.errored else None,
    )


def _rankings(results: Results, *, by_document: bool) -> Iterator[tuple[str, _Ranking | None]]:
    """The rankings by query; None for a result that cannot be read."""
    for result in results:
        if isinstance(result, Unreadable):
            yield result.query_id, None
        elif result.error is not None:
            yield result.query_id, _Ranking(array("q"), errored=True)
        else:
            yield result.query_id, _ranking(distinct_hits(result.hits), by_document=by_document)


def _ranking(hits: tuple[Hit, ...], *, by_document: bool) -> _Ranking:
    if by_document:
        documents = dict.fromkeys(hit.doc_id or hit.doc_path or hit.chunk_id for hit in hits)
        return _Ranking(array("q", map(hash, documents)))
    ids = [hit.chunk_id or hit.doc_id or hit.doc_path for hit in hits]
    is_gapped = bool(hits) and hits[-1].rank != len(hits)
    return _Ranking(array("q", map(hash, ids)), tuple(hit.rank for hit in hits) if is_gapped else None)
