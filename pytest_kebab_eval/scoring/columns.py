"""What differs from query to query (times, costs, judges' scores, hits), kept as columns of numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence

from pytest_kebab_eval.metrics import Domain, Judged, Metric
from pytest_kebab_eval.model import Hit, Value

NOT_MEASURED = math.nan

Column = Sequence[float]
Compute = Callable[[Judged], "float | None"]


class Columns:
    """The columns of a run while it is scored; metrics of one formula, as percentiles are, share a column."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._column_of: dict[str, array[float]] = {}
        columns: dict[object, array[float]] = {}
        by_domain: dict[Domain, list[tuple[Compute, array[float]]]] = {}
        for metric in metrics:
            same = (metric.family.over, metric.formula, metric.cutoff)
            if same not in columns:
                columns[same] = array("d")
                by_domain.setdefault(metric.family.over, []).append((metric.compute, columns[same]))
            self._column_of[metric.name] = columns[same]
        self._all = list(columns.values())
        self._by_domain = [(domain.applies, found) for domain, found in by_domain.items()]

    def add(self, row: int, judged: Judged) -> None:
        """Compute what is measured of a query, the next one or one that was cleared."""
        for applies, columns in self._by_domain:
            if applies(judged):
                for compute, column in columns:
                    value = compute(judged)
                    if value is None:
                        continue
                    if row == len(column):
                        column.append(value)
                    else:
                        pad(column, row + 1)
                        column[row] = value

    def clear(self, row: int) -> None:
        for column in self._all:
            if row < len(column):
                column[row] = NOT_MEASURED

    def finished(self, rows: int) -> dict[str, Column]:
        """The columns that have anything in them, by the names of their metrics."""
        for column in self._all:
            if column:
                pad(column, rows)
        return {name: column for name, column in self._column_of.items() if column}


def pad(column: array[float], rows: int) -> None:
    """Make the column so long, with rows that are not measured."""
    if len(column) < rows:
        column.extend([NOT_MEASURED] * (rows - len(column)))


# -- hits ----------------------------------------------------------------------------------------


class Ranked(Value, frozen=True):
    """The keys of a query's hits, the best first, and their ranks, None if these are 1, 2, 3, …"""

    keys: Sequence[int]
    ranks: tuple[int, ...] | None = None


def key_of(hit: Hit) -> str | None:
    """What a hit is known by."""
    return hit.chunk_id or hit.doc_id or hit.doc_path


class HitKeys:
    """For each query, in its row, a number for each hit in rank order; equal ids have equal numbers."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._ends = array("q")
        self._cleared: set[int] = set()
        self._gapped: dict[int, tuple[int, ...]] = {}  # the ranks of hits that are not 1, 2, 3, …

    def add(self, hits: Sequence[Hit], chunk_ids: Sequence[str | None]) -> None:
        """The hits of the next query, and their chunk ids."""
        if hits:
            ids = chunk_ids
            if not all(ids):
                ids = [*map(key_of, hits)]
            self._keys.fromlist([*map(hash, ids)])
        self._ends.append(len(self._keys))
        if hits and hits[-1].rank != len(hits):
            self._gapped[len(self._ends) - 1] = tuple(hit.rank for hit in hits)

    def clear(self, row: int) -> None:
        self._cleared.add(row)
        self._gapped.pop(row, None)

    def of(self, row: int) -> Ranked:
        """A query's hits, the best first."""
        start = self._ends[row - 1] if row else 0
        keys = self._keys[start : start if row in self._cleared else self._ends[row]]
        return Ranked(keys, self._gapped.get(row))

    def distinct(self) -> set[int]:
        """The numbers of all hits."""
        return {*self._keys}

    def without(self, ids: Iterable[str]) -> set[str]:
        """Which of these ids no hit of the run has."""
        unseen = {hash(name): name for name in ids}
        for key in self._keys:
            unseen.pop(key, None)
        return set(unseen.values())
