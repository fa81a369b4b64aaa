"""The metrics, each one pure decorated function; averaging and rounding are in `scoring`."""

from pytest_kebab_eval.metrics import ranking  # isort: skip  # reports show them in this order
from pytest_kebab_eval.metrics import answers  # isort: skip
from pytest_kebab_eval.metrics.registry import CUTOFFS, Judged, Metric, all_metrics, metric

__all__ = ["CUTOFFS", "Judged", "Metric", "all_metrics", "answers", "metric", "ranking"]
