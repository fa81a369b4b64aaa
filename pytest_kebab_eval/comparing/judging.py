"""Runs of each side, query by query -> which drops are more than noise, what is said and shown of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.noise import (
    CheckNoise,
    Noise,
    RankNoise,
    Tallies,
    Tally,
    control,
    rank_tally,
)
from pytest_kebab_eval.comparing.outcomes import PARTS, RANK, Part
from pytest_kebab_eval.comparing.queries import rank_within
from pytest_kebab_eval.comparing.rates import CheckRates, QueryRates
from pytest_kebab_eval.model import ComparisonKind
from pytest_kebab_eval.scoring.aggregates import rounded
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard

Scores = tuple[QueryScore | None, ...]  # of a query in the runs of one side


class NoiseRules(NamedTuple):
    """What a query fails on, how deep is looked for a correct hit, and how often noise may fail a session."""

    fail_on: frozenset[str]
    compare_k: int
    alpha: float


class Judged(NamedTuple):
    """What is said of the queries of a group."""

    kind: ComparisonKind | None  # None: a side has no result, and the comparison of the two says what that is
    checks: tuple[str, ...]  # those that B lost
    rates: tuple[QueryRates, ...]  # without the id of a query
    shown: tuple[int, int]
    is_missed: bool
    is_steady: bool  # runs of one side agree, and B is not worse

    def lost(self, fail_on: frozenset[str]) -> str:
        """What B lost, and how often noise alone would do that."""
        lost = [rates for rates in self.rates if rates.lost and rates.check in fail_on]
        noise = max((rates.noise or 0.0 for rates in lost), default=0.0)
        said = f"noise alone would do this in at most {_percent(noise)} of sessions"
        steady = "runs of one side never disagree"
        return "; ".join([*(rates.rates for rates in lost), said if noise else steady]) if lost else ""

    @property
    def note(self) -> str:
        """The rates of what flips or differs."""
        return "; ".join(rates.rates for rates in self.rates)


def _percent(share: float) -> str:
    return f"{math.ceil(share * 1000) / 10:g} %"


class Group(NamedTuple):
    """Queries that did alike in every run."""

    a: Scores
    b: Scores
    query_ids: list[str]


def group_queries(a: Sequence[Scorecard], b: Sequence[Scorecard], query_ids: Iterable[str]) -> list[Group]:
    """The queries that any run has, grouped by how they did in every run."""
    groups: dict[tuple[Scores, Scores], list[str]] = {}
    for query_id in query_ids:
        key = tuple(card.score(query_id) for card in a), tuple(card.score(query_id) for card in b)
        groups.setdefault(key, []).append(query_id)
    return [Group(*key, found) for key, found in groups.items() if any(map(any, key))]


class Judging:
    """Decides over all groups together, then says it of each."""

    def __init__(self, groups: Sequence[Group], rules: NoiseRules) -> None:
        self._groups = groups
        self._rules = rules
        self._tallies = [dict(_tallies(group, rules.compare_k)) for group in groups]
        checks = {part: CheckNoise(self._counted(part)) for part in PARTS}
        self._checks = {part: noise for part, noise in checks.items() if noise.queries}
        noises: dict[Part, Noise] = {**self._checks, RANK: RankNoise(self._counted(RANK))}
        failing = {part: noise for part, noise in noises.items() if part.check in rules.fail_on}
        others = {part: noise for part, noise in noises.items() if part not in failing}
        self._limits = control(failing) | control(others)
        self._gains = control(
            {
                PARTS[0]: CheckNoise(self._counted(PARTS[0], gains=True)),
                RANK: RankNoise(self._counted(RANK, gains=True)),
            }
        )

    def _counted(self, part: Part, *, gains: bool = False) -> Tallies:
        """How many queries have each tally of a part."""
        counts: Tallies = Counter()
        for group, tallies in zip(self._groups, self._tallies, strict=True):
            if part in tallies:
                tally = tallies[part]
                counts[tally.reversed() if gains else tally] += len(group.query_ids)
        return counts

    def check_rates(self) -> tuple[CheckRates, ...]:
        """How much each check flips that any query passes."""
        return tuple(
            check_rates(part, noise)
            for part, noise in self._checks.items()
            if any(tally.a or tally.b for tally in noise.tallies)
        )

    def judge_all(self) -> Iterator[tuple[Group, Judged]]:
        """Each group with what is said of its queries."""
        for group, tallies in zip(self._groups, self._tallies, strict=True):
            yield group, self._judge(group, tallies)

    def _judge(self, group: Group, tallies: Mapping[Part, Tally]) -> Judged:
        k = self._rules.compare_k
        lost = [part for part, tally in tallies.items() if self._is_sure(self._limits, part, tally)]
        ranks = [rank_within(score, k) for score in (*group.a, *group.b) if score]
        return Judged(
            kind=self._kind(lost, tallies) if any(group.a) and any(group.b) else None,
            checks=tuple(dict.fromkeys(part.check for part in lost if part is not RANK)),
            rates=tuple(
                self._rates(part, tally, part in lost)
                for part, tally in tallies.items()
                if _is_told(part, tally)
            ),
            shown=(_shown(group.a, lost, k, passes=True), _shown(group.b, lost, k, passes=False)),
            is_missed=not any(ranks),
            is_steady=not any(tally.flips or tally.drop > 0 for tally in tallies.values()),
        )

    def _is_sure(self, limits: Mapping[Part, Mapping[Tally, float]], part: Part, tally: Tally) -> bool:
        return limits.get(part, {}).get(tally, math.inf) <= self._rules.alpha

    def _kind(self, lost: Sequence[Part], tallies: Mapping[Part, Tally]) -> ComparisonKind:
        if PARTS[0] in lost:
            return ComparisonKind.REGRESSION
        gained = [part for part in (PARTS[0], RANK) if part in tallies]
        if any(self._is_sure(self._gains, part, tallies[part].reversed()) for part in gained):
            return ComparisonKind.WIN
        return ComparisonKind.LOSS if RANK in lost else ComparisonKind.DRAW

    def _rates(self, part: Part, tally: Tally, lost: bool) -> QueryRates:
        noise = self._limits[part].get(tally)
        flaky = 0 < tally.a < tally.n_a
        return QueryRates(
            "", part.check, part.words, *tally[:4], flaky, lost, None if noise is None else round(noise, 6)
        )


def _is_told(part: Part, tally: Tally) -> bool:
    return tally.drop > 0 if part is RANK else tally.flips or tally.drop != 0


def _tallies(group: Group, k: int) -> Iterator[tuple[Part, Tally]]:
    """How often the queries of a group pass each check that applies on both sides."""
    for part in PARTS:
        a, b = (_outcomes(part, scores, k) for scores in (group.a, group.b))
        if a and b:
            yield part, Tally(sum(a), len(a), sum(b), len(b))
    a_ranks, b_ranks = (_ranks(scores, k) for scores in (group.a, group.b))
    if a_ranks and b_ranks:
        yield RANK, rank_tally(a_ranks, b_ranks)


def _outcomes(part: Part, scores: Scores, k: int) -> list[bool]:
    found = (part.outcome(score, k) for score in scores if score is not None)
    return [outcome for outcome in found if outcome is not None]


def _ranks(scores: Scores, k: int) -> list[int]:
    """The ranks in the runs of one side; none if some run did not find it, which is no matter of rank."""
    ranks = [rank_within(score, k) for score in scores if score is not None]
    return [rank for rank in ranks if rank is not None] if None not in ranks else []


def _shown(scores: Scores, lost: Sequence[Part], k: int, *, passes: bool) -> int:
    """The run that is shown: it passes, or fails, what was lost, and its rank is the middle one of those."""
    there = [number for number, score in enumerate(scores) if score is not None]
    if not there:
        return 0

    def fitting(number: int) -> int:
        score = scores[number]
        return sum(part.outcome(score, k) is passes for part in lost) if score else 0

    best = max(map(fitting, there))
    orders = {number: _order(scores[number], k) for number in there if fitting(number) == best}
    middle = sorted(orders.values())[(len(orders) - 1) // 2]
    return next(number for number, order in orders.items() if order == middle)


def _order(score: QueryScore | None, k: int) -> tuple[bool, float]:
    """Runs that errored come last, then those that found nothing."""
    rank = rank_within(score, k)
    return bool(score and score.facts.errored), math.inf if rank is None else rank


def check_rates(part: Part, noise: CheckNoise) -> CheckRates:
    """How much a check flips."""
    flaky = sum(count for tally, count in noise.tallies.items() if 0 < tally.a < tally.n_a)
    disagreement, fitted = noise.disagreement(), noise.fitted()
    return CheckRates(
        part.check,
        part.words,
        noise.queries,
        flaky,
        None if disagreement is None else rounded(disagreement),
        *((rounded(fitted.alpha), rounded(fitted.beta)) if fitted else ()),
    )
