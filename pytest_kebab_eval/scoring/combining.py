"""The scorecards of several runs -> one, whose values are their means, query by query."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from pytest_kebab_eval.scoring.columns import NOT_MEASURED, Column
from pytest_kebab_eval.scoring.hit_keys import HitKeys
from pytest_kebab_eval.scoring.scorecard import Notes, QueryScore, Scorecard
from pytest_kebab_eval.text import printable

Shown = Callable[[str], int]  # a query's id -> the number of the run that is shown of it


def combine(cards: Sequence[Scorecard], shown: Shown) -> Scorecard:
    """The mean of the runs; facts and errors of a query are those of the run that is shown of it."""
    first = cards[0]
    if len(cards) == 1:
        return first
    ids = list(dict.fromkeys(query_id for card in cards for query_id in card._scores))
    scores = _Means(cards, shown).of(ids)
    run = msgspec.structs.replace(first.run, run_id=",".join(card.run.run_id for card in cards))
    combined = Scorecard(run, first._basis, _notes(cards, scores, shown), scores, _columns(cards, ids))
    combined._hit_keys = _AllHitKeys([card._hit_keys for card in cards])
    combined.replicates = tuple(cards)
    return combined


class _Means:
    """Makes scores with mean values; queries whose scores are alike in every run share one."""

    def __init__(self, cards: Sequence[Scorecard], shown: Shown) -> None:
        self._cards = cards
        self._shown = shown
        self._known: dict[tuple[QueryScore, ...], QueryScore] = {}

    def of(self, ids: Iterable[str]) -> dict[str, QueryScore]:
        found = {}
        for query_id in ids:
            shown = self._cards[self._shown(query_id)]._scores[query_id]
            there = [score for card in self._cards if (score := card._scores.get(query_id)) is not None]
            key = (shown, *there)
            if key not in self._known:
                self._known[key] = _mean_score(shown, there)
            found[query_id] = self._known[key]
        return found


def _mean_score(shown: QueryScore, scores: Sequence[QueryScore]) -> QueryScore:
    if len({*scores}) == 1:
        return shown
    values = tuple(map(_mean, zip(*(score.values for score in scores), strict=True)))
    return QueryScore(shown.facts, values, shown.positions)


def _mean(values: Iterable[float | None]) -> float | None:
    measured = [value for value in values if value is not None and not math.isnan(value)]
    return math.fsum(measured) / len(measured) if measured else None


def _columns(cards: Sequence[Scorecard], ids: Sequence[str]) -> dict[str, Column]:
    """The means of columns, row by row; metrics that share a column still do."""
    rows = [{query_id: row for row, query_id in enumerate(card._scores)} for card in cards]
    made: dict[tuple[int, ...], Column] = {}
    found: dict[str, Column] = {}
    for name in dict.fromkeys(name for card in cards for name in card._columns):
        columns = [
            (card._columns[name], own) for card, own in zip(cards, rows, strict=True) if name in card._columns
        ]
        key = tuple(id(column) for column, _ in columns)
        if key not in made:
            made[key] = array("d", [_mean_in(columns, query_id) for query_id in ids])
        found[name] = made[key]
    return found


def _mean_in(columns: Sequence[tuple[Column, Mapping[str, int]]], query_id: str) -> float:
    value = _mean(column[rows[query_id]] for column, rows in columns if query_id in rows)
    return NOT_MEASURED if value is None else value


def _notes(cards: Sequence[Scorecard], scores: Mapping[str, QueryScore], shown: Shown) -> Notes:
    errors = {
        query_id: cards[shown(query_id)].notes.errors.get(query_id, "")
        for query_id, score in scores.items()
        if score.facts.errored
    }
    return Notes(
        errors,
        {
            query_id: f"in {printable(card.run.run_id)}: {reason}"
            for card in reversed(cards)
            for query_id, reason in card.notes.unreadable.items()
        },
        tuple(sorted({query_id for card in cards for query_id in card.notes.unknown_query_ids})),
        frozenset(judge for card in cards for judge in card.notes.judges),
        tuple(sorted({query_id for card in cards for query_id in card.notes.repeated})),
    )


class _AllHitKeys(HitKeys):
    """The hits of several runs, to look for ids that none of them has."""

    def __init__(self, each: Sequence[HitKeys]) -> None:
        super().__init__()
        self._each = each

    def without(self, ids: Iterable[str]) -> set[str]:
        """Which of these ids no hit of any run has."""
        unseen = {*ids}
        for keys in self._each:
            unseen = keys.without(unseen)
        return unseen
