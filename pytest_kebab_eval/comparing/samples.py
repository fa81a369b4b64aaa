"""Queries of some runs as values: over all of them or a slice, in one run or several, alone or in pairs."""

from __future__ import annotations

import itertools
import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from pytest_kebab_eval.comparing.aggregates import rounded
from pytest_kebab_eval.comparing.decide import Decision
from pytest_kebab_eval.comparing.one_pass import Group, OnePass
from pytest_kebab_eval.comparing.significance import PairedTest, paired_test, shown_p, student_test
from pytest_kebab_eval.metrics import Facts, Metric, Values
from pytest_kebab_eval.metrics.ranking import average_precision_of, with_documents
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.text import printable

Stored = Callable[[float], float]  # a value -> as it is kept
ShownRun = Callable[[Group], int]  # the number, within its side, of the run that is shown of a group
_YES_NO = frozenset({0.0, 1.0})


def exact(value: float) -> float:
    """The value as it is, to compute with."""
    return value


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of what was measured."""
    measured = [value for value in values if value is not None and not math.isnan(value)]
    if not measured:
        return None
    first = measured[0]  # a mean of equal values is rounded to another one
    return first if measured.count(first) == len(measured) else math.fsum(measured) / len(measured)


# -- some queries of some runs ------------------------------------------------------------------------


class Sample:
    """Queries in one run, or in several of one side, of which each value is the mean."""

    def __init__(
        self, seen: OnePass, runs: Sequence[int], groups: Iterable[Group], map_depth: int | None = None
    ) -> None:
        self.seen, self.runs = seen, runs
        self.groups = [group for group in groups if any(group.numbers[run] is not None for run in runs)]
        self._map_depth = map_depth  # `map` is over as many hits, where the runs hold more
        without_documents = all(seen.runs[run].lacks_documents for run in runs)
        self._not_measured = _of_documents(seen) if without_documents else ()
        self._by_slices: defaultdict[tuple[str, ...], list[Group]] = defaultdict(list)
        for group in self.groups:
            self._by_slices[group.slices].append(group)
        self._measured: dict[object, dict[tuple[str, ...], array[float]]] = {}

    def part(self, name: str | None = None) -> Part:
        """The queries of one slice, or all of them."""
        chosen = (found for slices, found in self._by_slices.items() if name is None or name in slices)
        return Part(self, name, itertools.chain.from_iterable(chosen))

    @cached_property
    def slices(self) -> list[str]:
        return sorted({name for slices in self._by_slices for name in slices})

    def values(self, numbers: Sequence[int]) -> Sequence[float | None]:
        """The metrics of facts of a query that has the facts of these numbers in the runs."""
        each = [self._values(number) for number in dict.fromkeys(numbers)]
        if len(each) == 1:
            return each[0]
        each = [self._values(number) for number in numbers]
        return [mean_of(values) for values in zip(*each, strict=True)]

    def _values(self, number: int) -> Sequence[float | None]:
        values = self.seen.values(number)
        if self._map_depth is None and not self._not_measured:
            return values
        limited = [*values]
        for place in self._not_measured:
            limited[place] = None
        if self._map_depth is None:
            return limited
        position = self.seen.positions["map"]
        if values[position] is not None:
            found = self.seen.facts(number).ranking.found
            limited[position] = average_precision_of(found, self._map_depth)
        return limited

    def column(self, metric: Metric, rows: Iterable[int]) -> Iterator[float]:
        """A metric of results in these rows; NaN where it was not measured."""
        columns = [found for run in self.runs if (found := self.seen.column(run, metric)) is not None]
        if not columns:
            return (math.nan for _ in rows)
        if len(columns) == 1:
            return map(columns[0].__getitem__, rows)
        means = (mean_of(column[row] for column in columns) for row in rows)
        return (math.nan if found is None else found for found in means)

    def by_query(self, metric: Metric, part: str | None = None) -> Iterator[tuple[str, float]]:
        """A metric of each query that it was measured of."""
        position = self.seen.positions[metric.name]
        for group in self.groups:
            if part is not None and part not in group.slices:
                continue
            if metric.family.over.of_facts:
                numbers = [number for run in self.runs if (number := group.numbers[run]) is not None]
                of_all = self.values(numbers)[position]
                found: Iterator[float] = itertools.repeat(math.nan if of_all is None else of_all)
            else:
                found = self.column(metric, group.rows)
            for query_id, value in zip(group.query_ids, found, strict=False):
                if not math.isnan(value):
                    yield query_id, value

    def measured(self, metric: Metric, part: str | None) -> Sequence[float]:
        """What was measured of a metric of results, over all queries or a slice."""
        same = metric.family.over, metric.formula  # what percentiles of one time have in common
        if same not in self._measured:
            self._measured[same] = {
                slices: array("d", [value for value in self.column(metric, rows) if not math.isnan(value)])
                for slices, groups in self._by_slices.items()
                if (rows := [row for group in groups for row in group.rows])
            }
        found = self._measured[same].items()
        chosen = (values for slices, values in found if part is None or part in slices)
        return array("d", itertools.chain.from_iterable(chosen))


def _of_documents(seen: OnePass) -> Sequence[int]:
    """The places of the metrics over documents, which a run that names none has no value of."""
    return [place for place, metric in enumerate(seen.metrics) if metric.family.over is with_documents]


class Part:
    """Some queries of a sample: all of them, or those of a slice."""

    def __init__(self, sample: Sample, name: str | None, groups: Iterable[Group]) -> None:
        self._sample, self._name = sample, name
        self.metrics = sample.seen.metrics
        tally: Counter[tuple[int, ...]] = Counter()
        for group in groups:
            there = [number for run in sample.runs if (number := group.numbers[run]) is not None]
            tally[tuple(there)] += len(group.rows)
        self.queries = tally.total()
        self._weights = [*tally.values()]
        self._values = [*zip(*map(sample.values, tally), strict=True)]
        facts = (sample.seen.facts(number) for numbers in tally for number in numbers)
        self._has_answers = any(known.answer is not None for known in facts)

    def values(self, metric: Metric) -> Values:
        """What was measured of a metric; each value with its weight."""
        if not metric.family.over.of_facts:
            return Values(self._sample.measured(metric, self._name))
        if not self._values or (metric.family.needs_answers and not self._has_answers):
            return Values(())
        numbers = self._values[self._sample.seen.positions[metric.name]]
        if None not in numbers:
            return Values(numbers, self._weights)
        measured = [pair for pair in zip(numbers, self._weights, strict=True) if pair[0] is not None]
        return Values([number for number, _ in measured], [weight for _, weight in measured])

    def reduce(self, metric: Metric, stored: Stored = rounded) -> Reduced:
        """One value of all that was measured, rounded unless told otherwise."""
        values = self.values(metric)
        n = values.count
        return Reduced(stored(metric.family.reduce(values)) if n else None, n)


class Reduced(NamedTuple):
    """A metric's value, None over no query, and the number of queries it is over."""

    value: float | None
    n: int


