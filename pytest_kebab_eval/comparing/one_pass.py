"""One pass over the results of all runs: each query is judged in every run, counted, and dropped.

Queries with the same facts in every run are one `Group`; what differs from query to query (times, costs,
judges' scores) is kept in columns of numbers, one row a query.
"""

from __future__ import annotations

import itertools
import math
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import msgspec

from pytest_kebab_eval.comparing.asked import REWORDED, compare_questions
from pytest_kebab_eval.comparing.facts import QueryJudge, Stored, with_first_of_repeated
from pytest_kebab_eval.comparing.passage_texts import PassageTexts
from pytest_kebab_eval.comparing.slices import slices_by_query
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.locations import Passages, has_document
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.metrics import CUTOFFS, Facts, Judged, Metric, all_metrics
from pytest_kebab_eval.metrics.registry import Domain
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult, Run, Unreadable
from pytest_kebab_eval.store import IndexCoverage, with_configuration
from pytest_kebab_eval.text import printable

JudgeIdentity = tuple[str | None, str | None, float | str | None]
Values = tuple[float | None, ...]  # of each metric of facts, in the order of the metrics
Column = Sequence[float]  # a number for each row; NaN where nothing was measured
_NOT_MEASURED = math.nan
_NO_SLICES: tuple[str, ...] = ()


class Group(NamedTuple):
    """Queries that did alike in every run, and are in the same slices; None where a run has no result."""

    slices: tuple[str, ...]
    numbers: tuple[int | None, ...]  # of the facts in every run, A's first
    a: tuple[Facts | None, ...]  # in the runs of A; none where run B is judged alone
    b: tuple[Facts | None, ...]
    rows: Sequence[int]
    query_ids: tuple[str, ...]
    is_golden: bool

    def without(self, query_ids: Collection[str]) -> Group:
        """The same group, some queries left out."""
        left = [place for place, query_id in enumerate(self.query_ids) if query_id not in query_ids]
        ids = tuple(self.query_ids[place] for place in left)
        return self._replace(rows=[self.rows[place] for place in left], query_ids=ids)

    @property
    def in_a(self) -> bool:
        return any(facts is not None for facts in self.a)

    @property
    def in_b(self) -> bool:
        return any(facts is not None for facts in self.b)

    @property
    def asked(self) -> str | None:
        """What becomes of these queries by what was asked; None where that was the golden question."""
        return compare_questions(self.a, self.b)

    @property
    def is_paired(self) -> bool:
        """Whether both sides have them, as the answer to one question."""
        return self.in_a and self.in_b and not self.is_reworded

    @property
    def is_reworded(self) -> bool:
        """Whether A alone was asked another question."""
        return self.asked == REWORDED


class SeenRun:
    """What the pass noticed of one run, beside the facts of its queries."""

    def __init__(self, side: str, run: Run, passages: Passages) -> None:
        self.side, self.run, self.passages = side, run, passages  # side: a | b
        self.query_ids: set[str] = set()
        self.errors: dict[str, str] = {}  # what went wrong, also where a result cannot be read
        self.unreadable: dict[str, str] = {}  # why
        self.unknown_query_ids: list[str] = []  # results that the golden file has no query for
        self.judges: set[JudgeIdentity] = set()
        self.repeated: list[str] = []  # queries whose result holds a chunk twice
        self.depth = 0  # of the longest list of hits
        self.names_documents = False  # whether any hit does
        self._id_hashes = array("q")  # of the ids of all hits, with repetitions

    @property
    def name(self) -> str:
        return printable(self.run.run_id)

    def note(
        self, query_id: str, stored: QueryResult | Unreadable, doc_ids: Collection[str], *, is_golden: bool
    ) -> QueryResult:
        """Notice what is unusual of a result; it is given back with each chunk once, or as an error."""
        self.query_ids.add(query_id)
        if not is_golden:
            self.unknown_query_ids.append(query_id)
        if isinstance(stored, Unreadable):
            self.unreadable[query_id] = self.errors[query_id] = stored.reason
            return QueryResult(query_id=query_id, hits=(), error=stored.reason)
        result = stored
        if result.judge:
            self.judges.add((result.judge.model, result.judge.prompt_version, result.judge.temperature))
        if result.error is not None:
            self.errors[query_id] = result.error
            return result
        ids = [hit.chunk_id for hit in result.hits]
        if len({*ids}) < len(ids):
            result = with_first_of_repeated(result)
            if len(result.hits) < len(ids):
                self.repeated.append(query_id)
                ids = [hit.chunk_id for hit in result.hits]
        if ids:
            self.depth = max(self.depth, result.hits[-1].rank)
            if not self.names_documents:
                hits = result.hits
                self.names_documents = any(has_document(hit) or hit.doc_id in doc_ids for hit in hits)
            self._id_hashes.fromlist([*map(hash, ids if all(ids) else map(key_of, result.hits))])
        return result

    @property
    def lacks_documents(self) -> bool:
        """Whether there are hits, and none of them names a document."""
        return self.depth > 0 and not self.names_documents

    @cached_property
    def index(self) -> IndexCoverage | None:
        """How much of the documents the run's index has."""
        return with_configuration(self.passages.coverage(), self.run.config.get("index_coverage"))

    @cached_property
    def id_hashes(self) -> frozenset[int]:
        """The hashes of the ids of all hits."""
        return frozenset(self._id_hashes)


