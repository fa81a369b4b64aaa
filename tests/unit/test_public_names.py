"""The public names are there."""

from __future__ import annotations

import pytest

import pytest_kebab_eval


def test_every_public_name_is_there() -> None:
    assert [
        name for name in pytest_kebab_eval.__all__ if getattr(pytest_kebab_eval, name, None) is None
    ] == []


@pytest.mark.parametrize(
    "name",
    [
        *("AggregateMetrics", "CompareReport", "QueryComparison", "ComparisonKind", "GoldenQuery"),
        *("QueryResult", "Hit", "Answer", "compute_aggregate", "store_aggregate", "compare_runs"),
        *("render_report_md", "load_golden_set"),
    ],
)
def test_what_the_contract_calls_public_is_public(name: str) -> None:
    assert name in pytest_kebab_eval.__all__
