"""Golden queries that are kept packed: the same queries, in the same order, with the same ids."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval import GoldenSet
from pytest_kebab_eval.golden import kept
from pytest_kebab_eval.golden.packing import PackedQueries
from pytest_kebab_eval.model import GoldenQuery
from tests.builders import query

EVERYTHING = query(
    "q2",
    expected_chunk_ids=[["c1", "c1b"], "c2"],
    expected_doc_ids=["d1", ["d2", "d3"]],
    answerable=True,
    must_contain=["größer"],
    forbidden=["never"],
    claims=["it does"],
    relevance={"c1": 2, "c2": 0.5},
    gold_supports=[{"path": "a.md", "heading": "A > B", "snippets": ["s"]}],
    required_support_groups=[[0]],
    expected_spans=[{"doc_id": "d1", "kind": "line", "start": 3, "end": 9, "chunk_id": "c1"}],
    expected_answer="it does",
    expected_texts={"c1": "It does."},
    k=3,
    lang="en",
    difficulty="hard",
    category="c",
    tags=["t1", "t2"],
    group="g",
    xfail={"reason": "known", "until": "2031-01-31", "checks": ["retrieval"]},
    forbidden_chunk_ids=["c8"],
    forbidden_doc_ids=["d9"],
    must_rank_at_most=3,
    require="all",
    metadata={"team": "search", "tier": 2, "beta": True, "owners": ["a", {"since": None}]},
    reviewed=False,
)
QUERIES = (query("q3", expected_doc_ids=[]), EVERYTHING, query("q1"))


def test_every_field_has_a_value_here_that_it_might_lose() -> None:
    plain = GoldenQuery(id="q2", query="?")
    assert [
        name for name in plain.__struct_fields__ if getattr(plain, name) == getattr(EVERYTHING, name)
    ] == [
        "id",
        "query",
    ]


def test_packed_queries_are_the_same_queries() -> None:
    packed = PackedQueries(QUERIES)
    assert tuple(packed) == QUERIES
    assert len(packed) == 3
    assert packed[1] == EVERYTHING
    assert packed[-1] == QUERIES[-1]
    assert packed[:2] == QUERIES[:2]
    with pytest.raises(IndexError):
        packed[3]


def test_packed_queries_are_found_by_their_id() -> None:
    by_id = PackedQueries(QUERIES).by_id()
    assert dict(by_id) == {found.id: found for found in QUERIES}
    assert by_id.get("q2") == EVERYTHING
    assert by_id.get("q9") is None
    assert "q1" in by_id
    assert "q9" not in by_id


def test_ids_are_kept_once_however_often_a_query_is_unpacked() -> None:
    packed = PackedQueries(QUERIES)
    assert packed[0].id is packed[0].id is next(iter(packed)).id


def test_packing_does_not_change_the_fingerprint() -> None:
    usual = GoldenSet(Path("golden.yaml"), QUERIES)
    packed = GoldenSet(Path("golden.yaml"), PackedQueries(QUERIES))
    assert packed.fingerprint == usual.fingerprint
    assert dict(packed.by_id()) == usual.by_id()


@pytest.mark.parametrize(("limit", "is_packed"), [(2, True), (3, True), (4, False)])
def test_only_many_queries_are_packed(monkeypatch: pytest.MonkeyPatch, limit: int, is_packed: bool) -> None:
    monkeypatch.setattr("pytest_kebab_eval.golden.PACKED_QUERIES", limit)
    found = kept(iter(QUERIES))
    assert isinstance(found, PackedQueries) is is_packed
    assert tuple(found) == QUERIES
