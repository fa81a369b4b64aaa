"""Runs of one configuration -> how large a drop must be to be seen, and what number of runs would show it.

A drop is what a real loss looks like: a share of the queries that pass does not pass any more, in no run. It
is planted into simulated sessions, in which queries have rates as the runs suggest, and `noise.control`
decides as it does in a comparison. The seed is fixed, so that the same runs give the same answer.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import CHECKS, RETRIEVAL, Check, Tallies, Tally
from pytest_kebab_eval.comparing.noise.control import CheckNoise
from pytest_kebab_eval.comparing.noise.together import Pattern, Patterns, find_limits
from pytest_kebab_eval.comparing.replicates import CheckRates, check_rates, deviation
from pytest_kebab_eval.comparing.significance import LEAST_GRADED, Z_80, Z, t_quantile
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.aggregates import exact_values, rounded
from pytest_kebab_eval.scoring.scorecard import Scorecard

POWER = 0.8  # the share of a drop, or of sessions, that is to be found
_RUNS = (2, 3, 4, 5, 6, 8, 10, 15, 20)
_QUERIES = (25, 50, 100, 200, 500, 1_000, 2_000)
_SESSIONS = 40
_FIRST = 5  # after so many, those are left that find less than half of what they should
_SEED = 20_240_229
_ROUNDING = 1e-6


class CheckPower(Value, frozen=True):
    """A check's noise, and what would show a drop; None: nothing that was tried would."""

    noise: CheckRates
    runs: int | None  # a side, with as many queries
    queries: int | None  # with as many runs a side


class MetricPower(Value, frozen=True):
    """A metric's noise, and what would show a drop of it; None: no number would."""

    metric: str
    mean: float
    deviation: float  # between runs
    one_run: float  # a larger delta is more than noise, with one run a side
    these_runs: float  # the same with as many runs a side
    runs: int | None  # a side, with as many queries
    queries: int | None  # with as many runs a side


class Power(Value, frozen=True):
    """What replicates tell of noise, and of what can be seen in it."""

    runs: tuple[str, ...]
    queries: int
    drop: float
    alpha: float
    checks: tuple[CheckPower, ...]
    metrics: tuple[MetricPower, ...]


def find_power(
    cards: Sequence[Scorecard], query_ids: Sequence[str], drop: float, alpha: float, compare_k: int
) -> Power:
    """What runs of one configuration tell."""
    golden = [query_id for query_id in query_ids if any(query_id in card for card in cards)]
    tallies = {check: _side_tallies(check, cards, golden, compare_k) for check in CHECKS}
    noises = {check: CheckNoise(found) for check, found in tallies.items() if any(tally.a for tally in found)}
    return Power(
        tuple(card.run.run_id for card in cards),
        len(golden),
        drop,
        alpha,
        tuple(check_power(check, noises, len(cards), drop, alpha) for check in noises),
        tuple(_metric_powers(cards, golden, drop)),
    )


def _side_tallies(check: Check, cards: Sequence[Scorecard], query_ids: Sequence[str], k: int) -> Tallies:
    found: Tallies = Counter()
    for query_id in query_ids:
        scores = [score for card in cards if (score := card.score(query_id)) is not None]
        outcomes = [outcome for score in scores if (outcome := check.passes(score, k)) is not None]
        if outcomes:
            found[Tally(sum(outcomes), len(outcomes), 0, 0)] += 1
    return found


# -- checks --------------------------------------------------------------------------------------


def check_power(
    check: Check, noises: Mapping[Check, CheckNoise], runs: int, drop: float, alpha: float
) -> CheckPower:
    """What would show a drop of one check, beside those that flip, seen in so many runs."""
    noise = noises[check]
    population = Population(noise)
    others = sum(other.queries for name, other in noises.items() if name != check and not other.is_steady)

    def is_enough(runs: int, scale: float) -> bool:
        return is_found(population, Session(runs, scale, drop, alpha, round(scale * others)))

    return CheckPower(
        check_rates(check, noise),
        next((number for number in _RUNS if is_enough(number, 1.0)), None),
        next((number for number in _QUERIES if is_enough(runs, number / noise.queries)), None),
    )


