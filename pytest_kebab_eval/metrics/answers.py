"""Metrics of an answer, and of what a judge said of it."""

from __future__ import annotations

from pytest_kebab_eval.metrics.domains import (
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
from pytest_kebab_eval.metrics.registry import Judged, metric

TOLERATED_DISAGREEMENT = 1


@metric("groundedness", over=ruled_answers, means="every must_contain, no forbidden")
def keeps_its_rules(judged: Judged) -> bool:
    return judged.facts.keeps_rules is True


@metric(
    "citation_coverage",
    over=shipped_answers,
    means="at least one citation, and every one resolves to a chunk",
)
def citations_resolve(judged: Judged) -> bool:
    return judged.facts.citations_resolve


@metric(
    "refusal_correctness",
    alias="abstention_accuracy",
    over=should_refuse,
    means="a query that should be refused was refused",
)
def refused(judged: Judged) -> bool:
    return judged.facts.answered is False


@metric(
    "hallucination_rate",
    over=should_refuse,
    means="a query that should be refused was answered",
    lower_is_better=True,
)
def hallucinated(judged: Judged) -> bool:
    return not refused(judged)


@metric(
    "precision_answered",
    over=shipped_to_golden,
    means="a claim contained, and a citation hit",
    needs=lambda query: bool(query.claims),
)
def answered_well(judged: Judged) -> bool:
    return judged.facts.answerable is not False and judged.facts.has_claim and citation_hit(judged)


@metric(
    "citation_hit_rate",
    over=shipped_to_golden,
    means="it cites a target, and only retrieved chunks",
    needs=lambda query: bool(
        query.expected_chunk_ids
        or query.relevance
        or query.gold_supports
        or query.expected_spans
        or query.expected_doc_ids
    ),
)
def citation_hit(judged: Judged) -> bool:
    return judged.facts.cites_only_hits and judged.facts.cites_correct_hit


@metric(
    "under_refusal_rate",
    over=unanswerable,
    means="an unanswerable query was answered",
    lower_is_better=True,
    needs_answers=True,
)
def answered_anyway(judged: Judged) -> bool:
    return judged.facts.answered is True


@metric(
    "over_refusal_rate",
    over=answerable,
    means="an answerable query was refused",
    lower_is_better=True,
    needs_answers=True,
)
def refused_anyway(judged: Judged) -> bool:
    return judged.facts.answered is False


@metric("attribution_hit_rate", over=attributable, means="a citation matches a target")
def attributed(judged: Judged) -> bool:
    return judged.facts.cites_target


@metric("empty_answer_rate", over=answers, means="the answer is blank", lower_is_better=True)
def empty_answer(judged: Judged) -> bool:
    return judged.facts.is_blank


@metric("judge_groundedness", over=judged_queries, means="the judge's groundedness, 0 to 5", most=5)
def judge_groundedness(judged: Judged) -> float | None:
    return judged.result.judge.groundedness if judged.result.judge else None


@metric("judge_correctness", over=judged_queries, means="the judge's correctness, 0 to 5", most=5)
def judge_correctness(judged: Judged) -> float | None:
    return judged.result.judge.correctness if judged.result.judge else None


@metric(
    "judge_disagreement_rate",
    over=twice_judged,
    means="first and second judgment differ by more than 1",
    lower_is_better=True,
)
def judges_disagree(judged: Judged) -> bool:
    judge = judged.result.judge
    second = judge.second if judge else None
    if judge is None or second is None:
        return False
    pairs = ((judge.groundedness, second.groundedness), (judge.correctness, second.correctness))
    return any(
        one is not None and other is not None and abs(one - other) > TOLERATED_DISAGREEMENT
        for one, other in pairs
    )
