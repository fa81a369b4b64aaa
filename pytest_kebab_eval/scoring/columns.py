"""Values that differ from query to query (times, costs, judges' scores), kept as columns of numbers."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence

from pytest_kebab_eval.metrics import Domain, Judged, Metric

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
        """Forget what was measured of a query."""
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
