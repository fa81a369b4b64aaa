"""Several runs a side: how often each query passes each check, and which drops are more than noise.

Each run is scored as ever, `judging` decides over all of them, and what is compared are the means. What is
shown of a query is one run a side that is like what is said of it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from pytest_kebab_eval.comparing.config_changes import ConfigChange
from pytest_kebab_eval.comparing.judging import Judged, Judging, NoiseRules, group_queries
from pytest_kebab_eval.comparing.movement import SAME, Movement
from pytest_kebab_eval.comparing.one_run_each import OneRunEach
from pytest_kebab_eval.comparing.queries import (
    MATCH_NOTES,
    Comparer,
    PairOutcome,
    Sides,
    cause_of,
    has_errored,
    rank_notes,
)
from pytest_kebab_eval.comparing.rates import (
    QueryRates,
    ReplicateReport,
    RunAggregate,
    ShownRuns,
    spread_of,
)
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import ComparisonKind
from pytest_kebab_eval.scoring.aggregates import aggregate, exact_values
from pytest_kebab_eval.scoring.combining import combine
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard
from pytest_kebab_eval.text import printable


class Replicated(OneRunEach):
    """Both sides as the means of their runs, and what is said of each query."""

    def __init__(
        self, a: Sequence[Scorecard], b: Sequence[Scorecard], judging: Judging, rules: NoiseRules
    ) -> None:
        self._cards = a, b
        self._rules = rules
        self._judged = {
            query_id: judged for group, judged in judging.judge_all() for query_id in group.query_ids
        }
        self._checks = judging.check_rates()
        self.a = combine(a, lambda query_id: self.shown(query_id)[0]) if a else None
        self.b = combine(b, lambda query_id: self.shown(query_id)[1])

    def shown(self, query_id: str) -> tuple[int, int]:
        """The numbers of the runs that are shown of a query."""
        judged = self._judged.get(query_id)
        if judged is not None:
            return judged.shown
        a, b = (next((n for n, card in enumerate(cards) if query_id in card), 0) for cards in self._cards)
        return a, b

    def judged(self, query_id: str) -> Judged | None:
        """What is said of a golden query; None if no run has it."""
        return self._judged.get(query_id)

    def unsteady(self) -> frozenset[str]:
        """Queries on which runs of one side disagree, or that did worse by what may be noise."""
        return frozenset(query_id for query_id, judged in self._judged.items() if not judged.is_steady)

    def rates(self) -> tuple[QueryRates, ...]:
        """The rates of what flips or differs, in the order of the queries' ids."""
        return tuple(
            msgspec.structs.replace(rates, query_id=query_id)
            for query_id, judged in sorted(self._judged.items())
            for rates in judged.rates
        )

    def coverage_warnings(self) -> Iterator[str]:
        """Runs that lack golden queries which others of their side have."""
        for letter, cards in zip("AB", self._cards, strict=True):
            golden = {query_id for query_id in self._judged if any(query_id in card for card in cards)}
            for card in cards:
                missing = sum(query_id not in card for query_id in golden)
                if missing:
                    yield (
                        f"run {printable(card.run.run_id)} lacks {missing} of {len(golden)} golden queries"
                        f" that other runs of {letter} have; their rates are over fewer runs"
                    )

    def shown_runs(self) -> ShownRuns:
        """The runs that are shown of queries, where these are not the first."""
        judged = sorted(self._judged.items())
        return {query_id: found.shown for query_id, found in judged if any(found.shown)}

    def with_rates(self, query_id: str, verdict: Verdict) -> Verdict:
        """The verdict on a query, with how often it passed on each side what it lost."""
        judged = self._judged.get(query_id)
        lost = judged.lost(self._rules.fail_on) if judged else ""
        told = lost and verdict.outcome in (Outcome.FAILED, Outcome.XFAILED)
        return Verdict(verdict.outcome, f"{verdict.reason}; {lost}") if told else verdict

    def aggregates(self) -> tuple[RunAggregate, ...]:
        """The aggregates of the single runs."""
        sides = zip("ab", self._cards, strict=True)
        return tuple(
            RunAggregate(side, card.run.run_id, aggregate(card)) for side, cards in sides for card in cards
        )

    def report(self) -> ReplicateReport:
        """What `report.json` says of replicates."""
        a, b = self._cards
        return ReplicateReport(
            runs_a=tuple(card.run.run_id for card in a),
            runs_b=tuple(card.run.run_id for card in b),
            alpha=self._rules.alpha,
            checks=self._checks,
            spread_a=spread_of([*map(exact_values, a)]),
            spread_b=spread_of([*map(exact_values, b)]),
            shown=self.shown_runs(),
        )

    def comparer(
        self, sides: Sides, targets_of: Callable[[str], Targets], changes: tuple[ConfigChange, ...], k: int
    ) -> Comparer:
        """Compares the two sides as they were judged."""
        return _ReplicateComparer(sides, targets_of, changes, k, self)


