"""A golden query and what a run stored for it -> `Facts`, all that most metrics look at."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kebab_eval.matching.citations import NOWHERE, each_resolves, follow
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Matcher, Targets, first_ranks, judge
from pytest_kebab_eval.metrics import Facts
from pytest_kebab_eval.model import Answer, GoldenQuery, Hit, QueryResult

SHORTEST_CLAIM = 5  # a shorter one means nothing


class QueryJudge:
    """Judges results against what their golden queries want."""

    def __init__(self, matcher: Matcher, cutoff: int) -> None:
        self._matcher = matcher
        self._cutoff = cutoff

    def targets(self, query: GoldenQuery) -> Targets:
        """The query's targets."""
        return self._matcher.targets(query)

    def facts(self, query: GoldenQuery, result: QueryResult, passages: Passages, *, is_golden: bool) -> Facts:
        """What is known of the query in a run; one that errored found and answered nothing."""
        targets = self._matcher.targets(query)
        errored = result.error is not None
        hits = () if errored else result.hits
        answer = None if errored else result.answer
        ranking = judge(targets, hits, passages)
        leads = follow(answer, hits, targets, ranking, passages) if answer else NOWHERE
        expected, doc_ids = query.expected_answer, query.expected_doc_ids
        answer_rank, has_texts = (
            _contained(expected, hits, passages) if expected is not None else (None, False)
        )
        return Facts(  # in their order: by keyword it takes a fifth longer
            targets.gains,
            targets.by,
            targets.for_metrics,
            ranking,
            query.required_support_groups,
            query.k or self._cutoff,
            _document_ranks(doc_ids, hits) if doc_ids else (),
            expected is not None,
            answer_rank,
            has_texts,
            len(hits),
            errored,
            bool(result.timed_out),
            is_golden,
            query.can_be_answered if is_golden else None,
            answer.grounded if answer else None,
            _keeps_rules(query, answer) if answer else None,
            not answer.text.strip() if answer else False,
            _has_claim(query, answer) if answer and query.claims else False,
            leads.all_resolve,
            leads.only_to_hits,
            leads.to_correct_hit,
            leads.to_target,
        )

    def correct_ranks(
        self, query: GoldenQuery, result: QueryResult | None, passages: Passages
    ) -> tuple[int, ...]:
        """The ranks of a result's correct hits."""
        if result is None or result.error is not None:
            return ()
        return judge(self.targets(query), result.hits, passages).correct

    def citations_resolve(self, result: QueryResult | None, passages: Passages) -> tuple[bool, ...]:
        """For each citation of a result's answer, whether it leads to a chunk."""
        answer = result.answer if result else None
        if result is None or answer is None:
            return ()
        return each_resolves(answer, result.hits, passages)


def _document_ranks(doc_ids: Sequence[str], hits: Sequence[Hit]) -> tuple[int | None, ...]:
    """For each document, the rank of its first hit."""
    return first_ranks(doc_ids, [(hit.doc_id, hit.rank) for hit in hits if hit.doc_id in doc_ids])


def _keeps_rules(query: GoldenQuery, answer: Answer) -> bool | None:
    """Every `must_contain`, and nothing that is forbidden; None if there are no rules."""
    if not query.must_contain and not query.forbidden:
        return None
    text = answer.text
    for wanted in query.must_contain:
        if wanted not in text:
            return False
    return not query.forbidden or not any(unwanted in text for unwanted in query.forbidden)


def _has_claim(query: GoldenQuery, answer: Answer) -> bool:
    """Whether the answer contains any claim."""
    text = answer.text.casefold()
    return any(len(claim) >= SHORTEST_CLAIM and claim.casefold() in text for claim in query.claims)


def _contained(expected: str, hits: Sequence[Hit], passages: Passages) -> tuple[int | None, bool]:
    """The rank of the first hit whose text has the expected answer, and whether any text is at hand."""
    wanted = _folded(expected)
    has_texts = False
    for hit in hits:
        text = passages.text(hit) or hit.snippet
        if text:
            has_texts = True
            if wanted in _folded(text):
                return hit.rank, True
    return None, has_texts


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
