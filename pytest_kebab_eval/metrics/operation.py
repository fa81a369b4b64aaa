"""Metrics of how a run went: errors, time and cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_type_hints

from pytest_kebab_eval.metrics.domains import every_query, timed, timed_by_stage, with_cost, with_usage
from pytest_kebab_eval.metrics.facts import Judged
from pytest_kebab_eval.metrics.reducing import percentile, total
from pytest_kebab_eval.metrics.registry import Domain, Formula, metric
from pytest_kebab_eval.model import Timings

STAGES = tuple(get_type_hints(Timings))


@metric("error_rate", over=every_query, description="the query errored", lower_is_better=True)
def errored(judged: Judged) -> bool:
    return judged.facts.errored


@metric("timeout_rate", over=every_query, description="the query timed out", lower_is_better=True)
def timed_out(judged: Judged) -> bool:
    return judged.facts.timed_out


def elapsed(judged: Judged) -> float | None:
    """The query's time in all."""
    return judged.result.elapsed_ms


def _register_latencies() -> None:
    for percent in (50, 95):
        name = f"latency_p{percent}_ms"
        text = f"{percent}th percentile of the time in milliseconds (nearest rank)"
        _latency(name, percent, timed, text)(elapsed)
        for stage in STAGES:
            text = f"the same, of {stage.replace('_', ' ')}"
            _latency(f"{name}:{stage}", percent, timed_by_stage, text)(_stage(stage))


def _latency(name: str, percent: int, over: Domain, description: str) -> Callable[[Formula], Formula]:
    return metric(
        name,
        over=over,
        description=description,
        lower_is_better=True,
        reduce=percentile(percent),
        volatile=True,
    )


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
    description="what the run cost",
    lower_is_better=True,
    reduce=total,
    volatile=True,
)
def cost(judged: Judged) -> float | None:
    return judged.result.cost_usd


@metric(
    "prompt_tokens",
    over=with_usage,
    description="prompt tokens in all",
    lower_is_better=True,
    reduce=total,
    volatile=True,
)
def prompt_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.prompt_tokens if answer and answer.usage else None


@metric(
    "completion_tokens",
    over=with_usage,
    description="completion tokens in all",
    lower_is_better=True,
    reduce=total,
    volatile=True,
)
def completion_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.completion_tokens if answer and answer.usage else None
