"""Both runs scored in parts, by ranges of query ids, and joined: the outcome is that of one process.

What a worker sends of a part is its distinct scores, which score each query has, and the columns; no results.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.comparing.movement import Movement, measure_movement, movement_metrics
from pytest_kebab_eval.errors import NoDatabase, WorkerError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.packing import PackedQueries, pack
from pytest_kebab_eval.matching.locations import Locations
from pytest_kebab_eval.matching.strategies import Coarser
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Facts, Metric, all_metrics
from pytest_kebab_eval.model import MatchMode, QueryResult, Run
from pytest_kebab_eval.scoring.columns import HitKeys, key_of, pad
from pytest_kebab_eval.scoring.scorecard import (
    Basis,
    Notes,
    QueryScore,
    Scorecard,
    Survey,
    basis_of,
    needs_met,
    slices_by_query,
)
from pytest_kebab_eval.scoring.scorer import Scorer, score_together
from pytest_kebab_eval.store import Address, Database, IdRange, absolute, open_database, shown_address

if TYPE_CHECKING:  # of what a worker need not load
    from pytest_kebab_eval.inputs import Inputs
    from pytest_kebab_eval.parallel.golden import LoadedGolden
    from pytest_kebab_eval.parallel.workers import Workers
    from pytest_kebab_eval.reading import Scored
    from pytest_kebab_eval.settings import Settings

PART_QUERIES = 25_000  # golden queries of a part: more would take a worker more memory
_Part = tuple[IdRange, list[str]]  # a range of query ids, and the golden queries in it
_Score = tuple[Facts, tuple["float | None", ...]]


class PartScorer:
    """Scores both runs of a comparison with the help of workers."""

    def __init__(
        self, workers: Workers, settings: Settings, loaded: LoadedGolden, part_queries: int = PART_QUERIES
    ) -> None:
        self._workers, self._settings, self._loaded = workers, settings, loaded
        self._part_queries = part_queries

    def score(self, inputs: Inputs, matcher: Matcher) -> Scored | None:
        """Both runs, scored; None if a side has several, or the parts are not the whole, as where rows are
        against the schema.
        """
        if inputs.has_several:
            return None
        golden, metrics = inputs.golden, (*all_metrics(), *inputs.metrics)
        slices, met = self._loaded.slices, self._loaded.needs_met
        if slices is None:
            slices, met = slices_by_query(golden.queries), needs_met(golden.queries, metrics)
        job = _job(self._settings, inputs, met)
        parts = self._parts(golden)
        results = self._workers.map(score_part, _tasks(job, parts, golden, matcher))
        survey = Survey(slices, met, golden.fingerprint)  # while the workers are at it: it takes a moment
        joiner = _Joiner(job, basis_of(metrics, survey, matcher.mode.value))
        for (_, golden_ids), scores in zip(parts, results, strict=True):
            joiner.add(scores, golden_ids)
        if not joiner.is_whole(golden):
            return None
        matcher.coarsen(joiner.coarser)
        return joiner.joined()

    def _parts(self, golden: GoldenSet) -> list[_Part]:
        """The parts: enough for all workers, and none with too much for one to hold."""
        ids = sorted(golden.by_id())
        size = max(1, min(self._part_queries, -(-len(ids) // self._workers.count)))
        found = [ids[start : start + size] for start in range(0, len(ids), size)]
        firsts = ["", *(golden_ids[0] for golden_ids in found[1:])]
        ranges = map(IdRange, firsts, [*firsts[1:], None])
        return [*zip(ranges, found, strict=True)]


def _job(settings: Settings, inputs: Inputs, met: frozenset[str]) -> Job:
    return Job(
        a=AddressedRun(absolute(settings.db_a), inputs.run_a) if inputs.run_a else None,
        b=AddressedRun(absolute(settings.db_b), inputs.run_b),
        mode=inputs.mode,
        span_overlap=settings.span_overlap,
        k=settings.k,
        compare_k=settings.compare_k,
        metrics=tuple(metric.name for metric in inputs.metrics),
        overlaps=inputs.overlaps,
        needs_met=met,
    )


def _tasks(job: Job, parts: Iterable[_Part], golden: GoldenSet, matcher: Matcher) -> Iterator[PartTask]:
    by_id, queries = golden.by_id(), golden.queries
    for ids, golden_ids in parts:
        if isinstance(queries, PackedQueries):
            fields = queries.packed(golden_ids)
        else:
            fields = [pack(by_id[query_id]) for query_id in golden_ids]
        locations = matcher.locations.only(by_id[query_id] for query_id in golden_ids)
        yield PartTask(job, ids, golden_ids, fields, locations)


# -- in a worker ------------------------------------------------------------------------------------


class AddressedRun(NamedTuple):
    """A run, and the database that it is in."""

    address: Address
    run: Run


class Job(NamedTuple):
    """What is the same for all parts of a comparison."""

    a: AddressedRun | None
    b: AddressedRun
    mode: MatchMode
    span_overlap: float
    k: int
    compare_k: int
    metrics: tuple[str, ...]  # the names of those beside the usual ones
    overlaps: tuple[int, ...]
    needs_met: frozenset[str]


class PartTask(NamedTuple):
    """One part: its golden queries, packed, and where their expected chunks are, as far as that is known."""

    job: Job
    ids: IdRange
    golden_ids: list[str]
    fields: list[bytes]
    locations: Locations


class PartScores(NamedTuple):
    """A part of both runs, scored, and how far their rankings are apart, if there is a run A."""

    a: CardPart | None
    b: CardPart
    movement: CardPart | None
    moved: dict[str, tuple[float, float]]
    stored: tuple[int, int]  # how many results both runs have in all; only the first part says it
    coarser: dict[str, Coarser]  # queries of the part that are matched in another way


def score_part(task: PartTask) -> PartScores:
    """In a worker: read and score a part of both runs."""
    job = task.job
    with ExitStack() as stack:
        b = _open(stack, job.b.address)
        a = b if job.a is None or job.a.address == job.b.address else _open(stack, job.a.address)
        scorer = _scorer(task, [a, b])
        runs = [*([(a, job.a.run)] if job.a else []), (b, job.b.run)]
        *cards_a, card_b = score_together(scorer, runs, ids=task.ids)
        movement = measure_movement(cards_a, [card_b], job.compare_k, job.overlaps) if cards_a else None
        stored = [database.result_count(run.run_id) for database, run in runs] if not task.ids.first else []
        return PartScores(
            part_of(cards_a[0]) if cards_a else None,
            part_of(card_b),
            part_of(movement.card) if movement else None,
            movement.moved if movement else {},
            (sum(stored[:-1]), sum(stored[-1:])),
            scorer.matcher.coarser,
        )


def _open(stack: ExitStack, address: Address) -> Database:
    try:
        return stack.enter_context(open_database(address))
    except NoDatabase:
        raise WorkerError(
            f"a worker cannot see the database {shown_address(address)}; keep it where every worker"
            " can read it, by the same path, or in PostgreSQL"
        ) from None


def _scorer(task: PartTask, databases: Sequence[Database]) -> Scorer:
    job = task.job
    queries = PackedQueries()
    queries.add_packed(task.golden_ids, task.fields)
    corpora = [database.corpus for database in dict.fromkeys(databases)]
    matcher = Matcher(job.mode, task.locations._replace(corpora=corpora), job.span_overlap)
    matcher.will_judge(queries)
    metrics = map(Metric.parse, job.metrics)
    slices: dict[str, tuple[str, ...]] = dict.fromkeys(task.golden_ids, ())  # known where it is joined
    survey = Survey(slices, job.needs_met, "")
    return Scorer(GoldenSet(Path(), queries), matcher, job.k, metrics, survey)


# -- a scorecard as it is sent, and joined ----------------------------------------------------------


class CardPart(NamedTuple):
    """A scorecard of some queries, without what the golden set of all of them says."""

    query_ids: list[str]
    scores: list[_Score]
    which: array[int]  # for each query, the place of its score
    columns: dict[tuple[str, ...], array[float]]  # by the names of the metrics that share one
    notes: Notes


def part_of(card: Scorecard) -> CardPart:
    """A scorecard as it is sent."""
    places: dict[QueryScore, int] = {}
    which = array("I", [places.setdefault(score, len(places)) for score in card.scores_in_order()])
    scores = [(score.facts, score.values) for score in places]
    return CardPart([*card.query_ids()], scores, which, card.distinct_columns(), card.notes)


class CardJoiner:
    """Joins the parts of one run's scorecard as they come in."""

    def __init__(self, run: Run, basis: Basis) -> None:
        self._run, self._basis = run, basis
        self._known: dict[_Score, QueryScore] = {}
        self._scores: dict[str, QueryScore] = {}
        self._columns: dict[tuple[str, ...], array[float]] = {}
        self._notes: list[Notes] = []
        self._others: set[str] = set()  # queries that are not golden, by their part
        self._rows = 0

    def add(self, part: CardPart, golden_ids: Sequence[str]) -> None:
        scores = [self._known.get(score) or self._new(score) for score in part.scores]
        self._scores.update(zip(part.query_ids, map(scores.__getitem__, part.which), strict=True))
        for names, column in part.columns.items():
            found = self._columns.setdefault(names, array("d"))
            pad(found, self._rows)
            found.extend(column)
        self._rows += len(part.query_ids)
        self._notes.append(part.notes)
        self._others.update({*part.query_ids}.difference(golden_ids))

    def _new(self, score: _Score) -> QueryScore:
        self._known[score] = found = QueryScore(*score, self._basis.positions)
        return found

    def is_whole(self, golden: Mapping[str, object], stored: int) -> bool:
        """Whether these are as many results as are stored, and each was in the part of its golden query."""
        return self._rows == len(self._scores) == stored and not any(map(golden.__contains__, self._others))

    def joined(self, hit_keys: HitKeys) -> Scorecard:
        for column in self._columns.values():
            pad(column, self._rows)
        columns = {name: column for names, column in self._columns.items() for name in names}
        return Scorecard(self._run, self._basis, _joined(self._notes), self._scores, columns, hit_keys)


