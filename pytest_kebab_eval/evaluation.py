"""The whole program on one screen: golden set, two runs -> match, score, compare, judge. Start here."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.config_changes import config_changes
from pytest_kebab_eval.comparing.counts import count_comparison
from pytest_kebab_eval.comparing.deltas import compare_totals, significance_in
from pytest_kebab_eval.comparing.evidence import EvidenceReader, QueryEvidence, readable
from pytest_kebab_eval.comparing.gates import judge_gates
from pytest_kebab_eval.comparing.movement import Movement, Scored, measure_movement
from pytest_kebab_eval.comparing.one_run_each import OneRunEach
from pytest_kebab_eval.comparing.paraphrases import paraphrase_groups
from pytest_kebab_eval.comparing.problems import find_problems
from pytest_kebab_eval.comparing.queries import Sides, compare_queries
from pytest_kebab_eval.comparing.rates import RunAggregate, ShownRuns
from pytest_kebab_eval.comparing.report import CompareReport, not_in_golden, unreadable
from pytest_kebab_eval.comparing.verdicts import PASSED, Outcome, Rules, Verdict, accepted, judge_query
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inputs import Inputs, Replicates, find_inputs
from pytest_kebab_eval.matching.locations import Locations, OpenRun, Passages, find_locations, match_mode
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.model import (
    GoldenQuery,
    MatchMode,
    QueryResult,
    Run,
    Unreadable,
    Value,
)
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics, aggregate
from pytest_kebab_eval.scoring.briefs import Briefs, RunBriefs
from pytest_kebab_eval.scoring.facts import QueryJudge
from pytest_kebab_eval.scoring.scorecard import Scorecard, alike
from pytest_kebab_eval.scoring.scorer import Scorer
from pytest_kebab_eval.scoring.together import score_together
from pytest_kebab_eval.settings import DEFAULT_CHECKS, Settings, Sources, database_of, golden_of
from pytest_kebab_eval.store import (
    Address,
    Database,
    find_run,
    open_database,
    to_address,
    write_aggregates,
)

_EXPLAINED = (Outcome.FAILED, Outcome.XFAILED)  # the second because --runxfail makes it fail


class Evaluation(Value, frozen=True, kw_only=True):
    """The outcome of one comparison: the report, and a verdict on each golden query."""

    run_a: Run | None
    run_b: Run
    report: CompareReport
    verdicts: dict[str, Verdict]
    evidence: dict[str, QueryEvidence]  # of the queries that fail, expected or not
    replicates: tuple[RunAggregate, ...] = ()  # of each run, where a side has several


ScoreElsewhere = Callable[[Inputs, Matcher], "Scored | None"]


def evaluate(
    settings: Settings,
    inputs: Inputs | None = None,
    today: datetime.date | None = None,
    briefs: Briefs | None = None,
    *,
    with_evidence: bool = True,
    score_elsewhere: ScoreElsewhere | None = None,
) -> Evaluation:
    """Compare the two runs that the settings name, or judge run B alone.

    `briefs` is filled for a page. Evidence is for messages that explain why a query fails. What is scored
    elsewhere (`parallel`) need not be scored here; None is what could not be.
    """
    inputs = inputs or find_inputs(settings)
    queries, run_a, run_b = inputs.golden.queries, inputs.run_a, inputs.run_b
    with ExitStack() as stack:
        runs = _OpenRuns(stack, settings, inputs)
        scored = score_elsewhere(inputs, runs.matcher) if score_elsewhere and not inputs.replicates else None
        sides = runs.sides(scored or runs.score(briefs))
        judged = runs.judged
        changes = tuple(config_changes(run_a, run_b)) if run_a else ()
        golden = runs.queries
        compared = compare_queries(judged.comparer(sides, runs.targets, changes, settings.compare_k))
        checks = settings.fail_on | DEFAULT_CHECKS  # every check counts that can fail a query
        counts = count_comparison(compared.per_query, sides, checks)
        sides = sides._replace(movement=None)  # a large part of the memory that a million queries take
        totals = compare_totals(sides.a, sides.b, compared.matched_by, counts)
        problems = find_problems(inputs.golden, sides, runs.matcher)
        unusual = inputs.golden.unusual()
        in_doubt = compared.doubtful | {query.id for query in unusual if query.xfail}
        in_doubt.update(query_id for query_id in golden if query_id not in sides.b)
        by_id = {
            comparison.query_id: comparison
            for comparison in compared.per_query
            if comparison.query_id in in_doubt
        }
        if briefs is not None:
            briefs.keep_targets(queries, runs.matcher)
        rules = Rules(settings.fail_on, today or datetime.date.today(), settings.compare_k, judged.unsteady())
        verdicts = {
            query_id: judged.with_rates(
                query_id, judge_query(golden[query_id], by_id.get(query_id), sides.a, sides.b, rules)
            )
            if query_id in in_doubt
            else PASSED
            for query_id in golden
        }
        report = CompareReport(
            run_a=inputs.name_a,
            run_b=inputs.name_b,
            aggregate_a=totals.aggregate_a,
            aggregate_b=totals.aggregate_b,
            deltas=totals.deltas,
            per_query=compared.per_query,
            comparison=counts,
            config_changes=changes,
            significance=totals.significance,
            gates=judge_gates(inputs.gates, totals, partial(significance_in, sides.a, sides.b)),
            not_comparable=totals.not_comparable,
            paraphrases_a=paraphrase_groups(unusual, sides.a) if sides.a else (),
            paraphrases_b=paraphrase_groups(unusual, sides.b),
            index_a=runs.a.corpus.coverage() if run_a else None,
            index_b=runs.b.corpus.coverage(),
            missed=compared.missed,
            accepted=accepted(verdicts),
            not_in_golden=not_in_golden(sides),
            unreadable=unreadable(sides),
            problems=problems.problems,
            warnings=(*inputs.warnings, *problems.warnings, *judged.coverage_warnings()),
            replicates=judged.report(),
            rates=judged.rates(),
        )
        evidence = {
            query_id: runs.evidence(golden[query_id]).for_message(by_id.get(query_id))
            for query_id, verdict in verdicts.items()
            if with_evidence and verdict.outcome in _EXPLAINED
        }
    return Evaluation(
        run_a=run_a,
        run_b=run_b,
        report=report,
        verdicts=verdicts,
        evidence=evidence,
        replicates=judged.aggregates(),
    )


def store(settings: Settings, evaluation: Evaluation) -> None:
    """Write both aggregates, in one transaction, but not that of a run with unreadable results."""
    report = evaluation.report
    broken = {(result.side, result.run_id) for result in report.unreadable}
    databases = {"a": settings.db_a, "b": settings.db_b}
    runs = [(each.side, each.run_id, each.run_id, each.aggregate) for each in evaluation.replicates]
    sides = runs or (
        ("a", None, report.run_a, report.aggregate_a),
        ("b", None, report.run_b, report.aggregate_b),
    )
    write_aggregates(
        {
            (databases[side], run_id): msgspec.json.encode(values)
            for side, replicate, run_id, values in sides
            if run_id is not None and (side, replicate) not in broken
        }
    )


# -- stored results, read again ------------------------------------------------------------------


def read_evidence(
    settings: Settings,
    inputs: Inputs,
    queries: Iterable[GoldenQuery] | None = None,
    matcher: Matcher | None = None,
    shown: ShownRuns | None = None,
) -> Iterator[tuple[GoldenQuery, QueryEvidence]]:
    """Golden queries with their stored results, one at a time: these, or all in the order of their ids.

    Without the matcher of the evaluation, where chunks are is found out again. Of several runs a side,
    `shown` says which is read for a query, where that is not the first.
    """
    with ExitStack() as stack:
        runs = _OpenRuns(stack, settings, inputs, matcher)
        runs.shown = shown or {}
        for query in sorted_by_id(inputs.golden.queries) if queries is None else queries:
            yield query, runs.evidence(query)


def sorted_by_id(queries: Iterable[GoldenQuery]) -> list[GoldenQuery]:
    """The queries in the order of their ids."""
    return sorted(queries, key=lambda query: query.id)


class StoredResults(NamedTuple):
    """The results of both runs by query id; None for one that is absent or unreadable."""

    a: Callable[[str], QueryResult | None]
    b: Callable[[str], QueryResult | None]


def stored_results(stack: ExitStack, settings: Settings, evaluation: Evaluation) -> StoredResults:
    """Read single results for as long as the stack is open."""
    run_a = evaluation.run_a
    a, b = _open_both(stack, settings, alone=run_a is None)
    return StoredResults(
        a=lambda query_id: readable(a.read_result(run_a.run_id, query_id)) if run_a else None,
        b=lambda query_id: readable(b.read_result(evaluation.run_b.run_id, query_id)),
    )


def _open_both(stack: ExitStack, settings: Settings, *, alone: bool) -> tuple[Database, Database]:
    """The databases of A and B, which may be one; B's for both, where B is alone."""
    b = stack.enter_context(open_database(settings.db_b))
    if alone or settings.db_a == settings.db_b:
        return b, b
    return stack.enter_context(open_database(settings.db_a)), b


