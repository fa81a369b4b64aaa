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


def ruled_answers(judged: Judged) -> bool:
    """Answers without error whose query has `must_contain` or `forbidden`."""
    return judged.answer is not None and bool(judged.query.must_contain or judged.query.forbidden)


def grounded_answers(judged: Judged) -> bool:
    """Answers that claim to be grounded."""
    return judged.answer is not None and judged.answer.grounded


def should_refuse(judged: Judged) -> bool:
    """Should-refuse queries that have an answer."""
    return judged.query.can_be_answered is False and judged.answer is not None
