"""How far the rankings of two runs are apart, whether or not anything is expected of the queries.

`overlap@k`: the ids that both top k have, over those that either has.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.metrics.registry import Family, ResultDomain
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.aggregates import rounded
from pytest_kebab_eval.scoring.columns import Ranked
from pytest_kebab_eval.scoring.combining import Pairs, combine
from pytest_kebab_eval.scoring.scorecard import Scorecard

SAME = 1.0  # overlap@k of rankings that do not differ

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


def overlap(a: Keys, b: Keys, k: int) -> float:
    """`overlap@k` of two rankings."""
    return beside(Ranked(a), Ranked(b)).overlap(k)


OVERLAP = Metric(
    "overlap@k",
    Family("overlap@{k}", _PAIRED, "ids that both top k share, over those that either has"),
    overlap,
)


def movement_metric(name: str) -> Metric:
    """`overlap` at any cutoff; `KeyError` if it is something else."""
    prefix, _, cutoff = name.partition("@")
    if prefix == "overlap" and cutoff.isascii() and cutoff.isdecimal() and 1 <= int(cutoff) <= 1_000:
        return OVERLAP.at(int(cutoff))
    raise KeyError(name)


class Movement(Value, frozen=True):
    """How far the rankings moved, query by query; the values by metric and slice are asked of the card."""

    card: Scorecard
    moved: dict[str, float]  # overlap@k of the queries whose rankings differ, exact

    def of(self, query_id: str) -> float | None:
        """A query's overlap within the comparison's cutoff; None where it is not paired."""
        return rounded(self.moved.get(query_id, SAME)) if query_id in self.card else None


def measure_movement(
    a: Sequence[Scorecard], b: Sequence[Scorecard], compare_k: int, cutoffs: Sequence[int]
) -> Movement:
    """How far the rankings moved on average, over every run of A with every run of B: no order matters."""
    movements = [_between(*pair, compare_k, cutoffs) for pair in itertools.product(a, b)]
    if len(movements) == 1:
        return movements[0]
    cards = [movement.card for movement in movements]
    card = combine(cards, lambda query_id: next(n for n, card in enumerate(cards) if query_id in card))
    moved: dict[str, float] = {}
    for query_id in {query_id for movement in movements for query_id in movement.moved}:
        paired = [movement.moved.get(query_id, SAME) for movement in movements if query_id in movement.card]
        moved[query_id] = math.fsum(paired) / len(paired)
    return Movement(card, moved)


def _between(a: Scorecard, b: Scorecard, compare_k: int, cutoffs: Sequence[int]) -> Movement:
    """Compare the rankings of every golden query that both runs have."""
    pairs = Pairs(a, b, golden_only=True)
    moved: dict[str, float] = {}
    values = _measured(pairs, _depths(cutoffs), compare_k, moved)
    return Movement(pairs.with_values(movement_metrics(cutoffs), values), moved)


def movement_metrics(cutoffs: Iterable[int]) -> tuple[Metric, ...]:
    """`overlap` at the usual cutoffs and these."""
    return tuple(OVERLAP.at(k) for k in _depths(cutoffs))


def _depths(cutoffs: Iterable[int]) -> list[int]:
    return sorted({*CUTOFFS, *cutoffs})


def _measured(
    pairs: Pairs, depths: Sequence[int], compare_k: int, moved: dict[str, float]
) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    """The values of each query, those alike being the same tuple; what moved is added."""
    same, not_measured = (SAME,) * len(depths), (None,) * len(depths)
    known: dict[Rankings, tuple[tuple[float, ...], float]] = {}
    for query_id, in_a, in_b in pairs.rankings():
        if in_a is None or in_b is None:
            yield query_id, not_measured
        elif in_a == in_b:
            yield query_id, same
        else:
            rankings = beside(in_a, in_b)
            if rankings not in known:
                known[rankings] = tuple(map(rankings.overlap, depths)), rankings.overlap(compare_k)
            values, moved[query_id] = known[rankings]
            yield query_id, values