def judge_replicates(
    a: Sequence[Scorecard], b: Sequence[Scorecard], query_ids: Iterable[str], rules: NoiseRules
) -> Replicated:
    """Judge the golden queries of the runs of each side; A has none where B is judged alone."""
    return Replicated(a, b, Judging(group_queries(a, b, query_ids), rules), rules)


def mean_movement(
    a: Sequence[Scorecard], b: Sequence[Scorecard], measure: Callable[[Scorecard, Scorecard], Movement]
) -> Movement:
    """How far the rankings moved on average, over every run of A with every run of B: no order matters."""
    movements = [measure(of_a, of_b) for of_a, of_b in itertools.product(a, b)]
    cards = [movement.card for movement in movements]

    def first_with(query_id: str) -> int:
        return next(number for number, card in enumerate(cards) if query_id in card)

    card = combine(cards, first_with)
    changed = {query_id for movement in movements for query_id in movement.moved}
    moved = {query_id: _mean_moved(query_id, movements) for query_id in changed}
    return Movement(card, moved)


def _mean_moved(query_id: str, movements: Sequence[Movement]) -> tuple[float, float]:
    """Over the pairs that have the query; it moved in one, so there is one."""
    paired = [movement.moved.get(query_id, SAME) for movement in movements if query_id in movement.card]
    overlap, rbo = (math.fsum(values) / len(paired) for values in zip(*paired, strict=True))
    return overlap, rbo


# -- comparing -----------------------------------------------------------------------------------


class _ReplicateComparer(Comparer):
    """Compares the runs that are shown, and says what was judged of all runs."""

    def __init__(
        self,
        sides: Sides,
        targets_of: Callable[[str], Targets],
        changes: tuple[ConfigChange, ...],
        compare_k: int,
        replicated: Replicated,
    ) -> None:
        super().__init__(sides, targets_of, changes, compare_k)
        self._by_scores = {(a, b): replicated.judged(query_ids[0]) for a, b, query_ids in sides.groups}

    def outcome(self, a: QueryScore | None, b: QueryScore | None) -> PairOutcome:
        """What becomes of queries that have these scores."""
        outcome, judged = super().outcome(a, b), self._by_scores[a, b]
        if judged is None or judged.kind is None:
            return outcome
        cause = cause_of(judged.checks, a, b)
        notes = [*rank_notes(a, b, self._k, cause), *self._change_notes]
        shown = [] if judged.kind is ComparisonKind.DRAW else notes
        matched = MATCH_NOTES.get(outcome.matched_by or "")
        return outcome._replace(
            kind=judged.kind,
            note="; ".join(filter(None, [*shown, judged.note, matched])) or None,
            cause=cause,
            checks=judged.checks,
            is_missed=outcome.is_missed and judged.is_missed,
            is_fine=judged.is_steady and cause is None and not has_errored(a, b),
        )
