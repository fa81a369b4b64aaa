"""Run + golden set -> a `Scorecard`, one score a query -> `AggregateMetrics`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.citations import NOWHERE, each_resolves, follow
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching import Matcher, Passages, Targets, judge
from pytest_kebab_eval.metrics import CUTOFFS, Domain, Facts, Judged, Metric, all_metrics
from pytest_kebab_eval.model import GoldenQuery, Hit, QueryResult, Run, Unreadable
from pytest_kebab_eval.store import Corpus

DEFAULT_CUTOFF = 5
DECIMALS = 4
ONE_VALUED_SLICES = ("lang", "difficulty", "category")


class QueryScore(NamedTuple):
    """One query of one run, as far as comparison and aggregation need it."""

    query_id: str
    found: tuple[int | None, ...]  # for each target, the rank it was found at
    first: int | None
    by_document: bool
    values: tuple[float | None, ...]  # in the order of the scorecard's metrics
    hits: int
    answered: bool | None  # None: no answer; False: it refused
    doc_rank: int | None = None  # of the first hit in an expected document
    slices: tuple[str, ...] = ()
    error: str | None = None
    unreadable: str | None = None

    @property
    def failed(self) -> bool:
        """Whether there is nothing to judge: it errored, or cannot be read."""
        return self.error is not None


JudgeIdentity = tuple[str | None, str | None, float | str | None]


class Scorecard(NamedTuple):
    """A run, scored query by query."""

    run: Run
    metrics: tuple[Metric, ...]
    scores: dict[str, QueryScore]
    strays: tuple[str, ...]  # results that the golden file has no query for
    judges: frozenset[JudgeIdentity]  # model, prompt version and temperature of the stored judgments
    match: str
    golden_sha256: str

    @property
    def unreadable(self) -> list[QueryScore]:
        """The results that do not parse."""
        return [score for score in self.scores.values() if score.unreadable is not None]

    def column(self, metric: str) -> int:
        """Where a metric stands among a score's values."""
        return [one.name for one in self.metrics].index(metric)


Slices = dict[str, dict[str, float | None]]


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
    slices: Slices  # only the metrics that were measured in a slice are there

    def value(self, metric: str, part: str | None = None) -> float | None:
        """A metric by its name, over all queries or one slice; None if nothing was measured."""
        return (self.by_name() if part is None else self.slices.get(part, {})).get(metric)

    def by_name(self) -> dict[str, float | None]:
        """Every metric's value by its name."""
        found: dict[str, float | None] = {}
        for pattern, field in _TABLES.items():
            found.update((pattern.format(k=k), value) for k, value in getattr(self, field).items())
        found.update((field, getattr(self, field)) for field in _SINGLES)
        return found | self.extra


class AggregateMetrics(MetricValues, frozen=True, kw_only=True):
    """The metrics of a run over all its queries; None where no query was applicable."""

    slice_counts: dict[str, int] = msgspec.field(default_factory=dict)  # the queries of each slice
    match: str
    golden_sha256: str


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


