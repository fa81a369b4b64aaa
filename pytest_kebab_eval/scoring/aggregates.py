"""A `Scorecard` -> `AggregateMetrics`: every metric over all queries and over each slice."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import fsum, isnan
from typing import Any

import msgspec

from pytest_kebab_eval.metrics import CUTOFFS, Family, Metric
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard

DECIMALS = 4

Slices = dict[str, dict[str, float | None]]


class MetricValues(msgspec.Struct, frozen=True, kw_only=True):
    """A value for every metric, in the shape that `aggregate_json` has."""

    hit_at_k: dict[str, float | None]
    mrr: float | None
    recall_at_k_doc: dict[str, float | None]
    citation_coverage: float | None
    groundedness: float | None
    empty_result_rate: float | None
    refusal_correctness: float | None
    total_queries: int
    failed_queries: int
    precision_at_k_chunk: dict[str, float | None]
    extra: dict[str, float | None]
    counts: dict[str, int]
    slices: Slices  # only the metrics that were measured in a slice are there

    def value(self, metric: str, part: str | None = None) -> float | None:
        """A metric by its name, over all queries or one slice; None if nothing was measured."""
        return (self.by_name() if part is None else self.slices.get(part, {})).get(metric)

    def by_name(self) -> dict[str, float | None]:
        """Every metric's value by its name."""
        found: dict[str, float | None] = {}
        for pattern, field in _TABLES.items():
            found.update((pattern.format(k=k), value) for k, value in getattr(self, field).items())
        found.update((field, getattr(self, field)) for field in _SINGLES)
        return found | self.extra


class AggregateMetrics(MetricValues, frozen=True, kw_only=True):
    """The metrics of a run over all its queries; None where no query was applicable."""

    slice_counts: dict[str, int] = msgspec.field(default_factory=dict)  # the queries of each slice
    match: str
    golden_sha256: str


_TABLES = {
    "hit@{k}": "hit_at_k",
    "recall@{k}_doc": "recall_at_k_doc",
    "precision@{k}_chunk": "precision_at_k_chunk",
}
_SINGLES = ("mrr", "citation_coverage", "groundedness", "empty_result_rate", "refusal_correctness")


def in_shape(values: dict[str, float | None]) -> dict[str, object]:
    """Values by metric name -> the fields of `MetricValues` that hold them."""
    rest = dict(values)
    fields: dict[str, object] = {
        field: {str(k): rest.pop(pattern.format(k=k)) for k in CUTOFFS} for pattern, field in _TABLES.items()
    }
    fields.update((name, rest.pop(name)) for name in _SINGLES)
    return fields | {"extra": rest}


