"""What a golden set says as a whole: slices, such as `difficulty=hard`, and what can be measured of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import GoldenQuery

ONE_VALUED_SLICES = ("lang", "difficulty", "category")
SLICES = (*ONE_VALUED_SLICES, "tags", "answerable")


def slices_of(query: GoldenQuery) -> tuple[str, ...]:
    """The slices that a query is in, such as `difficulty=hard` and `tags=security`."""
    found = [f"{name}={value}" for name in ONE_VALUED_SLICES if (value := getattr(query, name)) is not None]
    found += [f"tags={tag}" for tag in query.tags]
    if query.can_be_answered is not None:
        found.append(f"answerable={str(query.can_be_answered).lower()}")
    return tuple(found)


def slices_by_query(queries: Iterable[GoldenQuery]) -> dict[str, tuple[str, ...]]:
    """The slices of every query; those in the same ones share a tuple."""
    shared: dict[object, tuple[str, ...]] = {}
    found = {}
    for query in queries:
        labels = (query.lang, query.difficulty, query.category, query.tags, query.can_be_answered)
        slices = shared.get(labels)
        if slices is None:
            slices = shared[labels] = slices_of(query)
        found[query.id] = slices
    return found


class Survey(NamedTuple):
    """The slices of the queries, the formulas some query has what they need for, and the fingerprint."""

    slices: Mapping[str, tuple[str, ...]]
    needs_met: frozenset[str]
    fingerprint: str

    def measures(self, metric: Metric) -> bool:
        """Whether the metric is measured at all."""
        return metric.family.needs is None or metric.family.pattern in self.needs_met


def survey_of(golden: GoldenSet, metrics: Iterable[Metric]) -> Survey:
    """Look at all queries of a golden set."""
    return Survey(slices_by_query(golden.queries), needs_met(golden.queries, metrics), golden.fingerprint)


def needs_met(queries: Iterable[GoldenQuery], metrics: Iterable[Metric]) -> frozenset[str]:
    """The formulas that need something of the golden set, and find it in one of these queries."""
    needs = {metric.family.pattern: metric.family.needs for metric in metrics}
    return frozenset(name for name, need in needs.items() if need is not None and any(map(need, queries)))
