"""A `Scorecard` -> `AggregateMetrics`: every metric over all queries and over each slice."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.metrics import CUTOFFS, Metric
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.scorecard import Part, Scorecard

DECIMALS = 4

Slices = dict[str, dict[str, float | None]]
Stored = Callable[[float], float]  # a value -> as it is kept


class MetricValues(Value, frozen=True, kw_only=True):
    """A value for every metric by its name; JSON has them in the shape of `nested`."""

    values: dict[str, float | None]
    total_queries: int
    failed_queries: int
    counts: dict[str, int]
    slices: Slices  # only the metrics that were measured in a slice are there

    def value(self, metric: str, part: str | None = None) -> float | None:
        """A metric by its name, over all queries or one slice; None if nothing was measured."""
        return (self.values if part is None else self.slices.get(part, {})).get(metric)

    # By the names that `aggregate_json` has for them.

    @property
    def hit_at_k(self) -> dict[str, float | None]:
        return _table(self, "hit_at_k")

    @property
    def recall_at_k_doc(self) -> dict[str, float | None]:
        return _table(self, "recall_at_k_doc")

    @property
    def precision_at_k_chunk(self) -> dict[str, float | None]:
        return _table(self, "precision_at_k_chunk")

    @property
    def extra(self) -> dict[str, float | None]:
        return _table(self, "extra")

    @property
    def mrr(self) -> float | None:
        return self.values["mrr"]

    @property
    def citation_coverage(self) -> float | None:
        return self.values["citation_coverage"]

    @property
    def groundedness(self) -> float | None:
        return self.values["groundedness"]

    @property
    def empty_result_rate(self) -> float | None:
        return self.values["empty_result_rate"]

    @property
    def refusal_correctness(self) -> float | None:
        return self.values["refusal_correctness"]


class AggregateMetrics(MetricValues, frozen=True, kw_only=True):
    """The metrics of a run over all its queries; None where no query was applicable."""

    slice_counts: dict[str, int] = msgspec.field(default_factory=dict)  # the queries of each slice
    match: str
    golden_sha256: str


TABLES = {
    "hit_at_k": "hit@{k}",
    "recall_at_k_doc": "recall@{k}_doc",
    "precision_at_k_chunk": "precision@{k}_chunk",
}
SINGLES = ("mrr", "citation_coverage", "groundedness", "empty_result_rate", "refusal_correctness")
_LAYOUT = (
    *("hit_at_k", "mrr", "recall_at_k_doc", "citation_coverage", "groundedness", "empty_result_rate"),
    *("refusal_correctness", "total_queries", "failed_queries", "precision_at_k_chunk"),
)


def nested(found: MetricValues) -> dict[str, Any]:
    """The fields of `aggregate_json`: some metrics in fields of their own, the others in `extra`."""
    rest, shaped = dict(found.values), dict[str, Any]()
    for field in _LAYOUT:
        if field in TABLES:
            shaped[field] = {str(k): rest.pop(TABLES[field].format(k=k)) for k in CUTOFFS}
        else:
            shaped[field] = rest.pop(field) if field in SINGLES else getattr(found, field)
    shaped["extra"] = rest
    fields = msgspec.structs.asdict(found)
    return shaped | {name: value for name, value in fields.items() if name != "values" and name not in shaped}


def _table(found: MetricValues, field: str) -> dict[str, float | None]:
    values: dict[str, float | None] = nested(found)[field]
    return values


def in_json_order(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """The values in the order in which `nested` has them."""
    tables = (pattern.format(k=k) for pattern in TABLES.values() for k in CUTOFFS)
    return {name: values[name] for name in dict.fromkeys((*tables, *SINGLES, *values))}


def aggregate_json(aggregate: AggregateMetrics) -> bytes:
    """The metrics of a run as they are stored."""
    return msgspec.json.encode(nested(aggregate))


def stored_values(stored: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a stored `aggregate_json` by name, also of an older or foreign one."""
    found: dict[str, Any] = {}
    for field, pattern in TABLES.items():
        table = stored.get(field)
        if isinstance(table, dict):
            found.update((pattern.format(k=k), value) for k, value in table.items())
    found.update((name, stored.get(name)) for name in SINGLES)
    extra = stored.get("extra")
    found.update(extra if isinstance(extra, dict) else {})
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and abs(value) <= STORED_NUMBER
    }


