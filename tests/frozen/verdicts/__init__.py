"""What is decided of each query: the exit code, the items, and what report.json says of the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.frozen.comparison import write_comparison
from tests.frozen.product import run_pytest

FIELDS = ("kind", "a_hit_rank", "b_hit_rank", "checks", "cause", "lost", "gained")


def run(case: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Judge the case's runs with its arguments."""
    write_comparison(case, directory)
    session = run_pytest(
        directory, "--kebab-golden=golden_queries.yaml", "--kebab-no-html", *case["arguments"]
    )
    queries = (session.report or {}).get("per_query", [])
    return {
        "exit_code": session.exit_code,
        "items": session.items,
        "queries": {query["query_id"]: {name: query[name] for name in FIELDS} for query in queries},
    }
