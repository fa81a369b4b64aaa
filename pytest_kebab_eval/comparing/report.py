"""`CompareReport`: all that is known of B against A, in the shape of `report.json`."""

from __future__ import annotations

import msgspec

from pytest_kebab_eval.comparing.config_changes import ConfigChange
from pytest_kebab_eval.comparing.counts import ComparisonCounts
from pytest_kebab_eval.comparing.deltas import Deltas
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.paraphrases import ParaphraseGroup
from pytest_kebab_eval.comparing.queries import Sides
from pytest_kebab_eval.comparing.rates import QueryRates, ReplicateReport
from pytest_kebab_eval.comparing.significance import Significance
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, Value
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics
from pytest_kebab_eval.store import IndexCoverage


class BrokenResult(Value, frozen=True, omit_defaults=True):
    """A stored result that cannot be read."""

    side: str  # a | b
    query_id: str
    reason: str
    run_id: str | None = None  # where the side has several runs


class CompareReport(Value, frozen=True, kw_only=True):
    """All that is known of B against A."""

    run_a: str | None  # None, as all of A's side, where run B is judged alone
    run_b: str
    aggregate_a: AggregateMetrics | None
    aggregate_b: AggregateMetrics
    deltas: Deltas | None
    per_query: tuple[QueryComparison, ...]
    comparison: ComparisonCounts | None = None
    config_changes: tuple[ConfigChange, ...] = ()
    significance: dict[str, Significance] = msgspec.field(default_factory=dict)
    gates: tuple[GateResult, ...] = ()
    not_comparable: dict[str, str] = msgspec.field(default_factory=dict)  # metrics, and why not
    paraphrases_a: tuple[ParaphraseGroup, ...] = ()
    paraphrases_b: tuple[ParaphraseGroup, ...] = ()
    index_a: IndexCoverage | None = None
    index_b: IndexCoverage | None = None
    missed: tuple[str, ...] = ()  # queries whose targets no run found
    accepted: tuple[str, ...] = ()  # queries that fail as their xfail says
    not_in_golden: tuple[str, ...] = ()
    unreadable: tuple[BrokenResult, ...] = ()
    problems: tuple[str, ...] = ()  # why the comparison is not to be relied on, which fails it
    warnings: tuple[str, ...] = ()
    replicates: ReplicateReport | msgspec.UnsetType = msgspec.UNSET  # where a side has several runs
    rates: tuple[QueryRates, ...] | msgspec.UnsetType = msgspec.UNSET  # of what flips there, or differs

    def count(self, kind: ComparisonKind) -> int:
        """How many queries are of that kind."""
        return sum(comparison.kind is kind for comparison in self.per_query)


def not_in_golden(sides: Sides) -> tuple[str, ...]:
    """The results whose query the golden file does not have."""
    return tuple(sorted({query_id for _, card in sides.both for query_id in card.notes.unknown_query_ids}))


def unreadable(sides: Sides) -> tuple[BrokenResult, ...]:
    """The results that cannot be read, of every run."""
    return tuple(
        BrokenResult(side, query_id, reason, run.run.run_id if card.replicates else None)
        for side, card in sides.both
        for run in card.replicates or (card,)
        for query_id, reason in sorted(run.notes.unreadable.items())
    )
