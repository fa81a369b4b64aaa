"""What the report says where a side has several runs: how much they differ, and which is shown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pytest_kebab_eval.comparing.aggregates import AggregateMetrics, rounded
from pytest_kebab_eval.comparing.checks import LOSS, Check
from pytest_kebab_eval.comparing.decide import Decision, QueryRates, SessionNoise, count_tallies
from pytest_kebab_eval.comparing.samples import Side, Sides, exact
from pytest_kebab_eval.comparing.several_runs import JudgedCheck, Tally, disagreement
from pytest_kebab_eval.comparing.totals import Totals, aggregate_of_run
from pytest_kebab_eval.model import Value

ShownRuns = dict[str, tuple[int, int]]  # by query: the numbers of the runs of A and B that are shown


# -- what several runs tell -----------------------------------------------------------------------


class Spread(Value, frozen=True):
    """How a metric differs between runs of one side: standard deviation, least and greatest value."""

    deviation: float
    low: float
    high: float


class RunAggregate(Value, frozen=True):
    """The aggregate of one of several runs of a side."""

    side: str  # a | b
    run_id: str
    aggregate: AggregateMetrics


class CheckRates(Value, frozen=True):
    """How much a check flips, and what several runs tell of it."""

    check: str
    what: str
    queries: int
    flaky: int  # queries on which runs of A disagree
    disagreement: float | None  # how often two runs of one side disagree on a query; None: no side has two
    worse: int = 0  # queries, or targets
    better: int = 0
    all_queries: float = 1.0  # the alpha from which on the session fails by what all queries lost
    one_query: float = 0.0  # and that from which on a query would fail that alone is lost, in all runs of B


def _check_rates(check: Check, tallies: Counter[Tally], judged: JudgedCheck | None) -> CheckRates:
    share = disagreement(tallies)
    rates = CheckRates(
        check.name,
        check.words,
        tallies.total(),
        sum(n for tally, n in tallies.items() if 0 < tally.a < tally.n_a),
        None if share is None else rounded(share),
    )
    if judged is None:
        return rates
    return msgspec.structs.replace(
        rates,
        worse=judged.worse,
        better=judged.better,
        all_queries=round(judged.together, 6),
        one_query=round(judged.alone, 6),
    )


class ReplicateReport(Value, frozen=True):
    """The runs of each side, and what is known by there being several."""

    runs_a: tuple[str, ...]
    runs_b: tuple[str, ...]
    alpha: float
    checks: tuple[CheckRates, ...] = ()
    spread_a: dict[str, Spread] = msgspec.field(default_factory=dict)
    spread_b: dict[str, Spread] = msgspec.field(default_factory=dict)
    shown: ShownRuns = msgspec.field(default_factory=dict)  # only where these are not the first
    none_alone: tuple[str, ...] = ()  # the checks by which no single query can fail, so much do they flip


def unseen_flip(a: int, b: int) -> float:
    """In how many sessions, at most, one flaky query is lost and no run shows that it flips.

    It passes in all runs of A and in none of B, which is likeliest if its rate is A's share of the runs.
    """
    return math.pow(a / (a + b), a) * math.pow(b / (a + b), b)


def spread_of(values: Sequence[Mapping[str, float | None]]) -> dict[str, Spread]:
    """Of every metric that two runs or more have a value for; the values are exact, the spread is rounded."""
    found = {}
    for name in dict.fromkeys(name for known in values for name in known):
        measured = [value for known in values if (value := known.get(name)) is not None]
        if len(measured) > 1:
            found[name] = Spread(*map(rounded, (deviation(measured), min(measured), max(measured))))
    return found


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of two values or more."""
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


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


def replicate_report(
    sides: Sides, decisions: Sequence[Decision], noise: SessionNoise, alpha: float
) -> ReplicateReport | msgspec.UnsetType:
    """What is known by there being several runs; nothing where there are not."""
    if not sides.has_several:
        return msgspec.UNSET
    seen = sides.b.seen
    counted = count_tallies((decision.group, decision.tallies) for decision in decisions)
    return ReplicateReport(
        runs_a=tuple(run.run.run_id for run in seen.side("a")),
        runs_b=tuple(run.run.run_id for run in seen.side("b")),
        alpha=alpha,
        checks=tuple(
            _check_rates(check, tallies, noise.lost.get(check))
            for check, tallies in counted.items()
            if check is not LOSS and any(tally.a or tally.b for tally in tallies)
        ),
        spread_a=spread_of(_exact_values(sides.a)),
        spread_b=spread_of(_exact_values(sides.b)),
        shown=shown_runs(decisions),
        none_alone=tuple(
            dict.fromkeys(check.name for check, judged in noise.lost.items() if judged.alone > alpha)
        ),
    )


def _exact_values(side: Side | None) -> list[dict[str, float | None]]:
    """Every metric in each run of a side, by name and not rounded, to compute with."""
    parts = [sample.part() for sample in side.in_each_run()] if side else []
    return [{metric.name: part.reduce(metric, exact).value for metric in part.metrics} for part in parts]


def run_aggregates(sides: Sides, totals: Totals) -> tuple[RunAggregate, ...]:
    """The aggregate of every run; that of a side's only run is the side's."""
    seen, of_sides = sides.b.seen, {"a": totals.aggregate_a, "b": totals.aggregate_b}
    return tuple(
        RunAggregate(
            run.side,
            run.run.run_id,
            (of_sides[run.side] if len(seen.side(run.side)) == 1 else None) or aggregate_of_run(seen, number),
        )
        for number, run in enumerate(seen.runs)
    )
