"""`CompareReport`: all that is known of B against A, in the shape of `report.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, isnan
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.aggregates import AggregateMetrics, rounded
from pytest_kebab_eval.comparing.configurations import ConfigChange, config_changes
from pytest_kebab_eval.comparing.decide import Decision, QueryRates, Rules, SessionNoise
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.one_pass import OnePass
from pytest_kebab_eval.comparing.problems import Problems
from pytest_kebab_eval.comparing.queries import missed_queries
from pytest_kebab_eval.comparing.replicates import ReplicateReport, all_rates, replicate_report
from pytest_kebab_eval.comparing.samples import Side, Sides
from pytest_kebab_eval.comparing.totals import ComparisonCounts, Deltas, Significance, Totals
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.metrics import Facts, Metric
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, Value
from pytest_kebab_eval.store import IndexCoverage

FOUND_WITHIN = 10
LOOKED_WITHIN = 50
_RECALL = "recall@10_doc"


class Paraphrase(Value, frozen=True):
    """One wording, and what became of the group's documents: found, ranked too low, or missing."""

    query_id: str
    state: str
    rank: int | None


class ParaphraseGroup(Value, frozen=True):
    """A group in one run; the spread is best minus worst `recall@10_doc`."""

    group: str
    spread: float | None
    worst: float | None
    queries: tuple[Paraphrase, ...]
    note: str | None = None


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
    total_ms_a: float | None = None  # that all queries took; of several runs, on average
    total_ms_b: float | None = None
    missed: tuple[str, ...] = ()  # queries whose targets no run found
    failed: dict[str, str] = msgspec.field(default_factory=dict)  # queries, and why, in words
    tolerated: dict[str, str] = msgspec.field(default_factory=dict)  # that lost what does not fail them here
    accepted: tuple[str, ...] = ()  # queries that fail as their xfail says
    errored_in_both: tuple[str, ...] = ()  # queries of which nothing can be said
    not_in_golden: tuple[str, ...] = ()  # queries that the golden file does not have
    removed: tuple[str, ...] = ()  # of those, the ones that run A has: deleted from it, or renamed
    unreadable: tuple[BrokenResult, ...] = ()
    problems: tuple[str, ...] = ()  # why the comparison is not to be relied on, which fails it
    warnings: tuple[str, ...] = ()
    replicates: ReplicateReport | msgspec.UnsetType = msgspec.UNSET  # where a side has several runs
    rates: tuple[QueryRates, ...] | msgspec.UnsetType = msgspec.UNSET  # of what flips there, or differs

    snapshot_matches: bool | None = None  # where it was held against one

    @property
    def passed(self) -> bool:
        """Whether all of the comparison did, whatever was selected of its items."""
        failed = self.failed or self.unreadable or self.problems or self.snapshot_matches is False
        return not failed and all(gate.passed for gate in self.gates)

    def count(self, kind: ComparisonKind) -> int:
        return sum(comparison.kind is kind for comparison in self.per_query)


class Findings(NamedTuple):
    """What was found out of a comparison, step by step."""

    seen: OnePass
    sides: Sides
    decisions: Sequence[Decision]
    noise: SessionNoise
    per_query: tuple[QueryComparison, ...]
    totals: Totals
    gates: tuple[GateResult, ...]
    verdicts: Mapping[str, Verdict]
    problems: Problems


