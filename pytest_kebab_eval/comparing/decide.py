"""Decides what was lost: from how often the runs of each side pass each check, for all queries together.

One run a side is a list of one. Where runs of one side never disagree, what passed in A and fails in B is
lost; where they do, a drop is lost if it is more than noise (`several_runs`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pytest_kebab_eval.comparing.asked import OTHER, REWORDED
from pytest_kebab_eval.comparing.checks import (
    ABSENT,
    ALL_CHECKS,
    CHECKS,
    CHECKS_OF_B,
    COVERAGE,
    LOSS,
    OTHER_QUESTION,
    RETRIEVAL,
    TEXT,
    Check,
    rank_tally,
    rank_within,
    targets_found,
)
from pytest_kebab_eval.comparing.one_pass import Group
from pytest_kebab_eval.comparing.several_runs import JudgedCheck, Loss, Outcomes, Tally, judge, reversed_rows
from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import ComparisonKind, Value

CERTAIN = Loss(0.0)
_LEAST_NOISE = 1e-6  # what is less is shown as
InRuns = tuple[Facts | None, ...]  # a query in the runs of one side
AllOutcomes = tuple[tuple[bool | None, ...], ...]  # of every check, in the runs of one side
_WITHOUT_RESULT = tuple(False if check is ABSENT else None for check in CHECKS)


class Rules(Value, frozen=True):
    """What a query fails on, how deep is looked for a correct hit, and how often noise may fail a session."""

    fail_on: frozenset[str]
    compare_k: int
    alpha: float
    accepted: frozenset[str]  # queries whose loss is expected: no evidence of another's
    loss_over: int  # a worse rank fails only if it is worse by more than this
    require_all: bool  # of queries whose golden entry does not say
    compares_texts: bool = True  # false: ids were given to other texts, which is told once


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
    one_of: int | None = None  # lost with so many that fell as far, not on its own
    rose: int | None = None  # how many rose as far

    @property
    def rates(self) -> str:
        """`found in 5 of 5 runs of A, 1 of 5 of B`."""
        return f"{self.what} in {self.a} of {self.runs_a} runs of A, {self.b} of {self.runs_b} of B"


def lost_rates(rates: Iterable[QueryRates], fail_on: frozenset[str]) -> str:
    """What B lost and must not lose, and how often noise alone would do that; empty if it lost nothing."""
    lost = [known for known in rates if known.lost and known.check in fail_on]
    return "; ".join([*(known.rates for known in lost), _how_sure(lost)]) if lost else ""


def _how_sure(lost: Sequence[QueryRates]) -> str:
    """In how many sessions noise does what is least sure."""
    least = max(lost, key=lambda known: known.noise or 0.0)
    if not least.noise:
        return "runs of one side never disagree on that"
    said = (
        f"where nothing changed, at most {math.ceil(least.noise * 1000) / 10:g} % of sessions fail like this"
    )
    if least.one_of is None:
        return said
    what = "targets" if least.what == COVERAGE.words else "queries"
    return (
        f"one of {least.one_of} {what} that fell this far, while {least.rose or 'none'} rose as far; {said}"
    )


class Decision(Value, frozen=True):
    """What became of the queries of a group."""

    group: Group
    kind: ComparisonKind | None  # None: run B is judged alone
    tallies: Mapping[Check, Tally]
    lost: tuple[Check, ...]
    shown: tuple[int, int]  # the numbers of the runs of A and B that are shown
    rates: tuple[QueryRates, ...] = ()  # of what flips or differs, where a side has several runs
    is_reworded: bool = False  # A was asked another question, which is not compared

    @property
    def a(self) -> Facts | None:
        """How the queries did in the run of A that is shown, as far as that is compared."""
        return None if self.is_reworded else self.stored_a

    @property
    def stored_a(self) -> Facts | None:
        """The same, whatever was asked."""
        return self.group.a[self.shown[0]] if self.group.a else None

    @property
    def b(self) -> Facts | None:
        """How the queries did in the run of B that is shown."""
        return self.group.b[self.shown[1]]

    @property
    def may_be_noise(self) -> bool:
        """Whether runs of one side disagree, or B did worse by no more than noise."""
        tallies = self.tallies.items()
        return any(tally.flips or (tally.drop > 0 and check not in self.lost) for check, tally in tallies)


class SessionNoise(Value, frozen=True):
    """What noise explains of drops and gains, check by check; empty where runs of one side never disagree."""

    lost: Mapping[Check, JudgedCheck] = {}
    gained: Mapping[Check, JudgedCheck] = {}


def decide(
    groups: Sequence[Group], rules: Rules, *, runs_a: int, runs_b: int
) -> tuple[list[Decision], SessionNoise]:
    """Decide over all queries together, then for those that did alike; without run A, B is judged alone."""
    counter = _Counter(rules)
    tallies = {id(group): counter.tallies(group) for group in groups if not group.is_reworded}
    several = runs_a > 1 or runs_b > 1
    compared = [group for group in groups if id(group) in tallies]
    noise = _noise_of(compared, counter, [*tallies.values()], rules) if runs_a and several else SessionNoise()
    decider = _Decider(rules, noise, alone=not runs_a, several=several)
    return [decider.decide(group, tallies.get(id(group), {})) for group in groups], noise


def _noise_of(
    groups: Sequence[Group],
    counter: _Counter,
    tallies: Sequence[Mapping[Check, Tally]],
    rules: Rules,
) -> SessionNoise:
    """What noise explains; accepted losses are judged, and are no evidence."""
    counts = [sum(query_id not in rules.accepted for query_id in group.query_ids) for group in groups]
    rows: dict[Check, Counter[tuple[Outcomes, Outcomes]]] = {
        check: Counter() for check in (*CHECKS, COVERAGE) if any(check in of_group for of_group in tallies)
    }
    ranks: Counter[Tally] = Counter()
    for group, of_group, n in zip(groups, tallies, counts, strict=True):
        for check, counted in rows.items():
            for row in counter.in_all_runs(check, group):
                counted[row] += n
        if LOSS in of_group:
            ranks[of_group[LOSS]] += n
    lost: dict[Check, JudgedCheck] = {}
    for can_fail in (True, False):  # what fails a query is not corrected for what does not
        judged_now = {check for check in (*rows, LOSS) if _can_fail(check, groups, rules) is can_fail}
        lost |= judge(
            {check: counted for check, counted in rows.items() if check in judged_now},
            {LOSS: ranks} if LOSS in judged_now else {},
        )
    gained = judge(
        {RETRIEVAL: reversed_rows(rows[RETRIEVAL])} if RETRIEVAL in rows else {},
        {LOSS: Counter({tally.reversed(): n for tally, n in ranks.items()})},
    )
    return SessionNoise(lost, gained)


def _can_fail(check: Check, groups: Iterable[Group], rules: Rules) -> bool:
    """Whether a query could fail on a check."""
    in_runs = (facts for group in groups for facts in group.b if facts)
    return check.name in rules.fail_on or any(
        check.is_required(facts, rules.require_all)
        for facts in in_runs
        if check.passes(facts, rules.compare_k) is not None
    )


class _Counter:
    """Counts how often groups pass each check; what is the same for many groups is found once."""

    def __init__(self, rules: Rules) -> None:
        self._k = rules.compare_k
        self._ignored = () if rules.compares_texts else (TEXT,)
        self._tallies: dict[tuple[AllOutcomes, AllOutcomes], dict[Check, Tally]] = {}

    def tallies(self, group: Group) -> Mapping[Check, Tally]:
        """How often the queries of a group pass each check that applies on both sides."""
        key = self.outcomes(group)
        tallies = self._tallies.get(key)
        if tallies is None:
            tallies = self._tallies[key] = dict(_tallies(*key))
        a, b = self._ranks(group.a), self._ranks(group.b)
        coverage = self._coverage(group)
        if a and b:
            return {**tallies, **coverage, LOSS: rank_tally(a, b)}
        return {**tallies, **coverage} if coverage else tallies

    def _coverage(self, group: Group) -> dict[Check, Tally]:
        """How often the target is found that fell furthest, in the runs that found any."""
        split = len(group.a)
        found = [_tally(target[:split], target[split:]) for target in self._targets(group)]
        tallies = [tally for tally in found if tally]
        return {COVERAGE: max(tallies, key=lambda tally: (tally.drop, tally.flips))} if tallies else {}

    def _targets(self, group: Group) -> list[tuple[bool | None, ...]]:
        """In which runs each target is found, and each document that is not always found with a target."""
        in_runs = (*group.a, *group.b)
        runs = [facts and targets_found(facts, self._k) for facts in in_runs]
        nothing = [None] * max((len(found) for found in runs if found), default=0)
        rows = [*zip(*(found or nothing for found in runs), strict=True)]
        own = rows[: max((len(facts.ranking.found) for facts in in_runs if facts), default=0)]
        return [*own, *(row for row in rows[len(own) :] if row not in own)]

    def in_all_runs(self, check: Check, group: Group) -> Iterator[tuple[Outcomes, Outcomes]]:
        """The outcomes of a check in the runs of both sides; of coverage, those of each target.

        Targets that are found in the same runs count as one: they flip together.
        """
        if check is COVERAGE:
            split = len(group.a)
            yield from {(row[:split], row[split:]) for row in self._targets(group)}
        else:
            number = CHECKS.index(check)
            a, b = (tuple([run[number] for run in side]) for side in self.outcomes(group))
            yield a, b

    def _ranks(self, in_runs: InRuns) -> list[int]:
        """The ranks in the runs of one side; none if some run did not find it, which is no matter of rank."""
        ranks = [rank_within(facts, self._k) for facts in in_runs if facts is not None]
        return [] if None in ranks else [rank for rank in ranks if rank is not None]

    def outcomes(self, group: Group) -> tuple[AllOutcomes, AllOutcomes]:
        """Of every check, in the runs of A and in those of B; a run without a result fails one alone."""
        return self._outcomes_of(group.a), self._outcomes_of(group.b)

    def _outcomes_of(self, in_runs: InRuns) -> AllOutcomes:
        return tuple([_WITHOUT_RESULT if facts is None else self._passed(facts) for facts in in_runs])

    def _passed(self, facts: Facts) -> tuple[bool | None, ...]:
        return tuple([None if check in self._ignored else check.passes(facts, self._k) for check in CHECKS])


def _tallies(a: AllOutcomes, b: AllOutcomes) -> Iterable[tuple[Check, Tally]]:
    for number, check in enumerate(CHECKS):
        if check is ABSENT and _WITHOUT_RESULT not in (*a, *b):
            continue  # nothing to count, as for most
        tally = _tally([run[number] for run in a], [run[number] for run in b])
        if tally:
            yield check, tally


def _tally(a: Iterable[bool | None], b: Iterable[bool | None]) -> Tally | None:
    """How often a check is passed on each side; None if it applies on one side at most."""
    in_a, in_b = ([outcome for outcome in side if outcome is not None] for side in (a, b))
    return Tally(in_a.count(True), len(in_a), in_b.count(True), len(in_b)) if in_a and in_b else None


def count_tallies(groups: Iterable[tuple[Group, Mapping[Check, Tally]]]) -> dict[Check, Counter[Tally]]:
    """How many queries have each tally of each check."""
    counted: dict[Check, Counter[Tally]] = {check: Counter() for check in ALL_CHECKS}
    for group, of_group in groups:
        for check, tally in of_group.items():
            counted[check][tally] += len(group.query_ids)
    return {check: found for check, found in counted.items() if found}


class _Decider:
    """Decides for one group at a time, given what noise explains."""

    def __init__(self, rules: Rules, noise: SessionNoise, *, alone: bool, several: bool) -> None:
        self._k, self._alpha, self._rules = rules.compare_k, rules.alpha, rules
        self._noise = noise
        self._alone = alone
        self._several = several

    def decide(self, group: Group, tallies: Mapping[Check, Tally]) -> Decision:
        compared = tuple(check for check in tallies if self._is_sure(self._noise.lost, check, tallies[check]))
        asked = group.asked
        lost = (
            *((OTHER_QUESTION,) if asked == OTHER else ()),
            *compared,
            *(check for check in CHECKS_OF_B if self._is_broken(check, group.b)),
        )
        shown = (
            _shown(group.a, compared, self._k, passes=True),
            _shown(group.b, lost, self._k, passes=False),
        )
        a, b = group.a[shown[0]] if group.a else None, group.b[shown[1]]
        if not any(group.b):
            found = rank_within(a, self._k) is not None
            became = ComparisonKind.REGRESSION if found else ComparisonKind.DRAW
            return Decision(group, None if self._alone else became, tallies, (ABSENT,), shown)
        is_reworded = asked == REWORDED
        if is_reworded or not any(group.a):
            of_one_run = tuple(
                check for check in CHECKS if b and not check.needs_a and check.passes(b, self._k) is False
            )
            kind = None if self._alone else ComparisonKind.NEW
            return Decision(group, kind, tallies, (*of_one_run, *lost), shown, (), is_reworded)
        return Decision(
            group, self._kind(lost, tallies), tallies, lost, shown, tuple(self._rates(lost, tallies))
        )

    def _is_broken(self, check: Check, in_runs: InRuns) -> bool:
        """Whether B, looked at alone, breaks a check that counts."""
        rules = self._rules
        counted = [
            facts
            for facts in in_runs
            if facts and (check.name in rules.fail_on or check.is_required(facts, rules.require_all))
        ]
        broken = [not passes for facts in counted if (passes := check.passes(facts, self._k)) is not None]
        return bool(broken and check.of_b and check.of_b(broken))

    def _rates(self, lost: Sequence[Check], tallies: Mapping[Check, Tally]) -> Iterator[QueryRates]:
        """The rates of what flips or differs, without the id of a query."""
        for check, tally in tallies.items() if self._several else ():
            if tally.drop > 0 or (check is not LOSS and (tally.flips or tally.drop)):
                limit = _limit(self._noise.lost, check, tally)
                noise = limit and (max(round(limit.alpha, 6), _LEAST_NOISE) if limit.alpha else 0.0)
                flaky = 0 < tally.a < tally.n_a
                with_others = limit[1:] if limit and check in lost else ()
                yield QueryRates(
                    "", check.name, check.words, *tally[:4], flaky, check in lost, noise, *with_others
                )

    def _is_sure(self, noise: Mapping[Check, JudgedCheck], check: Check, tally: Tally) -> bool:
        limit = _limit(noise, check, tally)
        return limit is not None and limit.alpha <= self._alpha

    def _kind(self, lost: Sequence[Check], tallies: Mapping[Check, Tally]) -> ComparisonKind:
        if RETRIEVAL in lost:
            return ComparisonKind.REGRESSION
        gains = [check for check in (RETRIEVAL, LOSS) if check in tallies]
        if any(self._is_sure(self._noise.gained, check, tallies[check].reversed()) for check in gains):
            return ComparisonKind.WIN
        return ComparisonKind.LOSS if LOSS in lost else ComparisonKind.DRAW


def _limit(noise: Mapping[Check, JudgedCheck], check: Check, tally: Tally) -> Loss | None:
    """From which alpha on a drop is more than noise; always where there is none. None if it is no drop."""
    if check in noise:
        return noise[check].losses.get(tally)
    return CERTAIN if tally.drop > 0 else None


def _shown(in_runs: InRuns, lost: Sequence[Check], k: int, *, passes: bool) -> int:
    """The run that shows the loss: it passes in A and fails in B; of several, that with the middle rank."""
    there = [number for number, facts in enumerate(in_runs) if facts is not None]
    if len(there) < 2:
        return there[0] if there else 0

    def fitting(number: int) -> int:
        facts = in_runs[number]
        return sum(check.passes(facts, k) is passes for check in lost) if facts else 0

    best = max(map(fitting, there))
    orders = {number: _order(in_runs[number], k) for number in there if fitting(number) == best}
    middle = sorted(orders.values())[(len(orders) - 1) // 2]
    return next(number for number, order in orders.items() if order == middle)


def _order(facts: Facts | None, k: int) -> tuple[bool, float]:
    """Runs that errored come last, before them those that found nothing."""
    rank = rank_within(facts, k)
    return bool(facts and facts.errored), math.inf if rank is None else rank
