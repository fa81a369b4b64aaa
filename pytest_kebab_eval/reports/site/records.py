"""The runs of a site: which there are, where their files are, and what is kept of each in `record.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from pytest_kebab_eval.comparing.checks import ANSWER_CHECKS, passed_checks
from pytest_kebab_eval.comparing.decide import group_queries
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, Run, Value
from pytest_kebab_eval.reports.as_text import in_text
from pytest_kebab_eval.reports.failures import FailedQuery
from pytest_kebab_eval.reports.first_bad import COMMIT_SHOWN
from pytest_kebab_eval.reports.html import short, short_setting
from pytest_kebab_eval.reports.wording import checks_failed, failed_queries, headline, verdict_effect
from pytest_kebab_eval.scoring.facts import SHORTEST_CLAIM
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.store import Database, whole_runs
from pytest_kebab_eval.text import file_name_in_any_case

CHANGES_KEPT = 20  # of a configuration
FAILURES_KEPT = 100  # of a run, with passages
_FACTS_SHOWN = 6
_LABELS = {
    "instead": "took its place",
    "before": "answer before",
    "answer": "answer",
    "rule": "rule broken",
    "cites A": "cited before",
    "cites B": "cites",
}

Ranks = tuple[int | None, int | None]


def fingerprint(values: Sequence[Any]) -> str:
    """A hash of values, the same on every machine."""
    return hashlib.sha256(msgspec.json.encode(values)).hexdigest()


# -- which runs there are ------------------------------------------------------------------------


class PlannedRun(NamedTuple):
    """A run of the site."""

    run: Run
    results: int
    aggregate: str  # a hash of the one that is stored
    before: PlannedRun | None  # the run that it is compared with, in the same suite

    @property
    def directory(self) -> str:
        """Where its files are, from the site's directory."""
        return f"{suite_directory(self.run.suite)}/runs/{file_name_in_any_case(self.run.run_id)}"

    @property
    def record_file(self) -> str:
        return f"{self.directory}/record.json"

    @property
    def report_file(self) -> str:
        return f"{self.directory}/report.html"

    def key(self, basis: str) -> str:
        """Changes with the run's own values."""
        return fingerprint([basis, *self.identity, self.run.commit_hash, self.aggregate])

    def comparison_key(self, basis: str) -> str:
        """Changes with what its comparison is made from."""
        return fingerprint([basis, self.before.identity if self.before else None, self.identity])

    @property
    def identity(self) -> tuple[str, str, int]:
        """What tells the stored run from an earlier one of the same id."""
        return self.run.run_id, self.run.created_at, self.results


def suite_directory(suite: str) -> str:
    """Where the pages of a suite are, from the site's directory."""
    return f"suites/{file_name_in_any_case(suite)}"


def suite_pages(suite: str) -> tuple[str, str]:
    """The files of a suite's pages: the suite, and the trends of all metrics."""
    directory = suite_directory(suite)
    return f"{directory}/index.html", f"{directory}/trends.html"


def plan_runs(database: Database, suite: str | None) -> dict[str, list[PlannedRun]]:
    """The runs of each suite, or of one, the oldest first; suites are in the order of their names."""
    found: dict[str, list[PlannedRun]] = {}
    with_results: dict[str, PlannedRun] = {}  # the newest so far of each suite
    for run in reversed(whole_runs(database, suite)):
        aggregate = fingerprint([database.stored_aggregate(run.run_id)])
        results = database.result_count(run.run_id)
        planned = PlannedRun(run, results, aggregate, with_results.get(run.suite))
        found.setdefault(run.suite, []).append(planned)
        if results:
            with_results[run.suite] = planned
    return dict(sorted(found.items()))


# -- what is kept of each ------------------------------------------------------------------------


class ComparisonRecord(Value, frozen=True, kw_only=True):
    """A run against the one before it, or alone (`run_a` is None) if it is the first."""

    key: str  # of all that it was made from
    run_a: str | None
    headline: str
    effect: str
    counts: dict[str, int]
    config_changes: tuple[str, ...]
    ranks: dict[str, Ranks]  # of every query, in A and in B
    reasons: dict[str, str]  # why queries failed
    passages: dict[str, tuple[tuple[str, str], ...]]  # of those, what was expected and found, by label
    checks: dict[str, tuple[str, ...]]  # of those that are followed, what B lost, by query
    failed: tuple[str, ...]  # the queries that fail, without those whose loss is accepted
    unreadable: tuple[str, ...]
    absent: tuple[str, ...]  # the queries that B has no result for
    problems: tuple[str, ...] = ()
    unneeded: tuple[str, ...] = ()  # queries that are accepted (xfail), but no longer fail