class Population:
    """The rates of queries, as likely as what each was seen to do makes them under the fitted beta."""

    def __init__(self, noise: CheckNoise) -> None:
        self._tallies = sorted(noise.tallies.items())
        self._fitted = noise.fitted

    def most(self, scale: float) -> int:
        """No fewer than there are in `rates`."""
        return sum(round(scale * count) or 1 for _, count in self._tallies)

    def rates(self, scale: float, generator: random.Random) -> list[float]:
        """A rate for each query; there are `scale` times as many as were seen."""
        found: list[float] = []
        for tally, count in self._tallies:
            number = round(scale * count) or int(generator.random() < scale * count)
            if self._fitted is None:
                found += [tally.a / tally.n_a] * number
            else:
                alpha, beta = self._fitted.alpha + tally.a, self._fitted.beta + tally.n_a - tally.a
                found += [generator.betavariate(alpha, beta) for _ in range(number)]
        return found


class Session(NamedTuple):
    """A simulated comparison: runs a side, how many times as many queries, what share is lost, and alpha."""

    runs: int
    scale: float
    drop: float
    alpha: float
    others: int  # queries of other checks that could fail


def is_found(population: Population, session: Session) -> bool:
    """Whether so much of a drop fails, over simulated sessions; no more of them than it takes to know."""
    generator = random.Random(_SEED)  # noqa: S311 - must be reproducible, not secret
    most_planted = _lost(population.most(session.scale), session.drop)
    found = planted = 0
    for number in range(_SESSIONS):
        rates = population.rates(session.scale, generator)
        patterns, lost = simulate(rates, session.runs, session.drop, generator)
        found += _count_found(patterns, lost, session)
        planted += lost.total()
        if number == _FIRST and found < POWER / 2 * planted:
            return False
        to_come = (_SESSIONS - 1 - number) * most_planted
        enough = POWER * (planted + to_come)
        if not enough - to_come - _ROUNDING <= found <= enough + _ROUNDING:
            return found > enough
    return planted > 0 and found / planted >= POWER


def _count_found(patterns: Patterns, lost: Patterns, session: Session) -> int:
    """How many of the lost queries fail."""
    runs, of_a = session.runs, (1 << session.runs) - 1
    found = find_limits({RETRIEVAL: patterns}, {}, runs, runs, others=session.others, simulated=True)
    limits = found[RETRIEVAL].limits
    fails = {tally for tally, limit in limits.items() if limit.alpha <= session.alpha}
    return sum(count for pattern, count in lost.items() if pattern.tally(of_a) in fails)


def _lost(queries: int, drop: float) -> int:
    """How many queries a drop loses."""
    return math.ceil(drop * queries - 1e-9)


def simulate(
    rates: Sequence[float], runs: int, drop: float, generator: random.Random
) -> tuple[Patterns, Patterns]:
    """In which runs queries with these rates pass, a share of them lost in B; and the same of those."""
    number = _lost(len(rates), drop)
    passing = sorted(range(len(rates)), key=lambda index: (rates[index] < 0.5, generator.random()))
    lost_ones = {*passing[:number]}
    every, lost = Patterns(), Patterns()
    known = (1 << 2 * runs) - 1
    for index, rate in enumerate(rates):
        is_lost = index in lost_ones
        pattern = Pattern(_passes(rate, runs if is_lost else 2 * runs, generator), known)
        every[pattern] += 1
        if is_lost:
            lost[pattern] += 1
    return every, lost


def _passes(rate: float, runs: int, generator: random.Random) -> int:
    """A bit for each run that passes."""
    if rate in (0.0, 1.0):
        return ((1 << runs) - 1) * int(rate)
    draw = generator.random
    return sum((draw() < rate) << number for number in range(runs))


