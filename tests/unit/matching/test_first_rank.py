"""The first correct rank alone is that of the whole ranking, whatever hits are matched by."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import Hit, MatchMode
from tests.builders import hit, line, query, stored_hit

TEXTS = [f"{word} words that tell this passage from all of the others here" for word in ("few", "many")]
LINES = {"kind": "line", "start": 3, "end": 6}
ENTRIES: list[dict[str, Any]] = [
    {},
    {"expected_chunk_ids": ["c1", "c2"]},
    {"relevance": {"c1": 2, "c2": 1, "x": 0}},
    {"expected_chunk_ids": ["c1"], "expected_spans": [{"doc_id": "d1", **LINES}]},
    {"expected_chunk_ids": ["c1"], "expected_spans": [{"doc_id": "d1", "chunk_id": "c1", **LINES}]},
    {"expected_chunk_ids": ["c1"], "expected_doc_ids": ["d1"], "expected_texts": {"c1": TEXTS[0]}},
    {"expected_doc_ids": ["d1", "d2"]},
    {"gold_supports": [{"path": "d1.md", "heading": "A"}, {"path": "d2.md", "snippets": ["FEW words"]}]},
]
made_hits = st.builds(
    hit,
    st.sampled_from(["c1", "c2", "x", "y"]),
    doc_id=st.sampled_from(["d1", "d2", "d3", None]),
    doc_path=st.sampled_from(["d1.md", "d2.md"]),
    heading_path=st.sampled_from([["A"], ["A", "B"], ["B"]]),
    text=st.sampled_from([*TEXTS, None]),
    citation=st.sampled_from([None, line("d1.md", 1, 4), line("d1.md", 5, 9), line("d1.md", 40, 50)]),
)


def ranked(given_hits: list[dict[str, Any]], ranks: list[int]) -> list[Hit]:
    return [
        stored_hit(**{**fields, "rank": rank})
        for fields, rank in zip(given_hits, sorted(ranks), strict=False)
    ]


@given(
    st.sampled_from(ENTRIES),
    st.sampled_from(MatchMode),
    st.lists(made_hits, max_size=6),
    st.lists(st.integers(1, 30), min_size=6, max_size=6, unique=True),
)
def test_the_first_correct_rank_is_that_of_the_ranking(
    entry: dict[str, Any], mode: MatchMode, given_hits: list[dict[str, Any]], ranks: list[int]
) -> None:
    strategy = Matcher(mode).targets(query(**entry)).strategy
    hits, passages = ranked(given_hits, ranks), Passages()
    assert strategy.first(hits, passages) == strategy.judge(hits, passages).first
