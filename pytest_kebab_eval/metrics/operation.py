"""Metrics of how a run went: errors, time and cost."""

from __future__ import annotations

from functools import partial
from typing import get_type_hints

from pytest_kebab_eval.metrics.facts import (
    Judged,
    every_query,
    timed,
    timed_by_stage,
    with_cost,
    with_usage,
)
from pytest_kebab_eval.metrics.registry import metric, percentile, total
from pytest_kebab_eval.model import Timings

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


@_total("completion_tokens", with_usage, "completion tokens in all")
def completion_tokens(judged: Judged) -> float | None:
    answer = judged.result.answer
    return answer.usage.completion_tokens if answer and answer.usage else None