class _OpenRuns:
    """The open databases of a comparison and the scorer for both runs."""

    def __init__(
        self, stack: ExitStack, settings: Settings, inputs: Inputs, matcher: Matcher | None = None
    ) -> None:
        self.a, self.b = _open_both(stack, settings, alone=inputs.run_a is None)
        self._run_a, self._run_b = inputs.run_a, inputs.run_b
        self.matcher = matcher or self._find_matcher(settings, inputs)
        self._settings, self._inputs = settings, inputs
        self.judged = OneRunEach()
        self.shown: ShownRuns = {}
        version_a = inputs.run_a.chunker_version if inputs.run_a else None
        self._reader = EvidenceReader(
            QueryJudge(self.matcher, settings.k),
            Passages(self.a.corpus, version_a),
            Passages(self.b.corpus, inputs.run_b.chunker_version),
        )

    @cached_property
    def scorer(self) -> Scorer:
        """Scores both runs; where results are only shown again, it is not needed."""
        return Scorer(self._inputs.golden, self.matcher, self._settings.k, self._inputs.metrics)

    def _find_matcher(self, settings: Settings, inputs: Inputs) -> Matcher:
        runs = [(self.a, inputs.run_a)] if inputs.run_a else []
        return find_matcher(settings, inputs.golden, inputs.mode, [*runs, (self.b, inputs.run_b)])

    @cached_property
    def queries(self) -> Mapping[str, GoldenQuery]:
        """The golden queries by their id."""
        return self._inputs.golden.by_id()

    def sides(self, scored: Scored) -> Sides:
        """The two runs, scored here or elsewhere, side by side."""
        a, b, movement = scored
        return Sides(a, b, self._stored_a, self._stored_b, alike(a, b, self.queries), movement)

    def score(self, briefs: Briefs | None = None) -> Scored:
        """Read and score both runs."""
        if self._inputs.replicates:
            return self._score_replicates(self._inputs.replicates, briefs)
        run_a = [(self.a, self._run_a)] if self._run_a else []
        kept = [briefs.a, briefs.b][-1 - len(run_a) :] if briefs else []
        *a, b = score_together(self.scorer, [*run_a, (self.b, self._run_b)], kept)
        return Scored(a[0], b, self._movement(a[0], b)) if a else Scored(None, b, None)

    def _movement(self, a: Scorecard, b: Scorecard) -> Movement:
        return measure_movement(a, b, self._settings.compare_k, self._inputs.overlaps)

    def _stored_a(self, query_id: str) -> QueryResult | Unreadable | None:
        run = self._shown(query_id, 0) or self._run_a
        return self.a.result(run.run_id, query_id) if run else None

    def _stored_b(self, query_id: str) -> QueryResult | Unreadable | None:
        run = self._shown(query_id, 1) or self._run_b
        return self.b.result(run.run_id, query_id)

    # -- several runs a side ---------------------------------------------------------------------

    def _shown(self, query_id: str, side: int) -> Run | None:
        """Of several runs a side, the one that is shown of a query; None for the first."""
        number = self.shown[query_id][side] if query_id in self.shown else 0
        return self._inputs.replicates[side][number] if self._inputs.replicates and number else None

    def _score_replicates(self, runs: Replicates, briefs: Briefs | None) -> Scored:
        """Score each run, and judge them together; a side's card is the mean of its runs."""
        from pytest_kebab_eval.comparing.judging import NoiseRules
        from pytest_kebab_eval.comparing.replicates import judge_replicates, mean_movement

        kept = [[RunBriefs() if briefs else None for _ in side] for side in runs]
        stored = [*((self.a, run) for run in runs.a), *((self.b, run) for run in runs.b)]
        cards = score_together(self.scorer, stored, [*kept[0], *kept[1]])
        a, b = cards[: len(runs.a)], cards[len(runs.a) :]
        settings = self._settings
        rules = NoiseRules(settings.fail_on, settings.compare_k, settings.alpha)
        judged = judge_replicates(a, b, self.queries, rules)
        self.judged, self.shown = judged, judged.shown_runs()
        if briefs:
            briefs.choose(kept, self.shown)
        return Scored(judged.a, judged.b, mean_movement(a, b, self._movement) if a else None)

    def targets(self, query_id: str) -> Targets:
        """The targets of a golden query."""
        return self.matcher.targets(self.queries[query_id])

    def evidence(self, query: GoldenQuery) -> QueryEvidence:
        """A query with its stored results, read again."""
        return self._reader.evidence(query, self._stored_a(query.id), self._stored_b(query.id))


