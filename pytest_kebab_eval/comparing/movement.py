"""How far the rankings of two runs are apart, whether or not anything is expected of the queries.

`overlap@k`: the ids that both top k have, over those that either has. `rbo`: rank-biased overlap (Webber,
Moffat and Zobel, 2010), p = 0.9, extrapolated from what is stored: the higher a rank, the more it counts.
"""

from __future__ import annotations

import itertools
import math
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import itemgetter
from typing import NamedTuple

from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.metrics.registry import Family, ResultDomain
from pytest_kebab_eval.model import QueryResult, Unreadable, Value
from pytest_kebab_eval.scoring.aggregates import rounded
from pytest_kebab_eval.scoring.columns import Ranked, key_of
from pytest_kebab_eval.scoring.combining import Pairs, combine
from pytest_kebab_eval.scoring.facts import distinct_hits
from pytest_kebab_eval.scoring.scorecard import Scorecard

P = 0.9
SAME = 1.0, 1.0  # overlap@k and rbo of rankings that do not differ

Keys = Sequence[int]


_PAIRED = ResultDomain("Golden queries that both runs have, but those that errored in both", lambda _: True)


class Rankings(Value, frozen=True):
    """Two rankings laid beside each other: their lengths, and from which depth on each key is in both.

    `by_rank`, where ranks have gaps: the ranks in A, those in B, and from which rank on each key is in both.
    """

    short: int
    long: int
    depths: tuple[int, ...]
    by_rank: tuple[Keys, Keys, Keys] | None = None

    def overlap(self, k: int) -> float:
        """The ids that both top k have, over those that either has; 1 if neither has any."""
        if self.by_rank:
            in_a, in_b, shared = (bisect_right(ranks, k) for ranks in self.by_rank)
        else:
            in_a, in_b, shared = min(self.short, k), min(self.long, k), bisect_right(self.depths, k)
        union = in_a + in_b - shared
        return shared / union if union else 1.0

    def rbo(self) -> float:
        """Rank-biased overlap, extrapolated (equation 32); 1 if neither has any hit, 0 if one has none."""
        if not self.short:
            return 0.0 if self.long else 1.0
        in_short = bisect_right(self.depths, self.short)
        # Each key counts at every depth from its own on, which `_weights` has summed up beforehand.
        found = math.fsum(map(_weights(self.long).__getitem__, self.depths))
        return found + in_short * _extrapolated(self.short, self.long)


def beside(a: Ranked, b: Ranked) -> Rankings:
    """Lay two rankings beside each other; a key that one has twice counts where it comes first."""
    position_in_a, position_in_b = _positions(a.keys), _positions(b.keys)
    depths = _in_both(position_in_a, position_in_b)
    short, long = sorted((len(position_in_a), len(position_in_b)))
    if not a.ranks and not b.ranks:
        return Rankings(short, long, depths)
    rank_in_a, rank_in_b = _ranks(a), _ranks(b)
    by_rank = tuple(rank_in_a.values()), tuple(rank_in_b.values()), _in_both(rank_in_a, rank_in_b)
    return Rankings(short, long, depths, by_rank)


def _in_both(a: dict[int, int], b: dict[int, int]) -> tuple[int, ...]:
    """From where on each key is in both, in order."""
    return tuple(sorted([max(a[key], b[key]) for key in a.keys() & b.keys()]))


def _positions(keys: Keys) -> dict[int, int]:
    positions = dict(zip(keys, itertools.count(1), strict=False))
    return positions if len(positions) == len(keys) else _positions(list(dict.fromkeys(keys)))


def _ranks(ranked: Ranked) -> dict[int, int]:
    ranks = ranked.ranks or range(1, len(ranked.keys) + 1)
    first = dict(reversed([*zip(ranked.keys, ranks, strict=True)]))
    return dict(sorted(first.items(), key=itemgetter(1)))


@cache
def _weights(long: int) -> list[float]:
    """For each depth, what a key is worth that is in both rankings from there on, down to the end."""
    terms = [0.0, *((1 - P) / P * P**depth / depth for depth in range(1, long + 1))]
    weights = [0.0] * (long + 1)
    rest = P**long / long
    for depth in range(long, 0, -1):
        rest += terms[depth]
        weights[depth] = rest
    return weights


@cache
def _extrapolated(short: int, long: int) -> float:
    """What a key that both have within the shorter ranking is worth beyond its end."""
    further = math.fsum((depth - short) / (short * depth) * P**depth for depth in range(short + 1, long + 1))
    return (1 - P) / P * further + (1 / short - 1 / long) * P**long


def overlap(a: Keys, b: Keys, k: int) -> float:
    """`overlap@k` of two rankings."""
    return beside(Ranked(a), Ranked(b)).overlap(k)


def rbo(a: Keys, b: Keys) -> float:
    """`rbo` of two rankings."""
    return beside(Ranked(a), Ranked(b)).rbo()


OVERLAP = Metric(
    "overlap@k",
    Family("overlap@{k}", _PAIRED, "ids that both top k share, over those that either has"),
    overlap,
)
RBO = Metric(
    "rbo", Family("rbo", _PAIRED, "rank-biased overlap of the two rankings, p = 0.9, extrapolated"), rbo
)


def movement_metric(name: str) -> Metric:
    """`rbo`, or `overlap` at any cutoff; `KeyError` if it is neither."""
    if name == RBO.name:
        return RBO
    prefix, _, cutoff = name.partition("@")
    if prefix == "overlap" and cutoff.isascii() and cutoff.isdecimal() and 1 <= int(cutoff) <= 1_000:
        return OVERLAP.at(int(cutoff))
    raise KeyError(name)


