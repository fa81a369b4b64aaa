"""Scorecards of parts of a run, small enough to be sent to another process, and the one joined from them.

What is sent of a part is its distinct scores, which score each query has, and the columns; no results.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.scoring.columns import pad
from pytest_kebab_eval.scoring.hit_keys import HitKeys
from pytest_kebab_eval.scoring.scorecard import Basis, Notes, QueryScore, Scorecard

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