def make_report(
    found: Findings,
    rules: Rules,
    warnings: Iterable[str],
) -> CompareReport:
    """The report of what was found."""
    seen, totals, verdicts = found.seen, found.totals, found.verdicts.items()
    a, b = found.sides
    runs_a, runs_b = seen.side("a"), seen.side("b")
    unknown = {
        letter: {name for run in seen.side(letter) for name in run.unknown_query_ids} for letter in "ab"
    }
    return CompareReport(
        run_a=a.run_ids if a else None,
        run_b=b.run_ids,
        aggregate_a=totals.aggregate_a,
        aggregate_b=totals.aggregate_b,
        deltas=totals.deltas,
        per_query=found.per_query,
        comparison=totals.comparison,
        config_changes=tuple(config_changes(runs_a[0].run, runs_b[0].run)) if runs_a else (),
        significance=totals.significance,
        gates=found.gates,
        not_comparable=totals.not_comparable,
        paraphrases_a=paraphrase_groups(seen.golden, a, found.decisions) if a else (),
        paraphrases_b=paraphrase_groups(seen.golden, b, found.decisions),
        index_a=runs_a[0].index if runs_a else None,
        index_b=runs_b[0].index,
        total_ms_a=_total_time(a) if a else None,
        total_ms_b=_total_time(b),
        missed=missed_queries(found.decisions, rules.compare_k),
        failed=_reasons(found.verdicts, Outcome.FAILED),
        tolerated=_reasons(found.verdicts, Outcome.PASSED),
        accepted=tuple(sorted(name for name, verdict in verdicts if verdict.outcome is Outcome.XFAILED)),
        errored_in_both=tuple(sorted(_errored_in_both(found.decisions))),
        not_in_golden=tuple(sorted(unknown["a"] | unknown["b"])),
        removed=tuple(sorted(unknown["a"])),
        unreadable=tuple(
            BrokenResult(run.side, query_id, reason, run.run.run_id if len(seen.side(run.side)) > 1 else None)
            for run in seen.runs
            for query_id, reason in sorted(run.unreadable.items())
        ),
        problems=found.problems.problems,
        warnings=(*warnings, *found.problems.warnings),
        replicates=replicate_report(found.sides, found.decisions, found.noise, rules.alpha),
        rates=all_rates(found.decisions) if found.sides.has_several else msgspec.UNSET,
    )


def _errored_in_both(decisions: Iterable[Decision]) -> Iterable[str]:
    for decision in decisions:
        if decision.a and decision.a.errored and decision.b and decision.b.errored:
            yield from decision.group.query_ids


def _total_time(side: Side) -> float | None:
    """How long all queries took, as far as that is stored."""
    columns = [side.seen.column(run, Metric.parse("latency_p50_ms")) for run in side.runs]
    totals = [fsum(time for time in column if not isnan(time)) for column in columns if column]
    return rounded(fsum(totals) / len(totals)) if totals else None


def _reasons(verdicts: Mapping[str, Verdict], outcome: Outcome) -> dict[str, str]:
    """The queries of an outcome that there is a reason for, by id."""
    reasons = {name: verdict.reason for name, verdict in verdicts.items() if verdict.outcome is outcome}
    return {name: reason for name, reason in sorted(reasons.items()) if reason}


# -- paraphrases: queries of one group ask the same thing -----------------------------------------


def paraphrase_groups(
    golden: GoldenSet, side: Side, decisions: Iterable[Decision]
) -> tuple[ParaphraseGroup, ...]:
    """The groups of a golden set in a run, by name."""
    grouped = {query.id: query.group for query in golden.unusual() if query.group and query.expected_doc_ids}
    if not grouped:
        return ()
    sample, position = side.sample(), side.seen.positions[_RECALL]
    members: dict[str, dict[str, _InShownRun]] = {}
    for decision in decisions:
        shown = side.shown_facts(decision.group)
        if shown is None:
            continue
        numbers = [number for run in side.runs if (number := decision.group.numbers[run]) is not None]
        recall = sample.values(numbers)[position]
        for query_id in decision.group.query_ids:
            if query_id in grouped:
                members.setdefault(grouped[query_id], {})[query_id] = _InShownRun(shown, recall)
    return tuple(_group(name, members[name]) for name in sorted(members))


class _InShownRun(NamedTuple):
    """A query in the run that is shown, and its mean recall in all."""

    facts: Facts
    recall: float | None


def _group(name: str, members: Mapping[str, _InShownRun]) -> ParaphraseGroup:
    recalls = [found.recall for found in members.values() if found.recall is not None]
    return ParaphraseGroup(
        group=name,
        spread=rounded(max(recalls) - min(recalls)) if recalls else None,
        worst=rounded(min(recalls)) if recalls else None,
        queries=tuple(
            Paraphrase(query_id, _state(found.facts.doc_rank), found.facts.doc_rank)
            for query_id, found in sorted(members.items())
        ),
        note=_too_shallow(found.facts for found in members.values()),
    )


def _state(rank: int | None) -> str:
    if rank is None or rank > LOOKED_WITHIN:
        return "missing"
    return "found" if rank <= FOUND_WITHIN else "ranked too low"


def _too_shallow(members: Iterable[Facts]) -> str | None:
    """A missing document may only be out of sight where fewer hits were stored than are looked at."""
    depths = [facts.depth for facts in members if facts.doc_rank is None]
    shallow = [depth for depth in depths if depth < LOOKED_WITHIN]
    if not shallow:
        return None
    return f"only {min(shallow)} hits are stored, so 'missing' may be 'ranked too low'"
