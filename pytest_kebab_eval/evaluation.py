"""The whole pipeline: golden set, two runs -> match, score, compare, judge. Start reading here."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.deltas import significance_in
from pytest_kebab_eval.comparing.gates import judge_gates
from pytest_kebab_eval.comparing.queries import Comparer, CompareReport, Sides, compare
from pytest_kebab_eval.comparing.verdicts import Outcome, Verdict, judge_query
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inputs import Inputs, find_inputs, match_mode
from pytest_kebab_eval.matching.locations import Located, Passages, Places, citation_extents
from pytest_kebab_eval.matching.targets import Matcher, gains_of
from pytest_kebab_eval.model import (
    GoldenQuery,
    MatchMode,
    QueryComparison,
    QueryResult,
    Run,
    Unreadable,
    Value,
)
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics, aggregate
from pytest_kebab_eval.scoring.scorecard import Scorecard, Scorer
from pytest_kebab_eval.settings import DEFAULT_GOLDEN, Settings, default_database
from pytest_kebab_eval.store import Database, find_run, open_database, write_aggregates
from pytest_kebab_eval.text import printable, shown_path

HITS_SHOWN = 5  # in a message
_LONGEST_SHOWN = 200  # characters of a hit's text


class Shown(Value, frozen=True):
    """What is shown of a query's stored results."""

    a: QueryResult | None
    b: QueryResult | None
    correct_a: tuple[int, ...]
    correct_b: tuple[int, ...]
    expected: tuple[str, ...]
    readable_a: bool = True
    readable_b: bool = True
    cited_a: tuple[bool, ...] = ()  # for each citation of the answer, whether it leads to a chunk
    cited_b: tuple[bool, ...] = ()

    def for_message(self, comparison: QueryComparison | None) -> Shown:
        """No more than the message of a failure shows: where all fail, thousands have to be kept."""
        a, b, rank_in_a = self.a, self.b, comparison.a_hit_rank if comparison else None
        if a is not None:
            a = msgspec.structs.replace(a, hits=(), answer=None)
        if b is not None:
            near = [
                msgspec.structs.replace(hit, text=(hit.text or "")[:_LONGEST_SHOWN], citation=None)
                for place, hit in enumerate(b.hits)
                if place < HITS_SHOWN or hit.rank == rank_in_a
            ]
            b = msgspec.structs.replace(b, hits=tuple(near))
        return msgspec.structs.replace(self, a=a, b=b)


class Evaluation(Value, frozen=True, kw_only=True):
    """The outcome of one comparison: the report, and a verdict on each golden query."""

    run_a: Run | None
    run_b: Run
    report: CompareReport
    verdicts: dict[str, Verdict]
    shown: dict[str, Shown]  # for the queries that fail, expected or not


def evaluate(
    settings: Settings, inputs: Inputs | None = None, today: datetime.date | None = None
) -> Evaluation:
    """Compare the two runs that the settings name, or judge run B alone."""
    inputs = inputs or find_inputs(settings)
    golden, run_a, run_b = inputs.golden, inputs.run_a, inputs.run_b
    with ExitStack() as stack:
        judging = _Judging(stack, settings, inputs)
        sides = Sides(
            judging.scorecard(judging.a, run_a) if run_a else None,
            judging.scorecard(judging.b, run_b),
            judging.stored_a,
            judging.stored_b,
        )
        comparer = Comparer(sides, judging.scorer.judge.targets, settings.compare_k)
        report = compare(golden, comparer)
        report = msgspec.structs.replace(
            report,
            gates=judge_gates(inputs.gates, report, partial(significance_in, sides.a, sides.b)),
            index_a=judging.a.corpus.coverage() if run_a else None,
            index_b=judging.b.corpus.coverage(),
            problems=tuple(_strangers(golden, sides)),
            warnings=inputs.warnings,
        )
        compared = {one.query_id: one for one in report.per_query}
        verdicts = _verdicts(golden, compared, comparer, settings, today or datetime.date.today())
        accepted = [one for one, verdict in verdicts.items() if verdict.outcome is Outcome.XFAILED]
        report = msgspec.structs.replace(report, accepted=tuple(sorted(accepted)))
        shown = {
            query.id: judging.shown(query).for_message(compared.get(query.id))
            for query in golden.queries
            if verdicts[query.id].outcome in (Outcome.FAILED, Outcome.XFAILED)  # which --runxfail makes fail
        }
    return Evaluation(run_a=run_a, run_b=run_b, report=report, verdicts=verdicts, shown=shown)


