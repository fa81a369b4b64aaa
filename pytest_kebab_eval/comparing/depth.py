"""Warnings of runs that were stored to different depths, and of cutoffs beyond what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from operator import attrgetter

from pytest_kebab_eval.comparing.gate_grammar import Gate
from pytest_kebab_eval.comparing.movement import movement_metric
from pytest_kebab_eval.comparing.replicates import Sides
from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.text import printable

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
    if _is_much_deeper(deep, depth) or any(_finds_below(card, depth) for card in cards):
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


def _is_much_deeper(card: Scorecard, depth: int) -> bool:
    return card.depth >= max(CUTOFFS) and card.depth >= _MUCH_DEEPER * depth


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