def key_of(hit: Hit) -> str | None:
    """What a hit is known by."""
    return hit.chunk_id or hit.doc_id or hit.doc_path


class Observer(Protocol):
    """Is shown what is read, so that nothing has to be read again for it."""

    def add(self, run: int, query_id: str, result: QueryResult, correct: tuple[int, ...]) -> None:
        """A result of the run of that number, of a golden query, and the ranks of its correct hits."""

    def finish(self, matcher: Matcher, count_a: int, runs: int, shown: Mapping[str, tuple[int, int]]) -> None:
        """All is read; of several runs a side, `shown` has the numbers of those that are shown."""


class OnePass:
    """Reads all runs, query by query; in the end it has all that the comparison is made of."""

    def __init__(
        self,
        golden: GoldenSet,
        matcher: Matcher,
        runs: Sequence[SeenRun],
        metrics: Iterable[Metric] = (),
        overlaps: Iterable[int] = (),
        cutoff: int = 5,
        observer: Observer | None = None,
        texts: PassageTexts | None = None,
    ) -> None:
        self.golden, self.matcher, self.runs = golden, matcher, runs
        self.fingerprint = golden.fingerprint  # before there is much else in memory
        self.count_a = sum(run.side == "a" for run in runs)
        self.overlaps = Overlaps(sorted({*CUTOFFS, *overlaps}))
        self.metrics = (*all_metrics(), *metrics)
        self.positions = {metric.name: position for position, metric in enumerate(self.metrics)}
        self.ids: list[str] = []  # by row
        self.slices = slices_by_query(golden.queries)
        self._queries = golden.by_id()
        self._doc_ids = {name for query in golden.queries for name in query.expected_doc_ids or ()}
        self._judge = QueryJudge(matcher, cutoff)
        self._values = _ValuesOfFacts(self.metrics, golden)
        self._columns = [_Columns(self.metrics, golden) for _ in runs]
        self._groups: defaultdict[tuple[Any, ...], array[int]] = defaultdict(lambda: array("q"))
        self._observer = observer
        self._texts = texts

    # -- reading ----------------------------------------------------------------------------------

    def read(self, rows: Iterable[tuple[str, tuple[Stored, ...]]]) -> None:
        """Add each query as it comes, then the golden queries that no run has, and B should have."""
        for query_id, results in rows:
            self.add(query_id, results)
            del results  # so that the next ones are decoded into the same memory
        there = {*self.ids}
        for query_id in () if self.is_selection else self._queries:
            if query_id not in there:
                self.add(query_id, [None] * len(self.runs))

    def add(self, query_id: str, stored: Sequence[Stored]) -> None:
        """Judge what every run has stored for a query."""
        query = self._queries.get(query_id)
        is_golden = query is not None
        query = query or GoldenQuery(id=query_id, query="")
        results = [
            None if result is None else run.note(query_id, result, self._doc_ids, is_golden=is_golden)
            for run, result in zip(self.runs, stored, strict=True)
        ]
        targets, facts = self._judged(query, results, is_golden=is_golden)
        row = len(self.ids)
        self.ids.append(query_id)
        numbers: list[int | None] = []
        is_asked_otherwise = False
        for number, (result, known) in enumerate(zip(results, facts, strict=True)):
            if result is None or known is None:
                numbers.append(None)
                continue
            is_asked_otherwise = is_asked_otherwise or bool(known.asked)
            judged = Judged(query, result, known)
            numbers.append(self._values.number_of(judged))
            if result.scope:
                paths = self._target_paths(query, targets, self.runs[number].passages)
                judged = msgspec.structs.replace(judged, target_paths=paths)
            self._columns[number].add(row, judged)
            if self._observer is not None and is_golden:
                self._observer.add(number, query_id, result, known.ranking.correct)
        self._groups[(is_golden, self.slices.get(query_id, _NO_SLICES), *numbers)].append(row)
        if is_golden and self.count_a and not (is_asked_otherwise and self._is_reworded(facts)):
            self.overlaps.add(row, query_id, results[: self.count_a], results[self.count_a :])

    def _judged(
        self, query: GoldenQuery, results: Sequence[QueryResult | None], *, is_golden: bool
    ) -> tuple[Targets, list[Facts | None]]:
        """The facts of a query in every run.

        Where a hit could only be compared more coarsely than others, it is judged again so, in all runs.
        """
        while True:
            targets = self.matcher.targets(query)
            wanted = self._judge.wanted(query, targets)
            known = self._texts.of(query, targets, results) if self._texts and is_golden else None
            facts = [
                None
                if result is None
                else self._judge.facts(
                    query,
                    targets,
                    wanted,
                    result,
                    run.passages,
                    is_golden=is_golden,
                    texts=None if known is None else known.in_a if run.side == "a" else known.in_b,
                )
                for run, result in zip(self.runs, results, strict=True)
            ]
            if self.matcher.mode is MatchMode.EXACT:
                return targets, facts
            coarser = tuple(way for known in facts if known for way in known.ranking.coarser)
            if not coarser:
                return targets, facts
            self.matcher.coarsen({query.id: coarser})

    def _is_reworded(self, facts: Sequence[Facts | None]) -> bool:
        return compare_questions(facts[: self.count_a], facts[self.count_a :]) == REWORDED

    def _target_paths(self, query: GoldenQuery, targets: Targets, passages: Passages) -> frozenset[str]:
        expected = (*targets.ids, *itertools.chain.from_iterable(query.alternatives))
        return targets.paths or passages.paths_of(targets.doc_ids, expected)

    # -- what was read ----------------------------------------------------------------------------

    def side(self, letter: str) -> list[SeenRun]:
        return [run for run in self.runs if run.side == letter]

    @cached_property
    def every_group(self) -> list[Group]:
        """All queries, also those that the golden file does not have."""
        found, known = [], self._values.facts
        for (is_golden, slices, *numbers), rows in self._groups.items():
            facts = [None if number is None else known[number] for number in numbers]
            a, b = tuple(facts[: self.count_a]), tuple(facts[self.count_a :])
            ids = tuple(map(self.ids.__getitem__, rows))
            found.append(Group(slices, tuple(numbers), a, b, rows, ids, is_golden))
        return found

    @cached_property
    def groups(self) -> list[Group]:
        """The golden queries."""
        return [group for group in self.every_group if group.is_golden]

    @property
    def is_selection(self) -> bool:
        """Whether run B was recorded from a selection of the tests, so that it need not have all queries."""
        return all(run.run.recorded.is_partial for run in self.side("b"))

    def facts(self, number: int) -> Facts:
        return self._values.facts[number]

    @property
    def distinct_facts(self) -> Sequence[Facts]:
        return self._values.facts

    def values(self, number: int) -> Values:
        """The value of each metric that is of facts; None where it is not over such a query."""
        return self._values.values[number]

    def column(self, run: int, metric: Metric) -> Column | None:
        """A metric that is of results, by row; None if nothing was measured of it in the run."""
        return self._columns[run].finished(metric, len(self.ids))