def store(settings: Settings, evaluation: Evaluation) -> None:
    """Write both aggregates, in one transaction, but not that of a run with unreadable results."""
    report = evaluation.report
    broken = {one.side for one in report.unreadable}
    sides = (
        ("a", settings.db_a, report.run_a, report.aggregate_a),
        ("b", settings.db_b, report.run_b, report.aggregate_b),
    )
    write_aggregates(
        {
            (path, run_id): msgspec.json.encode(values)
            for side, path, run_id, values in sides
            if run_id is not None and side not in broken
        }
    )


def all_shown(settings: Settings, inputs: Inputs) -> Iterator[tuple[GoldenQuery, Shown]]:
    """Every golden query with its stored results, one at a time, in the order of their ids."""
    with ExitStack() as stack:
        judging = _Judging(stack, settings, inputs)
        for query in sorted(inputs.golden.queries, key=lambda query: query.id):
            yield query, judging.shown(query)


class StoredResults(NamedTuple):
    """The results of both runs by query id; None for one that is absent or unreadable."""

    a: Callable[[str], QueryResult | None]
    b: Callable[[str], QueryResult | None]


def stored_results(stack: ExitStack, settings: Settings, evaluation: Evaluation) -> StoredResults:
    """Read single results for as long as the stack is open."""
    run_a = evaluation.run_a
    a, b = _open_both(stack, settings, alone=run_a is None)
    return StoredResults(
        a=lambda query_id: _readable(a.result(run_a.run_id, query_id)) if run_a else None,
        b=lambda query_id: _readable(b.result(evaluation.run_b.run_id, query_id)),
    )


def _readable(result: QueryResult | Unreadable | None) -> QueryResult | None:
    return result if isinstance(result, QueryResult) else None


# -- the public functions of section 6 -----------------------------------------------------------


def compute_aggregate(
    run_id: str, *, db: str | Path | None = None, golden: str | Path | None = None
) -> AggregateMetrics:
    """The metrics of one stored run."""
    golden_set = load_golden_set(_golden_path(golden))
    with open_database(_database_path(db)) as database:
        return aggregate_run(database, find_run(database, run_id), golden_set)


def aggregate_run(database: Database, run: Run, golden: GoldenSet) -> AggregateMetrics:
    """The metrics of a run of an open database."""
    return aggregate(scored_run(database, run, golden))


def scored_run(database: Database, run: Run, golden: GoldenSet) -> Scorecard:
    """A run of an open database, scored."""
    mode = match_mode([(database, run)], golden)
    scorer = Scorer(golden, Matcher(mode, _places(golden, mode, [(database, run)])))
    return scorer.score(run, database.results(run.run_id), database.corpus)


def store_aggregate(run_id: str, aggregate: AggregateMetrics, *, db: str | Path | None = None) -> None:
    """Write a run's `aggregate_json`; an unknown run is a `StoreError`."""
    write_aggregates({(_database_path(db), run_id): msgspec.json.encode(aggregate)})


def compare_runs(
    run_id_a: str,
    run_id_b: str,
    *,
    db: str | Path | None = None,
    golden: str | Path | None = None,
    strict_chunker_version: bool = False,
) -> CompareReport:
    """Compare two stored runs of one database; nothing is written."""
    path = _database_path(db)
    settings = Settings(
        run_a=run_id_a,
        run_b=run_id_b,
        db_a=path,
        db_b=path,
        golden=_golden_path(golden),
        strict_chunker_version=strict_chunker_version,
    )
    return evaluate(settings).report


def _database_path(db: str | Path | None) -> Path:
    given = db or os.environ.get("KEBAB_EVAL_DB")
    return Path(given) if given else default_database(Path())


def _golden_path(golden: str | Path | None) -> Path:
    return Path(golden or os.environ.get("KEBAB_EVAL_GOLDEN") or DEFAULT_GOLDEN)


# -- the steps -----------------------------------------------------------------------------------


def _open_both(stack: ExitStack, settings: Settings, *, alone: bool) -> tuple[Database, Database]:
    """The databases of A and B, which may be one; B's for both, where B is alone."""
    b = stack.enter_context(open_database(settings.db_b))
    if alone or settings.db_a == settings.db_b:
        return b, b
    return stack.enter_context(open_database(settings.db_a)), b


