"""Two scorecards -> how B differs from A in total: deltas, and which of them are more than noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from math import isnan

import msgspec

from pytest_kebab_eval.comparing.significance import Significance, paired_significance
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics, MetricValues, aggregate, in_shape, rounded
from pytest_kebab_eval.scoring.scorecard import JudgeIdentity, Scorecard
from pytest_kebab_eval.text import brief


class Paired(Value, frozen=True):
    """How many queries the two runs have in common, and the deltas over those alone."""

    queries: int
    errored_a: int
    errored_b: int
    absent_a: int
    absent_b: int
    deltas: dict[str, float | None] | None  # None where both runs cover the same queries


class Deltas(MetricValues, frozen=True, kw_only=True):
    """B - A for every metric, and how the two were matched."""

    chunker_version_match: str
    matched_by: dict[str, int]
    paired: Paired


def deltas_between(
    queries: Iterable[GoldenQuery],
    card_a: Scorecard,
    card_b: Scorecard,
    a: AggregateMetrics,
    b: AggregateMetrics,
    matched_by: Mapping[str, int],
) -> Deltas:
    """B - A of the two aggregates, and how far the runs cover the same queries."""
    in_a, in_b = card_a.scores.keys(), card_b.scores.keys()
    both: AbstractSet[str] = in_a
    paired_deltas = None
    if in_a != in_b:
        both = in_a & in_b
        paired_deltas = differences(
            aggregate(card_a, only=both).by_name(), aggregate(card_b, only=both).by_name()
        )
    return Deltas(
        **in_shape(differences(a.by_name(), b.by_name())),  # type: ignore[arg-type]
        counts={name: b.counts[name] - n for name, n in a.counts.items()},
        slices={part: differences(a.slices[part], b.slices[part]) for part in a.slices if part in b.slices},
        total_queries=b.total_queries - a.total_queries,
        failed_queries=b.failed_queries - a.failed_queries,
        chunker_version_match=a.match,
        matched_by=dict(matched_by),
        paired=Paired(
            queries=len(both),
            errored_a=a.failed_queries,
            errored_b=b.failed_queries,
            absent_a=sum(query.id not in in_a for query in queries),
            absent_b=sum(query.id not in in_b for query in queries),
            deltas=paired_deltas,
        ),
    )


def differences(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> dict[str, float | None]:
    """B - A of the rounded values, None if either is."""
    return {name: difference(value, b.get(name)) for name, value in a.items()}


def difference(a: float | None, b: float | None) -> float | None:
    """B - A, rounded; None if either is."""
    return None if a is None or b is None else rounded(b - a)


# -- significance --------------------------------------------------------------------------------


def significances(
    a: Scorecard, b: Scorecard, aggregate_a: AggregateMetrics, aggregate_b: AggregateMetrics
) -> dict[str, Significance]:
    """Of every metric that is averaged and was measured on a query in both runs."""
    values_a, values_b = aggregate_a.by_name(), aggregate_b.by_name()
    pairs = _Pairs(a, b)
    found = {}
    for number, metric in enumerate(b.metrics):
        measured = values_a.get(metric.name) is not None and values_b.get(metric.name) is not None
        if metric.family.is_mean and measured:
            one = pairs.tested(number, metric)
            if one.n:
                found[metric.name] = one
    return found


def significance_in(a: Scorecard | None, b: Scorecard, metric: str, part: str | None) -> Significance | None:
    """Of one metric, over all queries or one slice; None if there is no test of it."""
    if a is None:
        return None
    pairs = _Pairs(a, b, part)
    for number, one in enumerate(b.metrics):
        if one.name == metric and one.family.is_mean and pairs.tally:
            return pairs.tested(number, one)
    return None


class _Pairs:
    """The queries that both runs have, over all or within one slice."""

    def __init__(self, a: Scorecard, b: Scorecard, part: str | None = None) -> None:
        self._a, self._b = a, b
        self._ids: Iterable[str] = [
            query_id
            for query_id in b.scores
            if query_id in a.scores and (part is None or part in b.slices.get(query_id, ()))
        ]
        self.tally = Counter((a.scores[query_id], b.scores[query_id]) for query_id in self._ids)

    def tested(self, number: int, metric: Metric) -> Significance:
        """Whether the metric changed."""
        family = metric.family
        changes, n = self._of_facts(number) if family.over.of_facts else self._of_columns(metric.name)
        found = paired_significance(
            changes, n, yes_no=family.is_yes_no, lower_is_better=metric.lower_is_better
        )
        most = family.most
        if most is None or found.low is None or found.high is None:
            return found
        return msgspec.structs.replace(found, low=max(-most, found.low), high=min(most, found.high))

    def _of_facts(self, number: int) -> tuple[list[float], int]:
        """The changes that are not 0, and the number of queries measured in both runs."""
        changes: list[float] = []
        n = 0
        for (before, after), count in self.tally.items():
            one, other = before.values[number], after.values[number]
            if one is not None and other is not None:
                n += count
                if one != other:
                    changes += [other - one] * count
        return changes, n

    def _of_columns(self, name: str) -> tuple[list[float], int]:
        before, after = self._a.columns.get(name), self._b.columns.get(name)
        if before is None or after is None:
            return [], 0
        rows_a, rows_b = self._rows
        changes = [after[rows_b[one]] - before[rows_a[one]] for one in self._ids]
        measured = [change for change in changes if not isnan(change)]
        return [change for change in measured if change], len(measured)

    @cached_property
    def _rows(self) -> tuple[dict[str, int], dict[str, int]]:
        a, b = ({one: row for row, one in enumerate(card.scores)} for card in (self._a, self._b))
        return a, b


# -- judges --------------------------------------------------------------------------------------

_JUDGED = ("judge_groundedness", "judge_correctness")


def judge_drift(a: Scorecard, b: Scorecard) -> dict[str, str]:
    """The metrics that cannot be compared because the judge changed."""
    if not a.judges or not b.judges or a.judges == b.judges:
        return {}
    reason = f"not comparable, since the judge changed: A {_named(a.judges)}, B {_named(b.judges)}"
    return dict.fromkeys(_JUDGED, reason)


def _named(judges: frozenset[JudgeIdentity]) -> str:
    return " and ".join(
        brief(
            f"{model or 'unknown'} (prompt {prompt or 'unknown'}, temperature {_or_unknown(temperature)})", 90
        )
        for model, prompt, temperature in sorted(judges, key=str)
    )


def _or_unknown(temperature: float | str | None) -> str:
    if isinstance(temperature, float):
        return f"{temperature:g}"
    return temperature or "unknown"