def stored_values(aggregate_json: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a stored `aggregate_json` by name, also of an older or foreign one."""
    found: dict[str, Any] = {}
    for pattern, field in _TABLES.items():
        table = aggregate_json.get(field)
        if isinstance(table, dict):
            found.update((pattern.format(k=k), value) for k, value in table.items())
    found.update((name, aggregate_json.get(name)) for name in _SINGLES)
    extra = aggregate_json.get("extra")
    found.update(extra if isinstance(extra, dict) else {})
    return {name: float(value) for name, value in found.items() if isinstance(value, (int, float))}


def rounded(value: float) -> float:
    """A value as it is stored; never a negative zero."""
    return round(value, DECIMALS) + 0.0


# -- aggregation ---------------------------------------------------------------------------------

Tally = Counter[QueryScore]  # how many queries did so
Reduced = tuple["float | None", int]  # a value, and the number of queries it is over
_NO_SLICES: tuple[str, ...] = ()


def aggregate(card: Scorecard, only: Collection[str] | None = None) -> AggregateMetrics:
    """A run's metrics over all its queries, or over some of them, rounded as they are stored."""
    groups = _by_slices(card, only)
    scores = list(card.scores.values())
    whole: Tally = Counter()
    parts: dict[str, Tally] = {}
    for slices, rows in groups.items():
        tally = Counter(map(scores.__getitem__, rows))
        whole.update(tally)
        for part in slices:
            parts.setdefault(part, Counter()).update(tally)
    of_columns = _over_columns(card, groups)
    reduced = dict(_reduced(card, whole, of_columns[None]))
    counts = {name: count for name, (_, count) in reduced.items()}
    return AggregateMetrics(
        **in_shape({name: value for name, (value, _) in reduced.items()}),  # type: ignore[arg-type]
        counts=counts,
        total_queries=whole.total(),
        failed_queries=sum(count for score, count in whole.items() if score.facts.errored),
        slices={
            part: {
                name: value
                for name, (value, _) in _reduced(card, parts[part], of_columns[part], counts)
                if value is not None
            }
            for part in sorted(parts)
        },
        slice_counts={part: parts[part].total() for part in sorted(parts)},
        match=card.match,
        golden_sha256=card.golden_sha256,
    )


def _by_slices(card: Scorecard, only: Collection[str] | None) -> dict[tuple[str, ...], array[int]]:
    """The rows of the queries that are in the same slices."""
    groups: dict[tuple[str, ...], array[int]] = {}
    for row, query_id in enumerate(card.scores):
        if only is None or query_id in only:
            slices = card.slices.get(query_id, _NO_SLICES)
            if slices not in groups:
                groups[slices] = array("q")
            groups[slices].append(row)
    return groups


def _over_columns(
    card: Scorecard, groups: Mapping[tuple[str, ...], Sequence[int]]
) -> dict[str | None, dict[str, Reduced]]:
    """The metrics that have columns, over all (None) and over each slice; a column at a time."""
    metrics_of: dict[int, list[Metric]] = {}
    for metric in card.metrics:
        if metric.name in card.columns:
            metrics_of.setdefault(id(card.columns[metric.name]), []).append(metric)
    names = {None, *(part for slices in groups for part in slices)}
    found: dict[str | None, dict[str, Reduced]] = {name: {} for name in names}
    for metrics in metrics_of.values():
        column = card.columns[metrics[0].name]
        measured = {name: array("d") for name in names}
        for slices, rows in groups.items():
            of_group = [value for value in map(column.__getitem__, rows) if not isnan(value)]
            for name in (None, *slices):
                measured[name].extend(of_group)
        for name, values in measured.items():
            # Percentiles of one column sort it, each anew; what is in order already is soon sorted.
            in_order = sorted(values) if len(metrics) > 1 else values
            for metric in metrics:
                value = rounded(metric.family.reduce(in_order)) if in_order else None
                found[name][metric.name] = value, len(values)
    return found


def _reduced(
    card: Scorecard,
    tally: Tally,
    of_columns: Mapping[str, Reduced],
    known: Mapping[str, int] | None = None,
) -> Iterator[tuple[str, Reduced]]:
    """Each metric by its name, None (not 0) over no query.

    What is known not to be measured anywhere is not looked for.
    """
    weights = list(tally.values())
    values = list(zip(*(score.values for score in tally), strict=True))
    has_answers = any(score.facts.answered is not None for score in tally)
    for number, metric in enumerate(card.metrics):
        name, family = metric.name, metric.family
        if known is not None and not known[name]:
            continue
        if name in of_columns:
            yield name, of_columns[name]
        elif values and (has_answers or not family.needs_answers):
            yield name, _over_facts(family, values[number], weights)
        else:
            yield name, (None, 0)


def _over_facts(family: Family, values: Sequence[float | None], weights: Sequence[int]) -> Reduced:
    found = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    count = sum([weight for _, weight in found])
    if not count:
        return None, 0
    if family.is_mean:
        return rounded(
            fsum([part * weight for value, weight in found for part in _halves(value)]) / count
        ), count
    return rounded(family.reduce([value for value, weight in found for _ in range(weight)])), count


_HALF = 2.0**27 + 1


def _halves(value: float) -> tuple[float, float]:
    """A value as a sum of two with half the digits each, so that a count times either is exact (Dekker).

    Then the sum is exact too, and what is equal query by query is equal in total, however it was counted.
    """
    scaled = value * _HALF
    high = scaled - (scaled - value)
    return high, value - high
