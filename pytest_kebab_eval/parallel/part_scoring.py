"""What a worker does: it reads and scores the results of both runs whose query ids are in a range."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from pytest_kebab_eval.comparing.movement import Movement, measure_movement
from pytest_kebab_eval.errors import NoDatabase, WorkerError
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.golden.packing import PackedQueries
from pytest_kebab_eval.matching.locations import Locations
from pytest_kebab_eval.matching.strategies import Coarser
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import MatchMode, QueryResult, Run
from pytest_kebab_eval.scoring.hit_keys import key_of
from pytest_kebab_eval.scoring.parts import CardPart, part_of
from pytest_kebab_eval.scoring.scorer import Scorer
from pytest_kebab_eval.scoring.survey import Survey
from pytest_kebab_eval.scoring.together import score_together
from pytest_kebab_eval.store import Address, Database, IdRange, open_database, shown_address


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
