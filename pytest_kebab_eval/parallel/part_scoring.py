"""What a worker does: it reads and scores the results of both runs whose query ids are in a range.

What is sent of a part is its distinct scores, which score each query has, and the columns; no results.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.comparing.movement import Movement, measure_movement
from pytest_kebab_eval.errors import NoDatabase, WorkerError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.packing import PackedQueries
from pytest_kebab_eval.matching.locations import Locations
from pytest_kebab_eval.matching.strategies import Coarser
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Facts, Metric
from pytest_kebab_eval.model import MatchMode, QueryResult, Run
from pytest_kebab_eval.scoring.columns import HitKeys, key_of, pad
from pytest_kebab_eval.scoring.scorecard import Basis, Notes, QueryScore, Scorecard, Survey
from pytest_kebab_eval.scoring.scorer import Scorer, score_together
from pytest_kebab_eval.store import Address, Database, IdRange, open_database, shown_address

_Score = tuple[Facts, tuple["float | None", ...]]


class CardPart(NamedTuple):
    """A scorecard of some queries, without what the golden set of all of them says."""

    order: array[int] | None  # the queries' places among those of the golden part; None: just those
    others: list[str]  # ids that the golden part does not have, whose places follow
    scores: list[_Score]
    which: array[int]  # for each query, the place of its score
    columns: dict[tuple[str, ...], array[float]]  # by the names of the metrics that share one
    notes: Notes

    def without_notes(self) -> CardPart:
        """The same, where the notes are sent with another card of the part."""
        return self._replace(notes=Notes({}, {}, (), frozenset()))

    def query_ids(self, golden_ids: Sequence[str]) -> Sequence[str]:
        """The queries, given those of the golden part."""
        if self.order is None:
            return golden_ids
        return [*map([*golden_ids, *self.others].__getitem__, self.order)]


def part_of(card: Scorecard, golden_ids: Sequence[str]) -> CardPart:
    """A scorecard as it is sent by one who scored these golden queries."""
    ids = [*card.query_ids()]
    places: dict[QueryScore, int] = {}
    which = array("I", [places.setdefault(score, len(places)) for score in card.scores_in_order()])
    known = {query_id: place for place, query_id in enumerate(golden_ids)}
    others = [query_id for query_id in ids if query_id not in known]
    known.update(zip(others, range(len(known), len(known) + len(others)), strict=True))
    return CardPart(
        order=None if ids == golden_ids else array("I", map(known.__getitem__, ids)),
        others=others,
        scores=[(score.facts, score.values) for score in places],
        which=which,
        columns=card.distinct_columns(),
        notes=card.notes,
    )


class CardJoiner:
    """Joins the parts of one run's scorecard as they come in."""

    def __init__(self, run: Run, basis: Basis) -> None:
        self._run, self._basis = run, basis
        self._known: dict[_Score, QueryScore] = {}
        self._scores: dict[str, QueryScore] = {}
        self._columns: dict[tuple[str, ...], array[float]] = {}
        self._notes: list[Notes] = []
        self._others: list[str] = []
        self._rows = 0

    def add(self, part: CardPart, golden_ids: Sequence[str]) -> None:
        """One more part, and its golden queries."""
        scores = [self._known.get(score) or self._new(score) for score in part.scores]
        ids = part.query_ids(golden_ids)
        self._scores.update(zip(ids, map(scores.__getitem__, part.which), strict=True))
        for names, column in part.columns.items():
            found = self._columns.setdefault(names, array("d"))
            pad(found, self._rows)
            found.extend(column)
        self._rows += len(ids)
        self._notes.append(part.notes)
        self._others += part.others

    def _new(self, score: _Score) -> QueryScore:
        self._known[score] = found = QueryScore(*score, self._basis.positions)
        return found

    def is_whole(self, golden: Mapping[str, object], stored: int) -> bool:
        """Whether these are as many results as are stored, and each was in the part of its golden query."""
        return self._rows == len(self._scores) == stored and not any(map(golden.__contains__, self._others))

    def joined(self, hit_keys: HitKeys) -> Scorecard:
        """The scorecard of all parts."""
        for column in self._columns.values():
            pad(column, self._rows)
        columns = {name: column for names, column in self._columns.items() for name in names}
        return Scorecard(self._run, self._basis, _joined(self._notes), self._scores, columns, hit_keys)


