"""A run's results -> a `Scorecard`: for every query its score, which all queries share that did alike."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Domain, Facts, Judged, Metric, all_metrics
from pytest_kebab_eval.model import GoldenQuery, QueryResult, Run, Unreadable
from pytest_kebab_eval.scoring.facts import QueryJudge
from pytest_kebab_eval.store import Corpus

DEFAULT_CUTOFF = 5
ONE_VALUED_SLICES = ("lang", "difficulty", "category")
NOT_MEASURED = math.nan


class QueryScore(msgspec.Struct, frozen=True, eq=False, gc=False):
    """How a query did in a run. Of queries alike in their facts there is one, known by its identity."""

    facts: Facts
    values: tuple[float | None, ...]  # in the order of the metrics; None also for those with a column

    @property
    def first(self) -> int | None:
        """The rank of the first correct hit."""
        return self.facts.ranking.first

    @property
    def by_document(self) -> bool:
        """Whether it may have been found only by being in the right document."""
        return self.facts.by == "document" or self.facts.ranking.by_document

    @property
    def doc_rank(self) -> int | None:
        """The rank of the first hit in an expected document."""
        return min((rank for rank in self.facts.doc_ranks if rank is not None), default=None)


JudgeIdentity = tuple[str | None, str | None, float | str | None]
Column = Sequence[float]


class Scorecard(NamedTuple):
    """A run, scored query by query.

    Metrics over texts, times and the scores of judges differ from query to query: their values are kept as
    columns, in the order of `scores`, `NOT_MEASURED` where a metric is not over a query.
    """

    run: Run
    metrics: tuple[Metric, ...]
    scores: dict[str, QueryScore]
    columns: Mapping[str, Column]  # by the metric's name
    slices: Mapping[str, tuple[str, ...]]  # of the golden queries
    strays: tuple[str, ...]  # results that the golden file has no query for
    errors: Mapping[str, str]  # what went wrong, also where a result cannot be read
    unreadable: Mapping[str, str]  # the results that do not parse, and why
    judges: frozenset[JudgeIdentity]  # model, prompt version and temperature of the stored judgments
    match: str
    golden_sha256: str

    def place_of(self, metric: str) -> int:
        """Where a metric stands among a score's values."""
        return [one.name for one in self.metrics].index(metric)


class Scorer:
    """Scores the results of runs against a golden set."""

    def __init__(
        self,
        golden: GoldenSet,
        matcher: Matcher,
        cutoff: int = DEFAULT_CUTOFF,
        more_metrics: Iterable[Metric] = (),
    ) -> None:
        self.judge = QueryJudge(matcher, cutoff)
        self.metrics = (*all_metrics(), *more_metrics)
        self.queries = golden.by_id()
        self._golden = golden
        self._match = matcher.mode.value
        self._slices = _slices_of_all(golden.queries)
        self._measured = [
            (number, one)
            for number, one in enumerate(self.metrics)
            if one.family.needs is None or any(map(one.family.needs, golden.queries))
        ]
        self._over_facts = _by_domain((at, one) for at, one in self._measured if one.family.over.of_facts)
        self._known: dict[Facts, QueryScore] = {}

    def score(
        self, run: Run, results: Iterable[QueryResult | Unreadable], corpus: Corpus | None
    ) -> Scorecard:
        """A scorecard of the run; each result is dropped as soon as it is scored."""
        scoring = _Scoring(self, Passages(corpus, run.chunker_version))
        scoring.add_all(results)
        return Scorecard(
            run=run,
            metrics=self.metrics,
            scores=scoring.scores,
            columns=scoring.columns.finished(len(scoring.scores)),
            slices=self._slices,
            strays=tuple(sorted(scoring.strays)),
            errors=scoring.errors,
            unreadable=scoring.unreadable,
            judges=frozenset(scoring.judges),
            match=self._match,
            golden_sha256=self._golden.fingerprint,
        )

    def new_columns(self) -> _Columns:
        """Empty columns for the metrics that need them."""
        return _Columns(one for _, one in self._measured if not one.family.over.of_facts)

    def score_of(self, judged: Judged) -> QueryScore:
        """The score of all queries with these facts."""
        return self._known.get(judged.facts) or self._new(judged)

    def _new(self, judged: Judged) -> QueryScore:
        values: list[float | None] = [None] * len(self.metrics)
        for applies, metrics in self._over_facts:
            if applies(judged):
                for number, compute in metrics:
                    value = compute(judged)
                    values[number] = None if value is None else float(value)
        score = self._known[judged.facts] = QueryScore(judged.facts, tuple(values))
        return score