class Side(NamedTuple):
    """The runs of one side, by their numbers in the pass, and which of them is shown of a group."""

    seen: OnePass
    runs: Sequence[int]
    shown: ShownRun

    @property
    def has_several(self) -> bool:
        return len(self.runs) > 1

    @property
    def depth(self) -> int:
        """How many hits of a query are stored, at most; of several runs, in the one that has the fewest."""
        return min((depth for run in self.runs if (depth := self.seen.runs[run].depth)), default=0)

    @property
    def run_ids(self) -> str:
        """Its runs as one name."""
        return ",".join(self.seen.runs[run].run.run_id for run in self.runs)

    @property
    def name(self) -> str:
        """The same, as a message has it."""
        return printable(self.run_ids)

    def shown_facts(self, group: Group) -> Facts | None:
        """What is known of a group's queries in the run that is shown."""
        number = group.numbers[self.runs[self.shown(group)]]
        return None if number is None else self.seen.facts(number)

    def sample(self, groups: Iterable[Group] | None = None, map_depth: int | None = None) -> Sample:
        return Sample(self.seen, self.runs, self.seen.every_group if groups is None else groups, map_depth)

    def in_each_run(
        self, groups: Iterable[Group] | None = None, map_depth: int | None = None
    ) -> list[Sample]:
        groups = self.seen.every_group if groups is None else [*groups]
        return [Sample(self.seen, [run], groups, map_depth) for run in self.runs]

    def errored(self, groups: Iterable[Group]) -> int:
        """How many queries errored, in the run that is shown of each."""
        shown = ((len(group.rows), self.shown_facts(group)) for group in groups)
        return sum(count for count, facts in shown if facts is not None and facts.errored)

    def absent(self) -> int:
        """How many golden queries no run has a result for."""
        there = {query_id for run in self.runs for query_id in self.seen.runs[run].query_ids}
        return sum(query_id not in there for query_id in self.seen.golden.by_id())


