"""The runs of a suite in order of time: how their metrics went, and which run was the first bad one."""

from pytest_kebab_eval.history.trends import LAST_RUNS, HistoryPoint, drifts_of, history, history_point

__all__ = ["LAST_RUNS", "HistoryPoint", "drifts_of", "history", "history_point"]
