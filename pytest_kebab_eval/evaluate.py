"""The whole program on one screen: find, judge, decide, compare, total, report. Start reading here."""

from __future__ import annotations

import datetime
from functools import partial
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.aggregates import aggregate_json
from pytest_kebab_eval.comparing.checks import ALWAYS, WORSE, checks_of
from pytest_kebab_eval.comparing.decide import Rules, decide
from pytest_kebab_eval.comparing.evidence import HITS_SHOWN, QueryEvidence
from pytest_kebab_eval.comparing.gates import judge_gates
from pytest_kebab_eval.comparing.one_pass import Observer
from pytest_kebab_eval.comparing.problems import Accepted, Comparison, find_problems
from pytest_kebab_eval.comparing.queries import compare_queries, count_matched
from pytest_kebab_eval.comparing.replicates import RunAggregate, run_aggregates, shown_runs
from pytest_kebab_eval.comparing.report import CompareReport, Findings, make_report
from pytest_kebab_eval.comparing.samples import sides_of
from pytest_kebab_eval.comparing.totals import (
    compare_totals,
    count_comparison,
    counted_queries,
    judge_warnings,
)
from pytest_kebab_eval.comparing.unlike_runs import reused_ids, unlike_warnings
from pytest_kebab_eval.comparing.verdicts import Outcome, QueryVerdicts, Verdict, judge_queries
from pytest_kebab_eval.comparing.worse import judge_worse
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.open_runs import open_runs, read_evidence
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

    An observer is shown every result as it is judged.
    """
    inputs = inputs or find_inputs(settings)
    golden, rules = inputs.golden, _rules(settings, inputs)
    with open_runs(settings, inputs) as runs:
        seen = runs.one_pass(inputs, [settings.compare_k], observer)
        seen.read(runs.side_by_side())  # every result is judged in all runs, and dropped
        reused = reused_ids(seen, runs.stored({}))
        rules = msgspec.structs.replace(rules, compares_texts=not (reused and reused.is_problem))
        decisions, noise = decide(seen.groups, rules, runs_a=len(runs.a), runs_b=len(runs.b))
        shown = shown_runs(decisions)
        if observer:
            observer.finish(seen.matcher, seen.count_a, len(seen.runs), shown)
        stored = runs.stored(shown)  # single results, read again by key
        per_query = compare_queries(decisions, seen, stored, rules)
        sides = sides_of(seen, decisions)
        counts = count_comparison(per_query, sides, inputs.overlaps, rules)
        totals = compare_totals(sides, count_matched(decisions), counts)
        gates = judge_gates(inputs.gates, totals, sides, partial(counted_queries, per_query, seen, rules))
        if sides.a and WORSE in settings.fail_on:
            gates += (judge_worse(totals, sides, rules.accepted, rules.alpha),)
        verdicts = judge_queries(golden, per_query, QueryVerdicts(seen, decisions, rules, today))
        accepted = Accepted(settings.allow_document_matching, settings.if_no_baseline == "pass")
        problems = find_problems(Comparison(seen, decisions, stored, reused), accepted)
        warnings = (
            *inputs.warnings,
            *judge_warnings(totals),
            *unlike_warnings(seen, sides, stored, inputs.gates, per_query),
        )
        found = Findings(seen, sides, decisions, noise, per_query, totals, gates, verdicts, problems)
        report = make_report(found, rules, warnings)
    aggregates = run_aggregates(sides, totals)
    return Evaluation(inputs.run_a, inputs.run_b, report, verdicts, aggregates, runs.matcher)


def _rules(settings: Settings, inputs: Inputs) -> Rules:
    """The rules of the comparison; what noise may do is shared by the queries and the item `worse`."""
    accepted = frozenset(query.id for query in inputs.golden.unusual() if query.xfail)
    has_two_tests = inputs.runs_a and inputs.has_several and WORSE in settings.fail_on
    alpha = settings.alpha / 2 if has_two_tests else settings.alpha
    fail_on, loss_over = checks_of(settings.fail_on)
    fail_on |= ALWAYS
    return Rules(fail_on, settings.compare_k, alpha, accepted, loss_over, settings.require == "all")


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
