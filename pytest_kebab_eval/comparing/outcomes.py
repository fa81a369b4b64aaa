"""Whether a query passes a check in one run, so that runs of one side can be counted.

A comparison of two runs asks what passed in A and fails in B. That is the same as these outcomes, `answer`
being three things that can each be lost. None is neither: the check does not apply in this run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pytest_kebab_eval.comparing.queries import passed_checks, rank_within
from pytest_kebab_eval.scoring.scorecard import QueryScore


class Part(NamedTuple):
    """A check, or one of the things that it looks at; `words` stand before "in 5 of 5 runs"."""

    check: str
    words: str
    outcome: Callable[[QueryScore, int], bool | None]


def _retrieval(score: QueryScore, k: int) -> bool | None:
    return rank_within(score, k) is not None if score.facts.targets.gains else None


def _rules(score: QueryScore, k: int) -> bool | None:
    return score.facts.keeps_rules


def _claim(score: QueryScore, k: int) -> bool | None:
    return score.facts.has_claim if score.facts.answer else None


def _given(score: QueryScore, k: int) -> bool | None:
    """Whether there is an answer that could be lost; one that is there and fails is neither."""
    if score.facts.errored:
        return None
    if score.facts.answered is None:
        return False
    return True if "answer" in passed_checks(score, k) else None


def _refusal(score: QueryScore, k: int) -> bool | None:
    facts = score.facts
    return None if facts.answered is None or facts.answerable is None else facts.answered is facts.answerable


def _as_outcome(value: float | None) -> bool | None:
    return {1.0: True, 0.0: False}.get(value) if value is not None else None


def _citation(score: QueryScore, k: int) -> bool | None:
    return _as_outcome(score.value("citation_coverage"))


def _attribution(score: QueryScore, k: int) -> bool | None:
    return _as_outcome(score.value("attribution_hit_rate"))


def _error(score: QueryScore, k: int) -> bool:
    return not score.facts.errored


PARTS = (
    Part("retrieval", "found", _retrieval),
    Part("answer", "kept its rules", _rules),
    Part("answer", "contained a claim", _claim),
    Part("answer", "answered", _given),
    Part("refusal", "answered or refused as it should", _refusal),
    Part("citation", "citations resolved", _citation),
    Part("attribution", "cited a target", _attribution),
    Part("error", "without an error", _error),
)
RANK = Part("loss", "ranked as high", lambda score, k: None)  # judged by ranks, which are not yes or no
