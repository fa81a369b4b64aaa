"""What a formula may look at (`Judged`, a query of a run, with its `Facts`), and the queries it may be over.

Queries with the same facts are scored once, so what differs from query to query (texts, times, judges'
scores) is no part of them. `scoring.facts` makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pytest_kebab_eval.matching.strategies import CitationCheck, Ranking
from pytest_kebab_eval.model import BrokenRule, GoldenQuery, QueryResult, Value


class TargetFacts(Value, frozen=True):
    """What a query wants found."""

    gains: tuple[float, ...]
    matched_by: str
    has_chunk_targets: bool
    groups: tuple[tuple[int, ...], ...] = ()  # the supports that are enough together
    counts_once: bool = False  # a target may be several hits: it has alternatives, or another chunker cut it
    rank_limit: int | None = None  # that the first correct hit must keep
    require: str | None = None  # all | any: whether every target that A found must be found

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
    has_claim: bool
    citations: CitationCheck


class Containment(Value, frozen=True):
    """Whether the hits of a query with an expected answer have its text."""

    rank: int | None  # of the first hit that does
    has_texts: bool  # some hit's text is stored or in the index


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
    forbidden: tuple[int, ...] | None = None  # the ranks of forbidden hits; None: nothing is forbidden
    wrong: tuple[int, ...] = ()  # the ranks of hits that the golden file says are wrong

    @property
    def answered(self) -> bool | None:
        """Whether an answer was given; None: there is none at all, False: it refused."""
        return self.answer.grounded if self.answer else None

    @property
    def keeps_rules(self) -> bool | None:
        """Whether the answer keeps its rules; None without an answer, or without rules."""
        broken = self.answer.broken_rules if self.answer else None
        return None if broken is None else not broken

    @property
    def has_claim(self) -> bool:
        """Whether there is an answer that contains a claim."""
        return self.answer is not None and self.answer.has_claim

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


# -- the queries that a metric is over -------------------------------------------------------------


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


def _has_expected_answer(judged: Judged) -> bool:
    containment = judged.facts.containment
    return containment is not None and (containment.has_texts or not judged.facts.depth)


def _is_attributable(judged: Judged) -> bool:
    facts = judged.facts
    return facts.answerable is True and facts.answered is not None and bool(facts.targets.gains)


def _is_scoped(judged: Judged) -> bool:
    scope = judged.result.scope
    if scope is None or scope.folders is None or not judged.target_paths:
        return False
    return scope.mode is not None and scope.mode.startswith("on")


every_query = Domain("All queries of the run, also those that the golden file does not know", lambda _: True)
with_targets = Domain(
    "Queries with chunk-level targets", lambda judged: judged.facts.targets.has_chunk_targets
)
with_documents = Domain("Queries with expected documents", lambda judged: bool(judged.facts.doc_ranks))
with_expected_answer = Domain(
    "Queries with an expected answer, unless hits came back and none has its text stored",
    _has_expected_answer,
)
answers = Domain("Answers without error", lambda judged: judged.facts.answered is not None)
ruled_answers = Domain(
    "Answers without error whose query has `must_contain` or `forbidden`",
    lambda judged: judged.facts.keeps_rules is not None,
)
shipped_answers = Domain(
    "Answers without error that claim to be grounded", lambda judged: judged.facts.answered is True
)
shipped_to_golden = Domain(
    "Shipped answers to golden queries",
    lambda judged: judged.facts.answered is True and judged.facts.is_golden,
)
answerable = Domain("Answerable queries", lambda judged: judged.facts.answerable is True)
unanswerable = Domain("Unanswerable queries", lambda judged: judged.facts.answerable is False)
should_refuse = Domain(
    "Should-refuse queries that have an answer",
    lambda judged: judged.facts.answerable is False and judged.facts.answered is not None,
)
attributable = Domain("Answerable queries with an answer and targets", _is_attributable)

scoped = ResultDomain(
    "Queries run with scope mode on whose folders are stored, and whose targets' paths are known", _is_scoped
)
judged_queries = ResultDomain(
    "Queries with a stored judgment", lambda judged: judged.result.judge is not None
)
twice_judged = ResultDomain(
    "Queries with a second judgment",
    lambda judged: judged.result.judge is not None and judged.result.judge.second is not None,
)
timed = ResultDomain("All queries whose time is stored", lambda judged: judged.result.elapsed_ms is not None)
timed_by_stage = ResultDomain(
    "All queries whose time is stored by stage", lambda judged: judged.result.timings_ms is not None
)
with_cost = ResultDomain(
    "All queries whose cost is stored", lambda judged: judged.result.cost_usd is not None
)
with_usage = ResultDomain(
    "All queries whose answer has its usage stored",
    lambda judged: judged.result.answer is not None and judged.result.answer.usage is not None,
)
