"""Runs that are compared, scored together: each query by the finest way that the hits of all of them allow.

A hit of an expected document may lack its span, or its text. Its query is then judged again, in all runs
alike, without the spans or texts of the targets that it could not be held against.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from pytest_kebab_eval.matching.locations import OpenRun, Passages
from pytest_kebab_eval.matching.strategies import Coarser, Ranking
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult
from pytest_kebab_eval.scoring.facts import distinct_hits
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.scoring.scorer import RunObserver, Scorer
from pytest_kebab_eval.store import ALL_IDS, IdRange

_FEW = 4  # a run is read whole if a fourth of its results or more are asked for


def score_together(
    scorer: Scorer, runs: Sequence[OpenRun], observers: Sequence[RunObserver] = (), ids: IdRange = ALL_IDS
) -> list[Scorecard]:
    """Read and score runs, the queries in a range; each run has an observer, or none has."""
    watching: Sequence[RunObserver | None] = observers or [None] * len(runs)
    cards = [
        scorer.score(run, database.results(run.run_id, ids), database.corpus, observer)
        for (database, run), observer in zip(runs, watching, strict=True)
    ]
    while coarser := _coarser(scorer.matcher.mode, cards):
        scorer.matcher.coarsen(coarser)
        cards = [
            scorer.score_again(card, _results(stored, card, coarser, ids), stored[0].corpus, observer)
            for stored, card, observer in zip(runs, cards, watching, strict=True)
        ]
    return cards


def coarsen(matcher: Matcher, queries: Iterable[GoldenQuery], runs: Sequence[OpenRun]) -> None:
    """Have these queries matched as they are where these runs are scored together, by reading only theirs."""
    left = list(queries) if matcher.mode is MatchMode.FALLBACK else []
    while left:
        found: dict[str, Coarser] = {}
        for query in left:
            for ranking in _rankings(matcher, query, runs):
                if ranking.coarser:
                    found[query.id] = (*found.get(query.id, ()), *ranking.coarser)
        matcher.coarsen(found)
        left = [query for query in left if query.id in found]


def _rankings(matcher: Matcher, query: GoldenQuery, runs: Iterable[OpenRun]) -> Iterator[Ranking]:
    targets = matcher.targets(query)
    for database, run in runs:
        result = database.result(run.run_id, query.id)
        if isinstance(result, QueryResult) and result.error is None:
            passages = Passages(database.corpus, run.chunker_version)
            yield targets.judge(distinct_hits(result.hits), passages)


def _coarser(mode: MatchMode, cards: Iterable[Scorecard]) -> dict[str, Coarser]:
    """The queries that have a hit which could not be held against a target as others can."""
    found: dict[str, Coarser] = {}
    for card in cards if mode is MatchMode.FALLBACK else ():
        for query_id, score in zip(card.query_ids(), card.scores_in_order(), strict=True):
            if score.facts.ranking.coarser:
                found[query_id] = (*found.get(query_id, ()), *score.facts.ranking.coarser)
    return found


def _results(
    stored: OpenRun, card: Scorecard, query_ids: Collection[str], ids: IdRange
) -> Iterator[QueryResult]:
    """The results of these queries, read again; one that errored found nothing in any way."""
    database, run = stored
    scores = {query_id: score for query_id in query_ids if (score := card.score(query_id))}
    wanted = [query_id for query_id, score in scores.items() if not score.facts.errored]
    if len(wanted) * _FEW < len(card.query_ids()):
        found = (database.result(run.run_id, query_id) for query_id in wanted)
    else:
        known = {*wanted}
        found = (result for result in database.results(run.run_id, ids) if result.query_id in known)
    return (result for result in found if isinstance(result, QueryResult))
