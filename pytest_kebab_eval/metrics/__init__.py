"""The metrics, each one pure decorated function; averaging and null-handling are in `comparing.samples`."""

from pytest_kebab_eval.metrics import ranking  # isort: skip  # reports show them in this order
from pytest_kebab_eval.metrics import answers  # isort: skip
from pytest_kebab_eval.metrics.registry import (
    CUTOFFS,
    AnswerFacts,
    Containment,
    Domain,
    Facts,
    Family,
    Judged,
    Metric,
    TargetFacts,
    Values,
    all_metrics,
    all_names,
    custom_metric,
    is_metric,
    metric,
)

__all__ = [
    "CUTOFFS",
    "AnswerFacts",
    "Containment",
    "Domain",
    "Facts",
    "Family",
    "Judged",
    "Metric",
    "TargetFacts",
    "Values",
    "all_metrics",
    "all_names",
    "answers",
    "custom_metric",
    "is_metric",
    "metric",
    "ranking",
]
