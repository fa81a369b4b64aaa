"""What a golden set says as a whole, which no part of it alone would tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.scoring.slices import slices_by_query


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
