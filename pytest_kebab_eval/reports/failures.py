"""A failed query as facts: what was expected, what B has instead, the answer and the rule that it breaks.

The terminal and `report.md` word the same facts; what comes from a run or a golden file is marked as foreign,
so that each makes it inert in its own way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from pytest_kebab_eval.comparing.checks import ANSWER_CHECKS
from pytest_kebab_eval.comparing.evidence import HITS_SHOWN, KnownPassage, QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import (
    Answer,
    ComparisonKind,
    GoldenQuery,
    Hit,
    QueryComparison,
    QueryResult,
    is_labelled,
)
from pytest_kebab_eval.reports.wording import CAUSES, failed_queries

_TARGETS_SHOWN = 3
_RULES_SHOWN = 5
PASSAGE_WIDTH = 110  # characters of a text


class Foreign(NamedTuple):
    """Text that is not ours, to be cut to a width."""

    text: str
    width: int = 60
    quote: str = ""


Words = Sequence["str | Foreign"]  # one after the other


class Fact(NamedTuple):
    """Something to know of a failed query."""

    label: str
    words: Words


class FailedQuery(NamedTuple):
    """A query that failed, and what is known of why."""

    query: GoldenQuery
    comparison: QueryComparison
    evidence: QueryEvidence

    def facts(self) -> Iterator[Fact]:
        """What was expected, what became of it, and what B has instead."""
        comparison, evidence = self.comparison, self.evidence
        yield from (Fact("expected", words) for words in self._expected())
        if comparison.kind is not None:
            yield Fact("run A", self._state(comparison.a_hit_rank, evidence.a, readable=evidence.readable_a))
        yield Fact("run B", self._state(comparison.b_hit_rank, evidence.b, readable=evidence.readable_b))
        both_readable = evidence.readable_a and evidence.readable_b
        if comparison.cause and both_readable:
            yield Fact("cause", [f"{comparison.cause}: {CAUSES[comparison.cause]}"])
        yield from self._lost()
        yield from self._answers()
        yield from self._forbidden()
        if comparison.note and both_readable:
            yield Fact("note", [Foreign(comparison.note, 1000)])

    def _expected(self) -> Iterator[Words]:
        """The targets with their texts, then the rules for the answer."""
        query, evidence = self.query, self.evidence
        if query.can_be_answered is False:
            yield ["a refusal"]
            return
        for target in evidence.expected[:_TARGETS_SHOWN]:
            yield self._target(target)
        more = len(evidence.expected) - _TARGETS_SHOWN
        if more > 0:
            yield [f"and {more} more"]
        unwanted = (*query.forbidden_chunk_ids, *query.forbidden_doc_ids)
        if unwanted:
            yield ["not ", *_listed([Foreign(name, 40) for name in unwanted[:_TARGETS_SHOWN]])]
        rules: list[Words] = [["an answer with ", Foreign(text, 40, "'")] for text in query.must_contain]
        rules += [["an answer without ", Foreign(text, 40, "'")] for text in query.forbidden]
        if query.claims:
            claims = [Foreign(claim, 40, "'") for claim in query.claims[:_TARGETS_SHOWN]]
            rules.append(["an answer with any of ", *_listed(claims)])
        yield from rules[:_RULES_SHOWN]
        if not evidence.expected and not unwanted and not rules:
            yield ["nothing in particular"]

    def _target(self, target: str) -> Words:
        query, evidence = self.query, self.evidence
        groups = (*query.alternatives, *query.doc_alternatives)
        names = next((group for group in groups if group[0] == target), (target,))
        words: list[str | Foreign] = []
        for name in names[:_TARGETS_SHOWN]:
            words += [" or "] if words else []
            words += passage_words(evidence.show_target(query, name, PASSAGE_WIDTH))
        if query.must_rank_at_most and target == evidence.expected[-1]:
            words.append(f" (at rank {query.must_rank_at_most} or better)")
        return words

    def _state(self, rank: int | None, result: QueryResult | None, *, readable: bool) -> Words:
        """What became of the query in a run: its rank, or that it was refused, or that it errored."""
        if result is None:
            return ["no result" if readable else "cannot be read"]
        if result.error is not None:
            return ["error: ", Foreign(result.error, 72)]
        if self.query.can_be_answered is False or not self.evidence.expected:
            return [_said(result.answer)]
        return ["not found" if rank is None else f"rank {rank}"]

    def _lost(self) -> Iterator[Fact]:
        """The lost targets, and what B has in their place."""
        if not self.comparison.lost:
            return
        yield Fact("lost", _listed([Foreign(name, 60) for name in self.comparison.lost[:_RULES_SHOWN]]))
        instead = self.instead()
        if instead:
            yield Fact("instead", self.hit_words(instead))

    def _forbidden(self) -> Iterator[Fact]:
        """The forbidden hits, as far as the top hits of B show them."""
        ranks = {hit.rank for hit in self.comparison.forbidden or ()}
        for hit in self.evidence.b.hits if self.evidence.b else ():
            if hit.rank in ranks:
                yield Fact("forbidden", [f"rank {hit.rank}: ", *self.hit_words(hit)])

    def instead(self) -> Hit | None:
        """What took the place of the lost targets: the first wrong hit from the rank of A's right one on."""
        hits = self.evidence.b.hits if self.evidence.b else ()
        expected, correct = {*self.evidence.expected}, self.evidence.correct_b
        wrong = (hit for hit in hits if hit.rank not in correct and hit.chunk_id not in expected)
        return next((hit for hit in wrong if hit.rank >= (self.comparison.a_hit_rank or 1)), None)

    def hit_words(self, hit: Hit, width: int = PASSAGE_WIDTH) -> Words:
        return passage_words(self.evidence.show_hit(self.query, hit, width))

    def _answers(self) -> Iterator[Fact]:
        """Both answers, and the rule that B's breaks, where the answer is what failed."""
        checks = {*self.comparison.checks}
        if checks.isdisjoint(ANSWER_CHECKS):
            return
        before = self.evidence.a.answer if self.evidence.a else None
        answer = self.evidence.b.answer if self.evidence.b else None
        if before is not None:
            yield Fact("before", _answer_words(before))
        yield Fact("answer", ["none"] if answer is None else _answer_words(answer))
        if answer is None:
            return
        if "answer" in checks and (broken := [*_broken_rules(self.query, answer)]):
            yield Fact("rule", _listed(broken[:_RULES_SHOWN]))
        if "citation" in checks:
            paths = [cited.citation.path for cited in answer.citations if cited.citation]
            shown = [Foreign(path, 80) for path in paths if path][:_RULES_SHOWN]
            yield Fact("cites", _listed(shown) or ["nothing"])

    def unlabelled(self) -> str:
        """How many of B's top hits nobody labelled, where it lost one that was, or ranks none high enough."""
        evidence = self.evidence
        top = evidence.b.hits[:HITS_SHOWN] if evidence.b else ()
        unknown = [
            hit for hit in top if hit.rank not in evidence.correct_b and not is_labelled(self.query, hit)
        ]
        comparison = self.comparison
        fell = comparison.kind is ComparisonKind.LOSS or {"miss", "rank_limit"} & {*comparison.checks}
        if not unknown or not (comparison.lost or fell):
            return ""
        return f"{len(unknown)} of B's top {len(top)} {'was' if len(unknown) == 1 else 'were'} never labelled"


