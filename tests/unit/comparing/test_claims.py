"""Claims that are too short to mean something are ignored, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import make_database, result, write_golden


@pytest.mark.parametrize(
    ("claims", "is_warned_of"),
    [(["uv"], True), (["uv", "**pip**"], True), (["uv", "use uv"], False), ([], False)],
)
def test_a_query_without_a_claim_that_counts_is_warned_of(
    tmp_path: Path, claims: list[str], is_warned_of: bool
) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "claims": claims}])
    db = make_database(tmp_path / "kebab.sqlite", a={"q1": result("c1")}, b={"q1": result("c1")})
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)).report
    assert any("claims of q1 are ignored" in text for text in report.warnings) is is_warned_of
