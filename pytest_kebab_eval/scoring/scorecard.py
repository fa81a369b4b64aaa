"""A run, scored: ask it for values by metric and slice. How it keeps them is known here alone.

Queries alike in their facts share one `QueryScore`, known by its identity, so that what is computed of a
score is computed once for all of them. What differs from query to query is kept in columns, one row a query.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, KeysView, Mapping, ValuesView
from functools import cached_property
from itertools import chain, repeat
from math import isnan
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.metrics import Facts, Metric, Values
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.scoring.columns import Column
from pytest_kebab_eval.scoring.hit_keys import HitKeys, Ranked
from pytest_kebab_eval.scoring.survey import Survey

JudgeIdentity = tuple[str | None, str | None, float | str | None]
_NO_SLICES: tuple[str, ...] = ()
_NONE_MEASURED = Values(())
_YES_NO = frozenset({0.0, 1.0})
_FEW_ROWS = 20_000  # of a group whose values are kept in order; those of a larger one are found anew


class QueryScore(msgspec.Struct, frozen=True, eq=False, gc=False):
    """How a query did in a run; queries alike in their facts have the same one."""

    facts: Facts
    values: tuple[float | None, ...]  # in the order of the metrics; None also for those with a column
    positions: Mapping[str, int]  # of the metrics among the values

    def value(self, metric: str) -> float | None:
        """A metric's value, by its name; None where it is not over this query."""
        return self.values[self.positions[metric]]

    @property
    def first(self) -> int | None:
        """The rank of the first correct hit."""
        return self.facts.ranking.first


class Basis(NamedTuple):
    """What all runs that are scored together have in common."""

    metrics: tuple[Metric, ...]
    positions: Mapping[str, int]
    slices: Mapping[str, tuple[str, ...]]  # of the golden queries
    match: str
    golden_sha256: str

    def with_metrics(self, metrics: tuple[Metric, ...]) -> Basis:
        """The same golden queries, and other metrics."""
        positions = {metric.name: position for position, metric in enumerate(metrics)}
        return self._replace(metrics=metrics, positions=positions)


def basis_of(metrics: tuple[Metric, ...], survey: Survey, match: str) -> Basis:
    """The basis of runs that are scored by these metrics."""
    return Basis((), {}, survey.slices, match, survey.fingerprint).with_metrics(metrics)


class Notes(NamedTuple):
    """What was noticed of a run while it was scored."""

    errors: Mapping[str, str]  # what went wrong, also where a result cannot be read
    unreadable: Mapping[str, str]  # the results that do not parse, and why
    unknown_query_ids: tuple[str, ...]  # results that the golden file has no query for
    judges: frozenset[JudgeIdentity]  # model, prompt version and temperature of the stored judgments
    repeated: tuple[str, ...] = ()  # queries whose result holds a chunk twice


