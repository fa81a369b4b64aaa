"""Random histories: queries mostly find what they found in the run before; some results are damaged."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.builders import Json, answer, hit, line, result

ENTRIES: list[Json] = [
    {"id": "chunk", "query": "?", "expected_chunk_ids": ["c1", "c2"], "expected_doc_ids": ["d1"]},
    {"id": "graded", "query": "?", "relevance": {"c1": 2, "c3": 1}},
    {"id": "document", "query": "?", "expected_doc_ids": ["d2"]},
    {"id": "anchor", "query": "?", "gold_supports": [{"path": "d1.md", "heading": "A"}]},
    {"id": "nothing", "query": "?", "must_contain": ["x"]},
    *({"id": f"many-{number}", "query": "?", "expected_chunk_ids": ["c1"]} for number in range(20)),
]

HITS: list[Json] = [
    hit("c1", doc_id="d1", doc_path="d1.md", heading_path=["A"], citation=line("d1.md", 1, 9)),
    hit("c2", doc_id="d1", doc_path="d1.md", heading_path=["B"], citation=line("d1.md", 10, 19)),
    hit("c3", doc_id="d2", doc_path="d2.md", citation=line("d2.md", 1, 5)),
    hit("renamed", doc_id="d1", doc_path="d1.md", citation=line("d1.md", 2, 8)),
    hit("x", doc_id="d9", doc_path="d9.md"),
]


class History:
    """Runs whose queries keep their hits, mostly."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._found: dict[str, list[Json]] = {entry["id"]: self._hits() for entry in ENTRIES}

    def runs(self, count: int) -> dict[str, dict[str, Any]]:
        return {f"r{number}": self._run() for number in range(count)}

    def configs(self, count: int) -> dict[str, Json]:
        """One chunker for all, or two."""
        versions = ["v1", "v1", self._random.choice(["v1", "v2"])]
        return {f"r{number}": {"chunker_version": self._random.choice(versions)} for number in range(count)}

    def _run(self) -> dict[str, Any]:
        if self._random.random() < 0.1:
            return {}
        made = {entry["id"]: self._stored(entry["id"]) for entry in ENTRIES}
        return {query_id: stored for query_id, stored in made.items() if stored != "absent"}

    def _stored(self, query_id: str) -> Any:
        if self._random.random() < 0.3:
            self._found[query_id] = self._hits()
        stored = result(*self._found[query_id], elapsed_ms=self._random.randrange(99), answer=answer())
        damaged = [
            "absent",
            stored | {"error": "down, with token=abcdefghijklmnop"},
            stored | {"hits_top_k": None},
            stored | {"answer": {"grounded": "yes"}},
            "no JSON",
            json.dumps({"query_id": query_id, **stored})[:-1] + ', "hits_top_k": []}',
        ]
        return self._random.choice(damaged) if self._random.random() < 0.2 else stored

    def _hits(self) -> list[Json]:
        some = self._random.sample(HITS, self._random.randrange(len(HITS)))
        skipped = self._random.choice([0, 0, 0, 8])  # so that some are found below the cutoff
        return [{**fields, "rank": skipped + rank} for rank, fields in enumerate(some, 1)]