class _Scoring:
    """One run while it is scored."""

    def __init__(self, scorer: Scorer, passages: Passages) -> None:
        self._passages = passages
        self._query_of, self._judge, self._score_of = scorer.queries.get, scorer.judge, scorer.score_of
        self.scores: dict[str, QueryScore] = {}
        self.columns = scorer.new_columns()
        self.errors: dict[str, str] = {}
        self.unreadable: dict[str, str] = {}
        self.strays: set[str] = set()
        self.judges: set[JudgeIdentity] = set()

    def add_all(self, results: Iterable[QueryResult | Unreadable]) -> None:
        twice: set[str] = set()
        for result in results:
            if result.query_id in self.scores:
                twice.add(result.query_id)
            else:
                self._add(len(self.scores), result)
            del result  # so that the next one is decoded into the same memory
        for row, query_id in enumerate(list(self.scores)) if twice else ():
            if query_id in twice:
                self.columns.clear(row)
                self._add(row, Unreadable(query_id, "the result is stored twice"))

    def _add(self, row: int, result: QueryResult | Unreadable) -> None:
        query_id = result.query_id
        if isinstance(result, Unreadable):
            self.unreadable[query_id] = result.reason
            result = QueryResult(query_id=query_id, hits=(), error=result.reason)
        query = self._query_of(query_id)
        is_golden = query is not None
        if query is None:
            self.strays.add(query_id)
            query = GoldenQuery(id=query_id, query="")
        if result.error is not None:
            self.errors[query.id] = result.error
        if result.judge:
            self.judges.add((result.judge.model, result.judge.prompt_version, result.judge.temperature))
        facts = self._judge.facts(query, result, self._passages, is_golden=is_golden)
        judged = Judged(query, result, facts)
        if result.scope:
            targets = self._judge.targets(query)
            paths = targets.paths or self._passages.paths_of(targets.doc_ids, targets.ids)
            judged = msgspec.structs.replace(judged, target_paths=paths)
        self.columns.add(row, judged)
        self.scores[query.id] = self._score_of(judged)


_Compute = Callable[[Judged], "float | None"]


def _by_domain(metrics: Iterable[tuple[int, Metric]]) -> list[tuple[Domain, list[tuple[int, _Compute]]]]:
    """Formulas that are over the same queries need to ask once whether this is one of them."""
    found: dict[Domain, list[tuple[int, _Compute]]] = {}
    for number, one in metrics:
        found.setdefault(one.family.over, []).append((number, one.compute))
    return list(found.items())


class _Columns:
    """The values of metrics that are not of facts; two of one formula, as percentiles are, share a column."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._column_of: dict[str, array[float]] = {}
        columns: dict[object, array[float]] = {}
        by_domain: dict[Domain, list[tuple[_Compute, array[float]]]] = {}
        for one in metrics:
            same = (one.family.over, one.family.formula, one.cutoff)
            if same not in columns:
                columns[same] = array("d")
                by_domain.setdefault(one.family.over, []).append((one.compute, columns[same]))
            self._column_of[one.name] = columns[same]
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
                        _pad(column, row + 1)
                        column[row] = value

    def clear(self, row: int) -> None:
        for column in self._all:
            if row < len(column):
                column[row] = NOT_MEASURED

    def finished(self, rows: int) -> dict[str, Column]:
        """The columns that have anything in them, by the names of their metrics."""
        for column in self._all:
            if column:
                _pad(column, rows)
        return {name: column for name, column in self._column_of.items() if column}


def _pad(column: array[float], rows: int) -> None:
    if len(column) < rows:
        column.extend([NOT_MEASURED] * (rows - len(column)))


# -- slices --------------------------------------------------------------------------------------


def _slices_of_all(queries: Iterable[GoldenQuery]) -> dict[str, tuple[str, ...]]:
    """The slices of every query; what many share is made once."""
    shared: dict[object, tuple[str, ...]] = {}
    found = {}
    for query in queries:
        labels = (query.lang, query.difficulty, query.category, query.tags, query.can_be_answered)
        slices = shared.get(labels)
        if slices is None:
            slices = shared[labels] = slices_of(query)
        found[query.id] = slices
    return found


def slices_of(query: GoldenQuery) -> tuple[str, ...]:
    """The slices that a query is in, such as `difficulty=hard` and `tags=security`."""
    found = [f"{name}={value}" for name in ONE_VALUED_SLICES if (value := getattr(query, name)) is not None]
    found += [f"tags={tag}" for tag in query.tags]
    if query.can_be_answered is not None:
        found.append(f"answerable={str(query.can_be_answered).lower()}")
    return tuple(found)
