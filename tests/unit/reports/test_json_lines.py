"""`report.json` has one query a line, written as Python's `json` writes it."""

from __future__ import annotations

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.model import ComparisonKind, QueryComparison
from pytest_kebab_eval.reports.as_json import format_json

texts = st.text(st.characters(exclude_categories=["Cs"]))
ranks = st.none() | st.integers(1, 2**53)
shares = st.none() | st.integers(0, 10_000).map(lambda number: number / 10_000)  # rounded to 4 decimals
comparisons = st.builds(
    QueryComparison,
    query_id=texts,
    kind=st.none() | st.sampled_from(ComparisonKind),
    a_hit_rank=ranks,
    b_hit_rank=ranks,
    note=st.none() | texts,
    cause=st.none() | texts,
    checks=st.lists(texts).map(tuple),
    lost=st.lists(texts).map(tuple),
    gained=st.lists(texts).map(tuple),
    overlap=shares,
)


@given(comparisons)
def test_a_query_is_a_line_of_plain_json(comparison: QueryComparison) -> None:
    line = json.dumps(msgspec.to_builtins(comparison), ensure_ascii=False)
    assert format_json({"per_query": (comparison,)}) == f'{{\n  "per_query": [\n    {line}\n  ]\n}}\n'
