"""The whole pipeline: golden set, two runs -> match, score, compare, judge. Start reading here."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparison import CompareReport, Sides, compare
from pytest_kebab_eval.errors import ChunkerError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inert import printable
from pytest_kebab_eval.matching import Located, Matcher, Places, citation_extents, gains_of
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Run, Unreadable, Value
from pytest_kebab_eval.scoring import AggregateMetrics, Scorecard, Scorer, aggregate
from pytest_kebab_eval.settings import DEFAULT_GOLDEN, Settings, default_database
from pytest_kebab_eval.store import Database, find_run, open_database, write_aggregates
from pytest_kebab_eval.verdicts import Outcome, Verdict, judge_query


class Shown(Value, frozen=True):
    """What a failing query's message needs of the stored results."""

    a: QueryResult | None
    b: QueryResult | None
    correct_a: tuple[int, ...]
    correct_b: tuple[int, ...]
    expected: tuple[str, ...]


class Evaluation(Value, frozen=True, kw_only=True):
    """The outcome of one comparison: the report, and a verdict on each golden query."""

    run_a: Run
    run_b: Run
    report: CompareReport
    verdicts: dict[str, Verdict]
    shown: dict[str, Shown]  # for the queries that do not pass
    warnings: tuple[str, ...] = ()


class Inputs(Value, frozen=True):
    """The two runs by their rightful names, and how they are to be matched; cheap to find out."""

    golden: GoldenSet
    run_a: Run
    run_b: Run
    mode: MatchMode
    warnings: tuple[str, ...] = ()


def find_inputs(settings: Settings) -> Inputs:
    """Everything that can be wrong with what the user gave is found here, before any work."""
    golden = load_golden_set(settings.golden)
    with ExitStack() as stack:
        a, b = _open_both(stack, settings)
        run_a = find_run(a, settings.run_a, settings.suite)
        run_b = find_run(b, settings.run_b, settings.suite)
        mode = _match_mode([run_a, run_b], _golden_version(golden, [a, b]))
        if mode is MatchMode.FALLBACK and settings.strict_chunker_version:
            raise ChunkerError(_strict_refusal(run_a, run_b, _golden_version(golden, [a, b])))
        warnings = dict.fromkeys([*a.warnings, *b.warnings])
    return Inputs(golden, run_a, run_b, mode, tuple(warnings))


def evaluate(
    settings: Settings, inputs: Inputs | None = None, today: datetime.date | None = None
) -> Evaluation:
    """Compare the two runs that the settings name."""
    inputs = inputs or find_inputs(settings)
    golden, mode = inputs.golden, inputs.mode
    with ExitStack() as stack:
        a, b = _open_both(stack, settings)
        runs = [(a, inputs.run_a), (b, inputs.run_b)]
        matcher = Matcher(mode, _places(golden, mode, runs), settings.span_overlap)
        scorer = Scorer(golden, matcher, settings.k)
        card_a, card_b = (_scorecard(scorer, database, run) for database, run in runs)
        sides = Sides(
            card_a,
            card_b,
            stored_a=lambda query_id: a.result(inputs.run_a.run_id, query_id),
            stored_b=lambda query_id: b.result(inputs.run_b.run_id, query_id),
        )
        report = compare(golden, sides, scorer.targets, mode, settings.compare_k)
        verdicts = _verdicts(golden, report, card_a, card_b, settings, today or datetime.date.today())
        shown = {
            query.id: _shown(query, sides, scorer, a, b)
            for query in golden.queries
            if verdicts[query.id].outcome in (Outcome.FAILED, Outcome.XFAILED)
        }
    return Evaluation(
        run_a=inputs.run_a,
        run_b=inputs.run_b,
        report=report,
        verdicts=verdicts,
        shown=shown,
        warnings=inputs.warnings,
    )


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
            if side not in broken
        }
    )


class StoredResults(NamedTuple):
    """The results of both runs by query id; None for one that is absent or unreadable."""

    a: Callable[[str], QueryResult | None]
    b: Callable[[str], QueryResult | None]