def _strangers(golden: GoldenSet, sides: Sides) -> Iterator[str]:
    """A comparison of nothing must not pass for one in which nothing was lost."""
    queries = golden.queries
    strange = [card for _, card in sides.both if not any(query.id in card.scores for query in queries)]
    if strange and (len(strange) == len(sides.both) or strange[0] is sides.a):
        runs = " and ".join(printable(card.run.run_id) for card in strange)
        yield (
            f"none of the {len(queries)} golden queries in {shown_path(golden.path)} has a result in run"
            f" {runs}; is it the golden file of these runs?"
        )


def _places(golden: GoldenSet, mode: MatchMode, runs: list[tuple[Database, Run]]) -> Places:
    """Where the expected chunks are; only the fallback needs to know."""
    if mode is MatchMode.EXACT:
        return Places()
    corpora = [database.corpus for database in dict.fromkeys(database for database, _ in runs)]
    version = runs[0][1].chunker_version
    known = Places(golden.lock, corpora, version=version)
    unlocated = {
        chunk_id
        for query in golden.queries
        if not query.gold_supports
        for chunk_id in gains_of(query)
        if not known.is_certain(query, chunk_id)
    }
    if not unlocated:
        return known
    return Places(golden.lock, corpora, _places_in_hits(unlocated, runs), version=version)


def _places_in_hits(wanted: set[str], runs: list[tuple[Database, Run]]) -> dict[str, Located]:
    """Places of chunks as the hits of either run give them: all that is left after re-indexing."""
    found: dict[str, Located] = {}
    for database, run in runs:
        for result in database.results(run.run_id):
            for hit in result.hits if isinstance(result, QueryResult) else ():
                if hit.chunk_id in wanted:
                    place = Located(hit.doc_id, citation_extents(hit))
                    found.setdefault(hit.chunk_id, place)
                    if place.extents:
                        found[hit.chunk_id] = place
                        wanted = wanted - {hit.chunk_id}
            if not wanted:
                return found
    return found


def _verdicts(
    golden: GoldenSet,
    compared: Mapping[str, QueryComparison],
    comparer: Comparer,
    settings: Settings,
    today: datetime.date,
) -> dict[str, Verdict]:
    a, b = comparer.sides.a, comparer.sides.b
    verdicts = {}
    for query in golden.queries:
        before = a.scores.get(query.id) if a and query.xfail else None
        at_stake = comparer.passed_checks(before) if before else ()
        verdicts[query.id] = judge_query(
            query, compared.get(query.id), a, b, settings.fail_on, today, at_stake
        )
    return verdicts


class _Judging:
    """The open databases of a comparison and the scorer for both runs."""

    def __init__(self, stack: ExitStack, settings: Settings, inputs: Inputs) -> None:
        self._run_a, self._run_b = inputs.run_a, inputs.run_b
        self.a, self.b = _open_both(stack, settings, alone=inputs.run_a is None)
        runs = [(self.a, inputs.run_a)] if inputs.run_a else []
        places = _places(inputs.golden, inputs.mode, [*runs, (self.b, inputs.run_b)])
        matcher = Matcher(inputs.mode, places, settings.span_overlap)
        self.scorer = Scorer(inputs.golden, matcher, settings.k, inputs.metrics)
        version_a = inputs.run_a.chunker_version if inputs.run_a else None
        self._passages_a = Passages(self.a.corpus, version_a)
        self._passages_b = Passages(self.b.corpus, inputs.run_b.chunker_version)

    def scorecard(self, database: Database, run: Run) -> Scorecard:
        """A run, scored."""
        return self.scorer.score(run, database.results(run.run_id), database.corpus)

    def stored_a(self, query_id: str) -> QueryResult | Unreadable | None:
        """What run A stored for a query."""
        return self.a.result(self._run_a.run_id, query_id) if self._run_a else None

    def stored_b(self, query_id: str) -> QueryResult | Unreadable | None:
        """What run B stored for a query."""
        return self.b.result(self._run_b.run_id, query_id)

    def shown(self, query: GoldenQuery) -> Shown:
        """A query with its stored results, read again."""
        stored_a, stored_b = self.stored_a(query.id), self.stored_b(query.id)
        a, b = _readable(stored_a), _readable(stored_b)
        judge = self.scorer.judge
        return Shown(
            a=a,
            b=b,
            correct_a=judge.correct_ranks(query, a, self._passages_a),
            correct_b=judge.correct_ranks(query, b, self._passages_b),
            expected=judge.targets(query).ids,
            readable_a=not isinstance(stored_a, Unreadable),
            readable_b=not isinstance(stored_b, Unreadable),
            cited_a=judge.citations_resolve(a, self._passages_a),
            cited_b=judge.citations_resolve(b, self._passages_b),
        )
