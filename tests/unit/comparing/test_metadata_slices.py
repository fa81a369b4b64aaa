"""Slices of the team's own: each text, number and flag of a query's metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.comparing.slices import slices_by_query, slices_of
from tests.builders import Json, query, result
from tests.unit.comparing.conftest import C1, gated


@pytest.mark.parametrize(
    ("metadata", "slices"),
    [
        ({"team": "search"}, ("metadata.team=search",)),
        ({"tier": 2, "share": 0.5}, ("metadata.tier=2", "metadata.share=0.5")),
        ({"beta": True, "old": False}, ("metadata.beta=true", "metadata.old=false")),
        ({"team": None, "note": " ", "owners": ["a"], "more": {"a": 1}}, ()),
        ({}, ()),
    ],
    ids=str,
)
def test_each_scalar_is_a_slice(metadata: Json, slices: tuple[str, ...]) -> None:
    assert slices_of(query(metadata=metadata)) == slices


def test_queries_that_differ_in_their_metadata_alone_are_in_different_slices() -> None:
    queries = [query("q1", metadata={"team": "a"}), query("q2", metadata={"team": "b"}), query("q3")]
    found = slices_by_query(queries)
    assert [found[name] for name in ("q1", "q2", "q3")] == [("metadata.team=a",), ("metadata.team=b",), ()]


def test_gates_and_reports_know_the_slices(tmp_path: Path) -> None:
    entries = {
        "q1": C1 | {"metadata": {"team": "search", "area code": 49}},
        "q2": C1 | {"metadata": {"team": "billing"}},
    }
    found = {"q1": result("c1"), "q2": result("c1")}
    gates = (
        "hit@1{metadata.team=search} >= 0.5",
        "hit@1{metadata.team=*} >= 0.5",
        "regressions{metadata.area code=49} == 0",
        "hit@1{metadata.team=sales} >= 0.5",
    )
    report = gated(tmp_path, entries, found, found | {"q2": result("x")}, *gates)
    assert [gate.passed for gate in report.gates] == [True, False, True, False]
    assert "metadata.team is billing, search" in report.gates[3].reason
    assert report.aggregate_b.slices["metadata.team=billing"]["hit@1"] == 0.0
    assert report.comparison
    assert report.comparison.value("regressions", "metadata.team=billing") == 1
