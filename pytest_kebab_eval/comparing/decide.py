"""Decides what was lost: from how often the runs of each side pass each check, for all queries together.

One run a side is a list of one. Where runs of one side never disagree, what passed in A and fails in B is
lost; where they do, a drop is lost if it is more than noise (`noise.control`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import (
    CHECKS,
    LOSS,
    RETRIEVAL,
    Check,
    Tallies,
    Tally,
    rank_tally,
    rank_within,
)
from pytest_kebab_eval.model import ComparisonKind, Value
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard

Scores = tuple[QueryScore | None, ...]  # of a query, in the runs of one side
Limits = Mapping[Check, Mapping[Tally, float]]  # the smallest alpha at which a drop is more than noise


class Rules(NamedTuple):
    """What a query fails on, how deep is looked for a correct hit, and how often noise may fail a session."""

    fail_on: frozenset[str]
    compare_k: int
    alpha: float


class Group(NamedTuple):
    """Queries that did alike in every run; a score is None where a run has no result for them."""

    a: Scores
    b: Scores
    query_ids: list[str]


def group_queries(a: Sequence[Scorecard], b: Sequence[Scorecard], query_ids: Iterable[str]) -> list[Group]:
    """The queries grouped by how they did in every run; those that no run has are left out."""
    ids = [*query_ids]
    groups: dict[Scores, list[str]] = {}
    for query_id, scores in zip(
        ids, zip(*(card.scores_of(ids) for card in (*a, *b)), strict=True), strict=True
    ):
        if scores in groups:
            groups[scores].append(query_id)
        else:
            groups[scores] = [query_id]
    groups.pop((None,) * (len(a) + len(b)), None)
    return [Group(scores[: len(a)], scores[len(a) :], found) for scores, found in groups.items()]


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


def lost_rates(rates: Iterable[QueryRates], fail_on: frozenset[str]) -> str:
    """What B lost and must not lose, and how often noise alone would do that; empty if it lost nothing."""
    lost = [known for known in rates if known.lost and known.check in fail_on]
    if not lost:
        return ""
    noise = max(known.noise or 0.0 for known in lost)
    percent = f"{math.ceil(noise * 1000) / 10:g} %"
    said = f"noise alone would do this in at most {percent} of sessions"
    return "; ".join([*(known.rates for known in lost), said if noise else "runs of one side never disagree"])


class Decision(NamedTuple):
    """What became of the queries of a group."""

    group: Group
    kind: ComparisonKind | None  # None: run B is judged alone
    tallies: Mapping[Check, Tally]
    lost: tuple[Check, ...]
    shown: tuple[int, int]  # the numbers of the runs of A and B that are shown
    rates: tuple[QueryRates, ...] = ()  # of what flips or differs, where a side has several runs

    @property
    def a(self) -> QueryScore | None:
        """How the queries did in the run of A that is shown."""
        return self.group.a[self.shown[0]] if self.group.a else None

    @property
    def b(self) -> QueryScore | None:
        """How the queries did in the run of B that is shown."""
        return self.group.b[self.shown[1]]

    @property
    def may_be_noise(self) -> bool:
        """Whether runs of one side disagree, or B did worse by no more than noise."""
        tallies = self.tallies.items()
        return any(tally.flips or (tally.drop > 0 and check not in self.lost) for check, tally in tallies)


def decide(groups: Sequence[Group], rules: Rules, *, alone: bool = False) -> list[Decision]:
    """Decide over all groups together, then for each; alone: there is no run A."""
    counter = _Counter(rules.compare_k)
    tallies = [counter.tallies(group) for group in groups]
    counted = count_tallies(zip(groups, tallies, strict=True))
    failing = {check for check in counted if check.name in rules.fail_on}
    limits = {
        **_limits({check: found for check, found in counted.items() if check in failing}),
        **_limits({check: found for check, found in counted.items() if check not in failing}),
    }
    gained = _limits(
        {
            check: Counter({tally.reversed(): count for tally, count in counted[check].items()})
            for check in (RETRIEVAL, LOSS)
            if check in counted
        }
    )
    several = any(len(group.a) > 1 or len(group.b) > 1 for group in groups[:1])
    decider = _Decider(rules, limits, gained, alone=alone, several=several)
    return [*map(decider.decide, groups, tallies)]


class _Counter:
    """Counts how often groups pass each check; what is the same for many groups is found once."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._outcomes: dict[QueryScore, tuple[bool | None, ...]] = {}
        self._tallies: dict[tuple[object, object], dict[Check, Tally]] = {}

    def tallies(self, group: Group) -> Mapping[Check, Tally]:
        """How often the queries of a group pass each check that applies on both sides."""
        key = self._outcomes_of(group.a), self._outcomes_of(group.b)
        tallies = self._tallies.get(key)
        if tallies is None:
            tallies = self._tallies[key] = dict(_tallies(*key))
        a, b = self._ranks(group.a), self._ranks(group.b)
        return {**tallies, LOSS: rank_tally(a, b)} if a and b else tallies

    def _ranks(self, scores: Scores) -> list[int]:
        """The ranks in the runs of one side; none if some run did not find it, which is no matter of rank."""
        ranks = [rank_within(score, self._k) for score in scores if score is not None]
        return [] if None in ranks else [rank for rank in ranks if rank is not None]

    def _outcomes_of(self, scores: Scores) -> tuple[tuple[bool | None, ...], ...]:
        return tuple([self._outcomes.get(score) or self._new(score) for score in scores if score is not None])

    def _new(self, score: QueryScore) -> tuple[bool | None, ...]:
        found = self._outcomes[score] = tuple([check.passes(score, self._k) for check in CHECKS])
        return found


