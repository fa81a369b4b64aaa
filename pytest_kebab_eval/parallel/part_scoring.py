"""What a worker does: it reads and scores the results of both runs whose query ids are in a range.

What is sent of a part is its distinct scores, which score each query has, and the columns; no results.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.comparing.movement import measure_movement
from pytest_kebab_eval.errors import NoDatabase, WorkerError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.packing import PackedQueries
from pytest_kebab_eval.matching.locations import Locations
from pytest_kebab_eval.matching.strategies import Coarser
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Facts, Metric
from pytest_kebab_eval.model import MatchMode, Run
from pytest_kebab_eval.scoring.columns import HitKeys, pad
from pytest_kebab_eval.scoring.scorecard import Basis, Notes, QueryScore, Scorecard, Survey
from pytest_kebab_eval.scoring.scorer import Scorer, score_together
from pytest_kebab_eval.store import Address, Database, IdRange, open_database, shown_address

_Score = tuple[Facts, tuple["float | None", ...]]


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