class Scorecard:
    """A run, scored query by query."""

    replicates: tuple[Scorecard, ...] = ()  # the runs that this one is the mean of

    def __init__(
        self,
        run: Run,
        basis: Basis,
        notes: Notes,
        scores: Mapping[str, QueryScore],
        columns: Mapping[str, Column],
        hit_keys: HitKeys | None = None,
    ) -> None:
        self.run = run
        self.metrics = basis.metrics
        self.match = basis.match
        self.golden_sha256 = basis.golden_sha256
        self.notes = notes
        self._basis = basis
        self._scores = scores
        self._columns = columns
        self._hit_keys = hit_keys or HitKeys()

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._scores

    def query_ids(self) -> KeysView[str]:
        """The queries that have a result, in the order they were read."""
        return self._scores.keys()

    def scores_in_order(self) -> ValuesView[QueryScore]:
        """How the queries did, in the order they were read."""
        return self._scores.values()

    def distinct_columns(self) -> dict[tuple[str, ...], array[float]]:
        """The columns, by the names of the metrics that share one."""
        names: defaultdict[int, list[str]] = defaultdict(list)
        for name, column in self._columns.items():
            names[id(column)].append(name)
        return {tuple(found): array("d", self._columns[found[0]]) for found in names.values()}

    def scores_of(self, query_ids: Iterable[str]) -> Iterator[QueryScore | None]:
        """How these queries did; None for one that the run has no result for."""
        return map(self._scores.get, query_ids)

    def score(self, query_id: str) -> QueryScore | None:
        """How a query did; None if the run has no result for it."""
        return self._scores.get(query_id)

    def count_absent(self) -> int:
        """How many golden queries the run has no result for."""
        return sum(query_id not in self._scores for query_id in self._basis.slices)

    def only(self, query_ids: Collection[str]) -> Scorecard:
        """The values of some queries of the run, without their rankings."""
        rows = [row for row, query_id in enumerate(self._scores) if query_id in query_ids]
        scores = {query_id: score for query_id, score in self._scores.items() if query_id in query_ids}
        shorter = {id(column): array("d", map(column.__getitem__, rows)) for column in self._columns.values()}
        columns = {name: shorter[id(column)] for name, column in self._columns.items()}
        part = Scorecard(self.run, self._basis, self.notes, scores, columns)
        part.replicates = tuple(card.only(query_ids) for card in self.replicates)
        return part

    def with_scores(self, scores: Mapping[str, QueryScore]) -> Scorecard:
        """The same run, where these of its queries did otherwise."""
        known = {**self._scores, **scores}
        return Scorecard(self.run, self._basis, self.notes, known, self._columns, self._hit_keys)

    def slices_of(self, query_id: str) -> tuple[str, ...]:
        """The slices that a golden query is in."""
        return self._basis.slices.get(query_id, _NO_SLICES)

    def ids_without_hits(self, ids: Iterable[str]) -> set[str]:
        """Which of these chunk ids no hit of the run has."""
        return self._hit_keys.without(ids)

    def slices(self) -> list[str]:
        """The slices that any query of the run is in, sorted."""
        return sorted({name for slices in self._groups for name in slices})

    def part(self, name: str | None = None) -> Part:
        """The queries of one slice, or all of them."""
        return Part(self, [group for slices, group in self._groups.items() if name is None or name in slices])

    def values(self, metric: Metric, part: str | None = None) -> Values:
        """What was measured of a metric, over all queries or one slice; each value with its weight."""
        return self.part(part).values(metric)

    @cached_property
    def _groups(self) -> dict[tuple[str, ...], _Group]:
        """The queries that are in the same slices."""
        groups: defaultdict[tuple[str, ...], array[int]] = defaultdict(lambda: array("q"))
        slices = map(self._basis.slices.get, self._scores, repeat(_NO_SLICES))
        for row, names in enumerate(slices):
            groups[names].append(row)
        return {names: _Group(self, rows) for names, rows in groups.items()}

    @cached_property
    def _in_rows(self) -> list[QueryScore]:
        return list(self._scores.values())


class _Group:
    """The queries of a run that are in the same slices; what several slices need of them is found once."""

    def __init__(self, card: Scorecard, rows: array[int]) -> None:
        self._rows = rows
        self.tally = Counter(map(card._in_rows.__getitem__, rows))
        self._sorted: dict[int, array[float]] = {}

    def measured(self, column: Column) -> array[float]:
        """A column's values in order, since percentiles of one column would each sort it."""
        known = self._sorted.get(id(column))
        if known is None:
            found = list(map(column.__getitem__, self._rows))
            if isnan(sum(found)):
                found = [value for value in found if not isnan(value)]
            found.sort()
            known = array("d", found)  # a third of a list's memory
            if len(found) <= _FEW_ROWS:
                self._sorted[id(column)] = known
        return known


class Part:
    """Some queries of a run: all of them, or those of a slice."""

    def __init__(self, card: Scorecard, groups: list[_Group]) -> None:
        self._card = card
        self._groups = groups
        self._sorted: dict[int, Column] = {}
        tally: Counter[QueryScore] = Counter()
        for group in groups:
            tally.update(group.tally)
        self.queries = tally.total()
        self.errored = sum(count for score, count in tally.items() if score.facts.errored)
        self._has_answers = any(score.facts.answer is not None for score in tally)
        self._weights = list(tally.values())
        self._values = list(zip(*(score.values for score in tally), strict=True))

    def values(self, metric: Metric) -> Values:
        """What was measured of a metric; each value with its weight."""
        column = self._card._columns.get(metric.name)
        if column is not None:
            return Values(self._measured(column))
        if not self._values or (metric.family.needs_answers and not self._has_answers):
            return _NONE_MEASURED
        numbers = self._values[self._card._basis.positions[metric.name]]
        if None not in numbers:
            return Values(numbers, self._weights)
        measured = [pair for pair in zip(numbers, self._weights, strict=True) if pair[0] is not None]
        return Values([number for number, _ in measured], [weight for _, weight in measured])

    def _measured(self, column: Column) -> Column:
        known = self._sorted.get(id(column))
        if known is None:
            if len(self._groups) == 1:
                known = self._groups[0].measured(column)
            else:  # each is in order, which is what makes sorting all of them fast
                parts = (group.measured(column) for group in self._groups)
                known = array("d", sorted(chain.from_iterable(parts)))
            self._sorted[id(column)] = known
        return known


