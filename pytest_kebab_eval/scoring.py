"""Run + golden set -> a `Scorecard`, one score a query -> `AggregateMetrics`."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching import Matcher, Passages, Targets, judge
from pytest_kebab_eval.metrics import CUTOFFS, Judged, Metric, all_metrics
from pytest_kebab_eval.model import GoldenQuery, QueryResult, Run, Unreadable
from pytest_kebab_eval.store import Corpus

DEFAULT_CUTOFF = 5
DECIMALS = 4


class QueryScore(NamedTuple):
    """One query of one run, as far as comparison and aggregation need it."""

    query_id: str
    found: tuple[int | None, ...]  # for each target, the rank it was found at
    first: int | None
    by_document: bool
    values: tuple[float | None, ...]  # in the order of the scorecard's metrics
    hits: int
    answered: bool | None  # None: no answer; False: it refused
    error: str | None = None
    unreadable: str | None = None

    @property
    def failed(self) -> bool:
        """Whether there is nothing to judge: it errored, or cannot be read."""
        return self.error is not None


class Scorecard(NamedTuple):
    """A run, scored query by query."""

    run: Run
    metrics: tuple[Metric, ...]
    scores: dict[str, QueryScore]
    strays: tuple[str, ...]  # results that the golden file has no query for

    @property
    def unreadable(self) -> list[QueryScore]:
        """The results that do not parse."""
        return [score for score in self.scores.values() if score.unreadable is not None]

    def column(self, metric: str) -> int:
        """Where a metric stands among a score's values."""
        return [one.name for one in self.metrics].index(metric)


class MetricValues(msgspec.Struct, frozen=True, kw_only=True):
    """A value for every metric, in the shape that `aggregate_json` has."""

    hit_at_k: dict[str, float | None]
    mrr: float | None
    recall_at_k_doc: dict[str, float | None]
    citation_coverage: float | None
    groundedness: float | None
    empty_result_rate: float | None
    refusal_correctness: float | None
    total_queries: int
    failed_queries: int
    precision_at_k_chunk: dict[str, float | None]
    extra: dict[str, float | None]
    counts: dict[str, int]

    def value(self, metric: str) -> float | None:
        """The value of a metric by its name; `KeyError` for a name that is none."""
        return self.by_name()[metric]

    def by_name(self) -> dict[str, float | None]:
        """Every metric's value by its name."""
        found: dict[str, float | None] = {}
        for pattern, field in _TABLES.items():
            found.update((pattern.format(k=k), value) for k, value in getattr(self, field).items())
        found.update((field, getattr(self, field)) for field in _SINGLES)
        return found | self.extra


class AggregateMetrics(MetricValues, frozen=True, kw_only=True):
    """The metrics of a run over all its queries; None where no query was applicable."""

    match: str


_TABLES = {
    "hit@{k}": "hit_at_k",
    "recall@{k}_doc": "recall_at_k_doc",
    "precision@{k}_chunk": "precision_at_k_chunk",
}
_SINGLES = ("mrr", "citation_coverage", "groundedness", "empty_result_rate", "refusal_correctness")


def in_shape(values: dict[str, float | None]) -> dict[str, object]:
    """Values by metric name -> the fields of `MetricValues` that hold them."""
    rest = dict(values)
    fields: dict[str, object] = {
        field: {str(k): rest.pop(pattern.format(k=k)) for k in CUTOFFS} for pattern, field in _TABLES.items()
    }
    fields.update((name, rest.pop(name)) for name in _SINGLES)
    return fields | {"extra": rest}


def rounded(value: float) -> float:
    """A value as it is stored; never a negative zero."""
    return round(value, DECIMALS) + 0.0


# -- scoring -------------------------------------------------------------------------------------


