"""Runs that are unlike: broken recordings among several, other lengths of hits, other depths.

A broken one would make every loss look like noise, and chunks that are cut finer or coarser move the metrics.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import fsum
from operator import attrgetter

from pytest_kebab_eval.comparing.gate_grammar import Gate
from pytest_kebab_eval.comparing.movement import movement_metric
from pytest_kebab_eval.comparing.replicates import Side, Sides
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.model import MatchMode, QueryResult
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard
from pytest_kebab_eval.spans import length
from pytest_kebab_eval.text import printable

FEW_QUERIES = 5  # fewer than this may all be missed by chance
_LEAST_BROKEN = 10  # queries: of fewer, half may flip by chance


def broken_runs(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """Sentences about runs that are not like the others of their side."""
    for side in sides.present:
        cards = side.cards
        for card in cards if len(cards) > 1 else ():
            scores = [score for score in card.scores_of(golden.by_id()) if score is not None]
            what = _broken(scores) or _breaks_half(
                golden, card, [other for other in cards if other is not card]
            )
            if what:
                yield (
                    f"in run {printable(card.run.run_id)}, one of {printable(side.card.run.run_id)},"
                    f" {what}; record it again, or leave it out"
                )


def _broken(scores: Sequence[QueryScore]) -> str:
    """What is wrong with a run in which nothing worked; empty if something did."""
    facts = [score.facts for score in scores]
    expecting = [score for score in scores if score.facts.targets.gains]
    if all(known.errored for known in facts):
        return f"every query errored ({len(facts)})" if facts else ""
    if not any(known.depth for known in facts):
        is_fine = not expecting and any(known.answered is not None for known in facts)
        return "" if is_fine else f"no query has a hit ({len(facts)})"
    is_missed = len(expecting) >= FEW_QUERIES and all(score.first is None for score in expecting)
    return f"no query found what it expects ({len(expecting)})" if is_missed else ""


def _breaks_half(golden: GoldenSet, card: Scorecard, others: Sequence[Scorecard]) -> str:
    """What a run alone did to at least half of its queries, that all others of its side did not."""
    compared = [
        (score, known)
        for score, *rest in zip(*(run.scores_of(golden.by_id()) for run in (card, *others)), strict=True)
        if score is not None and (known := [other for other in rest if other is not None])
    ]
    broken = {
        "errored": sum(
            score.facts.errored and not any(other.facts.errored for other in known)
            for score, known in compared
        ),
        "found nothing that they expect": sum(
            score.first is None and all(other.first for other in known) for score, known in compared
        ),
    }
    for what, count in broken.items():
        if count >= _LEAST_BROKEN and 2 * count >= len(compared):
            return f"{count} of {len(compared)} queries {what}, and in no other run of its side"
    return ""


# -- hits of other lengths -------------------------------------------------------------------------

MUCH_LONGER = 2.0  # times as long
_QUERIES_READ = 40  # of each run, again: whether one is twice as long needs no more
_HITS_READ = 5
_UNITS = {"text": "characters", "line": "lines", "byte": "bytes", "time": "ms", "page": "characters"}


def length_warnings(sides: Sides, mode: MatchMode) -> Iterator[str]:
    """What chunks of different lengths do to the numbers; chunks of one chunker are alike."""
    a, b = sides.a, sides.b
    if a is None or mode is MatchMode.EXACT:
        return
    shared = [query_id for query_id in a.card.query_ids() if query_id in b.card]
    ids = shared[:: max(1, len(shared) // _QUERIES_READ)]
    lengths_a, lengths_b = _lengths(a, ids), _lengths(b, ids)
    unit = next((unit for unit in _UNITS if unit in lengths_a and unit in lengths_b), None)
    if unit is None:
        return
    named = ((_mean(lengths_a[unit]), a), (_mean(lengths_b[unit]), b))
    (short, finer), (long, coarser) = sorted(named, key=lambda pair: pair[0])
    if long > MUCH_LONGER * short:
        yield (
            f"the hits of run {_name(coarser)} have {long:,.0f} {_UNITS[unit]} on average, those of run"
            f" {_name(finer)} {short:,.0f}: as many hits hold {long / short:.1f} times as much, which moves"
            " hit@k, mrr, recall@k, recall_all@k, precision@k_chunk, ndcg@k and map; compare them at cutoffs"
            " that hold as much"
        )


def _lengths(side: Side, query_ids: Iterable[str]) -> Mapping[str, Sequence[float]]:
    """How long hits are, by what that is counted in."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    side.stored.will_ask(query_ids)
    for query_id in query_ids:
        result = side.stored(query_id)
        for hit in result.hits[:_HITS_READ] if isinstance(result, QueryResult) else ():
            text, extents = side.passages.text(hit), side.passages.extents(hit)
            if text:
                found["text"].append(len(text))
            if extents and (known := length(extents)):
                found[extents[0].axis].append(known)
    return found