def _tallies(
    a: Sequence[Sequence[bool | None]], b: Sequence[Sequence[bool | None]]
) -> Iterable[tuple[Check, Tally]]:
    for number, check in enumerate(CHECKS):
        in_a, in_b = (
            [outcomes[number] for outcomes in runs if outcomes[number] is not None] for runs in (a, b)
        )
        if in_a and in_b:
            yield check, Tally(in_a.count(True), len(in_a), in_b.count(True), len(in_b))


def count_tallies(groups: Iterable[tuple[Group, Mapping[Check, Tally]]]) -> dict[Check, Tallies]:
    """How many queries have each tally of each check."""
    counted: dict[Check, Tallies] = {check: Counter() for check in (*CHECKS, LOSS)}
    for group, of_group in groups:
        for check, tally in of_group.items():
            counted[check][tally] += len(group.query_ids)
    return {check: found for check, found in counted.items() if found}


def _limits(counted: Mapping[Check, Tallies]) -> Limits:
    """Where nothing flips there is no noise, and every drop is more than that."""
    if any(tally.flips for tallies in counted.values() for tally in tallies):
        from pytest_kebab_eval.comparing.noise.control import CheckNoise, RankNoise, control

        return control(
            {check: (RankNoise if check is LOSS else CheckNoise)(found) for check, found in counted.items()}
        )
    return {check: {tally: 0.0 for tally in tallies if tally.drop > 0} for check, tallies in counted.items()}


class _Decider:
    """Decides for one group at a time, given the limits that hold for all."""

    def __init__(self, rules: Rules, limits: Limits, gained: Limits, *, alone: bool, several: bool) -> None:
        self._k, self._alpha = rules.compare_k, rules.alpha
        self._limits, self._gained = limits, gained
        self._alone = alone
        self._several = several

    def decide(self, group: Group, tallies: Mapping[Check, Tally]) -> Decision:
        lost = tuple(check for check in tallies if self._is_sure(self._limits, check, tallies[check]))
        shown = (
            _shown(group.a, lost, self._k, passes=True),
            _shown(group.b, lost, self._k, passes=False),
        )
        a, b = group.a[shown[0]] if group.a else None, group.b[shown[1]]
        if not any(group.a):
            lost = tuple(
                check for check in CHECKS if b and not check.needs_a and check.passes(b, self._k) is False
            )
            return Decision(group, None if self._alone else ComparisonKind.NEW, tallies, lost, shown)
        if not any(group.b):
            found = rank_within(a, self._k) is not None
            kind = ComparisonKind.REGRESSION if found else ComparisonKind.DRAW
            return Decision(group, kind, tallies, (RETRIEVAL,) if found else (), shown)
        return Decision(
            group, self._kind(lost, tallies), tallies, lost, shown, tuple(self._rates(lost, tallies))
        )

    def _rates(self, lost: Sequence[Check], tallies: Mapping[Check, Tally]) -> Iterator[QueryRates]:
        """The rates of what flips or differs, without the id of a query."""
        for check, tally in tallies.items() if self._several else ():
            if tally.drop > 0 or (check is not LOSS and (tally.flips or tally.drop)):
                limit = self._limits[check].get(tally)
                noise = None if limit is None else round(limit, 6)
                flaky = 0 < tally.a < tally.n_a
                yield QueryRates("", check.name, check.words, *tally[:4], flaky, check in lost, noise)

    def _is_sure(self, limits: Limits, check: Check, tally: Tally) -> bool:
        return limits.get(check, {}).get(tally, math.inf) <= self._alpha

    def _kind(self, lost: Sequence[Check], tallies: Mapping[Check, Tally]) -> ComparisonKind:
        if RETRIEVAL in lost:
            return ComparisonKind.REGRESSION
        gains = [check for check in (RETRIEVAL, LOSS) if check in tallies]
        if any(self._is_sure(self._gained, check, tallies[check].reversed()) for check in gains):
            return ComparisonKind.WIN
        return ComparisonKind.LOSS if LOSS in lost else ComparisonKind.DRAW


def _shown(scores: Scores, lost: Sequence[Check], k: int, *, passes: bool) -> int:
    """The run that shows the loss: it passes in A and fails in B; of several, that with the middle rank."""
    there = [number for number, score in enumerate(scores) if score is not None]
    if len(there) < 2:
        return there[0] if there else 0

    def fitting(number: int) -> int:
        score = scores[number]
        return sum(check.passes(score, k) is passes for check in lost) if score else 0

    best = max(map(fitting, there))
    orders = {number: _order(scores[number], k) for number in there if fitting(number) == best}
    middle = sorted(orders.values())[(len(orders) - 1) // 2]
    return next(number for number, order in orders.items() if order == middle)


def _order(score: QueryScore | None, k: int) -> tuple[bool, float]:
    """Runs that errored come last, before them those that found nothing."""
    rank = rank_within(score, k)
    return bool(score and score.facts.errored), math.inf if rank is None else rank
