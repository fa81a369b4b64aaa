"""What is decided of each query: the exit code, the items, and what report.json says of the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.frozen.judging import judge

FIELDS = ("kind", "a_hit_rank", "b_hit_rank", "checks", "cause", "lost", "gained")


def run(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    """The verdicts; what is null or empty is left out."""
    session = judge(case, directory)
    queries = (session.report or {}).get("per_query", [])
    return {
        "exit_code": session.exit_code,
        "items": session.items,
        "queries": {
            query["query_id"]: {name: query[name] for name in FIELDS if query[name] not in (None, [])}
            for query in queries
        },
    }