def rounded(value: float) -> float:
    """A value as it is stored; never a negative zero."""
    return round(value, DECIMALS) + 0.0


# -- aggregation ---------------------------------------------------------------------------------


def aggregate(card: Scorecard) -> AggregateMetrics:
    """A run's metrics over all its queries and over each slice, rounded as they are stored.

    Of several runs, each value is the mean of theirs; what is counted is counted over the queries of all. If
    some run lacks queries, what is averaged is the mean over all queries, of each over the runs that have it.
    """
    counted = _aggregate(card)
    if not card.replicates:
        return counted
    each = [_aggregate(run, _exact) for run in card.replicates]
    has_gaps = any(run.query_ids() != card.query_ids() for run in card.replicates)
    by_query = {metric.name for metric in card.metrics if metric.family.is_mean} if has_gaps else set[str]()
    values = _means(counted.values, [aggregate.values for aggregate in each], by_query)
    slices = {
        part: _means(names, [aggregate.slices.get(part, {}) for aggregate in each], by_query)
        for part, names in counted.slices.items()
    }
    return msgspec.structs.replace(counted, values=values, slices=slices)


def exact_values(card: Scorecard) -> dict[str, float | None]:
    """Every metric of one run over all its queries, by name and not rounded, to compute with."""
    whole = card.part()
    return {metric.name: reduce(metric, whole, _exact).value for metric in card.metrics}


def value_in_runs(card: Scorecard, metric: Metric, part: str | None) -> list[float]:
    """A metric, not rounded, in each run that has a value for it."""
    runs = card.replicates or (card,)
    values = (reduce(metric, run.part(part), _exact).value for run in runs)
    return [value for value in values if value is not None]


def _exact(value: float) -> float:
    return value


def _aggregate(card: Scorecard, stored: Stored = rounded) -> AggregateMetrics:
    whole = card.part()
    reduced = {metric.name: reduce(metric, whole, stored) for metric in card.metrics}
    measured = [metric for metric in card.metrics if reduced[metric.name].n]
    slices: Slices = {}
    slice_counts: dict[str, int] = {}
    for name in card.slices():
        part = card.part(name)
        slice_counts[name] = part.queries
        values = {metric.name: reduce(metric, part, stored).value for metric in measured}
        slices[name] = {metric: value for metric, value in values.items() if value is not None}
    return AggregateMetrics(
        values={name: value for name, (value, _) in reduced.items()},
        counts={name: n for name, (_, n) in reduced.items()},
        total_queries=whole.queries,
        failed_queries=whole.errored,
        slices=slices,
        slice_counts=slice_counts,
        match=card.match,
        golden_sha256=card.golden_sha256,
    )


def _means(
    counted: Mapping[str, float | None],
    values: Sequence[Mapping[str, float | None]],
    by_query: Collection[str],
) -> dict[str, float | None]:
    """The means of what was measured, rounded; None where nothing was. Some are known already."""
    means = {**counted}
    for name in (name for name in counted if name not in by_query):
        measured = [value for known in values if (value := known.get(name)) is not None]
        means[name] = rounded(math.fsum(measured) / len(measured)) if measured else None
    return means


class Reduced(NamedTuple):
    """A metric's value, None over no query, and the number of queries it is over."""

    value: float | None
    n: int


def reduce(metric: Metric, part: Part, stored: Stored = rounded) -> Reduced:
    """One value of all that was measured, rounded unless told otherwise."""
    values = part.values(metric)
    n = values.count
    return Reduced(stored(metric.family.reduce(values)) if n else None, n)