class Movement(Value, frozen=True):
    """How far the rankings moved, query by query; the values by metric and slice are asked of the card."""

    card: Scorecard
    moved: dict[str, tuple[float, float]]  # overlap@k and rbo of the queries whose rankings differ, exact

    def of(self, query_id: str) -> tuple[float | None, float | None]:
        """A query's overlap within the comparison's cutoff, and its rbo; None where it is not paired."""
        if query_id not in self.card:
            return None, None
        moved = self.moved.get(query_id)
        return (rounded(moved[0]), rounded(moved[1])) if moved else SAME


def measure_movement(
    a: Sequence[Scorecard], b: Sequence[Scorecard], compare_k: int, cutoffs: Sequence[int]
) -> Movement:
    """How far the rankings moved on average, over every run of A with every run of B: no order matters."""
    movements = [_between(*pair, compare_k, cutoffs) for pair in itertools.product(a, b)]
    if len(movements) == 1:
        return movements[0]
    cards = [movement.card for movement in movements]
    card = combine(cards, lambda query_id: next(n for n, card in enumerate(cards) if query_id in card))
    moved: dict[str, tuple[float, float]] = {}
    for query_id in {query_id for movement in movements for query_id in movement.moved}:
        paired = [movement.moved.get(query_id, SAME) for movement in movements if query_id in movement.card]
        overlap, rbo = (math.fsum(values) / len(paired) for values in zip(*paired, strict=True))
        moved[query_id] = overlap, rbo
    return Movement(card, moved)


def _between(a: Scorecard, b: Scorecard, compare_k: int, cutoffs: Sequence[int]) -> Movement:
    """Compare the rankings of every golden query that both runs have."""
    pairs = Pairs(a, b, golden_only=True)
    moved: dict[str, tuple[float, float]] = {}
    values = _measured(pairs, _depths(cutoffs), compare_k, moved)
    return Movement(pairs.with_values(movement_metrics(cutoffs), values), moved)


def movement_metrics(cutoffs: Iterable[int]) -> tuple[Metric, ...]:
    """`overlap` at the usual cutoffs and these, and `rbo`."""
    return (*(OVERLAP.at(k) for k in _depths(cutoffs)), RBO)


def _depths(cutoffs: Iterable[int]) -> list[int]:
    return sorted({*CUTOFFS, *cutoffs})


def _measured(
    pairs: Pairs, depths: Sequence[int], compare_k: int, moved: dict[str, tuple[float, float]]
) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    """The values of each query, those alike being the same tuple; what moved is added."""
    same, not_measured = (1.0,) * (len(depths) + 1), (None,) * (len(depths) + 1)
    known: dict[Rankings, tuple[tuple[float, ...], tuple[float, float]]] = {}
    for query_id, in_a, in_b in pairs.rankings():
        if in_a is None or in_b is None:
            yield query_id, not_measured
        elif in_a == in_b:
            yield query_id, same
        else:
            rankings = beside(in_a, in_b)
            if rankings not in known:
                values = (*map(rankings.overlap, depths), rankings.rbo())
                known[rankings] = values, (rankings.overlap(compare_k), values[-1])
            values, moved[query_id] = known[rankings]
            yield query_id, values


# -- churn: the queries that moved most, of any two runs ------------------------------------------

Results = Iterable[QueryResult | Unreadable]


class Moved(Value, frozen=True):
    """A query whose results are not the same in both runs."""

    rbo: float
    overlap: float  # within the cutoff
    query_id: str
    top_changed: bool  # whether the first hit is another one
    hits_a: int
    hits_b: int
    errored: str | None  # A | B: the run in which it errored, and so found nothing


class Churn(NamedTuple):
    """The queries that moved, the most moved first, and how many were compared."""

    moved: tuple[Moved, ...]
    compared: int
    only_in_a: int
    only_in_b: int
    not_compared: int  # in both, but errored in both, or not readable in one


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


def _moved(query_id: str, a: Ranked, b: Ranked, k: int) -> Moved:
    rankings = beside(a, b)
    return Moved(
        rbo=rounded(rankings.rbo()),
        overlap=rounded(rankings.overlap(k)),
        query_id=query_id,
        top_changed=a.keys[:1] != b.keys[:1],
        hits_a=len(a.keys),
        hits_b=len(b.keys),
        errored="A" if a.errored else "B" if b.errored else None,
    )


def _rankings(results: Results, *, by_document: bool) -> Iterator[tuple[str, Ranked | None]]:
    """The rankings by query; None for a result that cannot be read."""
    for result in results:
        if isinstance(result, Unreadable):
            yield result.query_id, None
        elif result.error is not None:
            yield result.query_id, Ranked(array("q"), errored=True)
        elif by_document:
            hits = distinct_hits(result.hits)
            documents = dict.fromkeys(hit.doc_id or hit.doc_path or hit.chunk_id for hit in hits)
            yield result.query_id, Ranked(array("q", map(hash, documents)))
        else:
            hits = distinct_hits(result.hits)
            is_gapped = bool(hits) and hits[-1].rank != len(hits)
            ranks = tuple(hit.rank for hit in hits) if is_gapped else None
            yield result.query_id, Ranked(array("q", [hash(key_of(hit)) for hit in hits]), ranks)
