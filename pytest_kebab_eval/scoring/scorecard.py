"""A run, scored: ask it for values by metric and slice. How it keeps them is known here and in `combining`.

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
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.metrics import Facts, Metric, Values
from pytest_kebab_eval.model import GoldenQuery, Run, Value
from pytest_kebab_eval.scoring.columns import Column, HitKeys

JudgeIdentity = tuple[str | None, str | None, float | str | None]
_NO_SLICES: tuple[str, ...] = ()
_NONE_MEASURED = Values(())


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
        positions = {metric.name: position for position, metric in enumerate(metrics)}
        return self._replace(metrics=metrics, positions=positions)


def basis_of(metrics: tuple[Metric, ...], survey: Survey, match: str) -> Basis:
    """The basis of runs that are scored by these metrics."""
    return Basis((), {}, survey.slices, match, survey.fingerprint).with_metrics(metrics)


class Notes(Value, frozen=True):
    """What was noticed of a run while it was scored."""

    errors: Mapping[str, str]  # what went wrong, also where a result cannot be read
    unreadable: Mapping[str, str]  # the results that do not parse, and why
    unknown_query_ids: tuple[str, ...]  # results that the golden file has no query for
    judges: frozenset[JudgeIdentity]  # model, prompt version and temperature of the stored judgments
    repeated: tuple[str, ...] = ()  # queries whose result holds a chunk twice


NO_NOTES = Notes({}, {}, (), frozenset())


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
        return self._basis.slices.get(query_id, _NO_SLICES)

    def ids_without_hits(self, ids: Iterable[str]) -> set[str]:
        unseen = {*ids}
        for card in self.replicates or (self,):
            unseen = card._hit_keys.without(unseen)
        return unseen

    def share_of_new_ids(self, before: Scorecard) -> float:
        """The share of the ids in its hits that no hit of another run has."""
        ids, known = (
            set[int]().union(*(card._hit_keys.distinct() for card in side.replicates or (side,)))
            for side in (self, before)
        )
        return len(ids - known) / len(ids) if ids else 0.0

    def slices(self) -> list[str]:
        """The slices that any query of the run is in, sorted."""
        return sorted({name for slices in self._groups for name in slices})

    def golden_slices(self) -> set[str]:
        """The slices that any golden query is in, whether or not the run has a result for it."""
        return {name for slices in {*self._basis.slices.values()} for name in slices}

    @cached_property
    def depth(self) -> int:
        """How many hits of a query are stored, at most: in the longest list; 0 if no list has any.

        A retriever may return fewer for some queries, so the shorter lists say nothing. Of several runs, that
        of the one with the fewest.
        """
        if self.replicates:
            return min((card.depth for card in self.replicates if card.depth), default=0)
        return max((score.facts.depth for score in {*self._scores.values()}), default=0)

    def part(self, name: str | None = None) -> Part:
        """The queries of one slice, or all of them."""
        return Part(self, [group for slices, group in self._groups.items() if name is None or name in slices])

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
            known = self._sorted[id(column)] = array("d", found)  # a third of a list's memory
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


# -- the golden set as a whole: slices, and what can be measured -----------------------------------

ONE_VALUED_SLICES = ("lang", "difficulty", "category")
SLICES = (*ONE_VALUED_SLICES, "tags", "answerable")


def slices_of(query: GoldenQuery) -> tuple[str, ...]:
    """The slices that a query is in, such as `difficulty=hard` and `tags=security`."""
    found = [f"{name}={value}" for name in ONE_VALUED_SLICES if (value := getattr(query, name)) is not None]
    found += [f"tags={tag}" for tag in query.tags]
    if query.can_be_answered is not None:
        found.append(f"answerable={str(query.can_be_answered).lower()}")
    return (*found, *_metadata_slices(query.metadata))


def _metadata_slices(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """`metadata.team=search`, for each value that is a text, a number or a flag."""
    return tuple(
        f"metadata.{name}={str(value).lower() if isinstance(value, bool) else value}"
        for name, value in metadata.items()
        if isinstance(value, (str, int, float)) and str(value).strip()
    )


def slice_labels(query: GoldenQuery) -> tuple[object, ...]:
    """What its slices depend on: those of queries with the same labels are the same."""
    one_valued = (query.lang, query.difficulty, query.category)
    own = _metadata_slices(query.metadata) if query.metadata else ()
    return (*one_valued, query.tags, query.can_be_answered, own)


def slices_by_query(queries: Iterable[GoldenQuery]) -> dict[str, tuple[str, ...]]:
    """The slices of every query; those in the same ones share a tuple."""
    shared: dict[object, tuple[str, ...]] = {}
    found = {}
    for query in queries:
        labels = slice_labels(query)
        slices = shared.get(labels)
        if slices is None:
            slices = shared[labels] = slices_of(query)
        found[query.id] = slices
    return found


class Survey(NamedTuple):
    """The slices of the queries, the formulas some query has what they need for, and the fingerprint."""

    slices: Mapping[str, tuple[str, ...]]
    needs_met: frozenset[str]
    fingerprint: str

    def measures(self, metric: Metric) -> bool:
        return metric.family.needs is None or metric.family.pattern in self.needs_met


def survey_of(golden: GoldenSet, metrics: Iterable[Metric]) -> Survey:
    """Look at all queries of a golden set."""
    return Survey(slices_by_query(golden.queries), needs_met(golden.queries, metrics), golden.fingerprint)


def needs_met(queries: Iterable[GoldenQuery], metrics: Iterable[Metric]) -> frozenset[str]:
    """The formulas that need something of the golden set, and find it in one of these queries."""
    needs = {metric.family.pattern: metric.family.needs for metric in metrics}
    return frozenset(name for name, need in needs.items() if need is not None and any(map(need, queries)))