def most_telling(report: CompareReport) -> list[QueryComparison]:
    """The failed queries, each cause in turn, so that the first show all that happened.

    Of one cause those come first that A found at the best rank.
    """
    by_cause: dict[str | None, list[QueryComparison]] = {}
    for query in failed_queries(report):
        by_cause.setdefault(query.cause, []).append(query)
    columns = sorted(by_cause.values(), key=len, reverse=True)
    for column in columns:
        column.sort(key=lambda query: query.a_hit_rank or math.inf)
    return [query for row in zip_longest(*columns) for query in row if query is not None]


def passage_words(passage: KnownPassage) -> list[str | Foreign]:
    """Where a passage is and what it says, its id beside that; without a text the id comes first."""
    name, where = Foreign(passage.id, 40), Foreign(passage.where, 60)
    if not passage.text:
        return [name, "  ", where] if passage.where else [name]
    said = Foreign(passage.text, PASSAGE_WIDTH, '"')
    known: list[str | Foreign] = [where, "  ", said] if passage.where else [said]
    return [*known, "  (", name, ")"] if passage.id else known


def _listed(words: Iterable[str | Foreign | Words]) -> list[str | Foreign]:
    """The words with commas between them."""
    listed: list[str | Foreign] = []
    for piece in words:
        listed += [", "] if listed else []
        listed += [piece] if isinstance(piece, (str, Foreign)) else piece
    return listed


def _said(answer: Answer | None) -> str:
    return "no answer" if answer is None else "answered" if answer.grounded else "refused"


def _answer_words(answer: Answer) -> Words:
    return [*([] if answer.grounded else ["(refused) "]), Foreign(answer.text, 200)]


def _broken_rules(query: GoldenQuery, answer: Answer) -> Iterator[Words]:
    for text in query.must_contain:
        if text not in answer.text:
            yield ["lacks ", Foreign(text, 40, "'")]
    for text in query.forbidden:
        if text in answer.text:
            yield ["says the forbidden ", Foreign(text, 40, "'")]
