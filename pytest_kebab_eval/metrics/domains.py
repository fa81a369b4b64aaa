"""The queries that a metric is over."""

from __future__ import annotations

from pytest_kebab_eval.metrics.registry import Judged


def every_query(judged: Judged) -> bool:
    """All queries of the run, also those that the golden file does not know."""
    return True


def with_targets(judged: Judged) -> bool:
    """Queries with chunk-level targets."""
    return judged.targets.for_metrics


def with_documents(judged: Judged) -> bool:
    """Queries with expected documents."""
    return bool(judged.query.expected_doc_ids)


def with_expected_answer(judged: Judged) -> bool:
    """Queries with an expected answer, unless hits came back and none has its text stored."""
    return judged.query.expected_answer is not None and (judged.has_texts or not judged.hits)


def scoped(judged: Judged) -> bool:
    """Queries run with scope mode on whose folders are stored, and whose targets' paths are known."""
    scope = judged.result.scope
    if scope is None or scope.folders is None or not judged.target_paths:
        return False
    return scope.mode is not None and scope.mode.startswith("on")


def answers(judged: Judged) -> bool:
    """Answers without error."""
    return judged.answer is not None


def ruled_answers(judged: Judged) -> bool:
    """Answers without error whose query has `must_contain` or `forbidden`."""
    return judged.answer is not None and bool(judged.query.must_contain or judged.query.forbidden)


def shipped_answers(judged: Judged) -> bool:
    """Answers without error that claim to be grounded."""
    return judged.answer is not None and judged.answer.grounded


def shipped_to_golden(judged: Judged) -> bool:
    """Shipped answers to golden queries."""
    return shipped_answers(judged) and bool(judged.query.query)


def should_refuse(judged: Judged) -> bool:
    """Should-refuse queries that have an answer."""
    return judged.query.can_be_answered is False and judged.answer is not None


def unanswerable(judged: Judged) -> bool:
    """Unanswerable queries."""
    return judged.query.can_be_answered is False


def answerable(judged: Judged) -> bool:
    """Answerable queries."""
    return judged.query.can_be_answered is True


def attributable(judged: Judged) -> bool:
    """Answerable queries with an answer and targets."""
    return judged.answer is not None and judged.query.can_be_answered is True and bool(judged.targets.ids)


def judged_queries(judged: Judged) -> bool:
    """Queries with a stored judgment."""
    return judged.result.judge is not None


def twice_judged(judged: Judged) -> bool:
    """Queries with a second judgment."""
    return judged.result.judge is not None and judged.result.judge.second is not None
