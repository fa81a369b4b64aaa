"""Metrics of answers, and of stored judgments of them."""

from __future__ import annotations

from functools import partial

from pytest_kebab_eval.matching.citations import NO_CITATIONS, CitationCheck
from pytest_kebab_eval.metrics.facts import (
    Judged,
    answerable,
    answers,
    attributable,
    judged_queries,
    ruled_answers,
    shipped_answers,
    shipped_to_golden,
    should_refuse,
    twice_judged,
    unanswerable,
)
from pytest_kebab_eval.metrics.registry import metric
from pytest_kebab_eval.model import gains_of

TOLERATED_DISAGREEMENT = 1


def _citations(judged: Judged) -> CitationCheck:
    return judged.facts.answer.citations if judged.facts.answer else NO_CITATIONS


@metric("groundedness", ruled_answers, "every must_contain, no forbidden")
def keeps_its_rules(judged: Judged) -> bool:
    return judged.facts.keeps_rules is True


@metric("citation_coverage", shipped_answers, "at least one citation, and every one resolves to a chunk")
def citations_resolve(judged: Judged) -> bool:
    return _citations(judged).all_resolve


@metric(
    "refusal_correctness",
    should_refuse,
    "a query that should be refused was refused",
    alias="abstention_accuracy",
)
def refused(judged: Judged) -> bool:
    return judged.facts.answered is False


@metric(
    "hallucination_rate", should_refuse, "a query that should be refused was answered", lower_is_better=True
)
def answered(judged: Judged) -> bool:
    return judged.facts.answered is True


@metric(
    "precision_answered",
    shipped_to_golden,
    "a claim contained, and a citation hit",
    needs=lambda query: bool(query.claims),
)
def answered_well(judged: Judged) -> bool:
    return judged.facts.answerable is not False and judged.facts.has_claim and citation_hit(judged)


@metric(
    "citation_hit_rate",
    shipped_to_golden,
    "it cites a target, and only retrieved chunks",
    needs=lambda query: bool(
        gains_of(query) or query.gold_supports or query.expected_spans or query.expected_doc_ids
    ),
)
def citation_hit(judged: Judged) -> bool:
    citations = _citations(judged)
    return citations.only_hits and citations.a_correct_hit


_rate_of_all = partial(metric, lower_is_better=True, needs_answers=True)  # also of queries without an answer
_rate_of_all("under_refusal_rate", unanswerable, "an unanswerable query was answered")(answered)
_rate_of_all("over_refusal_rate", answerable, "an answerable query was refused")(refused)


@metric("attribution_hit_rate", attributable, "a citation matches a target")
def attributed(judged: Judged) -> bool:
    return _citations(judged).a_target


@metric("empty_answer_rate", answers, "the answer is blank", lower_is_better=True)
def empty_answer(judged: Judged) -> bool:
    return judged.facts.answer is not None and judged.facts.answer.is_blank


@metric("judge_groundedness", judged_queries, "the judge's groundedness, 0 to 5", max_value=5)
def judge_groundedness(judged: Judged) -> float | None:
    return judged.result.judge.groundedness if judged.result.judge else None


@metric("judge_correctness", judged_queries, "the judge's correctness, 0 to 5", max_value=5)
def judge_correctness(judged: Judged) -> float | None:
    return judged.result.judge.correctness if judged.result.judge else None


@metric(
    "judge_disagreement_rate",
    twice_judged,
    "first and second judgment differ by more than 1",
    lower_is_better=True,
)
def judges_disagree(judged: Judged) -> bool:
    judge = judged.result.judge
    second = judge.second if judge else None
    if judge is None or second is None:
        return False
    pairs = ((judge.groundedness, second.groundedness), (judge.correctness, second.correctness))
    return any(
        first is not None and other is not None and abs(first - other) > TOLERATED_DISAGREEMENT
        for first, other in pairs
    )