class RunRecord(Value, frozen=True, kw_only=True):
    """A run with its metrics."""

    key: str
    run_id: str
    created_at: str
    commit: str | None
    results: int
    values: dict[str, float]
    passed: dict[str, tuple[str, ...]]  # the queries that pass each check that is followed
    ranks: dict[str, int]  # what each query found, as `history.drift` has it
    of_other_golden: bool = False
    comparison: ComparisonRecord | None = None
    error: str | None = None  # why there is no comparison, where there should be one

    @property
    def short_commit(self) -> str | None:
        return short(self.commit, 60)[:COMMIT_SHOWN] if self.commit else None

    @property
    def date(self) -> str:
        """To the minute: many runs may be of one day."""
        return short(self.created_at[:16].replace("T", " "))

    @property
    def report(self) -> str | None:
        """The address of its report, from a page of the suite."""
        name = file_name_in_any_case(self.run_id)
        return f"runs/{quote(name)}/report.html" if self.comparison else None

    @property
    def point(self) -> HistoryPoint:
        """The run on the trend of a report."""
        return HistoryPoint(self.run_id, self.created_at, self.values, self.of_other_golden, ranks=self.ranks)


def comparison_record(key: str, report: CompareReport, failures: Iterable[FailedQuery]) -> ComparisonRecord:
    """What the pages show of a comparison, and of these of its failed queries what was expected and found."""
    known = {failed.query.id: failed for failed in failures}
    return ComparisonRecord(
        key=key,
        run_a=report.run_a,
        headline=headline(report),
        effect=verdict_effect(report),
        counts={kind.value: report.count(kind) for kind in ComparisonKind},
        config_changes=tuple(
            f"{short(change.key, 120)}: {short_setting(change.a)} → {short_setting(change.b)}"
            for change in report.config_changes[:CHANGES_KEPT]
        ),
        ranks={query.query_id: (query.a_hit_rank, query.b_hit_rank) for query in report.per_query},
        reasons={
            query_id: short(known[query_id].reason(reason) if query_id in known else reason, 300)
            for query_id, reason in report.failed.items()
        },
        passages={
            query_id: tuple(
                (_LABELS.get(fact.label, fact.label), in_text(fact.words))
                for fact in failed.facts()
                if fact.label in ("expected", "forbidden", *_LABELS)
            )[:_FACTS_SHOWN]
            for query_id, failed in known.items()
        },
        checks={query.query_id: lost for query in report.per_query if (lost := _followed(query.checks))},
        failed=tuple(query.query_id for query in failed_queries(report)),
        unreadable=tuple(result.query_id for result in report.unreadable if result.side == "b"),
        absent=tuple(query.query_id for query in report.per_query if query.cause == "absent"),
        problems=report.problems,
        unneeded=tuple(
            query.query_id for query in failed_queries(report) if checks_failed(report, query) == ("xfail",)
        ),
    )


def _followed(checks: Iterable[str]) -> tuple[str, ...]:
    return tuple(check for check in checks if check in ANSWER_CHECKS)


def passed_queries(card: Scorecard, golden: GoldenSet, compare_k: int) -> dict[str, tuple[str, ...]]:
    """The queries that pass each check that is followed; how they did is looked at once for all alike."""
    queries = golden.by_id()
    found: dict[str, list[str]] = {check: [] for check in ANSWER_CHECKS}
    for _, (score,), query_ids in group_queries((), (card,), queries):
        if score is not None:
            for check in _followed(passed_checks(score, compare_k)):
                found[check] += (
                    query_id
                    for query_id in query_ids
                    if check != "answer" or not _is_wrong(queries[query_id], score.facts)
                )
    return {check: tuple(sorted(query_ids)) for check, query_ids in found.items()}


def _is_wrong(query: GoldenQuery, facts: Facts) -> bool:
    """Whether an answer lacks a part of what is asked of it; `passed_checks` is content with either."""
    needs_claim = any(len(claim) >= SHORTEST_CLAIM for claim in query.claims)
    return facts.keeps_rules is False or (needs_claim and not facts.has_claim)
