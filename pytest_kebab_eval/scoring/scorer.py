"""Runs -> a `Scorecard` each, scored together; every result is dropped as soon as it is scored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol

import msgspec

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.locations import OpenRun, Passages
from pytest_kebab_eval.matching.strategies import Coarser, Ranking
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Domain, Facts, Judged, Metric, all_metrics
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Run, Unreadable
from pytest_kebab_eval.scoring.columns import Columns, Compute, HitKeys
from pytest_kebab_eval.scoring.facts import QueryJudge, distinct_hits, with_lookahead
from pytest_kebab_eval.scoring.scorecard import (
    JudgeIdentity,
    Notes,
    QueryScore,
    Scorecard,
    basis_of,
    survey_of,
)
from pytest_kebab_eval.store import Corpus

DEFAULT_CUTOFF = 5


class RunObserver(Protocol):
    """Is shown every result of a run with a golden query, while it is scored."""

    def add(
        self, query_id: str, result: QueryResult, ids: Sequence[str | None], correct: tuple[int, ...]
    ) -> None:
        """A result, its chunk ids and the ranks of its correct hits."""

    def replace(self, query_id: str, result: QueryResult, correct: tuple[int, ...]) -> None:
        """A result that was shown before, of which other hits are correct now."""


class Observer(Protocol):
    """Is shown what a comparison reads, so that nothing has to be read again for it."""

    def watch(self, side: str) -> RunObserver:
        """What observes the next run of a side, `a` or `b`."""

    def finish(
        self, queries: Iterable[GoldenQuery], matcher: Matcher, shown: Mapping[str, tuple[int, int]]
    ) -> None:
        """All runs are scored; of several a side, `shown` has the numbers of those that are shown."""


class Scorer:
    """Scores the results of runs against a golden set."""

    def __init__(
        self,
        golden: GoldenSet,
        matcher: Matcher,
        cutoff: int = DEFAULT_CUTOFF,
        more_metrics: Iterable[Metric] = (),
    ) -> None:
        self.matcher = matcher
        self.judge = QueryJudge(matcher, cutoff)
        self.queries = golden.by_id()
        metrics = (*all_metrics(), *more_metrics)
        survey = survey_of(golden, metrics)
        self._basis = basis_of(metrics, survey, matcher.mode.value)
        measured = [metric for metric in metrics if survey.measures(metric)]
        self.in_columns = [metric for metric in measured if not metric.family.over.of_facts]
        of_facts: dict[Domain, list[tuple[int, Compute]]] = {}  # each domain is asked once a query
        for metric in measured:
            if metric.family.over.of_facts:
                position = self._basis.positions[metric.name]
                of_facts.setdefault(metric.family.over, []).append((position, metric.compute))
        self._of_facts = list(of_facts.items())
        self._known: dict[Facts, QueryScore] = {}

    def score(
        self,
        run: Run,
        results: Iterable[QueryResult | Unreadable],
        corpus: Corpus | None,
        observer: RunObserver | None = None,
    ) -> Scorecard:
        """A scorecard of the run; the observer is shown each result, which is then dropped."""
        scoring = _Scoring(self, Passages(corpus, run.chunker_version), observer)
        scoring.add_all(with_lookahead(results, corpus, self.matcher, self.queries))
        columns = scoring.columns.finished(len(scoring.scores))
        return Scorecard(run, self._basis, scoring.notes(), scoring.scores, columns, scoring.hit_keys)

    def score_again(
        self,
        card: Scorecard,
        results: Iterable[QueryResult | Unreadable],
        corpus: Corpus | None,
        observer: RunObserver | None = None,
    ) -> Scorecard:
        """The scorecard with these results of golden queries judged again, since the matcher changed."""
        passages = Passages(corpus, card.run.chunker_version)
        scores: dict[str, QueryScore] = {}
        for stored in with_lookahead(results, corpus, self.matcher, self.queries):
            if isinstance(stored, Unreadable):
                continue
            query, hits = self.queries[stored.query_id], distinct_hits(stored.hits)
            result = msgspec.structs.replace(stored, hits=hits)
            facts = self.judge.facts(query, result, passages, is_golden=True)
            scores[query.id] = self.score_of(Judged(query, result, facts))
            if observer is not None:
                observer.replace(query.id, result, facts.ranking.correct)
        return card.with_scores(scores)

    def score_of(self, judged: Judged) -> QueryScore:
        """The score of all queries with these facts."""
        return self._known.get(judged.facts) or self._new(judged)

    def _new(self, judged: Judged) -> QueryScore:
        values: list[float | None] = [None] * len(self._basis.metrics)
        for domain, metrics in self._of_facts:
            if domain.applies(judged):
                for position, compute in metrics:
                    value = compute(judged)
                    values[position] = None if value is None else float(value)
        score = self._known[judged.facts] = QueryScore(judged.facts, tuple(values), self._basis.positions)
        return score


class _Scoring:
    """One run while it is scored."""

    def __init__(self, scorer: Scorer, passages: Passages, observer: RunObserver | None) -> None:
        self._passages = passages
        self._observer = observer
        self._query_of, self._judge, self._score_of = scorer.queries.get, scorer.judge, scorer.score_of
        self.scores: dict[str, QueryScore] = {}
        self.columns = Columns(scorer.in_columns)
        self.hit_keys = HitKeys()
        self._errors: dict[str, str] = {}
        self._unreadable: dict[str, str] = {}
        self._unknown: set[str] = set()
        self._judges: set[JudgeIdentity] = set()
        self._repeated: set[str] = set()

    def notes(self) -> Notes:
        return Notes(
            self._errors,
            self._unreadable,
            tuple(sorted(self._unknown)),
            frozenset(self._judges),
            tuple(sorted(self._repeated)),
        )

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
                self.hit_keys.clear(row)
                self._add(row, Unreadable(query_id, "the result is stored twice"))

    def _add(self, row: int, result: QueryResult | Unreadable) -> None:
        query_id = result.query_id
        if isinstance(result, Unreadable):
            self._unreadable[query_id] = result.reason
            result = QueryResult(query_id=query_id, hits=(), error=result.reason)
        ids = [hit.chunk_id for hit in result.hits]
        if len({*ids}) < len(ids):
            hits = distinct_hits(result.hits)
            if len(hits) < len(ids):
                self._repeated.add(query_id)
                result = msgspec.structs.replace(result, hits=hits)
                ids = [hit.chunk_id for hit in hits]
        query = self._query_of(query_id)
        is_golden = query is not None
        if query is None:
            self._unknown.add(query_id)
            query = GoldenQuery(id=query_id, query="")
        if result.error is not None:
            self._errors[query.id] = result.error
        if result.judge:
            self._judges.add((result.judge.model, result.judge.prompt_version, result.judge.temperature))
        facts = self._judge.facts(query, result, self._passages, is_golden=is_golden)
        judged = Judged(query, result, facts)
        if result.scope:
            targets = self._judge.targets(query)
            expected = (*targets.ids, *chain.from_iterable(query.alternatives))
            paths = targets.paths or self._passages.paths_of(targets.doc_ids, expected)
            judged = msgspec.structs.replace(judged, target_paths=paths)
        self.columns.add(row, judged)
        if row == len(self.scores):
            self.hit_keys.add(() if result.error is not None else result.hits, ids)
        self.scores[query.id] = self._score_of(judged)
        if self._observer is not None and is_golden:
            self._observer.add(query.id, result, ids, facts.ranking.correct)


# -- runs that are compared ----------------------------------------------------------------------
#
# A hit of an expected document may lack its span, or its text. Its query is then judged again, in all runs
# alike, without the spans or texts of the targets that it could not be held against.

_FEW = 4  # a run is read whole if a fourth of its results or more are asked for


def score_together(
    scorer: Scorer, runs: Sequence[OpenRun], observers: Sequence[RunObserver] = ()
) -> list[Scorecard]:
    """Read and score runs; each run has an observer, or none has."""
    watching: Sequence[RunObserver | None] = observers or [None] * len(runs)
    scorer.matcher.find_targets()
    cards = [
        scorer.score(run, database.results(run.run_id), database.corpus, observer)
        for (database, run), observer in zip(runs, watching, strict=True)
    ]
    while coarser := _coarser(scorer.matcher.mode, cards):
        scorer.matcher.coarsen(coarser)
        scorer.matcher.find_targets()
        cards = [
            scorer.score_again(card, _results(stored, card, coarser), stored[0].corpus, observer)
            for stored, card, observer in zip(runs, cards, watching, strict=True)
        ]
    return cards


def coarsen(matcher: Matcher, queries: Iterable[GoldenQuery], runs: Sequence[OpenRun]) -> None:
    """Have these queries matched as they are where these runs are scored together, by reading only theirs."""
    left = list(queries) if matcher.mode is MatchMode.FALLBACK else []
    while left:
        matcher.find_targets()
        found: dict[str, Coarser] = {}
        for opened in runs:
            for query_id, ranking in _rankings(matcher, {query.id: query for query in left}, opened):
                if ranking.coarser:
                    found[query_id] = (*found.get(query_id, ()), *ranking.coarser)
        matcher.coarsen(found)
        left = [query for query in left if query.id in found]


def _rankings(
    matcher: Matcher, queries: Mapping[str, GoldenQuery], opened: OpenRun
) -> Iterator[tuple[str, Ranking]]:
    database, run = opened
    passages = Passages(database.corpus, run.chunker_version)
    stored = database.results_of(run.run_id, [*queries])
    for result in with_lookahead(stored, database.corpus, matcher, queries):
        if isinstance(result, QueryResult) and result.error is None:
            targets = matcher.targets(queries[result.query_id])
            yield result.query_id, targets.judge(distinct_hits(result.hits), passages)


def _coarser(mode: MatchMode, cards: Iterable[Scorecard]) -> dict[str, Coarser]:
    """The queries that have a hit which could not be held against a target as others can."""
    found: dict[str, Coarser] = {}
    for card in cards if mode is MatchMode.FALLBACK else ():
        for query_id, score in zip(card.query_ids(), card.scores_in_order(), strict=True):
            if score.facts.ranking.coarser:
                found[query_id] = (*found.get(query_id, ()), *score.facts.ranking.coarser)
    return found


def _results(
    stored: OpenRun, card: Scorecard, query_ids: Collection[str]
) -> Iterator[QueryResult | Unreadable]:
    """The results of these queries, read again; one that errored found nothing in any way."""
    database, run = stored
    scores = {query_id: score for query_id in query_ids if (score := card.score(query_id))}
    wanted = [query_id for query_id, score in scores.items() if not score.facts.errored]
    if len(wanted) * _FEW < len(card.query_ids()):
        return database.results_of(run.run_id, wanted)
    known = {*wanted}
    return (result for result in database.results(run.run_id) if result.query_id in known)