# -- two sides -----------------------------------------------------------------------------------------


class Changes(Value, frozen=True):
    """The differences B - A that are not 0, and the number of queries measured in both runs."""

    values: list[float]
    n: int
    is_yes_no: bool  # whether every value measured is 0 or 1


class Sides(NamedTuple):
    """Both sides; A is None where run B is judged alone."""

    a: Side | None
    b: Side

    @property
    def has_several(self) -> bool:
        return self.b.has_several or (self.a is not None and self.a.has_several)

    @property
    def map_depth(self) -> int | None:
        """How many hits `map` is compared over; None where all runs hold as many."""
        if self.a is None:
            return None
        depth = min(self.a.depth, self.b.depth)
        runs = self.b.seen.runs
        return depth if 0 < depth < max(run.depth for run in runs) else None

    @property
    def has_gaps(self) -> bool:
        """Whether one side has a result for a query that the other has none for, or of another question."""
        return any(group.in_a != group.in_b or group.is_reworded for group in self.b.seen.every_group)

    def paired(self) -> list[Group]:
        return [group for group in self.b.seen.every_group if group.is_paired]


class Pairs:
    """The queries that both sides have, over all or within one slice, and without some."""

    def __init__(self, sides: Sides, part: str | None = None, without: Collection[str] = ()) -> None:
        groups = [group for group in sides.paired() if part is None or part in group.slices]
        if without:
            groups = [left for group in groups if (left := group.without(without)).rows]
        self._sides, self.without = sides, without
        self._groups = groups
        self.a = None if sides.a is None else sides.a.sample(groups, sides.map_depth)
        self.b = sides.b.sample(groups, sides.map_depth)

    def __bool__(self) -> bool:
        return bool(self._groups)

    @cached_property
    def _of_facts(self) -> list[tuple[Sequence[float | None], Sequence[float | None], int]]:
        """The metrics of facts in A and in B, and of how many queries."""
        tally: Counter[tuple[tuple[int, ...], tuple[int, ...]]] = Counter()
        count_a = self.b.seen.count_a
        for group in self._groups:
            a, b = (
                tuple(number for number in side if number is not None)
                for side in (group.numbers[:count_a], group.numbers[count_a:])
            )
            tally[a, b] += len(group.rows)
        if self.a is None:
            return []
        return [(self.a.values(a), self.b.values(b), count) for (a, b), count in tally.items()]

    def _measured(self, metric: Metric) -> Counter[tuple[float, float]]:
        """The values in A and in B, and of how many queries."""
        found: Counter[tuple[float, float]] = Counter()
        if not metric.family.over.of_facts:
            rows = [row for group in self._groups for row in group.rows]
            in_a = self.a.column(metric, rows) if self.a else iter(())
            for pair in zip(in_a, self.b.column(metric, rows), strict=True):
                if not math.isnan(pair[0]) and not math.isnan(pair[1]):
                    found[pair] += 1
            return found
        position = self.b.seen.positions[metric.name]
        for in_a_, in_b, count in self._of_facts:
            before, after = in_a_[position], in_b[position]
            if before is not None and after is not None:
                found[before, after] += count
        return found

    def changes(self, metric: Metric) -> Changes:
        measured = self._measured(metric)
        changes: list[float] = []
        for (before, after), count in measured.items():
            if before != after:
                changes += [after - before] * count
        is_yes_no = all(before in _YES_NO and after in _YES_NO for before, after in measured)
        return Changes(changes, measured.total(), is_yes_no)

    def means(self, metric: Metric) -> tuple[float, float]:
        """The mean in A and in B."""
        measured = self._measured(metric)
        total = measured.total() or 1
        before = math.fsum(before * count for (before, _), count in measured.items())
        after = math.fsum(after * count for (_, after), count in measured.items())
        return before / total, after / total

    def by_query(self, metric: Metric) -> Iterator[tuple[str, float, float]]:
        """The value in A and in B, of each query that both measured."""
        in_a = dict(self.a.by_query(metric)) if self.a else {}
        for query_id, after in self.b.by_query(metric):
            if query_id in in_a:
                yield query_id, in_a[query_id], after

    def room(self, metric: Metric) -> tuple[int, int]:
        """How many queries could fall from what they are in A, and how many could rise."""
        measured, most = self._measured(metric), metric.family.max_value
        if most is None:
            return measured.total(), measured.total()
        return (
            sum(count for (before, _), count in measured.items() if before > 0),
            sum(count for (before, _), count in measured.items() if before < most),
        )

    def tested(self, metric: Metric) -> PairedTest:
        """How the metric changed, over queries and over runs."""
        changes = self.changes(metric)
        return paired_test(
            changes.values,
            changes.n,
            yes_no=changes.is_yes_no,
            max_value=metric.family.max_value,
            runs=self.in_runs(metric),
        )

    def in_runs(self, metric: Metric) -> tuple[list[float], list[float]]:
        """A metric in each run of both sides, over the queries that all have; none where each is one run."""
        sides = self._sides
        if sides.a is None or not (sides.a.has_several or sides.b.has_several):
            return [], []
        a, b = ([part.reduce(metric, exact).value for part in parts] for parts in self._each_run)
        return [value for value in a if value is not None], [value for value in b if value is not None]

    @cached_property
    def _each_run(self) -> tuple[list[Part], list[Part]]:
        common = [group for group in self._groups if None not in group.numbers]
        sides = self._sides
        a, b = (
            [sample.part() for sample in side.in_each_run(common, sides.map_depth)] if side else []
            for side in sides
        )
        return a, b

    def least_p_in_runs(self, metric: Metric, end: float) -> float:
        """The least p that B's runs could have beside A's, by the test over runs."""
        in_a = self.in_runs(metric)[0]
        return shown_p(student_test(in_a, [end] * len(self._sides.b.runs)).p) if in_a else 0.0


def sides_of(seen: OnePass, decisions: Iterable[Decision]) -> Sides:
    """Both sides of a pass, with the runs that are shown of each group."""
    shown = {decision.group.numbers: decision.shown for decision in decisions}
    a, b = range(seen.count_a), range(seen.count_a, len(seen.runs))

    def shown_of(position: int, runs: range) -> ShownRun:
        def number(group: Group) -> int:
            """Of a query that is not golden, the first run that has it."""
            there = [place for place, run in enumerate(runs) if group.numbers[run] is not None]
            chosen = shown.get(group.numbers, (0, 0))[position] if group.is_golden else 0
            return chosen if chosen in there else next(iter(there), 0)

        return number

    return Sides(Side(seen, a, shown_of(0, a)) if a else None, Side(seen, b, shown_of(1, b)))
