"""Several scorecards: one whose values are the means of theirs, and two whose queries are compared."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import msgspec

from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.metrics.ranking import average_precision_of
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.columns import NOT_MEASURED, Column, Ranked
from pytest_kebab_eval.scoring.scorecard import NO_NOTES, Notes, QueryScore, Scorecard
from pytest_kebab_eval.text import printable

_YES_NO = frozenset({0.0, 1.0})

Shown = Callable[[str], int]  # a query's id -> the number of the run that is shown of it


def combine(cards: Sequence[Scorecard], shown: Shown) -> Scorecard:
    """The mean of the runs; facts and errors of a query are those of the run that is shown of it."""
    first = cards[0]
    if len(cards) == 1:
        return first
    ids = list(dict.fromkeys(query_id for card in cards for query_id in card._scores))
    scores = _mean_scores(cards, ids, shown)
    run = msgspec.structs.replace(first.run, run_id=",".join(card.run.run_id for card in cards))
    combined = Scorecard(run, first._basis, _notes(cards, scores, shown), scores, _columns(cards, ids))
    combined.replicates = tuple(cards)
    return combined


def _mean_scores(cards: Sequence[Scorecard], ids: Iterable[str], shown: Shown) -> dict[str, QueryScore]:
    """Scores with mean values; queries whose scores are alike in every run share one."""
    known: dict[tuple[QueryScore, ...], QueryScore] = {}
    found = {}
    for query_id in ids:
        chosen = cards[shown(query_id)]._scores[query_id]
        there = [score for card in cards if (score := card._scores.get(query_id)) is not None]
        key = (chosen, *there)
        if key not in known:
            known[key] = chosen
            if len({*there}) > 1:
                values = tuple(map(_mean, zip(*(score.values for score in there), strict=True)))
                known[key] = QueryScore(chosen.facts, values, chosen.positions)
        found[query_id] = known[key]
    return found


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


# -- runs that were stored to different depths -----------------------------------------------------


def to_common_depth(
    a: Scorecard, b: Scorecard, pair: tuple[Scorecard, Scorecard]
) -> tuple[Scorecard, Scorecard]:
    """The pair, which are A and B or the queries that both have, with `map` over as many hits in both."""
    depth = min(a.depth, b.depth)
    deepest = max(card.depth for side in (a, b) for card in side.replicates or (side,))
    return (_with_map_to(pair[0], depth), _with_map_to(pair[1], depth)) if 0 < depth < deepest else pair


def _with_map_to(card: Scorecard, depth: int) -> Scorecard:
    """The same scores, but for `map`, which is of the first hits alone."""
    position = card._basis.positions["map"]
    known: dict[tuple[QueryScore, ...], QueryScore] = {}
    scores = {}
    for query_id, score in card._scores.items():
        runs = (run._scores.get(query_id) for run in card.replicates or (card,))
        key = (score, *(found for found in runs if found is not None))
        if key not in known:
            each = [
                average_precision_of(found.facts.ranking.found, depth)
                for found in key[1:]
                if found.values[position] is not None
            ]
            values = (*score.values[:position], _mean(each), *score.values[position + 1 :])
            known[key] = QueryScore(score.facts, values, score.positions)
        scores[query_id] = known[key]
    limited = card.with_scores(scores)
    limited.replicates = tuple(_with_map_to(run, depth) for run in card.replicates)
    return limited


# -- two runs ------------------------------------------------------------------------------------


class Changes(Value, frozen=True):
    """The differences B - A that are not 0, and the number of queries measured in both runs."""

    values: list[float]
    n: int
    is_yes_no: bool  # whether every value measured is 0 or 1


class Pairs:
    """The queries that two runs have in common, over all or within one slice."""

    def __init__(
        self, a: Scorecard, b: Scorecard, part: str | None = None, *, golden_only: bool = False
    ) -> None:
        self._a, self._b = a, b
        self._rows_a, self._rows_b = array("q"), array("q")
        slices = b._basis.slices
        for query_id, row_a, row_b in _rows_in_both(a._scores, b._scores):
            if part is None:
                is_wanted = not golden_only or query_id in slices
            else:
                is_wanted = part in slices.get(query_id, ())
            if is_wanted:
                self._rows_a.append(row_a)
                self._rows_b.append(row_b)

    def _scores(self) -> Iterator[tuple[QueryScore, QueryScore]]:
        a, b = self._a._in_rows, self._b._in_rows
        return zip(map(a.__getitem__, self._rows_a), map(b.__getitem__, self._rows_b), strict=True)

    @cached_property
    def _tally(self) -> Counter[tuple[QueryScore, QueryScore]]:
        return Counter(self._scores())

    def rankings(self) -> Iterator[tuple[str, Ranked | None, Ranked | None]]:
        """Each query with its hits in A and in B; None for both if it errored in both."""
        of_a, of_b = self._a._hit_keys.of, self._b._hit_keys.of
        ids = list(self._b._scores)
        rows = zip(self._rows_a, self._rows_b, self._scores(), strict=True)
        for row_a, row_b, (score_a, score_b) in rows:
            if score_a.facts.errored and score_b.facts.errored:
                yield ids[row_b], None, None
            else:
                yield ids[row_b], of_a(row_a), of_b(row_b)

    def count_ranked(self) -> int:
        """The queries whose rankings can be compared: all but those that errored in both runs."""
        return sum(
            count
            for (score_a, score_b), count in self._tally.items()
            if not (score_a.facts.errored and score_b.facts.errored)
        )

    def with_values(
        self, metrics: tuple[Metric, ...], values: Iterable[tuple[str, tuple[float | None, ...]]]
    ) -> Scorecard:
        """A scorecard of these queries that has these values alone, in the order of the metrics."""
        b = self._b
        basis = b._basis.with_metrics(metrics)
        shared: dict[int, QueryScore] = {}
        scores = {}
        for query_id, measured in values:
            score = shared.get(id(measured))
            if score is None:
                score = QueryScore(b._scores[query_id].facts, measured, basis.positions)
                shared[id(measured)] = score
            scores[query_id] = score
        return Scorecard(b.run, basis, NO_NOTES, scores, {})

    def __bool__(self) -> bool:
        return bool(self._rows_b)

    def changes(self, metric: Metric) -> Changes:
        measured = self._measured(metric)
        changes: list[float] = []
        for (before, after), count in measured.items():
            if before != after:
                changes += [after - before] * count
        is_yes_no = all(before in _YES_NO and after in _YES_NO for before, after in measured)
        return Changes(changes, measured.total(), is_yes_no)

    def means(self, metric: Metric) -> tuple[float, float]:
        """The mean in A and in B."""
        measured = self._measured(metric)
        total = measured.total() or 1
        before = math.fsum(before * count for (before, _), count in measured.items())
        after = math.fsum(after * count for (_, after), count in measured.items())
        return before / total, after / total

    def room(self, metric: Metric) -> tuple[int, int]:
        """How many queries could fall from what they are in A, and how many could rise."""
        measured, most = self._measured(metric), metric.family.max_value
        if most is None:
            return measured.total(), measured.total()
        return (
            sum(count for (before, _), count in measured.items() if before > 0),
            sum(count for (before, _), count in measured.items() if before < most),
        )

    def _measured(self, metric: Metric) -> Counter[tuple[float, float]]:
        """The values in A and in B, and of how many queries."""
        name = metric.name
        if not metric.family.over.of_facts:
            return Counter(self._in_columns(name))
        found: Counter[tuple[float, float]] = Counter()
        for (score_a, score_b), count in self._tally.items():
            before, after = score_a.value(name), score_b.value(name)
            if before is not None and after is not None:
                found[before, after] += count
        return found

    def _in_columns(self, name: str) -> Iterator[tuple[float, float]]:
        before, after = self._a._columns.get(name), self._b._columns.get(name)
        if before is not None and after is not None:
            for row_a, row_b in zip(self._rows_a, self._rows_b, strict=True):
                pair = before[row_a], after[row_b]
                if not math.isnan(pair[0]) and not math.isnan(pair[1]):
                    yield pair


def _rows_in_both(a: Iterable[str], b: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """The queries that both have, in the order of B, each with its row in A and in B; usually the same."""
    ids_a = list(a)
    rows_a: dict[str, int] | None = None
    for row_b, query_id in enumerate(b):
        row_a: int | None = row_b
        if row_b >= len(ids_a) or ids_a[row_b] != query_id:
            if rows_a is None:
                rows_a = {name: row for row, name in enumerate(ids_a)}
            row_a = rows_a.get(query_id)
        if row_a is not None:
            yield query_id, row_a, row_b
