"""What a metric is: a name that round-trips, the queries it is over, a formula, and how its values add up.

A formula looks at a `Judged`, a query of a run, with its `Facts`, which `comparing.facts` makes. Queries with
the same facts are scored once, so what differs from query to query (texts, times, judges' scores) is no part
of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from pytest_kebab_eval.errors import MetricError
from pytest_kebab_eval.matching.citations import CitationCheck
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.model import BrokenRule, GoldenQuery, QueryResult, Value
from pytest_kebab_eval.text import pattern, printable

CUTOFFS = (1, 3, 5, 10)
LARGEST_CUTOFF = 1_000
OWN_CUTOFF = "k"


# -- what a formula may look at ----------------------------------------------------------------------


class TargetFacts(Value, frozen=True):
    """What a query wants found."""

    gains: tuple[float, ...]
    matched_by: str
    has_chunk_targets: bool
    groups: tuple[tuple[int, ...], ...]  # the supports that are enough together
    counts_once: bool  # a target may be several hits: it has alternatives, or another chunker cut it
    rank_limit: int | None  # that the first correct hit must keep
    require: str | None  # all | any: whether every target that A found must be found
    must_cite: bool  # the answer must cite some of them

    @property
    def groups_that_apply(self) -> tuple[tuple[int, ...], ...]:
        """The required groups; none where the targets are no supports."""
        return self.groups if self.matched_by == "anchor" else ()

    def keeps_limit(self, first: int | None) -> bool | None:
        """Whether the first correct hit is at a rank where it may be; None if it may be at any."""
        return None if self.rank_limit is None else first is not None and first <= self.rank_limit


class AnswerFacts(Value, frozen=True):
    """What is known of an answer that came without an error."""

    grounded: bool  # false: it refused
    broken_rules: tuple[BrokenRule, ...] | None  # None: there are no rules
    is_blank: bool
    has_claim: bool | None  # None: there is none that it could contain
    citations: CitationCheck
    uncited: tuple[str, ...]  # what it must cite and does not


class Containment(Value, frozen=True):
    """Whether the hits of a query with an expected answer have its text."""

    rank: int | None  # of the first hit that does
    has_texts: bool  # some hit's text is stored or in the index


KEPT, CHANGED, GONE = "kept", "changed", "gone"
NOT_STORED = "not stored"  # by this run, while A knows it
TextStates = tuple[str | None, ...]  # of each target; None where nothing is known that could be compared


class Facts(Value, frozen=True):
    """What is known of a judged query, apart from its texts, times and scores."""

    targets: TargetFacts
    ranking: Ranking
    cutoff: int  # the query's own
    doc_ranks: tuple[int | None, ...]  # for each expected document, the rank of its first hit
    doc_positions: tuple[int | None, ...]  # the same, counted in distinct documents
    depth: int  # the rank of the last hit
    errored: bool
    timed_out: bool
    is_golden: bool
    answerable: bool | None
    answer: AnswerFacts | None
    containment: Containment | None  # None: no answer is expected
    forbidden: tuple[int, ...] | None  # the ranks of forbidden hits; None: nothing is forbidden
    wrong: tuple[int, ...]  # the ranks of hits that the golden file says are wrong
    asked: str | None = ""  # another question than the golden one, folded; None: that is not stored
    texts: TextStates = ()  # what became of the passages' texts; empty where nothing is known of any

    def texts_gone(self, k: int) -> list[int]:
        """The targets that are found in the top k, and whose text is gone."""
        return [number for number, state in self._texts_within(k) if state == GONE]

    def keeps_texts(self, k: int) -> bool | None:
        """Whether all that is found in the top k kept its text; None where that is not known of any."""
        known = self.texts and self._texts_within(k)
        return all(state != GONE for _, state in known) if known else None

    def _texts_within(self, k: int) -> list[tuple[int, str]]:
        found = enumerate(zip(self.texts, self.ranking.found, strict=False))
        return [
            (number, state)
            for number, (state, rank) in found
            if state is not None and state != NOT_STORED and rank is not None and rank <= k
        ]

    @property
    def grounded(self) -> bool | None:
        """Whether the answer claims to be grounded, be it blank; None: there is none, False: it refused."""
        return self.answer.grounded if self.answer else None

    @property
    def answered(self) -> bool | None:
        """Whether an answer was given; None: there is none at all, or a blank one; False: it refused."""
        answer = self.answer
        return answer.grounded if answer and not (answer.grounded and answer.is_blank) else None

    @property
    def keeps_rules(self) -> bool | None:
        """Whether the answer keeps its rules; None without an answer, or without rules."""
        broken = self.answer.broken_rules if self.answer else None
        return None if broken is None else not broken

    @property
    def cites_all(self) -> bool | None:
        """Whether there is an answer that cites all that it must; None where nothing must be cited."""
        if not self.targets.must_cite:
            return None
        return self.answer is not None and self.answer.grounded and not self.answer.uncited

    @property
    def has_claim(self) -> bool:
        """Whether there is an answer that contains a claim."""
        return self.answer is not None and bool(self.answer.has_claim)

    @property
    def by_document(self) -> bool:
        """Whether it may have been found only by being in the right document."""
        return self.targets.matched_by == "document" or self.ranking.by_document

    @property
    def by_text(self) -> bool:
        """Whether it may have been found by its text."""
        return self.targets.matched_by == "text" or self.ranking.by_text

    @property
    def doc_rank(self) -> int | None:
        """The rank of the first hit in an expected document."""
        return min((rank for rank in self.doc_ranks if rank is not None), default=None)


class Judged(Value, frozen=True):
    """One query of one run, judged: all that a formula may look at."""

    query: GoldenQuery
    result: QueryResult
    facts: Facts
    target_paths: frozenset[str] = frozenset()  # where the targets are, as far as known


# -- the queries that a metric is over ---------------------------------------------------------------


class Domain(Value, frozen=True):
    """The queries that a metric is over.

    With `of_facts`, the predicate and all formulas over it look at `judged.facts` alone, so that queries with
    the same facts are computed once.
    """

    description: str
    applies: Callable[[Judged], bool]
    of_facts: bool = True


# A domain of the stored result, whose formulas are computed for every query.
ResultDomain = partial(Domain, of_facts=False)


every_query = Domain("All queries of the run, also those that the golden file does not know", lambda _: True)


# -- how values add up: a mean, a percentile, a sum --------------------------------------------------


class Values(Value, frozen=True):
    """What was measured of a metric: numbers, and how many queries have each (one, where none are given)."""

    numbers: Sequence[float]
    weights: Sequence[int] | None = None

    def __iter__(self) -> Iterator[tuple[float, int]]:
        return zip(self.numbers, self.weights or [1] * len(self.numbers), strict=True)

    @property
    def count(self) -> int:
        """How many queries were measured."""
        return len(self.numbers) if self.weights is None else sum(self.weights)


Reduce = Callable[[Values], float]


def total(values: Values) -> float:
    """The sum; it is exact, so that no order or grouping of the queries changes it."""
    numbers = values.numbers
    if values.weights is None:
        return math.fsum(numbers)
    if numbers.count(numbers[0]) == len(numbers):  # most: a product is rounded once, as an exact sum is
        return float(numbers[0] * values.count)
    return math.fsum([part * weight for number, weight in values for part in _halves(number)])


def mean(values: Values) -> float:
    """The mean, of the exact sum."""
    return total(values) / values.count


def percentile(percent: int) -> Reduce:
    """The nearest-rank percentile."""

    def nearest_rank(values: Values) -> float:
        if values.weights is None:
            return sorted(values.numbers)[math.ceil(percent / 100 * len(values.numbers)) - 1]
        rank = math.ceil(percent / 100 * values.count)
        for number, weight in sorted(values):
            rank -= weight
            if rank <= 0:
                return number
        raise ValueError("a percentile of nothing")

    return nearest_rank


_HALF = 2.0**27 + 1


def _halves(value: float) -> tuple[float, float]:
    """A value as a sum of two with half the digits each, so that a count times either is exact (Dekker)."""
    scaled = value * _HALF
    high = scaled - (scaled - value)
    return high, value - high


# -- metrics -----------------------------------------------------------------------------------------

Formula = Callable[..., float | None]
F = TypeVar("F", bound=Formula)


class Family(Value, frozen=True):
    """What a formula's metrics have in common; as the decorator `@metric(…)`, it registers them."""

    pattern: str  # with `{k}` in it, there is one for every cutoff
    over: Domain
    description: str
    lower_is_better: bool = False
    alias: str | None = None
    reduce: Reduce = mean
    needs: Callable[[GoldenQuery], bool] | None = None  # not measured unless a golden query has this
    needs_answers: bool = False  # not measured in a run without answers
    volatile: bool = False  # time and cost, which differ between two equal runs
    max_value: float | None = 1.0  # of a mean, so that no interval goes beyond it
    unit: str | None = None  # what it is counted over, where that is no queries but the run's index
    neutral: bool = False  # neither more nor less of it is better: a change is not tested

    def __call__(self, formula: F) -> F:
        """Register the metrics of a formula."""
        own = Metric(self.pattern.format(k=OWN_CUTOFF), self, formula)
        for found in (*map(own.at, CUTOFFS), own) if self.has_cutoff else (own,):
            _BY_NAME[found.name] = found
            if self.alias:
                _BY_ALIAS[self.alias.format(k=found.cutoff or OWN_CUTOFF)] = found
        return formula

    @property
    def has_cutoff(self) -> bool:
        """Whether the name has an `@k`."""
        return "{k}" in self.pattern

    @property
    def is_mean(self) -> bool:
        """Whether it is averaged over the queries."""
        return self.reduce is mean

    @property
    def is_bounded(self) -> bool:
        """Whether it has a largest value."""
        return self.is_mean or self.unit is not None

    @property
    def is_tested(self) -> bool:
        """Whether its change is tested, query by query."""
        return self.is_mean and not self.neutral


