"""What a formula may look at: `Judged`, one query of one run, and the `Facts` that most formulas are of.

Queries alike in their facts are scored once, so what differs from query to query (texts, times, judges'
scores) is no part of them. `scoring.facts` makes them.
"""

from __future__ import annotations

from pytest_kebab_eval.matching.citations import CitationCheck
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.model import GoldenQuery, QueryResult, Value


class TargetFacts(Value, frozen=True):
    """What a query wants found."""

    gains: tuple[float, ...]
    matched_by: str
    has_chunk_targets: bool
    groups: tuple[tuple[int, ...], ...] = ()  # the supports that are enough together


class AnswerFacts(Value, frozen=True):
    """What is known of an answer that came without an error."""

    grounded: bool  # false: it refused
    keeps_rules: bool | None  # every must_contain and no forbidden; None: there are no rules
    is_blank: bool
    has_claim: bool
    citations: CitationCheck


class Containment(Value, frozen=True):
    """Whether the hits of a query with an expected answer have its text."""

    rank: int | None  # of the first hit that does
    has_texts: bool  # some hit's text is at hand


class Facts(Value, frozen=True):
    """What is known of a judged query, apart from its texts, times and scores."""

    targets: TargetFacts
    ranking: Ranking
    cutoff: int  # the query's own
    doc_ranks: tuple[int | None, ...]  # for each expected document, the rank of its first hit
    doc_positions: tuple[int | None, ...]  # the same, counted in distinct documents
    depth: int  # how many hits there are
    errored: bool
    timed_out: bool
    is_golden: bool
    answerable: bool | None
    answer: AnswerFacts | None
    containment: Containment | None  # None: no answer is expected

    @property
    def answered(self) -> bool | None:
        """Whether an answer was given; None: there is none at all, False: it refused."""
        return self.answer.grounded if self.answer else None

    @property
    def keeps_rules(self) -> bool | None:
        """Whether the answer keeps its rules; None without an answer, or without rules."""
        return self.answer.keeps_rules if self.answer else None

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