def _mean(lengths: Sequence[float]) -> float:
    return fsum(lengths) / len(lengths)


def _name(side: Side) -> str:
    return printable(side.cards[0].run.run_id)


# -- runs that were stored to other depths ---------------------------------------------------------

_MUCH_DEEPER = 2  # times as deep; what is less may be the retriever's, which returns what it finds


def depth_warnings(sides: Sides, gates: Iterable[Gate]) -> Iterator[str]:
    """What the depth to which the runs were stored does to the numbers."""
    cards = sorted(
        (card for side in sides.present for card in side.cards if card.depth), key=attrgetter("depth")
    )
    if not cards:
        return
    shallow, deep = cards[0], cards[-1]
    depth, name = shallow.depth, printable(shallow.run.run_id)
    is_much_deeper = deep.depth >= max(CUTOFFS) and deep.depth >= _MUCH_DEEPER * depth
    if is_much_deeper or any(_finds_below(card, depth) for card in cards):
        deepest = printable(deep.run.run_id)
        yield (
            f"run {deepest} holds up to {deep.depth} hits a query, run {name} up to {depth}: the change"
            f" of map is over the top {depth} of both, and a cutoff beyond {depth} compares unlike lists;"
            " store as many hits in both"
        )
    cutoffs = {gate.text: _cutoff(gate.metric) for gate in gates}
    for text, cutoff in cutoffs.items():
        if cutoff > depth:
            yield (
                f"the gate '{text}' looks at the top {cutoff}, and run {name} holds at most {depth} hits a"
                f" query, by which it is judged; store more hits, or gate on a cutoff up to {depth}"
            )
    beyond = sorted(cutoff for cutoff in _asked_for(cards) - {*cutoffs.values()} if cutoff > depth)
    if beyond:
        yield (
            f"run {name} holds at most {depth} hits a query, so that metrics at"
            f" {', '.join(f'@{cutoff}' for cutoff in beyond)} look at no more; store more hits, or leave"
            " that cutoff out"
        )


def _finds_below(card: Scorecard, depth: int) -> bool:
    """Whether anything expected is found beyond that depth."""
    facts = (score.facts for score in {*card.scores_in_order()} if score.facts.depth > depth)
    return any((rank or 0) > depth for known in facts for rank in (*known.ranking.found, *known.doc_ranks))


def _cutoff(metric: str) -> int:
    """How deep a metric looks; 0 if it has no cutoff of its own."""
    for find in (Metric.parse, movement_metric):
        with suppress(KeyError):
            return find(metric).cutoff or 0
    return 0


def _asked_for(cards: Iterable[Scorecard]) -> set[int]:
    """The cutoffs that somebody asked for, by a setting or a golden query's `k`."""
    asked = {metric.cutoff for card in cards for metric in card.metrics if metric.cutoff is not None}
    own = {score.facts.cutoff for card in cards for score in {*card.scores_in_order()}}
    return (asked - {*CUTOFFS}) | {cutoff for cutoff in own if cutoff > max(CUTOFFS)}