metric = Family


class Metric(NamedTuple):
    """One metric, at one cutoff if it has any: `str(Metric.parse("recall@5_doc")) == "recall@5_doc"`."""

    name: str
    family: Family
    formula: Formula
    cutoff: int | None = None  # None: the query's own, or none at all

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, name: str) -> Metric:
        """The metric of that name or alias, at any cutoff up to 1,000; `KeyError` if there is none."""
        found = _BY_ALIAS.get(name) or _BY_NAME.get(name)
        if found is not None:
            return found
        match = _AT_CUTOFF.fullmatch(name)
        if match is None or int(match[2]) > LARGEST_CUTOFF:
            raise KeyError(name)
        own = f"{match[1]}{OWN_CUTOFF}{match[3]}"
        return (_BY_ALIAS.get(own) or _BY_NAME[own]).at(int(match[2]))

    def at(self, cutoff: int) -> Metric:
        """The metric of the same formula at a cutoff."""
        return self._replace(name=self.family.pattern.format(k=cutoff), cutoff=cutoff)

    @property
    def lower_is_better(self) -> bool:
        """Whether a decrease is an improvement."""
        return self.family.lower_is_better

    @property
    def compute(self) -> Callable[[Judged], float | None]:
        """The metric of one query that it is over."""
        formula, cutoff = self.formula, self.cutoff
        if not self.family.has_cutoff:
            return formula
        if cutoff is None:
            return lambda judged: formula(judged, judged.facts.cutoff)
        return lambda judged: formula(judged, cutoff)


