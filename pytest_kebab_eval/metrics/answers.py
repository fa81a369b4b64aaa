"""Metrics of an answer."""

from __future__ import annotations

from pytest_kebab_eval.metrics.domains import grounded_answers, ruled_answers, should_refuse
from pytest_kebab_eval.metrics.registry import Judged, metric


@metric("groundedness", over=ruled_answers, means="every must_contain, no forbidden")
def keeps_its_rules(judged: Judged) -> bool:
    text = judged.answer.text if judged.answer else ""
    return all(one in text for one in judged.query.must_contain) and not any(
        one in text for one in judged.query.forbidden
    )


@metric("citation_coverage", over=grounded_answers, means="it cites, and every citation resolves to a chunk")
def citations_resolve(judged: Judged) -> bool:
    return judged.citations_resolve is True


@metric("refusal_correctness", over=should_refuse, means="a query that should be refused was refused")
def refused(judged: Judged) -> bool:
    return judged.answer is not None and not judged.answer.grounded
