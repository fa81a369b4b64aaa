"""Both runs scored in parts, by ranges of query ids, and joined: the outcome is that of one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_kebab_eval.comparing.movement import Movement, movement_metrics
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.packing import PackedQueries, pack
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.strategies import Coarser
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.parallel.golden import LoadedGolden
from pytest_kebab_eval.parallel.part_scoring import (
    AddressedRun,
    CardJoiner,
    Job,
    PartScores,
    PartTask,
    score_part,
)
from pytest_kebab_eval.parallel.workers import Workers
from pytest_kebab_eval.reading import Scored
from pytest_kebab_eval.scoring.columns import HitKeys, key_of
from pytest_kebab_eval.scoring.scorecard import Basis, Survey, basis_of, needs_met, slices_by_query
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import IdRange, absolute, open_database

PART_QUERIES = 25_000  # golden queries of a part: more would take a worker more memory
_Part = tuple[IdRange, list[str]]  # a range of query ids, and the golden queries in it


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
