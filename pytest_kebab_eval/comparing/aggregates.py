"""`AggregateMetrics`: every metric over all queries and over each slice, as it is stored and read again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pytest_kebab_eval.limits import STORED_NUMBER
from pytest_kebab_eval.metrics import CUTOFFS, Metric, is_metric
from pytest_kebab_eval.model import Value

DECIMALS = 4

ByName = dict[str, float | None]  # the value of each metric; None where it was measured of no query
Slices = dict[str, ByName]


def rounded(value: float) -> float:
    """A value as it is stored; never a negative zero."""
    return round(value, DECIMALS) + 0.0


class MetricValues(Value, frozen=True, kw_only=True):
    """A value for every metric by its name; JSON has them in the shape of `nested`."""

    values: ByName
    total_queries: int
    failed_queries: int
    counts: dict[str, int]
    slices: Slices  # only the metrics that were measured in a slice are there

    def value(self, metric: str, part: str | None = None) -> float | None:
        """A metric by its name, over all queries or one slice; None if nothing was measured."""
        return (self.values if part is None else self.slices.get(part, {})).get(metric)

    def __getitem__(self, metric: str) -> float | None:
        """A metric by its name or alias, over all queries."""
        known = metric in self.values or not is_metric(metric)
        return self.values[metric if known else Metric.parse(metric).name]

    # By the names that `aggregate_json` has for them.

    @property
    def hit_at_k(self) -> dict[int, float | None]:
        return self._at_cutoffs("hit@{k}")

    @property
    def recall_at_k_doc(self) -> dict[int, float | None]:
        return self._at_cutoffs("recall@{k}_doc")

    @property
    def precision_at_k_chunk(self) -> dict[int, float | None]:
        return self._at_cutoffs("precision@{k}_chunk")

    def _at_cutoffs(self, pattern: str) -> dict[int, float | None]:
        return {k: self.values[pattern.format(k=k)] for k in CUTOFFS}

    @property
    def extra(self) -> ByName:
        found: ByName = nested(self)["extra"]
        return found

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
    match: str = ""
    golden_sha256: str = ""

    @classmethod
    def from_json(cls, aggregate_json: str | bytes) -> AggregateMetrics:
        """A stored `aggregate_json`, also one of kebab's own, which has fewer fields."""
        stored = msgspec.json.decode(aggregate_json, type=dict[str, Any])
        known: dict[str, Any] = {
            name: stored[name]
            for name in ("total_queries", "failed_queries", "counts", "slices", "slice_counts", "match")
            if name in stored
        }
        empty: dict[str, Any] = {"total_queries": 0, "failed_queries": 0, "counts": {}, "slices": {}}
        measured = stored_values(stored)
        values = {name: measured.get(name) for name in _fields_in(stored)}
        digest = {"golden_sha256": stored.get("golden_sha256") or ""}
        return msgspec.convert({**empty, **known, **digest, "values": values}, cls)


# -- the shape of `aggregate_json` -----------------------------------------------------------------

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
            shaped[field] = {str(k): rest.pop(TABLES[field].format(k=k), None) for k in CUTOFFS}
        else:
            shaped[field] = rest.pop(field, None) if field in SINGLES else getattr(found, field)
    shaped["extra"] = rest
    fields = msgspec.structs.asdict(found)
    return shaped | {name: value for name, value in fields.items() if name != "values" and name not in shaped}


def aggregate_json(aggregate: AggregateMetrics) -> bytes:
    """The metrics of a run as they are stored."""
    return msgspec.json.encode(nested(aggregate))


def in_json_order(values: Mapping[str, float | None]) -> ByName:
    """The values in the order in which `nested` has them."""
    tables = (pattern.format(k=k) for pattern in TABLES.values() for k in CUTOFFS)
    return {name: values[name] for name in dict.fromkeys((*tables, *SINGLES, *values))}


def _fields_in(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Whatever is stored as the value of a metric, by name."""
    found: dict[str, Any] = {}
    for field, pattern in TABLES.items():
        table = stored.get(field)
        if isinstance(table, dict):
            found.update((pattern.format(k=k), value) for k, value in table.items())
    found.update((name, stored.get(name)) for name in SINGLES)
    extra = stored.get("extra")
    return found | (extra if isinstance(extra, dict) else {})


def stored_values(stored: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of a stored `aggregate_json` by name, also of an older or foreign one."""
    return {
        name: float(value)
        for name, value in _fields_in(stored).items()
        if isinstance(value, (int, float)) and abs(value) <= STORED_NUMBER
    }