def find_matcher(settings: Settings, golden: GoldenSet, mode: MatchMode, runs: Sequence[OpenRun]) -> Matcher:
    """A matcher in that mode; where the expected chunks are, the runs know, run A first."""
    return Matcher(mode, _locations(golden, mode, runs), settings.span_overlap)


def _locations(golden: GoldenSet, mode: MatchMode, runs: Sequence[OpenRun]) -> Locations:
    """Where the expected chunks are; only the fallback needs to know."""
    return Locations() if mode is MatchMode.EXACT else find_locations(golden, runs)


# -- the public functions ------------------------------------------------------------------------


def compute_aggregate(
    run_id: str, *, db: str | Address | None = None, golden: str | Path | None = None
) -> AggregateMetrics:
    """The metrics of one stored run."""
    golden_set = load_golden_set(_golden_path(golden))
    with open_database(_database_address(db)) as database:
        return aggregate_run(database, find_run(database, run_id), golden_set)


def aggregate_run(database: Database, run: Run, golden: GoldenSet) -> AggregateMetrics:
    """The metrics of a run of an open database."""
    return aggregate(score_run(database, run, golden))


def score_run(database: Database, run: Run, golden: GoldenSet) -> Scorecard:
    """Read and score a run of an open database."""
    return score_runs(database, [run], golden)[0]


