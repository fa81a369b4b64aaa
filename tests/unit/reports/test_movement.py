"""How far the rankings moved: in every report on one line, and not in the snapshot."""

from __future__ import annotations

import json
from pathlib import Path

from pytest_kebab_eval import CompareReport, render_report_md
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_json import snapshot_of
from pytest_kebab_eval.reports.as_text import summary
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, make_database, result, write_golden
from tests.unit.reports.conftest import FINDS_C1, rendered

A, SWAPPED = {"q1": result("c1", "c2", "c3")}, {"q1": result("c1", "c3", "c2")}
MOVED = "ankings, A against B: overlap@10 1.0000 (1 if they are the same)"


def compared(directory: Path, b: dict[str, Json], *gates: str, a: str | None = "a") -> CompareReport:
    db = make_database(directory / "kebab.sqlite", a=A, b=b)
    golden = write_golden(directory / "golden.yaml", [FINDS_C1])
    settings = Settings(a, "b", db, db, golden, gates=gates)
    return evaluate(settings, find_inputs(settings)).report


def test_the_summary_says_how_far_the_rankings_moved(tmp_path: Path) -> None:
    assert f"r{MOVED}" in [line.text for line in summary(compared(tmp_path, SWAPPED))]


def test_the_markdown_says_how_far_the_rankings_moved(tmp_path: Path) -> None:
    assert f"\nR{MOVED}.\n" in render_report_md(compared(tmp_path, SWAPPED))


def test_the_page_says_how_far_the_rankings_moved(tmp_path: Path) -> None:
    assert f"R{MOVED}." in rendered(tmp_path, [FINDS_C1], a=A, b=SWAPPED).text


def test_a_run_alone_has_not_moved(tmp_path: Path) -> None:
    report = compared(tmp_path, SWAPPED, a=None)
    assert "ankings" not in render_report_md(report)
    assert not any("ankings" in line.text for line in summary(report))


def test_the_snapshot_leaves_out_how_far_the_rankings_moved(tmp_path: Path) -> None:
    snapshot = snapshot_of(compared(tmp_path, SWAPPED, "overlap@5 >= 0.5", "regressions <= 0"))
    text = json.dumps(snapshot)
    assert "overlap" not in text
