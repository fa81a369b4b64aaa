"""The order of rows, hits and golden entries is no information."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Json, answer, hit, line, render_report_json, result
from tests.unit.comparing.conftest import compared_all

ENTRIES: dict[str, Json] = {
    "chunks": {"expected_chunk_ids": ["d1#1", "d1#2", "d2#1"], "difficulty": "hard", "tags": ["x", "y"]},
    "graded": {"relevance": {"d2#1": 3, "d1#1": 1}, "difficulty": "easy"},
    "anchors": {"gold_supports": [{"path": "d1.md"}, {"path": "d2.md"}], "tags": ["y"]},
    "documents": {"expected_doc_ids": ["d2", "d3"], "must_contain": ["uv"], "group": "g"},
    "paraphrase": {"expected_doc_ids": ["d3", "d2"], "group": "g"},
    "refuse": {"expected_doc_ids": []},
    "only-in-a": {"expected_chunk_ids": ["d1#1"]},
}
CHUNKS = [f"d{doc}#{part}" for doc in (1, 2, 3) for part in (1, 2)]
PLACES = {chunk: line(f"{chunk[:2]}.md", 10 * number, 10 * number + 9) for number, chunk in enumerate(CHUNKS)}
ANSWERS = [None, answer("uv", cites=[PLACES["d1#1"]]), answer("no", grounded=False)]


@st.composite
def results_of(draw: st.DrawFn, names: Sequence[str]) -> dict[str, Json]:
    """What a run may store for these queries."""
    found = {}
    for name in names:
        ranking = draw(st.lists(st.sampled_from(CHUNKS), unique=True, max_size=4))
        hits = [hit(chunk, rank, citation=PLACES[chunk]) for rank, chunk in enumerate(ranking, 1)]
        found[name] = result(
            *hits, answer=draw(st.sampled_from(ANSWERS)), elapsed_ms=draw(st.integers(1, 99))
        )
    return found


@given(
    data=st.data(),
    a=results_of([*ENTRIES, "stray-in-a"]),
    b=results_of(["stray-in-b", *ENTRIES][:-1]),
    version=st.sampled_from(["v1", "v2"]),
)
def test_the_order_of_rows_hits_and_golden_entries_never_changes_the_report(
    data: st.DataObject, a: dict[str, Json], b: dict[str, Json], version: str
) -> None:
    def shuffled(rows: dict[str, Json]) -> dict[str, Json]:
        return {
            name: rows[name] | {"hits_top_k": data.draw(st.permutations(rows[name]["hits_top_k"]))}
            for name in data.draw(st.permutations(list(rows)))
        }

    configs = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": version}}
    entries = {name: ENTRIES[name] for name in data.draw(st.permutations(list(ENTRIES)))}
    with tempfile.TemporaryDirectory() as comparison, tempfile.TemporaryDirectory() as other:
        plain = compared_all(Path(comparison), ENTRIES, a, b, configs=configs)
        turned = compared_all(Path(other), entries, shuffled(a), shuffled(b), configs=configs)
    texts = [
        render_report_json(report).replace(Path(path).name, "")
        for report, path in ((plain, comparison), (turned, other))
    ]
    assert texts[0] == texts[1]