class Scorer:
    """Scores the results of runs against a golden set; targets are made once and serve every run."""

    def __init__(self, golden: GoldenSet, matcher: Matcher, cutoff: int = DEFAULT_CUTOFF) -> None:
        self._queries = golden.by_id()
        self._matcher = matcher
        self._cutoff = cutoff
        self._targets: dict[str, Targets] = {}
        self.metrics = tuple(all_metrics())
        self._by_domain = _grouped(self.metrics)

    def targets(self, query: GoldenQuery) -> Targets:
        """The query's targets."""
        if query.id not in self._targets:
            self._targets[query.id] = self._matcher.targets(query)
        return self._targets[query.id]

    def score(
        self, run: Run, results: Iterable[QueryResult | Unreadable], corpus: Corpus | None
    ) -> Scorecard:
        """A scorecard of the run; each result is dropped as soon as it is scored."""
        passages = Passages(corpus)
        scores: dict[str, QueryScore] = {}
        strays = []
        for result in results:
            query_id = result.query_id
            if query_id in scores:
                result = Unreadable(query_id, "the result is stored twice")
            query = self._queries.get(query_id)
            if query is None:
                strays.append(query_id)
                query = GoldenQuery(id=query_id, query="")
            scores[query_id] = self._score_query(query, result, passages)
        return Scorecard(run, self.metrics, scores, tuple(sorted(strays)))

    def correct_ranks(
        self, query: GoldenQuery, result: QueryResult | None, corpus: Corpus | None
    ) -> tuple[int, ...]:
        """The ranks of a result's correct hits."""
        hits = result.hits if result else ()
        return judge(self.targets(query), hits, Passages(corpus)).correct

    def _score_query(
        self,
        query: GoldenQuery,
        result: QueryResult | Unreadable,
        passages: Passages,
    ) -> QueryScore:
        unreadable = None
        if isinstance(result, Unreadable):
            unreadable = result.reason
            result = QueryResult(query_id=query.id, hits=(), error=unreadable)
        targets = self.targets(query)
        hits = () if result.error is not None else result.hits
        ranking = judge(targets, hits, passages)
        judged = Judged(
            query=query,
            result=result,
            targets=targets,
            ranking=ranking,
            cutoff=query.k or self._cutoff,
            citations_resolve=_citations_resolve(result, passages),
        )
        values: list[float | None] = [None] * len(self.metrics)
        for over, group in self._by_domain:
            if over(judged):
                for column, metric in group:
                    values[column] = metric.value(judged)
        return QueryScore(
            query_id=query.id,
            found=ranking.found,
            first=ranking.first,
            by_document=targets.by == "document" or ranking.by_document,
            values=tuple(values),
            hits=len(hits),
            answered=judged.answer.grounded if judged.answer else None,
            error=result.error,
            unreadable=unreadable,
        )


def _grouped(
    metrics: Sequence[Metric],
) -> list[tuple[Callable[[Judged], bool], list[tuple[int, Metric]]]]:
    groups: dict[Callable[[Judged], bool], list[tuple[int, Metric]]] = {}
    for column, metric in enumerate(metrics):
        groups.setdefault(metric.family.over, []).append((column, metric))
    return list(groups.items())


def _citations_resolve(result: QueryResult, passages: Passages) -> bool | None:
    """Whether a grounded answer cites, and all it cites is there (`citation_coverage`)."""
    answer = result.answer
    if answer is None or result.error is not None or not answer.grounded:
        return None
    return bool(answer.citations) and all(passages.resolves(cited, result.hits) for cited in answer.citations)


# -- aggregation ---------------------------------------------------------------------------------


def aggregate(scorecard: Scorecard, match: str, only: Collection[str] | None = None) -> AggregateMetrics:
    """The means over a run's queries, or over some of them, rounded as they are stored."""
    rows = [score for query_id, score in scorecard.scores.items() if only is None or query_id in only]
    values: dict[str, float | None] = {}
    counts = {}
    for column, metric in enumerate(scorecard.metrics):
        column_values = [value for row in rows if (value := row.values[column]) is not None]
        values[metric.name] = mean(column_values)
        counts[metric.name] = len(column_values)
    return AggregateMetrics(
        **in_shape(values),  # type: ignore[arg-type]
        counts=counts,
        total_queries=len(rows),
        failed_queries=sum(row.failed for row in rows),
        match=match,
    )


def mean(values: Sequence[float]) -> float | None:
    """The rounded mean; None, not 0, over nothing."""
    return rounded(math.fsum(values) / len(values)) if values else None
