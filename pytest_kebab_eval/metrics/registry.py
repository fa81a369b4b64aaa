"""What a metric is: a name that round-trips, the queries it is over, and a formula."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from pytest_kebab_eval.matching import Ranking, Targets
from pytest_kebab_eval.model import Answer, GoldenQuery, Hit, QueryResult

CUTOFFS = (1, 3, 5, 10)
OWN_CUTOFF = "k"


class Judged(NamedTuple):
    """One query of one run, judged: all that a formula may look at."""

    query: GoldenQuery
    result: QueryResult
    targets: Targets
    ranking: Ranking
    cutoff: int  # the query's own
    citations_resolve: bool | None = None  # None: no answer that cites was shipped

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The hits; a query that errored has none, so that it counts as a miss."""
        return () if self.result.error is not None else self.result.hits

    @property
    def answer(self) -> Answer | None:
        """The answer, if one was given without an error."""
        return None if self.result.error is not None else self.result.answer


Domain = Callable[[Judged], bool]
Formula = Callable[..., float | None]


class Family(NamedTuple):
    """A formula for all its cutoffs."""

    pattern: str
    formula: Formula
    over: Domain
    means: str
    lower_is_better: bool

    @property
    def has_cutoff(self) -> bool:
        """Whether the name has an `@k`."""
        return "{k}" in self.pattern


class Metric(NamedTuple):
    """One metric, at one cutoff if it has any: `str(Metric.parse("recall@5_doc")) == "recall@5_doc"`."""

    name: str
    family: Family
    cutoff: int | None = None  # None: the query's own, or none at all

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, name: str) -> Metric:
        """The metric of that name; `KeyError` if there is none."""
        return _BY_NAME[name]

    @property
    def lower_is_better(self) -> bool:
        """Whether a decrease is an improvement."""
        return self.family.lower_is_better

    def value(self, judged: Judged) -> float | None:
        """The metric of one query it is over."""
        if not self.family.has_cutoff:
            value = self.family.formula(judged)
        else:
            value = self.family.formula(judged, self.cutoff or judged.cutoff)
        return None if value is None else float(value)


_BY_NAME: dict[str, Metric] = {}


def metric(
    pattern: str, *, over: Domain, means: str, lower_is_better: bool = False
) -> Callable[[Formula], Formula]:
    """Register a formula under a name; one with `{k}` in it is there for every cutoff."""

    def register(formula: Formula) -> Formula:
        family = Family(pattern, formula, over, means, lower_is_better)
        if family.has_cutoff:
            found = [
                *(Metric(pattern.format(k=k), family, k) for k in CUTOFFS),
                Metric(pattern.format(k=OWN_CUTOFF), family),
            ]
        else:
            found = [Metric(pattern, family)]
        _BY_NAME.update((one.name, one) for one in found)
        return formula

    return register


def all_metrics() -> Iterable[Metric]:
    """Every metric, in the order of registration."""
    return _BY_NAME.values()