Compute = Callable[[Judged], "float | None"]


class _ValuesOfFacts:
    """Numbers for facts, and what is computed of each: once, however many queries have them.

    Without sharing a gate takes 2.2 times as long.
    """

    def __init__(self, metrics: Sequence[Metric], golden: GoldenSet) -> None:
        self.facts: list[Facts] = []
        self.values: list[Values] = []
        self._numbers: dict[Facts, int] = {}
        self._count = len(metrics)
        by_domain: dict[Domain, list[tuple[int, Compute]]] = {}  # each domain is asked once
        for position, metric in enumerate(metrics):
            if metric.family.over.of_facts and is_measured(metric, golden):
                by_domain.setdefault(metric.family.over, []).append((position, metric.compute))
        self._by_domain = [(domain.applies, found) for domain, found in by_domain.items()]

    def number_of(self, judged: Judged) -> int:
        number = self._numbers.get(judged.facts)
        if number is None:
            number = self._numbers[judged.facts] = len(self.facts)
            self.facts.append(judged.facts)
            self.values.append(self._computed(judged))
        return number

    def _computed(self, judged: Judged) -> Values:
        values: list[float | None] = [None] * self._count
        for applies, metrics in self._by_domain:
            if applies(judged):
                for position, compute in metrics:
                    value = compute(judged)
                    values[position] = None if value is None else float(value)
        return tuple(values)


def is_measured(metric: Metric, golden: GoldenSet) -> bool:
    """Whether some query of the golden file has what the metric needs of one."""
    needs = metric.family.needs
    return needs is None or any(map(needs, golden.queries))


