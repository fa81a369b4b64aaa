"""Metrics of answers, of stored judgments of them, and of how a run went: errors, time and cost."""

from __future__ import annotations

from functools import partial
from typing import get_type_hints

from pytest_kebab_eval.matching.citations import NO_CITATIONS, CitationCheck
from pytest_kebab_eval.metrics.registry import (
    Domain,
    Judged,
    ResultDomain,
    every_query,
    metric,
    percentile,
    total,
)
from pytest_kebab_eval.model import Timings, gains_of

TOLERATED_DISAGREEMENT = 1

# -- the queries -----------------------------------------------------------------------------------


def _is_attributable(judged: Judged) -> bool:
    facts = judged.facts
    return facts.answerable is True and facts.grounded is not None and bool(facts.targets.gains)


answers = Domain("Answers without error", lambda judged: judged.facts.answer is not None)
ruled_answers = Domain(
    "Answers without error whose query has `must_contain` or `forbidden`",
    lambda judged: judged.facts.keeps_rules is not None,
)
shipped_answers = Domain(
    "Answers without error that claim to be grounded",
    lambda judged: judged.facts.grounded is True,
)
shipped_to_golden = Domain(
    "Shipped answers to golden queries",
    lambda judged: judged.facts.grounded is True and judged.facts.is_golden,
)
answerable = Domain("Answerable queries", lambda judged: judged.facts.answerable is True)
unanswerable = Domain("Unanswerable queries", lambda judged: judged.facts.answerable is False)
should_refuse = Domain(
    "Should-refuse queries that have an answer",
    lambda judged: judged.facts.answerable is False and judged.facts.grounded is not None,
)
attributable = Domain("Answerable queries with an answer and targets", _is_attributable)

must_cite = Domain(
    "Answers without error whose query has `must_cite`",
    lambda judged: judged.facts.targets.must_cite and judged.facts.grounded is not None,
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

# -- the metrics -----------------------------------------------------------------------------------


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
    return judged.facts.grounded is False


@metric(
    "hallucination_rate", should_refuse, "a query that should be refused was answered", lower_is_better=True
)
def answered(judged: Judged) -> bool:
    return judged.facts.grounded is True


@metric(
    "precision_answered",
    shipped_to_golden,
    "a claim contained, and a citation hit",
    needs=lambda query: query.claims is not None,
)
def answered_well(judged: Judged) -> bool:
    return judged.facts.answerable is not False and judged.facts.has_claim and citation_hit(judged)


@metric(
    "citation_hit_rate",
    shipped_to_golden,
    "it cites a target, and only retrieved chunks",
    needs=lambda query: bool(
        gains_of(query)
        or query.gold_supports
        or query.expected_spans
        or query.expected_answer
        or query.expected_doc_ids
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


@metric(
    "must_cite_rate",
    must_cite,
    "it cites all that it must",
    needs=lambda query: query.must_cite is not None,
)
def cites_all(judged: Judged) -> bool:
    return judged.facts.cites_all is True


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


# -- how a run went: errors, time and cost ---------------------------------------------------------


the_index = ResultDomain("The index of the run, as the tables or its `index_coverage` say", lambda _: False)
_rate_of_index = partial(metric, over=the_index, lower_is_better=True, reduce=total)
for _name, _text, _unit in (
    ("no_chunks_rate", "the document has no chunks", "documents"),
    ("chunks_skipped_rate", "the chunk was skipped, of those attempted", "chunks"),
):
    _rate_of_index(_name, description=_text, unit=_unit)(lambda judged: None)

STAGES = tuple(get_type_hints(Timings))


@metric("error_rate", every_query, "the query errored", lower_is_better=True)
def errored(judged: Judged) -> bool:
    return judged.facts.errored


@metric("timeout_rate", every_query, "the query timed out", lower_is_better=True)
def timed_out(judged: Judged) -> bool:
    return judged.facts.timed_out


def elapsed(judged: Judged) -> float | None:
    """The query's time in all."""
    return judged.result.elapsed_ms


def elapsed_in(judged: Judged, stage: str) -> float | None:
    """The query's time in a stage."""
    return getattr(judged.result.timings_ms, stage, None)


# Both percentiles have the same function of a stage, so that they share a column.
_STAGE_TIMES = {stage: partial(elapsed_in, stage=stage) for stage in STAGES}

for _percent in (50, 95):
    _latency = partial(metric, lower_is_better=True, reduce=percentile(_percent), volatile=True)
    _name = f"latency_p{_percent}_ms"
    _text = f"{_percent}th percentile of the time in milliseconds (nearest rank)"
    _latency(_name, timed, _text)(elapsed)
    for _stage, _stage_time in _STAGE_TIMES.items():
        _text = f"the same, of {_stage.replace('_', ' ')}"
        _latency(f"{_name}:{_stage}", timed_by_stage, _text)(_stage_time)

_total = partial(metric, lower_is_better=True, reduce=total, volatile=True)


@_total("cost_usd", with_cost, "what the run cost")
def cost(judged: Judged) -> float | None:
    return judged.result.cost_usd


@_total("prompt_tokens", with_usage, "prompt tokens in all")
def prompt_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.prompt_tokens if answer and answer.usage else None


@_total("judge_tokens", judged_queries, "tokens of judges in all")
def judge_tokens(judged: Judged) -> float | None:
    return judged.result.judge.tokens if judged.result.judge else None


@_total("completion_tokens", with_usage, "completion tokens in all")
def completion_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.completion_tokens if answer and answer.usage else None
