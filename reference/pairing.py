"""The metrics of both sides, over all queries and over the paired ones (sections 3.2 and 3.6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .case import Case, Entry, Run
from .checks import OPEN
from .coverage import ids_of_a, ids_of_b
from .matching import Matching
from .metrics import Ranking, Rows, aggregate, changed_queries, map_to
from .replicates import has_broken_replicate
from .results import Result, read_row, result_of, results_of
from .verdicts import Value

Values = dict[str, Value]

OVER_ALL_RESULTS = frozenset({"error_rate", "empty_result_rate", "citation_coverage", "empty_answer_rate"})


@dataclass(frozen=True)
class Measured:
    """The metrics of one comparison, or of a run alone."""

    case: Case
    matching: Matching

    def aggregates(self, slice_name: str | None = None) -> dict[str, Values]:
        """The metrics of each side, over all queries or over a slice; nothing where a row cannot be read."""
        sides = self._sides()
        values = {side: self._mean(runs, slice_name, None) for side, runs in sides.items()}
        if "a" in sides:  # whether these are to the common depth too is open
            for side, runs in sides.items():
                self._set_map(values[side], runs, slice_name, None, {*self._common_depths(), math.inf})
        return values

    def compared(self, slice_name: str | None = None) -> dict[str, Values]:
        """What deltas are taken of: 'over the paired queries', `map` to the common depth."""
        if not self.case.is_comparison:
            return self.aggregates(slice_name)
        paired = self.paired_ids()
        values = {}
        for side, runs in self._sides().items():
            values[side] = self._mean(runs, slice_name, paired)
            self._set_map(values[side], runs, slice_name, paired, self._common_depths())
        return values

    def deltas(self) -> Values:
        """'B − A of the rounded values, rounded to 4 decimals, `null` if either is'; not the open ones."""
        values = self.compared()
        a, b = values.get("a", {}), values["b"]
        pairs = {name: (a[name], b[name]) for name in a if name in b}
        known = {name: pair for name, pair in pairs.items() if OPEN not in pair}
        return {
            name: None if one is None or other is None else round(float(other) - float(one), 4)
            for name, (one, other) in known.items()
        }

    def changes(self, slice_name: str | None = None) -> dict[str, tuple[int, int, int]]:
        """The numbers of paired queries that each test is over, that went up and that went down."""
        if not self.case.is_comparison or self.case.has_replicates or not all(self.aggregates().values()):
            return {}
        return changed_queries(self.matching, *self._paired_rows(slice_name))

    def in_both(self, metric: str, slice_name: str | None) -> tuple[Value, Value] | None:
        """A metric of each side over the queries that both measured; None where neither measured others."""
        runs = [side[0] for side in (self.case.side_a, self.case.side_b)]
        of_queries = [
            [self._aggregate(run, slice_name, {one}).get(metric) for run in runs]
            for one in sorted(self.paired_ids())
        ]
        if all((before is None) == (after is None) for before, after in of_queries):
            return None
        pairs = [(before, after) for before, after in of_queries if None not in (before, after)]
        if not pairs:
            return None
        if any(OPEN in pair for pair in pairs):
            return OPEN, OPEN
        before, after = (
            round(math.fsum(map(float, side)) / len(pairs), 4) for side in zip(*pairs, strict=True)
        )
        return before, after

    def has_graded_mrr(self, slice_name: str | None) -> bool:
        """Whether a paired query has an `mrr` that is neither 0 nor 1, which decides on the test of it."""
        rows_a, rows_b = self._paired_rows(slice_name)
        rankings = [Ranking(self.matching, entry, result) for entry, result in rows_a + rows_b]
        return not {ranking.mrr() for ranking in rankings if ranking.targets} <= {0.0, 1.0}

    def _paired_rows(self, slice_name: str | None) -> tuple[Rows, Rows]:
        paired = self.paired_ids()
        a, b = (self._rows(side[0], slice_name, paired) for side in (self.case.side_a, self.case.side_b))
        return a, b

    def paired_ids(self) -> set[str]:
        """The queries that both sides have a result for, errored or not."""
        return ids_of_a(self.case) & ids_of_b(self.case)

    def _sides(self) -> dict[str, list[Run]]:
        sides = {"b": self.case.side_b}
        return sides | {"a": self.case.side_a} if self.case.is_comparison else sides

    def _mean(self, runs: list[Run], slice_name: str | None, ids: set[str] | None) -> Values:
        """'Aggregates are means over replicates'; one run is its own mean."""
        if True in has_broken_replicate(self.case):
            return {}
        asked = [{query_id for query_id in run.rows if ids is None or query_id in ids} for run in runs]
        if any(one != asked[0] for one in asked):
            return self._mean_over_queries(runs, slice_name, sorted(set().union(*asked)))
        each = [self._aggregate(run, slice_name, ids) for run in runs]
        names = set(each[0]).intersection(*each)
        return {name: mean_over_runs([values[name] for values in each]) for name in sorted(names)}

    def _mean_over_queries(self, runs: list[Run], slice_name: str | None, ids: list[str]) -> Values:
        """Where a run lacks queries: of each the mean over the runs that have it, then over all queries.

        Only of what is 0 or 1 for each, since others are rounded.
        """
        by_query = [
            [self._aggregate(run, slice_name, {one}) for run in runs if result_of(run, one) is not None]
            for one in ids
        ]
        found: Values = {}
        for name in sorted({name for each in by_query for values in each for name in values}):
            values = [[one.get(name, OPEN) for one in each] for each in by_query]
            if {value for each in values for value in each} <= {0.0, 1.0, None}:
                known = [[value for value in each if isinstance(value, float)] for each in values]
                means = [math.fsum(each) / len(each) for each in known if each]
                found[name] = round(math.fsum(means) / len(means), 4) if means else None
        return found

    def _aggregate(self, run: Run, slice_name: str | None, ids: set[str] | None) -> Values:
        if not all(result.readable for result in results_of(run)):
            return {}
        rows = self._rows(run, slice_name, ids)
        everything = [result for _, result in rows] if slice_name else self._everything(run, ids)
        values = aggregate(self.matching, rows, everything)
        covers_the_same = ids_of_a(self.case) == ids_of_b(self.case)
        if ids is not None and slice_name is None and not covers_the_same and self._has_unknown():
            return {name: value for name, value in values.items() if name not in OVER_ALL_RESULTS}
        return values

    def _has_unknown(self) -> bool:
        """Whether there are results without a golden query: whether these are paired is open."""
        golden = {entry["id"] for entry in self.case.golden}
        return bool((ids_of_a(self.case) | ids_of_b(self.case)) - golden)

    def _everything(self, run: Run, ids: set[str] | None) -> list[Result]:
        return [read_row(run, query_id) for query_id in run.rows if ids is None or query_id in ids]

    def _rows(self, run: Run, slice_name: str | None, ids: set[str] | None) -> Rows:
        entries = [
            entry
            for entry in self.case.golden
            if in_slice(entry, slice_name) and (ids is None or entry["id"] in ids)
        ]
        found = [(entry, result_of(run, entry["id"])) for entry in entries]
        return [(entry, result) for entry, result in found if result is not None]

    def _set_map(
        self,
        values: Values,
        runs: list[Run],
        slice_name: str | None,
        ids: set[str] | None,
        depths: set[float],
    ) -> None:
        if len({frozenset(run.rows) for run in runs}) > 1:
            values.pop("map", None)  # a run lacks queries: as above, only what is 0 or 1 is known
        if "map" in values:
            each = [map_to(self.matching, self._rows(run, slice_name, ids), depths) for run in runs]
            values["map"] = mean_over_runs(each)

    def _common_depths(self) -> set[float]:
        """'the common depth', the smaller of both sides' deepest lists, in each way to count it."""
        golden = {entry["id"] for entry in self.case.golden}
        depths: set[float] = set()
        for ids in (None, golden, self.paired_ids(), golden & self.paired_ids()):
            for way in range(3):
                for with_errors in (True, False):
                    per_side = [
                        [self._deepest(run, ids, way, with_errors=with_errors) for run in side]
                        for side in (self.case.side_a, self.case.side_b)
                    ]
                    depths |= {min(map(min, per_side)), min(map(max, per_side))}
        return depths if min(depths) else {*depths, math.inf}  # a side without a hit has no depth

    def _deepest(self, run: Run, ids: set[str] | None, way: int, *, with_errors: bool) -> int:
        results = self._everything(run, ids)
        return max((one.depths[way] for one in results if with_errors or not one.errored), default=0)


def mean_over_runs(values: list[Value]) -> Value:
    """The mean; open where a run has no value, or an open one."""
    numbers = [value for value in values if isinstance(value, float)]
    if len(numbers) == len(values):
        return numbers[0] if len(values) == 1 else round(math.fsum(numbers) / len(numbers), 4)
    return None if all(value is None for value in values) else OPEN


def in_slice(entry: Entry, slice_name: str | None) -> bool:
    """Whether a query is of a slice such as `difficulty=hard`."""
    if slice_name is None:
        return True
    name, _, value = slice_name.partition("=")
    if name.startswith("metadata."):
        return bool(entry.get("metadata", {}).get(name.partition(".")[2]) == value)
    return entry.get(name) == value
