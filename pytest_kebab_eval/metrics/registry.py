"""What a metric is: a name that round-trips, the queries it is over, a formula, and how it adds up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from pytest_kebab_eval.errors import MetricError
from pytest_kebab_eval.metrics.facts import Judged
from pytest_kebab_eval.metrics.reducing import Reduce, mean
from pytest_kebab_eval.model import GoldenQuery, QueryResult
from pytest_kebab_eval.text import printable

CUTOFFS = (1, 3, 5, 10)
LARGEST_CUTOFF = 1_000
OWN_CUTOFF = "k"


class Domain:
    """The queries that a metric is over.

    Formulas over a domain of facts look at `judged.facts` alone, so that queries alike are computed once.
    """

    def __init__(self, applies: Callable[[Judged], bool], of_facts: bool) -> None:
        self.applies = applies
        self.of_facts = of_facts
        self.description = (applies.__doc__ or "").strip()

    def __call__(self, judged: Judged) -> bool:
        """Whether the query is one of them."""
        return self.applies(judged)


def domain(*, of_facts: bool = False) -> Callable[[Callable[[Judged], bool]], Domain]:
    """Make a domain of a predicate."""
    return lambda applies: Domain(applies, of_facts)


Formula = Callable[..., float | None]
F = TypeVar("F", bound=Formula)


class Family(NamedTuple):
    """A formula for all its cutoffs."""

    pattern: str
    formula: Formula
    over: Domain
    description: str
    lower_is_better: bool = False
    alias: str | None = None
    reduce: Reduce = mean
    needs: Callable[[GoldenQuery], bool] | None = None  # not measured unless a golden query has this
    needs_answers: bool = False  # not measured in a run without answers
    volatile: bool = False  # time and cost, which differ between two equal runs
    max_value: float | None = 1.0  # of a mean, so that no interval goes beyond it

    @property
    def has_cutoff(self) -> bool:
        """Whether the name has an `@k`."""
        return "{k}" in self.pattern

    @property
    def is_mean(self) -> bool:
        """Whether it is averaged, so that its change can be tested query by query."""
        return self.reduce is mean


class Metric(NamedTuple):
    """One metric, at one cutoff if it has any: `str(Metric.parse("recall@5_doc")) == "recall@5_doc"`."""

    name: str
    family: Family
    cutoff: int | None = None  # None: the query's own, or none at all

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, name: str) -> Metric:
        """The metric of that name or alias, at any cutoff up to 1,000; `KeyError` if there is none."""
        found = _BY_ALIAS.get(name) or _BY_NAME.get(name)
        return found or _at_cutoff(name)

    @property
    def lower_is_better(self) -> bool:
        """Whether a decrease is an improvement."""
        return self.family.lower_is_better

    @property
    def compute(self) -> Callable[[Judged], float | None]:
        """The metric of one query that it is over."""
        formula, cutoff = self.family.formula, self.cutoff
        if not self.family.has_cutoff:
            return formula
        if cutoff is None:
            return lambda judged: formula(judged, judged.facts.cutoff)
        return lambda judged: formula(judged, cutoff)


_BY_NAME: dict[str, Metric] = {}
_BY_ALIAS: dict[str, Metric] = {}
_AT_CUTOFF = re.compile(r"([a-z_]+@)([1-9]\d{0,3})((?:_[a-z]+)?)", re.ASCII)


def _at_cutoff(name: str) -> Metric:
    """`hit@7` from the family of `hit@k`; `KeyError` if there is no such family, or k is too large."""
    match = _AT_CUTOFF.fullmatch(name)
    if match is None or int(match[2]) > LARGEST_CUTOFF:
        raise KeyError(name)
    own = f"{match[1]}{OWN_CUTOFF}{match[3]}"
    return at_cutoff((_BY_ALIAS.get(own) or _BY_NAME[own]).family, int(match[2]))


def at_cutoff(family: Family, cutoff: int) -> Metric:
    """The metric of a family at a cutoff."""
    return Metric(family.pattern.format(k=cutoff), family, cutoff)


def metrics_at(cutoffs: Iterable[int]) -> list[Metric]:
    """Every metric that has a cutoff, at each of these."""
    families = dict.fromkeys(metric.family for metric in _BY_NAME.values() if metric.family.has_cutoff)
    return [at_cutoff(family, cutoff) for family in families for cutoff in cutoffs]


def metric(
    pattern: str,
    *,
    over: Domain,
    description: str,
    lower_is_better: bool = False,
    alias: str | None = None,
    reduce: Reduce = mean,
    needs: Callable[[GoldenQuery], bool] | None = None,
    needs_answers: bool = False,
    volatile: bool = False,
    max_value: float = 1.0,
) -> Callable[[F], F]:
    """Register a formula under a name; one with `{k}` in it is there for every cutoff."""

    def register(formula: F) -> F:
        family = Family(
            pattern,
            formula,
            over,
            description,
            lower_is_better,
            alias,
            reduce,
            needs,
            needs_answers,
            volatile,
            max_value,
        )
        cutoffs = [(str(k), k) for k in CUTOFFS] + [(OWN_CUTOFF, None)]
        for text, cutoff in cutoffs if family.has_cutoff else [("", None)]:
            found = Metric(pattern.format(k=text), family, cutoff)
            _BY_NAME[found.name] = found
            if alias:
                _BY_ALIAS[alias.format(k=text)] = found
        return formula

    return register


LARGEST_CUSTOM_VALUE = 1e15
_CUSTOM_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:@-]*")


def custom_metric(name: str, function: Callable[[GoldenQuery, QueryResult], float | None]) -> Metric:
    """A metric of a user's own: averaged over the golden queries for which it is not None."""
    if not isinstance(name, str) or not _CUSTOM_NAME.fullmatch(name) or name in ("delta", "unless"):
        raise MetricError(f"pytest_kebab_metrics: '{printable(str(name))}' is no name for a metric")
    if is_metric(name):
        raise MetricError(f"pytest_kebab_metrics: '{name}' is taken already")

    def formula(judged: Judged) -> float | None:
        try:
            value = function(judged.query, judged.result)
            number = None if value is None else float(value)
        except Exception as error:
            raise _custom_failure(name, judged, f"{type(error).__name__}: {error}") from error
        if number is not None and not abs(number) <= LARGEST_CUSTOM_VALUE:  # also true of NaN
            raise _custom_failure(name, judged, f"it returned {number}")
        return number

    description = (function.__doc__ or "a metric of your own").strip().splitlines()[0]
    return Metric(name, Family(name, formula, _in_golden_file, description, max_value=None))


def is_metric(name: str) -> bool:
    """Whether a metric of ours goes by that name."""
    try:
        Metric.parse(name)
    except KeyError:
        return False
    return True


def _custom_failure(name: str, judged: Judged, what: str) -> MetricError:
    query_id = printable(judged.query.id)
    return MetricError(f"the metric '{name}' of pytest_kebab_metrics failed on query '{query_id}': {what}")


@domain()
def _in_golden_file(judged: Judged) -> bool:
    """Golden queries."""
    return judged.facts.is_golden


def all_metrics() -> Iterable[Metric]:
    """Every metric, in the order of registration."""
    return _BY_NAME.values()


def all_names() -> list[str]:
    """Every name that a metric goes by."""
    return [*_BY_NAME, *_BY_ALIAS]