def score_runs(database: Database, runs: Sequence[Run], golden: GoldenSet) -> list[Scorecard]:
    """Read and score runs of one configuration, each matched as the first would be alone."""
    mode = match_mode([(database, runs[0])], golden)
    scorer = Scorer(golden, Matcher(mode, _locations(golden, mode, [(database, runs[0])])))
    return score_together(scorer, [(database, run) for run in runs])


def store_aggregate(run_id: str, aggregate: AggregateMetrics, *, db: str | Address | None = None) -> None:
    """Write a run's `aggregate_json`; an unknown run is a `StoreError`."""
    write_aggregates({(_database_address(db), run_id): msgspec.json.encode(aggregate)})


def compare_runs(
    run_id_a: str,
    run_id_b: str,
    *,
    db: str | Address | None = None,
    golden: str | Path | None = None,
    strict_chunker_version: bool = False,
) -> CompareReport:
    """Compare two stored runs of one database; nothing is written."""
    address = _database_address(db)
    settings = Settings(
        run_a=run_id_a,
        run_b=run_id_b,
        db_a=address,
        db_b=address,
        golden=_golden_path(golden),
        strict_chunker_version=strict_chunker_version,
    )
    return evaluate(settings, with_evidence=False).report


_FROM_ENVIRONMENT = Sources(lambda option: None, environment=os.environ)


def _database_address(db: str | Address | None) -> Address:
    return database_of(_FROM_ENVIRONMENT) if db is None else to_address(db)


def _golden_path(golden: str | Path | None) -> Path:
    return golden_of(_FROM_ENVIRONMENT) if golden is None else Path(golden)
