"""A project's snapshot: recorded, and made to differ."""

from __future__ import annotations

from pathlib import Path

from tests.builders import Json, result
from tests.integration.conftest import GOLDEN, Project

ITEM = f"{GOLDEN}::snapshot[compare-report]"
LATER: dict[str, Json] = {"q-001": result("c7", "c1"), "q-002": result("c8", "c9")}


def snapshot(project: Project) -> Path:
    return project.path / "fixtures/golden_queries.compare-report.json"


def record(project: Project) -> None:
    """Record the snapshot of A against B, and of that alone."""
    project.pytest("--snapshot-update", ITEM).assert_outcomes(passed=1)


def change_b(project: Project) -> None:
    """B finds q-001 one rank further down than when the snapshot was recorded."""
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=found, A2=found, B=LATER)
