"""Metrics of how a run went: errors, time and cost."""

from __future__ import annotations

import math
from typing import get_type_hints

from pytest_kebab_eval.metrics.domains import every_query, timed, timed_by_stage, with_cost, with_usage
from pytest_kebab_eval.metrics.registry import Formula, Judged, metric, percentile
from pytest_kebab_eval.model import Timings

STAGES = tuple(get_type_hints(Timings))


@metric("error_rate", over=every_query, means="the query errored", lower_is_better=True)
def errored(judged: Judged) -> bool:
    return judged.facts.errored


@metric("timeout_rate", over=every_query, means="the query timed out", lower_is_better=True)
def timed_out(judged: Judged) -> bool:
    return judged.facts.timed_out


def elapsed(judged: Judged) -> float | None:
    """The query's time in all."""
    return judged.result.elapsed_ms


def _register_latencies() -> None:
    for percent in (50, 95):
        name, reduce = f"latency_p{percent}_ms", percentile(percent)
        means = f"{percent}th percentile of the time in milliseconds (nearest rank)"
        metric(name, over=timed, means=means, lower_is_better=True, reduce=reduce, volatile=True)(elapsed)
        for stage in STAGES:
            metric(
                f"{name}:{stage}",
                over=timed_by_stage,
                means=f"the same, of {stage.replace('_', ' ')}",
                lower_is_better=True,
                reduce=reduce,
                volatile=True,
            )(_stage(stage))


def _stage(stage: str) -> Formula:
    def stage_time(judged: Judged) -> float | None:
        timings = judged.result.timings_ms
        value: float | None = getattr(timings, stage) if timings else None
        return value

    return stage_time


_register_latencies()


@metric(
    "cost_usd",
    over=with_cost,
    means="what the run cost",
    lower_is_better=True,
    reduce=math.fsum,
    volatile=True,
)
def cost(judged: Judged) -> float | None:
    return judged.result.cost_usd


@metric(
    "prompt_tokens",
    over=with_usage,
    means="prompt tokens in all",
    lower_is_better=True,
    reduce=math.fsum,
    volatile=True,
)
def prompt_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.prompt_tokens if answer and answer.usage else None


@metric(
    "completion_tokens",
    over=with_usage,
    means="completion tokens in all",
    lower_is_better=True,
    reduce=math.fsum,
    volatile=True,
)
def completion_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.completion_tokens if answer and answer.usage else None
