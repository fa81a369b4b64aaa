"""How far the rankings of two runs are apart, whether or not anything is expected of the queries.

`overlap@k`: the ids that both top k have, over those that either has. `rbo`: rank-biased overlap (Webber,
Moffat and Zobel, 2010), p = 0.9, extrapolated from what is stored: the higher a rank, the more it counts.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.metrics.registry import Family, at_cutoff, domain
from pytest_kebab_eval.scoring.aggregates import rounded
from pytest_kebab_eval.scoring.scorecard import Pairs, Scorecard

P = 0.9
_NOT_MEASURED = math.nan

Keys = Sequence[int]


@domain()
def _paired(judged: object) -> bool:
    """Golden queries that both runs have, but those that errored in both."""
    return True


def overlap(a: Keys, b: Keys, k: int) -> float:
    """The ids that both top k have, over those that either has; 1 if neither has any."""
    top_a, top_b = set(a[:k]), set(b[:k])
    union = len(top_a | top_b)
    return len(top_a & top_b) / union if union else 1.0


def rbo(a: Keys, b: Keys) -> float:
    """Rank-biased overlap, extrapolated (equation 32); 1 if neither has any hit, 0 if one has none."""
    if not a or not b:
        return 1.0 if len(a) == len(b) else 0.0
    shorter, longer = (a, b) if len(a) <= len(b) else (b, a)
    short, long = len(shorter), len(longer)
    shared = 0
    terms = []
    at_short = 0
    in_shorter: set[int] = set()
    in_longer: set[int] = set()
    for depth in range(1, long + 1):
        in_longer.add(longer[depth - 1])
        shared += longer[depth - 1] in in_shorter
        if depth <= short:
            in_shorter.add(shorter[depth - 1])
            shared += shorter[depth - 1] in in_longer
            at_short = shared
        agreement = shared / depth
        if depth > short:
            agreement += at_short * (depth - short) / (short * depth)
        terms.append(agreement * P**depth)
    tail = ((shared - at_short) / long + at_short / short) * P**long
    return (1 - P) / P * math.fsum(terms) + tail


OVERLAP = Family("overlap@{k}", overlap, _paired, "ids that both top k share, over those that either has")
RBO = Family("rbo", rbo, _paired, "rank-biased overlap of the two rankings, p = 0.9, extrapolated")


def movement_metric(name: str) -> Metric:
    """`rbo`, or `overlap` at any cutoff; `KeyError` if it is neither."""
    if name == RBO.pattern:
        return Metric(name, RBO)
    prefix, _, cutoff = name.partition("@")
    if prefix == "overlap" and cutoff.isascii() and cutoff.isdecimal() and 1 <= int(cutoff) <= 1_000:
        return at_cutoff(OVERLAP, int(cutoff))
    raise KeyError(name)


class Movement(NamedTuple):
    """How far the rankings moved, query by query; the values by metric and slice are asked of the card."""

    card: Scorecard
    moved: dict[str, tuple[float, float]]  # overlap@k and rbo of the queries whose rankings differ

    def of(self, query_id: str) -> tuple[float | None, float | None]:
        """A query's overlap within the comparison's cutoff, and its rbo; None where it is not paired."""
        if query_id not in self.card:
            return None, None
        return self.moved.get(query_id, (1.0, 1.0))


def measure_movement(a: Scorecard, b: Scorecard, compare_k: int, cutoffs: Iterable[int] = ()) -> Movement:
    """Compare the rankings of every golden query that both runs have."""
    depths = sorted({*CUTOFFS, *cutoffs})
    columns: dict[str, array[float]] = {OVERLAP.pattern.format(k=k): array("d") for k in depths}
    columns[RBO.pattern] = array("d")
    pairs = Pairs(a, b).golden()
    moved = {}
    for query_id, keys_a, keys_b in pairs.rankings():
        if keys_a is None or keys_b is None:
            values = [_NOT_MEASURED] * len(columns)
        elif keys_a == keys_b:
            values = [1.0] * len(columns)
        else:
            values = [*(overlap(keys_a, keys_b, k) for k in depths), rbo(keys_a, keys_b)]
            moved[query_id] = rounded(overlap(keys_a, keys_b, compare_k)), rounded(values[-1])
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
    metrics = tuple(movement_metric(name) for name in columns)
    return Movement(pairs.with_columns(metrics, columns), moved)
