"""What the report says of sides with several runs: how much their checks flip, and each run's aggregate."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pytest_kebab_eval.comparing.checks import LOSS
from pytest_kebab_eval.comparing.decide import Decision, Decisions
from pytest_kebab_eval.comparing.deltas import Totals
from pytest_kebab_eval.comparing.rates import (
    CheckRates,
    QueryRates,
    ReplicateReport,
    RunAggregate,
    ShownRuns,
    check_rates,
    spread_of,
)
from pytest_kebab_eval.comparing.sides import Sides
from pytest_kebab_eval.scoring.aggregates import aggregate, exact_values


def shown_runs(decisions: Iterable[Decision]) -> ShownRuns:
    """The runs that are shown of queries, where these are not the first, in the order of their ids."""
    shown = [
        (query_id, decision.shown)
        for decision in decisions
        if any(decision.shown)
        for query_id in decision.group.query_ids
    ]
    return dict(sorted(shown))


def all_rates(decisions: Iterable[Decision]) -> tuple[QueryRates, ...]:
    """The rates of what flips or differs, in the order of the queries' ids."""
    found = [
        msgspec.structs.replace(rates, query_id=query_id)
        for decision in decisions
        for query_id in decision.group.query_ids
        for rates in decision.rates
    ]
    return tuple(sorted(found, key=lambda rates: rates.query_id))


def replicate_report(sides: Sides, decided: Decisions, alpha: float) -> ReplicateReport | msgspec.UnsetType:
    """What is known by there being several runs; nothing where there are not."""
    if not sides.has_several:
        return msgspec.UNSET
    a, b = sides.a.cards if sides.a else (), sides.b.cards
    return ReplicateReport(
        runs_a=tuple(card.run.run_id for card in a),
        runs_b=tuple(card.run.run_id for card in b),
        alpha=alpha,
        checks=tuple(_check_rates(decided)),
        spread_a=spread_of([*map(exact_values, a)]),
        spread_b=spread_of([*map(exact_values, b)]),
        shown=shown_runs(decided.of_groups),
    )


def _check_rates(decided: Decisions) -> Iterable[CheckRates]:
    """How much each check flips that any query passes."""
    from pytest_kebab_eval.comparing.noise.control import CheckNoise

    for check, tallies in decided.counted.items():
        if check is not LOSS and any(tally.a or tally.b for tally in tallies):
            yield check_rates(check, CheckNoise(tallies))


def run_aggregates(sides: Sides, totals: Totals) -> tuple[RunAggregate, ...]:
    """The aggregate of every run; that of a side's only run is the side's."""
    of_sides = {"a": totals.aggregate_a, "b": totals.aggregate_b}
    return tuple(
        RunAggregate(
            side.letter,
            card.run.run_id,
            (of_sides[side.letter] if len(side.cards) == 1 else None) or aggregate(card),
        )
        for side in sides.present
        for card in side.cards
    )