def _joined(notes: Sequence[Notes]) -> Notes:
    return Notes(
        errors={key: text for part in notes for key, text in part.errors.items()},
        unreadable={key: text for part in notes for key, text in part.unreadable.items()},
        unknown_query_ids=tuple(sorted(chain.from_iterable(part.unknown_query_ids for part in notes))),
        judges=frozenset(chain.from_iterable(part.judges for part in notes)),
        repeated=tuple(sorted(chain.from_iterable(part.repeated for part in notes))),
    )


class _Joiner:
    """Joins what the workers found, as it comes in."""

    def __init__(self, job: Job, basis: Basis) -> None:
        self._job = job
        self._a = CardJoiner(job.a.run, basis) if job.a else None
        self._b = CardJoiner(job.b.run, basis)
        self._movement = CardJoiner(job.b.run, basis.with_metrics(movement_metrics(job.overlaps)))
        self._moved: dict[str, tuple[float, float]] = {}
        self._stored = (0, 0)
        self.coarser: dict[str, Coarser] = {}

    def add(self, scores: PartScores, golden_ids: list[str]) -> None:
        if self._a and scores.a:
            self._a.add(scores.a, golden_ids)
        self._b.add(scores.b, golden_ids)
        if scores.movement:
            self._movement.add(scores.movement, golden_ids)
        self._moved |= scores.moved
        self._stored = max(self._stored, scores.stored)  # all but the first are 0
        self.coarser |= scores.coarser

    def is_whole(self, golden: GoldenSet) -> bool:
        """Whether every result was read, each in the part of its golden query."""
        by_id = golden.by_id()
        sides = zip((self._a, self._b), self._stored, strict=True)
        return all(card is None or card.is_whole(by_id, stored) for card, stored in sides)

    def joined(self) -> Scored:
        b = self._b.joined(_StoredHits(self._job.b))
        if self._a is None or self._job.a is None:
            return (), (b,), None
        movement = Movement(self._movement.joined(HitKeys()), self._moved)
        return (self._a.joined(_StoredHits(self._job.a)),), (b,), movement


class _StoredHits(HitKeys):
    """The hits of a run that workers scored: they are read again in the rare case."""

    def __init__(self, stored: AddressedRun) -> None:
        super().__init__()
        self._stored = stored

    def without(self, ids: Iterable[str]) -> set[str]:
        """Which of these ids no hit has; a result that is stored twice counts as it was first read."""
        unseen, read = {*ids}, set[str]()
        with open_database(self._stored.address) as database:
            for result in database.results(self._stored.run.run_id):
                if isinstance(result, QueryResult) and result.error is None and result.query_id not in read:
                    unseen.difference_update(key_of(hit) or "" for hit in result.hits)
                read.add(result.query_id)
        return unseen