class _Columns:
    """The metrics of one run that are of results; those of one formula, as percentiles, share a column."""

    def __init__(self, metrics: Iterable[Metric], golden: GoldenSet) -> None:
        self._columns: dict[object, array[float]] = {}
        by_domain: dict[Domain, list[tuple[Compute, array[float]]]] = {}
        for metric in metrics:
            same = metric.family.over, metric.formula, metric.cutoff
            if not metric.family.over.of_facts and same not in self._columns and is_measured(metric, golden):
                column = self._columns[same] = array("d")
                by_domain.setdefault(metric.family.over, []).append((metric.compute, column))
        self._by_domain = [(domain.applies, found) for domain, found in by_domain.items()]

    def add(self, row: int, judged: Judged) -> None:
        for applies, columns in self._by_domain:
            if applies(judged):
                for compute, column in columns:
                    value = compute(judged)
                    if value is not None:
                        if len(column) < row:
                            _pad(column, row)
                        column.append(value)

    def finished(self, metric: Metric, rows: int) -> Column | None:
        """The column of a metric; None if nothing was measured."""
        column = self._columns.get((metric.family.over, metric.formula, metric.cutoff))
        if not column:
            return None
        _pad(column, rows)
        return column


def _pad(column: array[float], rows: int) -> None:
    """Make the column so long, with rows that are not measured."""
    if len(column) < rows:
        column.extend([_NOT_MEASURED] * (rows - len(column)))


# -- overlap: whether or not anything is expected of the queries ---------------------------------------


class Overlaps:
    """`overlap@k`: the ids that both top k have, over those that either has; of each query, by row."""

    def __init__(self, cutoffs: Sequence[int]) -> None:
        self.cutoffs = cutoffs
        self._moved: dict[int, tuple[float, ...]] = {}  # of rows in which the rankings differ
        self.rows = array("q")  # those in which both have a ranking
        self._row_of: dict[str, int] = {}  # of the queries that moved

    def add(
        self, row: int, query_id: str, a: Iterable[QueryResult | None], b: Iterable[QueryResult | None]
    ) -> None:
        """The mean over every run of A with every run of B, but for pairs that errored in both."""
        in_b = [*b]
        pairs = [
            (one, other)
            for one in a
            for other in in_b
            if one and other and (one.error is None or other.error is None)
        ]
        if not pairs:
            return
        self.rows.append(row)
        found = [
            None if _is_same(one, other) else _overlaps(_ranks(one), _ranks(other), self.cutoffs)
            for one, other in pairs
        ]
        if any(found):
            same = (1.0,) * len(self.cutoffs)
            by_cutoff = zip(*(values or same for values in found), strict=True)
            self._moved[row] = tuple(math.fsum(values) / len(found) for values in by_cutoff)
        self._row_of[query_id] = row

    def at(self, row: int, cutoff: int) -> float:
        """The overlap of a row in which both have a ranking."""
        moved = self._moved.get(row)
        return 1.0 if moved is None else moved[self.cutoffs.index(cutoff)]

    def of(self, query_id: str, cutoff: int) -> float | None:
        """The overlap of a query; None where nothing was compared."""
        row = self._row_of.get(query_id)
        return None if row is None else self.at(row, cutoff)

    def counted(
        self, slices: Mapping[str, tuple[str, ...]]
    ) -> Counter[tuple[tuple[str, ...], tuple[float, ...]]]:
        """How many queries of the same slices have the same overlaps, at every cutoff."""
        same = (1.0,) * len(self.cutoffs)
        rows = self._row_of.items()
        return Counter((slices[query_id], self._moved.get(row, same)) for query_id, row in rows)


_Ranks = dict[str | None, int]


def _is_same(a: QueryResult, b: QueryResult) -> bool:
    """Whether the rankings are plainly the same: the same chunks, at ranks 1, 2, 3, …"""
    hits, others = a.hits, b.hits
    if a.error is not None or b.error is not None or len(hits) != len(others):
        return False
    if hits and (hits[-1].rank != len(hits) or others[-1].rank != len(others)):
        return False
    ids = [hit.chunk_id for hit in hits]
    return ids == [hit.chunk_id for hit in others] and all(ids)


def _ranks(result: QueryResult) -> _Ranks:
    """The best rank of what each hit is known by; an error found nothing."""
    hits = () if result.error is not None else result.hits
    return {key_of(hit): hit.rank for hit in reversed(hits)}


def _overlaps(a: _Ranks, b: _Ranks, cutoffs: Sequence[int]) -> tuple[float, ...] | None:
    """The overlap at each cutoff; None if the rankings are the same."""
    if a == b:
        return None
    in_a, in_b = sorted(a.values()), sorted(b.values())
    in_both = sorted([max(a[key], b[key]) for key in a.keys() & b.keys()])
    found = []
    for k in cutoffs:
        shared = bisect_right(in_both, k)
        union = bisect_right(in_a, k) + bisect_right(in_b, k) - shared
        found.append(shared / union if union else 1.0)
    return tuple(found)
