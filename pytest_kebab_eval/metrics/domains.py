"""The queries that a metric is over."""

from __future__ import annotations

from pytest_kebab_eval.metrics.facts import Judged
from pytest_kebab_eval.metrics.registry import domain


@domain(of_facts=True)
def every_query(judged: Judged) -> bool:
    """All queries of the run, also those that the golden file does not know."""
    return True


@domain(of_facts=True)
def with_targets(judged: Judged) -> bool:
    """Queries with chunk-level targets."""
    return judged.facts.targets.has_chunk_targets


@domain(of_facts=True)
def with_documents(judged: Judged) -> bool:
    """Queries with expected documents."""
    return bool(judged.facts.doc_ranks)


@domain(of_facts=True)
def with_expected_answer(judged: Judged) -> bool:
    """Queries with an expected answer, unless hits came back and none has its text stored."""
    containment = judged.facts.containment
    return containment is not None and (containment.has_texts or not judged.facts.depth)


@domain(of_facts=True)
def shipped_answers(judged: Judged) -> bool:
    """Answers without error that claim to be grounded."""
    return judged.facts.answered is True


@domain(of_facts=True)
def shipped_to_golden(judged: Judged) -> bool:
    """Shipped answers to golden queries."""
    return judged.facts.answered is True and judged.facts.is_golden


@domain(of_facts=True)
def should_refuse(judged: Judged) -> bool:
    """Should-refuse queries that have an answer."""
    return judged.facts.answerable is False and judged.facts.answered is not None


@domain(of_facts=True)
def unanswerable(judged: Judged) -> bool:
    """Unanswerable queries."""
    return judged.facts.answerable is False


@domain(of_facts=True)
def answerable(judged: Judged) -> bool:
    """Answerable queries."""
    return judged.facts.answerable is True


@domain(of_facts=True)
def attributable(judged: Judged) -> bool:
    """Answerable queries with an answer and targets."""
    facts = judged.facts
    return facts.answerable is True and facts.answered is not None and bool(facts.targets.gains)


@domain(of_facts=True)
def answers(judged: Judged) -> bool:
    """Answers without error."""
    return judged.facts.answered is not None


@domain(of_facts=True)
def ruled_answers(judged: Judged) -> bool:
    """Answers without error whose query has `must_contain` or `forbidden`."""
    return judged.facts.keeps_rules is not None


@domain()
def scoped(judged: Judged) -> bool:
    """Queries run with scope mode on whose folders are stored, and whose targets' paths are known."""
    scope = judged.result.scope
    if scope is None or scope.folders is None or not judged.target_paths:
        return False
    return scope.mode is not None and scope.mode.startswith("on")


@domain()
def judged_queries(judged: Judged) -> bool:
    """Queries with a stored judgment."""
    return judged.result.judge is not None


@domain()
def twice_judged(judged: Judged) -> bool:
    """Queries with a second judgment."""
    return judged.result.judge is not None and judged.result.judge.second is not None


@domain()
def timed(judged: Judged) -> bool:
    """All queries whose time is stored."""
    return judged.result.elapsed_ms is not None


@domain()
def timed_by_stage(judged: Judged) -> bool:
    """All queries whose time is stored by stage."""
    return judged.result.timings_ms is not None


@domain()
def with_cost(judged: Judged) -> bool:
    """All queries whose cost is stored."""
    return judged.result.cost_usd is not None


@domain()
def with_usage(judged: Judged) -> bool:
    """All queries whose answer has its usage stored."""
    return judged.result.answer is not None and judged.result.answer.usage is not None