def stored_results(stack: ExitStack, settings: Settings, evaluation: Evaluation) -> StoredResults:
    """Read single results for as long as the stack is open."""
    a, b = _open_both(stack, settings)
    return StoredResults(
        a=lambda query_id: _readable(a.result(evaluation.run_a.run_id, query_id)),
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
        run = find_run(database, run_id)
        mode = _match_mode([run], _golden_version(golden_set, [database]))
        places = _places(golden_set, mode, [(database, run)])
        scorecard = _scorecard(Scorer(golden_set, Matcher(mode, places)), database, run)
    return aggregate(scorecard, mode.value)


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


def _open_both(stack: ExitStack, settings: Settings) -> tuple[Database, Database]:
    a = stack.enter_context(open_database(settings.db_a))
    if settings.db_b == settings.db_a:
        return a, a
    return a, stack.enter_context(open_database(settings.db_b))


def _match_mode(runs: list[Run], golden_version: str | None) -> MatchMode:
    """Exact where all runs, and the golden set as far as it says, are of one chunker."""
    versions = {run.chunker_version for run in runs}
    if golden_version is not None and (versions != {None} or len(runs) == 1):
        versions.add(golden_version)
    return MatchMode.EXACT if len(versions) == 1 else MatchMode.FALLBACK


def _golden_version(golden: GoldenSet, databases: Iterable[Database]) -> str | None:
    """The chunker of the expected ids: the lock file's word, else that of the index, if it has any."""
    if golden.lock is not None and golden.lock.chunker_version is not None:
        return golden.lock.chunker_version
    for database in dict.fromkeys(databases):
        if not database.corpus.has_chunks:
            continue
        for query in golden.queries:
            for chunk_id in gains_of(query):
                chunk = database.corpus.chunk(chunk_id)
                if chunk is not None:
                    return chunk.chunker_version
    return None


def _strict_refusal(a: Run, b: Run, golden_version: str | None) -> str:
    versions = f"A {_version(a.chunker_version)}, B {_version(b.chunker_version)}"
    if a.chunker_version == b.chunker_version:
        versions += f", the golden set {_version(golden_version)}"
    return (
        f"the chunker versions differ ({versions}) and --strict-chunker-version is set;"
        " re-run one of them, or drop the option to match by document and span"
    )


def _version(version: str | None) -> str:
    return "unknown" if version is None else printable(version)


def _places(golden: GoldenSet, mode: MatchMode, runs: list[tuple[Database, Run]]) -> Places:
    """Where the expected chunks are; only the fallback needs to know."""
    if mode is MatchMode.EXACT:
        return Places()
    corpora = [database.corpus for database in dict.fromkeys(database for database, _ in runs)]
    known = Places(golden.lock, corpora)
    unlocated = {
        chunk_id
        for query in golden.queries
        if not query.gold_supports
        for chunk_id in gains_of(query)
        if not known.locate(query, chunk_id).extents
    }
    return Places(golden.lock, corpora, _places_in_hits(unlocated, runs)) if unlocated else known


def _places_in_hits(wanted: set[str], runs: list[tuple[Database, Run]]) -> dict[str, Located]:
    """Places of chunks as the hits of either run give them: all that is left after re-indexing."""
    found: dict[str, Located] = {}
    for database, run in runs:
        for result in database.results(run.run_id):
            for hit in result.hits if isinstance(result, QueryResult) else ():
                if hit.chunk_id in wanted and hit.chunk_id not in found:
                    found[hit.chunk_id] = Located(hit.doc_id, citation_extents(hit))
            if len(found) == len(wanted):
                return found
    return found


def _scorecard(scorer: Scorer, database: Database, run: Run) -> Scorecard:
    return scorer.score(run, database.results(run.run_id), database.corpus)


def _verdicts(
    golden: GoldenSet,
    report: CompareReport,
    a: Scorecard,
    b: Scorecard,
    settings: Settings,
    today: datetime.date,
) -> dict[str, Verdict]:
    comparisons = {one.query_id: one for one in report.per_query}
    return {
        query.id: judge_query(
            query,
            comparisons.get(query.id),
            a.scores.get(query.id),
            b.scores.get(query.id),
            settings.fail_on,
            today,
        )
        for query in golden.queries
    }


def _shown(query: GoldenQuery, sides: Sides, scorer: Scorer, a: Database, b: Database) -> Shown:
    result_a, result_b = _readable(sides.stored_a(query.id)), _readable(sides.stored_b(query.id))
    return Shown(
        a=result_a,
        b=result_b,
        correct_a=scorer.correct_ranks(query, result_a, a.corpus),
        correct_b=scorer.correct_ranks(query, result_b, b.corpus),
        expected=scorer.targets(query).ids,
    )
