"""The whole program on one screen: find, score, decide, compare, total, judge, report. Start reading here."""

from __future__ import annotations

import datetime
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import checks_of
from pytest_kebab_eval.comparing.decide import Rules, decide
from pytest_kebab_eval.comparing.deltas import compare_totals, count_comparison
from pytest_kebab_eval.comparing.evidence import HITS_SHOWN, QueryEvidence
from pytest_kebab_eval.comparing.gates import Compared, judge_gates
from pytest_kebab_eval.comparing.problems import Accepted, find_problems
from pytest_kebab_eval.comparing.queries import compare_queries, count_matched
from pytest_kebab_eval.comparing.replicates import RunAggregate, run_aggregates, shown_runs
from pytest_kebab_eval.comparing.report import CompareReport, Findings, make_report
from pytest_kebab_eval.comparing.unlike_runs import unlike_warnings
from pytest_kebab_eval.comparing.verdicts import (
    Outcome,
    QueryVerdicts,
    Verdict,
    judge_queries,
)
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.reading import open_stores, read_evidence
from pytest_kebab_eval.scoring.aggregates import aggregate_json
from pytest_kebab_eval.scoring.scorer import Observer
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import write_aggregates


class Evaluation(NamedTuple):
    """The outcome of one comparison: the report, and a verdict on each golden query."""

    run_a: Run | None
    run_b: Run
    report: CompareReport
    verdicts: dict[str, Verdict]
    aggregates: tuple[RunAggregate, ...]  # of every run
    matcher: Matcher | None  # with which stored results are read again


def evaluate(
    settings: Settings,
    inputs: Inputs | None = None,
    today: datetime.date | None = None,
    observer: Observer | None = None,
) -> Evaluation:
    """Compare the two runs that the settings name, or judge run B alone.

    An observer is shown every result while it is scored.
    """
    inputs = inputs or find_inputs(settings)
    golden, accepted = inputs.golden, _accepted(settings)
    rules = _rules(settings, golden)
    with open_stores(settings, inputs) as stores:
        cards_a, cards_b, movement = stores.score(observer)  # movement: of the rankings
        decisions, noise = decide(cards_a, cards_b, golden.by_id(), rules)
        sides = stores.sides(cards_a, cards_b, decisions)
        a, b = sides.means
        if observer:
            observer.finish(golden.queries, stores.matcher, shown_runs(decisions))
        per_query = compare_queries(decisions, sides, stores.targets, movement, rules)
        counts = count_comparison(per_query, a, b, movement, rules) if a and movement else None
        del movement  # a large part of the memory that a million queries take
        totals = compare_totals(a, b, count_matched(decisions), counts)
        gates = judge_gates(inputs.gates, Compared(totals, a, b))
        verdicts = judge_queries(golden, per_query, QueryVerdicts(a, b, decisions, rules, today))
        problems = find_problems(golden, sides, decisions, stores.matcher, accepted)
        found = Findings(sides, decisions, noise, per_query, totals, gates, verdicts, problems)
        unlike = unlike_warnings(sides, inputs.gates, stores.matcher.mode, per_query)
        warnings = (*inputs.warnings, *unlike)
        report = make_report(found, golden, rules, stores.indexes(), warnings)
    return Evaluation(
        inputs.run_a, inputs.run_b, report, verdicts, run_aggregates(sides, totals), stores.matcher
    )


def _rules(settings: Settings, golden: GoldenSet) -> Rules:
    accepted = frozenset(query.id for query in golden.unusual() if query.xfail)
    fail_on, loss_over = checks_of(settings.fail_on)
    return Rules(fail_on, settings.compare_k, settings.alpha, accepted, loss_over, settings.require == "all")


def _accepted(settings: Settings) -> Accepted:
    return Accepted(settings.allow_document_matching, settings.if_no_baseline == "pass")


_EXPLAINED = (Outcome.FAILED, Outcome.XFAILED)  # the second because --runxfail makes it fail


def failure_evidence(settings: Settings, inputs: Inputs, evaluation: Evaluation) -> dict[str, QueryEvidence]:
    """What messages show of the queries that fail, expected or not, by query id."""
    report, golden = evaluation.report, inputs.golden.by_id()
    failed = [
        golden[query_id] for query_id, verdict in evaluation.verdicts.items() if verdict.outcome in _EXPLAINED
    ]
    if not failed:
        return {}
    compared = {comparison.query_id: comparison for comparison in report.per_query}
    shown = report.replicates.shown if report.replicates else {}
    found = read_evidence(settings, inputs, failed, evaluation.matcher, shown, (0, HITS_SHOWN))
    return {query.id: evidence.for_message(query, compared.get(query.id)) for query, evidence in found}


def store(settings: Settings, evaluation: Evaluation) -> None:
    """Write the aggregate of every run, in one transaction, but not that of one with unreadable results."""
    broken = {(result.side, result.run_id) for result in evaluation.report.unreadable}
    databases = {"a": settings.db_a, "b": settings.db_b}
    write_aggregates(
        {
            (databases[run.side], run.run_id): aggregate_json(run.aggregate)
            for run in evaluation.aggregates
            if not broken & {(run.side, run.run_id), (run.side, None)}
        }
    )
