"""How the values of a metric add up to one: a mean, a percentile, a total."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence


class Values:
    """What was measured of a metric: numbers, and how many queries have each (one, where none are given)."""

    __slots__ = ("numbers", "weights")

    def __init__(self, numbers: Sequence[float], weights: Sequence[int] | None = None) -> None:
        self.numbers = numbers
        self.weights = weights

    def __iter__(self) -> Iterator[tuple[float, int]]:
        return zip(self.numbers, self.weights or [1] * len(self.numbers), strict=True)

    @property
    def count(self) -> int:
        """How many queries were measured."""
        return len(self.numbers) if self.weights is None else sum(self.weights)


Reduce = Callable[[Values], float]


def total(values: Values) -> float:
    """The sum; it is exact, so that no order or grouping of the queries changes it."""
    if values.weights is None:
        return math.fsum(values.numbers)
    return math.fsum([part * weight for number, weight in values for part in _halves(number)])


def mean(values: Values) -> float:
    """The mean, of the exact sum."""
    return total(values) / values.count


def percentile(percent: int) -> Reduce:
    """The nearest-rank percentile."""

    def nearest_rank(values: Values) -> float:
        if values.weights is None:
            return sorted(values.numbers)[math.ceil(percent / 100 * len(values.numbers)) - 1]
        rank = math.ceil(percent / 100 * values.count)
        for number, weight in sorted(values):
            rank -= weight
            if rank <= 0:
                return number
        raise ValueError("a percentile of nothing")

    return nearest_rank


_HALF = 2.0**27 + 1


def _halves(value: float) -> tuple[float, float]:
    """A value as a sum of two with half the digits each, so that a count times either is exact (Dekker)."""
    scaled = value * _HALF
    high = scaled - (scaled - value)
    return high, value - high
