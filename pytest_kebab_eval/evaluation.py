"""The whole pipeline: golden set, two runs -> match, score, compare, judge. Start reading here."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparison import CompareReport, Sides, compare, significance_in
from pytest_kebab_eval.errors import ChunkerError, GateError
from pytest_kebab_eval.gates import Gate, judge_gates, parse_gate
from pytest_kebab_eval.golden import GoldenSet, load_golden_set
from pytest_kebab_eval.inert import printable
from pytest_kebab_eval.matching import Located, Matcher, Places, citation_extents, gains_of
from pytest_kebab_eval.metrics import Metric, all_names, own_metric
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

    run_a: Run | None
    run_b: Run
    report: CompareReport
    verdicts: dict[str, Verdict]
    shown: dict[str, Shown]  # for the queries that do not pass


class Inputs(NamedTuple):
    """The runs by their rightful names, how they are matched, and the gates; cheap to find out."""

    golden: GoldenSet
    run_a: Run | None
    run_b: Run
    mode: MatchMode
    gates: tuple[Gate, ...] = ()
    metrics: tuple[Metric, ...] = ()  # of the user's own
    warnings: tuple[str, ...] = ()


OwnMetrics = Mapping[str, Callable[[GoldenQuery, QueryResult], "float | None"]]


def find_inputs(settings: Settings, own_metrics: OwnMetrics | None = None) -> Inputs:
    """Everything that can be wrong with what the user gave is found here, before any work."""
    golden = load_golden_set(settings.golden)
    metrics = tuple(own_metric(name, function) for name, function in (own_metrics or {}).items())
    gates = _parsed_gates(settings, metrics)
    with ExitStack() as stack:
        a, b = _open_both(stack, settings)
        run_a = find_run(a, settings.run_a, settings.suite) if settings.run_a else None
        run_b = find_run(b, settings.run_b, settings.suite)
        runs = [(a, run_a), (b, run_b)] if run_a else [(b, run_b)]
        version = _golden_version(golden, [database for database, _ in runs])
        mode = _match_mode([run for _, run in runs if run], version)
        if mode is MatchMode.FALLBACK and settings.strict_chunker_version:
            raise ChunkerError(_strict_refusal(run_a, run_b, version))
        warnings = dict.fromkeys([*a.warnings, *b.warnings, *_outdated(golden, runs)])
    return Inputs(golden, run_a, run_b, mode, gates, metrics, tuple(warnings))


def evaluate(
    settings: Settings, inputs: Inputs | None = None, today: datetime.date | None = None
) -> Evaluation:
    """Compare the two runs that the settings name, or judge run B alone."""
    inputs = inputs or find_inputs(settings)
    golden, run_a, run_b = inputs.golden, inputs.run_a, inputs.run_b
    with ExitStack() as stack:
        a, b = _open_both(stack, settings)
        runs = [(a, run_a), (b, run_b)] if run_a else [(b, run_b)]
        matcher = Matcher(inputs.mode, _places(golden, inputs.mode, runs), settings.span_overlap)
        scorer = Scorer(golden, matcher, settings.k, inputs.metrics)
        sides = Sides(
            _scorecard(scorer, a, run_a) if run_a else None,
            _scorecard(scorer, b, run_b),
            stored_a=lambda query_id: a.result(run_a.run_id, query_id) if run_a else None,
            stored_b=lambda query_id: b.result(run_b.run_id, query_id),
        )
        report = compare(golden, sides, scorer.targets, settings.compare_k)
        report = msgspec.structs.replace(
            report,
            gates=judge_gates(inputs.gates, report, partial(significance_in, sides)),
            index_a=a.corpus.coverage() if run_a else None,
            index_b=b.corpus.coverage(),
            warnings=inputs.warnings,
        )
        verdicts = _verdicts(golden, report, sides, settings, today or datetime.date.today())
        shown = {
            query.id: _shown(query, sides, scorer, a, b)
            for query in golden.queries
            if verdicts[query.id].outcome in (Outcome.FAILED, Outcome.XFAILED)
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


class StoredResults(NamedTuple):
    """The results of both runs by query id; None for one that is absent or unreadable."""

    a: Callable[[str], QueryResult | None]
    b: Callable[[str], QueryResult | None]


def stored_results(stack: ExitStack, settings: Settings, evaluation: Evaluation) -> StoredResults:
    """Read single results for as long as the stack is open."""
    a, b = _open_both(stack, settings)
    run_a = evaluation.run_a
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
        run = find_run(database, run_id)
        mode = _match_mode([run], _golden_version(golden_set, [database]))
        places = _places(golden_set, mode, [(database, run)])
        scorecard = _scorecard(Scorer(golden_set, Matcher(mode, places)), database, run)
    return aggregate(scorecard)


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


def _parsed_gates(settings: Settings, metrics: tuple[Metric, ...]) -> tuple[Gate, ...]:
    known = [*all_names(), *(metric.name for metric in metrics)]
    gates = tuple(parse_gate(text, known) for text in settings.gates)
    for gate in gates:
        if gate.delta and settings.run_a is None:
            raise GateError(
                f"the gate '{gate}' is on a delta, which takes --kebab-run-a; there is only run B"
            )
    return gates


def _outdated(golden: GoldenSet, runs: list[tuple[Database, Run]]) -> Iterator[str]:
    """Runs whose stored aggregate is of another golden file; it is computed anew, but trends break."""
    for database, run in runs:
        stored = database.stored_fingerprint(run)
        if stored is not None and stored != golden.fingerprint:
            yield (
                f"the aggregate stored for run {printable(run.run_id)} was of another content of the golden"
                " file; it is computed anew, and not comparable with what was reported then"
            )


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


def _strict_refusal(a: Run | None, b: Run, golden_version: str | None) -> str:
    versions = f"B {_version(b.chunker_version)}"
    if a is not None:
        versions = f"A {_version(a.chunker_version)}, {versions}"
    if a is None or a.chunker_version == b.chunker_version:
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
    golden: GoldenSet, report: CompareReport, sides: Sides, settings: Settings, today: datetime.date
) -> dict[str, Verdict]:
    comparisons = {one.query_id: one for one in report.per_query}
    in_a = sides.a.scores if sides.a else {}
    return {
        query.id: judge_query(
            query,
            comparisons.get(query.id),
            in_a.get(query.id),
            sides.b.scores.get(query.id),
            settings.fail_on,
            today,
            compared=sides.a is not None,
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
