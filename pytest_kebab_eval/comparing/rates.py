"""What `report.json` says of replicates: the runs, how much their checks flip, and each query's rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from pytest_kebab_eval.comparing.checks import Check, Tally
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics, rounded

if TYPE_CHECKING:
    from pytest_kebab_eval.comparing.noise.control import CheckNoise

ShownRuns = dict[str, tuple[int, int]]  # by query: the numbers of the runs of A and B that are shown


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
    """How much a check flips: `disagreement` is how often two runs of one side disagree on a query."""

    check: str
    what: str
    queries: int
    flaky: int  # queries on which runs of A disagree
    disagreement: float | None  # None: no side has two runs
    alpha: float | None = None  # the parameters of the beta that fits the rates; None: nothing flips
    beta: float | None = None


def check_rates(check: Check, noise: CheckNoise) -> CheckRates:
    """How much a check flips."""
    flaky = sum(count for tally, count in noise.tallies.items() if 0 < tally.a < tally.n_a)
    disagreement, fitted = noise.disagreement(), noise.fitted()
    return CheckRates(
        check.name,
        check.words,
        noise.queries,
        flaky,
        None if disagreement is None else rounded(disagreement),
        *((rounded(fitted.alpha), rounded(fitted.beta)) if fitted else ()),
    )


class QueryRates(Value, frozen=True):
    """How often a query passed a check on each side; only of what flips or differs."""

    query_id: str
    check: str
    what: str
    a: int
    runs_a: int
    b: int
    runs_b: int
    flaky: bool  # runs of A disagree
    lost: bool  # worse than noise explains
    noise: float | None  # in how many sessions noise alone would do this, at most; None: not worse

    @property
    def rates(self) -> str:
        """`found in 5 of 5 runs of A, 1 of 5 of B`."""
        return f"{self.what} in {self.a} of {self.runs_a} runs of A, {self.b} of {self.runs_b} of B"


def query_rates(check: Check, tally: Tally, noise: float | None, *, lost: bool) -> QueryRates:
    """The rates of queries that have this tally, without the id of one."""
    flaky = 0 < tally.a < tally.n_a
    noise = None if noise is None else round(noise, 6)
    return QueryRates("", check.name, check.words, *tally[:4], flaky, lost, noise)


def lost_rates(rates: Iterable[QueryRates], fail_on: frozenset[str]) -> str:
    """What B lost and must not lose, and how often noise alone would do that; empty if it lost nothing."""
    lost = [known for known in rates if known.lost and known.check in fail_on]
    if not lost:
        return ""
    noise = max(known.noise or 0.0 for known in lost)
    percent = f"{math.ceil(noise * 1000) / 10:g} %"
    said = f"noise alone would do this in at most {percent} of sessions"
    return "; ".join([*(known.rates for known in lost), said if noise else "runs of one side never disagree"])


class ReplicateReport(Value, frozen=True):
    """The runs of each side, and what is known by there being several."""

    runs_a: tuple[str, ...]
    runs_b: tuple[str, ...]
    alpha: float
    checks: tuple[CheckRates, ...] = ()
    spread_a: dict[str, Spread] = msgspec.field(default_factory=dict)
    spread_b: dict[str, Spread] = msgspec.field(default_factory=dict)
    shown: ShownRuns = msgspec.field(default_factory=dict)  # only where these are not the first

    def unseen_flip(self) -> float:
        """In how many sessions, at most, one flaky query is lost and no run shows that it flips.

        It passes in all runs of A and in none of B, which is likeliest if its rate is A's share of the runs.
        """
        a, b = len(self.runs_a), len(self.runs_b)
        return math.pow(a / (a + b), a) * math.pow(b / (a + b), b)


def spread_of(values: Sequence[Mapping[str, float | None]]) -> dict[str, Spread]:
    """Of every metric that two runs or more have a value for; the values are exact, the spread is rounded."""
    found = {}
    for name in dict.fromkeys(name for known in values for name in known):
        measured = [value for known in values if (value := known.get(name)) is not None]
        if len(measured) > 1:
            found[name] = Spread(*map(rounded, (deviation(measured), min(measured), max(measured))))
    return found


def deviation(values: Iterable[float]) -> float:
    """The standard deviation of two values or more."""
    known = [*values]
    mean = math.fsum(known) / len(known)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (len(known) - 1))