# -- two runs ------------------------------------------------------------------------------------


class Changes(NamedTuple):
    """The differences B - A that are not 0, and the number of queries measured in both runs."""

    values: list[float]
    n: int
    is_yes_no: bool = True  # whether every value measured is 0 or 1


class Pairs:
    """The queries that two runs have in common, over all or within one slice."""

    def __init__(
        self, a: Scorecard, b: Scorecard, part: str | None = None, *, golden_only: bool = False
    ) -> None:
        self._a, self._b = a, b
        self._rows_a, self._rows_b = array("q"), array("q")
        slices = b._basis.slices
        for query_id, row_a, row_b in _rows_in_both(a._scores, b._scores):
            if part is None:
                is_wanted = not golden_only or query_id in slices
            else:
                is_wanted = part in slices.get(query_id, _NO_SLICES)
            if is_wanted:
                self._rows_a.append(row_a)
                self._rows_b.append(row_b)

    def _scores(self) -> Iterator[tuple[QueryScore, QueryScore]]:
        a, b = self._a._in_rows, self._b._in_rows
        return zip(map(a.__getitem__, self._rows_a), map(b.__getitem__, self._rows_b), strict=True)

    @cached_property
    def _tally(self) -> Counter[tuple[QueryScore, QueryScore]]:
        return Counter(self._scores())

    def rankings(self) -> Iterator[tuple[str, Ranked | None, Ranked | None]]:
        """Each query with its hits in A and in B; None for both if it errored in both."""
        of_a, of_b = self._a._hit_keys.of, self._b._hit_keys.of
        ids = list(self._b._scores)
        rows = zip(self._rows_a, self._rows_b, self._scores(), strict=True)
        for row_a, row_b, (score_a, score_b) in rows:
            if score_a.facts.errored and score_b.facts.errored:
                yield ids[row_b], None, None
            else:
                yield ids[row_b], of_a(row_a), of_b(row_b)

    def with_values(
        self, metrics: tuple[Metric, ...], values: Iterable[tuple[str, tuple[float | None, ...]]]
    ) -> Scorecard:
        """A scorecard of these queries that has these values alone, in the order of the metrics."""
        b = self._b
        basis = b._basis.with_metrics(metrics)
        shared: dict[int, QueryScore] = {}
        scores = {}
        for query_id, measured in values:
            score = shared.get(id(measured))
            if score is None:
                score = QueryScore(b._scores[query_id].facts, measured, basis.positions)
                shared[id(measured)] = score
            scores[query_id] = score
        return Scorecard(b.run, basis, b.notes, scores, {})

    def __bool__(self) -> bool:
        return bool(self._rows_b)

    def changes(self, metric: Metric) -> Changes:
        """How the metric changed, query by query."""
        return self._in_facts(metric.name) if metric.family.over.of_facts else self._in_columns(metric.name)

    def _in_facts(self, name: str) -> Changes:
        changes: list[float] = []
        seen: set[float] = set()
        n = 0
        for (score_a, score_b), count in self._tally.items():
            before, after = score_a.value(name), score_b.value(name)
            if before is not None and after is not None:
                n += count
                seen |= {before, after}
                if before != after:
                    changes += [after - before] * count
        return Changes(changes, n, seen <= _YES_NO)

    def _in_columns(self, name: str) -> Changes:
        before, after = self._a._columns.get(name), self._b._columns.get(name)
        if before is None or after is None:
            return Changes([], 0)
        pairs = zip(map(before.__getitem__, self._rows_a), map(after.__getitem__, self._rows_b), strict=True)
        measured = [pair for pair in pairs if not isnan(pair[0]) and not isnan(pair[1])]
        is_yes_no = all(value in _YES_NO for pair in measured for value in pair)
        return Changes([b - a for a, b in measured if a != b], len(measured), is_yes_no)


def _rows_in_both(a: Iterable[str], b: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """The queries that both have, in the order of B, each with its row in A and in B; usually the same."""
    ids_a = list(a)
    rows_a: dict[str, int] | None = None
    for row_b, query_id in enumerate(b):
        row_a: int | None = row_b
        if row_b >= len(ids_a) or ids_a[row_b] != query_id:
            if rows_a is None:
                rows_a = {name: row for row, name in enumerate(ids_a)}
            row_a = rows_a.get(query_id)
        if row_a is not None:
            yield query_id, row_a, row_b