_BY_NAME: dict[str, Metric] = {}
_BY_ALIAS: dict[str, Metric] = {}
_AT_CUTOFF = pattern(r"([a-z_]+@)([1-9]\d{0,3})((?:_[a-z]+)?)", re.ASCII)


def all_metrics() -> Iterable[Metric]:
    """Every metric, in the order of registration."""
    return _BY_NAME.values()


def all_names() -> list[str]:
    """The names and aliases of all metrics."""
    return [*_BY_NAME, *_BY_ALIAS]


def is_metric(name: str) -> bool:
    """Whether one of our metrics has that name or alias."""
    try:
        Metric.parse(name)
    except KeyError:
        return False
    return True


# -- a user's own metrics ----------------------------------------------------------------------------

LARGEST_CUSTOM_VALUE = 1e15
_CUSTOM_NAME = pattern(r"[A-Za-z_][A-Za-z0-9_.:@-]*")
_GOLDEN_QUERIES = ResultDomain("Golden queries", lambda judged: judged.facts.is_golden)


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
    return Metric(name, Family(name, _GOLDEN_QUERIES, description, max_value=None), formula)


def _custom_failure(name: str, judged: Judged, what: str) -> MetricError:
    query_id = printable(judged.query.id)
    return MetricError(f"the metric '{name}' of pytest_kebab_metrics failed on query '{query_id}': {what}")
