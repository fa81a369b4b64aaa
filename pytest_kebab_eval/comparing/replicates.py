"""Both sides with their runs, and what the report says where a side has several: how much they differ."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.checks import LOSS, Check
from pytest_kebab_eval.comparing.decide import Decision, QueryRates, SessionNoise, count_tallies
from pytest_kebab_eval.comparing.deltas import Totals
from pytest_kebab_eval.comparing.several_runs import Judged, Tally, disagreement
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Hit, QueryResult, Unreadable, Value
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics, aggregate, exact_values, rounded
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.text import printable

QUERIES_TOGETHER = 500  # whose results and passages are read by a few statements
ShownRuns = dict[str, tuple[int, int]]  # by query: the numbers of the runs of A and B that are shown


class ShownResults:
    """What the run that is shown of a query stored for it; those that will be asked for are read together."""

    def __init__(self, read: Callable[[Sequence[str]], Mapping[str, QueryResult | Unreadable]]) -> None:
        self._read = read
        self._coming: list[str] = []
        self._found: Mapping[str, QueryResult | Unreadable | None] = {}

    def will_ask(self, query_ids: Iterable[str]) -> None:
        """The queries that come next, in this order."""
        self._coming = [*query_ids]

    def __call__(self, query_id: str) -> QueryResult | Unreadable | None:
        if query_id not in self._found:
            first = self._coming.index(query_id) if query_id in self._coming else len(self._coming)
            some = self._coming[first : first + QUERIES_TOGETHER] or [query_id]
            del self._coming[: first + len(some)]
            self._found = {**dict.fromkeys(some), **self._read(some)}
        return self._found[query_id]


class Side(Value, frozen=True):
    """One run or several of the same configuration."""

    letter: str  # a | b
    cards: tuple[Scorecard, ...]  # of its runs
    card: Scorecard  # their mean
    stored: ShownResults
    passages: Passages

    @property
    def name(self) -> str:
        """The names of its runs, as a message has them."""
        return printable(self.card.run.run_id)

    def hits(self, query_id: str) -> Sequence[Hit]:
        """The hits of a query in the run that is shown; none where they cannot be read."""
        result = self.stored(query_id)
        return result.hits if isinstance(result, QueryResult) else ()


class Sides(NamedTuple):
    """Both sides; A is None where run B is judged alone."""

    a: Side | None
    b: Side

    @property
    def present(self) -> tuple[Side, ...]:
        return (self.a, self.b) if self.a else (self.b,)

    @property
    def means(self) -> tuple[Scorecard | None, Scorecard]:
        """The mean of the runs of each side."""
        return self.a.card if self.a else None, self.b.card

    @property
    def has_several(self) -> bool:
        return any(len(side.cards) > 1 for side in self.present)


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


def _check_rates(check: Check, tallies: Counter[Tally], judged: Judged | None) -> CheckRates:
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
    a, b = sides.a.cards if sides.a else (), sides.b.cards
    counted = count_tallies((decision.group, decision.tallies) for decision in decisions)
    return ReplicateReport(
        runs_a=tuple(card.run.run_id for card in a),
        runs_b=tuple(card.run.run_id for card in b),
        alpha=alpha,
        checks=tuple(
            _check_rates(check, tallies, noise.lost.get(check))
            for check, tallies in counted.items()
            if check is not LOSS and any(tally.a or tally.b for tally in tallies)
        ),
        spread_a=spread_of([*map(exact_values, a)]),
        spread_b=spread_of([*map(exact_values, b)]),
        shown=shown_runs(decisions),
        none_alone=tuple(
            dict.fromkeys(check.name for check, judged in noise.lost.items() if judged.alone > alpha)
        ),
    )


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
