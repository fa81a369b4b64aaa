"""What one would write in an afternoon: json, yaml.safe_load and parametrize. Kept as a yardstick.

KEBAB_DIR=… pytest benchmarks/straightforward.py
"""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml

DIRECTORY = Path(os.environ["KEBAB_DIR"])
GOLDEN = yaml.safe_load((DIRECTORY / "golden.yaml").read_text(encoding="utf-8"))


def results(run_id: str) -> dict[str, Any]:
    connection = sqlite3.connect(DIRECTORY / "kebab.sqlite")
    rows = connection.execute(
        "SELECT query_id, result_json FROM eval_query_results WHERE run_id = ?", (run_id,)
    )
    return {query_id: json.loads(text) for query_id, text in rows}


A, B = results("a"), results("b")


def rank(query: dict[str, Any], result: dict[str, Any]) -> int | None:
    found = [hit["rank"] for hit in result["hits_top_k"] if hit["chunk_id"] in query["expected_chunk_ids"]]
    return min(found) if found else None


@pytest.mark.parametrize("query", GOLDEN, ids=[query["id"] for query in GOLDEN])
def test_query(query: dict[str, Any]) -> None:
    before, after = rank(query, A[query["id"]]), rank(query, B[query["id"]])
    assert before is None or after is not None