def _joined(notes: Iterable[Notes]) -> Notes:
    notes = [*notes]
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


class MovementPart(NamedTuple):
    """How far the rankings of a part moved."""

    card: CardPart
    moved: dict[str, tuple[float, float]]


class PartScores(NamedTuple):
    """A part of both runs, scored; the first part also says how many results the runs have."""

    a: CardPart | None
    b: CardPart
    movement: MovementPart | None
    stored_a: int = 0
    stored_b: int = 0
    coarser: dict[str, Coarser] | None = None  # queries of the part that are matched in another way


def score_part(task: PartTask) -> PartScores:
    """In a worker: read and score a part of both runs."""
    job, ids = task.job, task.golden_ids
    with ExitStack() as stack:
        b = _open(stack, job.b)
        a = b if job.a is None or job.a.address == job.b.address else _open(stack, job.a)
        scorer = _scorer(task, [a, b])
        runs = [(a, job.a.run)] if job.a else []
        *cards_a, card_b = score_together(scorer, [*runs, (b, job.b.run)], ids=task.ids)
        card_a = cards_a[0] if cards_a else None
        movement = measure_movement([card_a], [card_b], job.compare_k, job.overlaps) if card_a else None
        is_first = task.ids.first == ""
        return PartScores(
            part_of(card_a, ids) if card_a else None,
            part_of(card_b, ids),
            _part_of_movement(movement, ids) if movement else None,
            a.result_count(job.a.run.run_id) if job.a and is_first else 0,
            b.result_count(job.b.run.run_id) if is_first else 0,
            scorer.matcher.coarser,
        )


def _open(stack: ExitStack, stored: AddressedRun) -> Database:
    try:
        return stack.enter_context(open_database(stored.address))
    except NoDatabase:
        name = shown_address(stored.address)
        raise WorkerError(
            f"a worker cannot see the database {name}; keep it where every worker can read it, by the same"
            " path, or in PostgreSQL"
        ) from None


def _scorer(task: PartTask, databases: Sequence[Database]) -> Scorer:
    job = task.job
    queries = PackedQueries()
    queries.add_packed(task.golden_ids, task.fields)
    corpora = [database.corpus for database in dict.fromkeys(databases)]
    matcher = Matcher(job.mode, task.locations._replace(corpora=corpora), job.span_overlap)
    metrics = map(Metric.parse, job.metrics)
    survey = Survey(
        dict.fromkeys(task.golden_ids, ()), job.needs_met, ""
    )  # slices are known where it is joined
    return Scorer(GoldenSet(Path(), queries), matcher, job.k, metrics, survey)


def _part_of_movement(movement: Movement, golden_ids: Sequence[str]) -> MovementPart:
    return MovementPart(part_of(movement.card, golden_ids).without_notes(), movement.moved)


# -- ids that no hit has -------------------------------------------------------------------------


class HitSearch(NamedTuple):
    """Ids to be looked for among the hits of a part of a run."""

    stored: AddressedRun
    ids: IdRange
    wanted: frozenset[str]


def find_hits(search: HitSearch) -> set[str]:
    """In a worker: which of the ids a hit has; a result that is stored twice counts as it was first read."""
    seen: set[str] = set()
    found: set[str] = set()
    with ExitStack() as stack:
        for result in _open(stack, search.stored).results(search.stored.run.run_id, search.ids):
            if isinstance(result, QueryResult) and result.error is None and result.query_id not in seen:
                found.update(key_of(hit) or "" for hit in result.hits)
            seen.add(result.query_id)
    return found & search.wanted
