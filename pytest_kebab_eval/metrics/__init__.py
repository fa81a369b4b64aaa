"""The metrics, each one pure decorated function; rounding and null-handling are in `scoring`."""

from pytest_kebab_eval.metrics import ranking  # isort: skip  # reports show them in this order
from pytest_kebab_eval.metrics import answers  # isort: skip
from pytest_kebab_eval.metrics import operation  # isort: skip
from pytest_kebab_eval.metrics.registry import (
    CUTOFFS,
    Domain,
    Facts,
    Family,
    Judged,
    Metric,
    all_metrics,
    all_names,
    metric,
    own_metric,
)

__all__ = [
    "CUTOFFS",
    "Domain",
    "Facts",
    "Family",
    "Judged",
    "Metric",
    "all_metrics",
    "all_names",
    "answers",
    "metric",
    "operation",
    "own_metric",
    "ranking",
]