# -- metrics -------------------------------------------------------------------------------------


def _metric_powers(
    cards: Sequence[Scorecard], query_ids: Sequence[str], drop: float
) -> Iterator[MetricPower]:
    values = [*map(exact_values, cards)]
    for metric in cards[0].metrics:
        measured = [value for known in values if (value := known.get(metric.name)) is not None]
        if len(measured) > 1:
            variances = list(_variances(metric, cards, query_ids))
            yield _metric_power(metric, measured, variances, drop)


def _metric_power(
    metric: Metric, measured: Sequence[float], variances: Sequence[tuple[float, float]], drop: float
) -> MetricPower:
    queries, runs = len(variances), len(measured)
    within = math.fsum(variance for variance, _ in variances) / queries if queries else 0.0
    # What queries vary by each on its own, or what runs do, whichever is larger.
    spread = max(math.sqrt(within / queries) if queries else 0.0, deviation(measured))
    lost = [mean for _, mean in variances if mean > 0]
    size = (math.fsum(lost) / len(lost)) ** 2 if lost else 1.0  # the square of what a lost query loses
    noise = MetricNoise(within / size, (spread**2 - within / queries) / size if queries else 0.0)
    limit = spread * math.sqrt(2)
    mean = math.fsum(measured) / runs
    can_drop = queries and metric.family.max_value == 1 and mean >= drop and not metric.lower_is_better
    return MetricPower(
        metric.name,
        rounded(mean),
        rounded(spread),
        rounded(Z * limit),
        rounded(t_quantile(2 * runs - 2) * limit / math.sqrt(runs)),
        runs_needed(noise, queries, drop) if can_drop else None,
        queries_needed(noise, runs, drop) if can_drop else None,
    )


def _variances(
    metric: Metric, cards: Sequence[Scorecard], query_ids: Sequence[str]
) -> Iterator[tuple[float, float]]:
    """How much a query's value varies between runs, and its mean; not of what is no mean, or of times."""
    if not metric.family.is_mean or not metric.family.over.of_facts:
        return
    for query_id in query_ids:
        scores = [score for card in cards if (score := card.score(query_id)) is not None]
        known = [value for score in scores if (value := score.value(metric.name)) is not None]
        if len(known) > 1:
            yield deviation(known) ** 2, math.fsum(known) / len(known)


class MetricNoise(NamedTuple):
    """How a metric varies, in units of what a query loses that is lost entirely.

    The variance of a query's value between runs, and that of a run's value which all its queries share.
    """

    of_query: float
    shared: float


def is_shown(noise: MetricNoise, queries: int, runs: int, drop: float) -> bool:
    """Whether 80 % of sessions show it (p < 0.05) if a share of the queries is lost, by both tests.

    Over queries, the changes have the mean square drop + 2 of_query / runs, and there must be as many as
    p < 0.05 takes; over runs, it is Welch's test.
    """
    varies = 2 * noise.of_query / runs / queries
    seen = drop - Z * math.sqrt(drop / queries + varies) >= Z_80 * math.sqrt(varies)
    seen = seen and _lost(queries, drop) >= LEAST_GRADED
    if runs == 1 or not seen:
        return seen
    error = math.sqrt(varies + 2 * noise.shared / runs)
    return drop >= (t_quantile(2 * runs - 2) + Z_80) * error


def queries_needed(noise: MetricNoise, runs: int, drop: float) -> int | None:
    """How many queries show the loss of such a share of them, with so many runs; None: no number does."""
    least = next((2**power for power in range(21) if is_shown(noise, 2**power, runs, drop)), None)
    if least is None:
        return None
    return bisect_left(range(least), True, key=lambda queries: is_shown(noise, max(queries, 1), runs, drop))


def runs_needed(noise: MetricNoise, queries: int, drop: float) -> int | None:
    """How many runs a side show it with so many queries; two or more, and None if not even a hundred do."""
    return next((runs for runs in range(2, 101) if is_shown(noise, queries, runs, drop)), None)