def stored_values(aggregate_json: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a stored `aggregate_json` by name, also of an older or foreign one."""
    found: dict[str, Any] = {}
    for pattern, field in _TABLES.items():
        table = aggregate_json.get(field)
        if isinstance(table, dict):
            found.update((pattern.format(k=k), value) for k, value in table.items())
    found.update((name, aggregate_json.get(name)) for name in _SINGLES)
    extra = aggregate_json.get("extra")
    found.update(extra if isinstance(extra, dict) else {})
    return {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}


def rounded(value: float) -> float:
    """A value as it is stored; never a negative zero."""
    return round(value, DECIMALS) + 0.0


# -- scoring -------------------------------------------------------------------------------------


class Scorer:
    """Scores the results of runs against a golden set; targets are made once and serve every run."""

    def __init__(
        self,
        golden: GoldenSet,
        matcher: Matcher,
        cutoff: int = DEFAULT_CUTOFF,
        more_metrics: Iterable[Metric] = (),
    ) -> None:
        self._queries = golden.by_id()
        self._fingerprint = golden.fingerprint
        self._matcher = matcher
        self._cutoff = cutoff
        self._targets: dict[str, Targets] = {}
        self.metrics = (*all_metrics(), *more_metrics)
        self._values = _Values(self.metrics, golden)
        self._slices = {query.id: slices_of(query) for query in golden.queries}
        self._answerable = {query.id: query.can_be_answered for query in golden.queries}

    def targets(self, query: GoldenQuery) -> Targets:
        """The query's targets."""
        if query.id not in self._targets:
            self._targets[query.id] = self._matcher.targets(query)
        return self._targets[query.id]

    def correct_ranks(
        self, query: GoldenQuery, result: QueryResult | None, passages: Passages
    ) -> tuple[int, ...]:
        """The ranks of a result's correct hits."""
        hits = result.hits if result else ()
        return judge(self.targets(query), hits, passages).correct

    def citations_resolve(self, result: QueryResult | None, passages: Passages) -> tuple[bool, ...]:
        """For each citation of a result's answer, whether it leads to a chunk."""
        answer = result.answer if result else None
        if result is None or answer is None:
            return ()
        return each_resolves(answer, result.hits, passages)

    def score(
        self, run: Run, results: Iterable[QueryResult | Unreadable], corpus: Corpus | None
    ) -> Scorecard:
        """A scorecard of the run; each result is dropped as soon as it is scored."""
        passages = Passages(corpus, run.chunker_version)
        scores: dict[str, QueryScore] = {}
        strays = []
        judges = set()
        for result in results:
            query_id = result.query_id
            if query_id in scores:
                result = Unreadable(query_id, "the result is stored twice")
            query = self._queries.get(query_id)
            if query is None:
                strays.append(query_id)
                query = GoldenQuery(id=query_id, query="")
            if isinstance(result, QueryResult) and result.judge:
                by = result.judge
                judges.add((by.model, by.prompt_version, by.temperature))
            scores[query_id] = self._score_query(query, result, passages)
        return Scorecard(
            run=run,
            metrics=self.metrics,
            scores=scores,
            strays=tuple(sorted(strays)),
            judges=frozenset(judges),
            match=self._matcher.mode.value,
            golden_sha256=self._fingerprint,
        )

    def _score_query(
        self, query: GoldenQuery, result: QueryResult | Unreadable, passages: Passages
    ) -> QueryScore:
        unreadable = None
        if isinstance(result, Unreadable):
            unreadable = result.reason
            result = QueryResult(query_id=query.id, hits=(), error=unreadable)
        judged = self._judge(query, result, passages)
        facts = judged.facts
        doc_ranks = [rank for rank in facts.doc_ranks if rank is not None]
        return QueryScore(
            query_id=query.id,
            found=facts.ranking.found,
            first=facts.ranking.first,
            by_document=facts.by == "document" or facts.ranking.by_document,
            values=self._values.of(judged),
            hits=len(judged.hits),
            answered=facts.answered,
            doc_rank=min(doc_ranks) if doc_ranks else None,
            slices=self._slices.get(query.id, ()),
            error=result.error,
            unreadable=unreadable,
        )

    def _judge(self, query: GoldenQuery, result: QueryResult, passages: Passages) -> Judged:
        targets = self.targets(query)
        errored = result.error is not None
        hits = () if errored else result.hits
        answer = None if errored else result.answer
        ranking = judge(targets, hits, passages)
        leads = follow(answer, hits, targets, ranking, passages) if answer else NOWHERE
        expected = query.expected_answer
        answer_rank, has_texts = (
            _contained(expected, hits, passages) if expected is not None else (None, False)
        )
        facts = Facts(
            targets.gains,
            targets.by,
            targets.for_metrics,
            ranking,
            query.required_support_groups,
            query.k or self._cutoff,
            _first_ranks(query.expected_doc_ids, hits) if query.expected_doc_ids else (),
            expected is not None,
            answer_rank,
            has_texts,
            not hits,
            errored,
            bool(result.timed_out),
            query.id in self._queries,
            self._answerable.get(query.id),
            answer.grounded if answer else None,
            leads.all_resolve,
            leads.only_to_hits,
            leads.to_correct_hit,
            leads.to_target,
        )
        paths = passages.paths_of(targets) if result.scope else frozenset()
        return Judged(query, result, hits, answer, facts, paths)


def slices_of(query: GoldenQuery) -> tuple[str, ...]:
    """The slices that a query is in, such as `difficulty=hard` and `tags=security`."""
    found = [f"{name}={value}" for name in ONE_VALUED_SLICES if (value := getattr(query, name)) is not None]
    found += [f"tags={tag}" for tag in query.tags]
    if query.can_be_answered is not None:
        found.append(f"answerable={str(query.can_be_answered).lower()}")
    return tuple(found)


_Computation = tuple[Callable[[Judged], bool], list[tuple[int, Callable[[Judged], "float | None"]]]]


class _Values:
    """The metrics that a golden set can measure, computed for a judged query.

    Those over domains of facts are computed once for all queries that are alike in their facts.
    """

    def __init__(self, metrics: Sequence[Metric], golden: GoldenSet) -> None:
        self._none: list[float | None] = [None] * len(metrics)
        self._known: dict[Facts, list[float | None]] = {}
        of_facts: dict[Domain, _Computation] = {}
        others: dict[Domain, _Computation] = {}
        for column, metric in enumerate(metrics):
            needs, over = metric.family.needs, metric.family.over
            if needs is None or any(needs(query) for query in golden.queries):
                chosen = of_facts if over.of_facts else others
                chosen.setdefault(over, (over.applies, []))[1].append((column, metric.compute))
        self._of_facts, self._others = list(of_facts.values()), list(others.values())

    def of(self, judged: Judged) -> tuple[float | None, ...]:
        """The values, in the order of the metrics; None where a metric is not over the query."""
        known = self._known.get(judged.facts)
        if known is None:
            known = self._known[judged.facts] = self._none.copy()
            _compute(self._of_facts, judged, known)
        values = known.copy()
        _compute(self._others, judged, values)
        return tuple(values)


def _compute(computations: list[_Computation], judged: Judged, values: list[float | None]) -> None:
    for applies, columns in computations:
        if applies(judged):
            for column, compute in columns:
                value = compute(judged)
                values[column] = None if value is None else float(value)


def _first_ranks(doc_ids: Sequence[str], hits: Iterable[Hit]) -> tuple[int | None, ...]:
    found: dict[str, int] = {}
    for hit in hits:
        doc_id = hit.doc_id
        if doc_id is not None and doc_id in doc_ids and doc_id not in found:
            found[doc_id] = hit.rank
    return tuple(found.get(doc_id) for doc_id in doc_ids)


def _contained(expected: str, hits: Iterable[Hit], passages: Passages) -> tuple[int | None, bool]:
    """The rank of the first hit whose text has the expected answer, and whether any text is at hand."""
    wanted = _folded(expected)
    has_texts = False
    for hit in hits:
        text = passages.text(hit) or hit.snippet
        if text:
            has_texts = True
            if wanted in _folded(text):
                return hit.rank, True
    return None, has_texts


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# -- aggregation ---------------------------------------------------------------------------------


def aggregate(scorecard: Scorecard, only: Collection[str] | None = None) -> AggregateMetrics:
    """A run's metrics over all its queries, or over some of them, rounded as they are stored."""
    rows = [score for query_id, score in scorecard.scores.items() if only is None or query_id in only]
    values, counts = _reduced(scorecard.metrics, rows)
    parts: dict[str, list[QueryScore]] = {}
    for row in rows:
        for part in row.slices:
            parts.setdefault(part, []).append(row)
    return AggregateMetrics(
        **in_shape(values),  # type: ignore[arg-type]
        counts=counts,
        total_queries=len(rows),
        failed_queries=sum(row.failed for row in rows),
        slices={part: _measured(scorecard.metrics, parts[part], counts) for part in sorted(parts)},
        slice_counts={part: len(parts[part]) for part in sorted(parts)},
        match=scorecard.match,
        golden_sha256=scorecard.golden_sha256,
    )


def _measured(
    metrics: Sequence[Metric], rows: Sequence[QueryScore], counts: Mapping[str, int]
) -> dict[str, float | None]:
    """The metrics of a slice; what was not measured anywhere need not be looked for there."""
    values, _ = _reduced(metrics, rows, counts)
    return {name: value for name, value in values.items() if value is not None}


def _reduced(
    metrics: Sequence[Metric], rows: Sequence[QueryScore], known: Mapping[str, int] | None = None
) -> tuple[dict[str, float | None], dict[str, int]]:
    """Each metric's value, None (not 0) over no query, and the number of queries it is over."""
    values: dict[str, float | None] = {}
    counts = {}
    has_answers = any(row.answered is not None for row in rows)
    columns = zip(*(row.values for row in rows), strict=True) if rows else ((),) * len(metrics)
    for metric, column in zip(metrics, columns, strict=True):
        found: Sequence[float] = ()
        skipped = known is not None and not known[metric.name]
        if not skipped and (has_answers or not metric.family.needs_answers):
            found = [value for value in column if value is not None]
        values[metric.name] = rounded(metric.family.reduce(found)) if found else None
        counts[metric.name] = len(found)
    return values, counts
