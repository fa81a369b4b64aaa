"""Two small runs and their comparison."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kebab_eval import CompareReport, QueryComparison
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, make_database, result, write_golden

Results = Mapping[str, Json]
C1: Json = {"expected_chunk_ids": ["c1"]}


def compared_all(
    directory: Path,
    entries: Mapping[str, Json],
    a: Results,
    b: Results,
    *,
    compare_k: int = 10,
    **database: Any,
) -> CompareReport:
    """Two runs: `{query id: golden fields}`, then `{query id: result}` for A and B."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a, b=b, **database)
    chosen = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden, compare_k=compare_k)
    return evaluate(chosen).report


def compared(tmp_path: Path, entry: Json, a: Json | None, b: Json | None, **more: Any) -> QueryComparison:
    """The comparison of q1; a side that is None has no result for it."""
    report = compared_all(tmp_path, {"q1": entry}, {"q1": a} if a else {}, {"q1": b} if b else {}, **more)
    (comparison,) = report.per_query
    return comparison


def kind_of(comparison: QueryComparison) -> str | None:
    return comparison.kind.value if comparison.kind else None


def at(rank: int) -> Json:
    """A result with c1 at a rank, and something else before it."""
    hits = [hit("c1", rank)] if rank == 1 else [hit("x", 1), hit("c1", rank)]
    return result(*hits)


HIT, MISS, ERRORED = at(1), result("x"), result(error="timeout")
RULED: Json = {"must_contain": ["uv"]}
SHIPPED = result("c1", answer=answer("Use uv."))
