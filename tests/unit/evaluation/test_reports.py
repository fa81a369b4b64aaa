"""The reports of the public functions: what they have, and the same bytes for the same input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import compare_runs, compute_aggregate, render_report_md, store_aggregate
from tests.builders import answer, hit, line, make_database, render_report_json, result, write_golden
from tests.unit.conftest import FINDS_C1

# -- the same input gives the same bytes -----------------------------------------------------------


def varied(tmp_path: Path) -> tuple[Path, Path]:
    """Runs with something of everything."""
    names = [f"q{n}" for n in range(12)]
    entries = [{**FINDS_C1, "id": name, "difficulty": "hard", "must_contain": ["uv"]} for name in names]
    a = {name: result("c1", answer=answer("uv", cites=[line("c1.md", 1, 2)])) for name in names}
    b = {name: result(hit("c1", 1 + n % 5), answer=answer("uv"), error=None) for n, name in enumerate(names)}
    configs = {"a": {"index_version": "1"}, "b": {"index_version": "2"}}
    db = make_database(tmp_path / "varied.sqlite", a=a, b=b, configs=configs)
    return db, write_golden(tmp_path / "varied.yaml", entries)


@pytest.mark.parametrize("render", [render_report_json, render_report_md])
def test_a_report_twice_is_the_same_bytes(tmp_path: Path, render: Callable[[Any], str]) -> None:
    db, golden = varied(tmp_path)
    first, second = (render(compare_runs("a", "b", db=db, golden=golden)) for _ in range(2))
    assert first == second


def test_a_report_is_the_same_bytes_under_any_hash_seed(tmp_path: Path) -> None:
    db, golden = varied(tmp_path)
    script = (
        "import sys; from pytest_kebab_eval import compare_runs, render_report_md as md;"
        "from tests.builders import render_report_json as js;"
        "r = compare_runs('a', 'b', db=sys.argv[1], golden=sys.argv[2]);"
        "sys.stdout.buffer.write((js(r) + md(r)).encode())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, db, golden],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert b"q11" in outputs.pop()


def test_the_aggregate_of_a_comparison_stored_before_does_not_change_the_next(tmp_path: Path) -> None:
    db, golden = varied(tmp_path)
    before = render_report_json(compare_runs("a", "b", db=db, golden=golden))
    store_aggregate("a", compute_aggregate("a", db=db, golden=golden), db=db)
    assert render_report_json(compare_runs("a", "b", db=db, golden=golden)) == before


# -- report.md and report.json ---------------------------------------------------------------------


def test_the_markdown_report_has_the_deltas_and_the_queries_that_changed(tmp_path: Path) -> None:
    names = {"won": ("x", "c1"), "lost": ("c1", "x"), "same": ("c1", "c1")}
    golden = write_golden(tmp_path / "golden.yaml", [FINDS_C1 | {"id": name} for name in names])
    a = {name: result(before) for name, (before, _) in names.items()}
    b = {name: result(after) for name, (_, after) in names.items()} | {"lost": result("x")}
    text = render_report_md(
        compare_runs("a", "b", db=make_database(tmp_path / "db.sqlite", a=a, b=b), golden=golden)
    )
    rows = [comparison for comparison in text.splitlines() if comparison.startswith("|")]
    assert any("`won`" in row and "miss→hit" in row for row in rows)
    assert "hit→miss" in text.partition("### `lost`")[2].partition("\n#")[0]
    assert not any("`same`" in row for row in rows)
    assert any("hit@5" in row and "0.6667" in row for row in rows)


def test_the_json_report_has_the_fields_of_a_compare_report(db: Path, golden: Path) -> None:
    report = json.loads(render_report_json(compare_runs("a", "b", db=db, golden=golden)))
    wanted = {"run_a", "run_b", "aggregate_a", "aggregate_b", "deltas", "per_query", "config_changes"}
    assert wanted <= report.keys()
    assert report["deltas"]["mrr"] == -0.5
    assert report["deltas"]["chunker_version_match"] == "exact"
    assert report["deltas"]["matched_by"] == {
        "chunk": 1,
        "anchor": 0,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 0,
    }
    (comparison,) = report["per_query"]
    assert comparison == {
        "query_id": "q1",
        "kind": "loss",
        "a_hit_rank": 1,
        "b_hit_rank": 2,
        "note": "rank 1→2",
        "cause": None,
        "checks": [],
        "lost": [],
        "gained": [],
        "overlap": 0.5,  # c1 is all that both have, of c1 and x
        "wrong": [],
    }
