"""Two runs of one query, and nothing of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json, make_database, result, write_golden

C1: Json = {"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Run a finds c1 at rank 1, run b at rank 2."""
    return make_database(tmp_path / "runs.sqlite", a={"q1": result("c1")}, b={"q1": result("x", "c1")})


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    return write_golden(tmp_path / "golden.yaml", [C1])


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of the environment that the tests run in is used."""
    for name in ("KEBAB_EVAL_DB", "KEBAB_EVAL_GOLDEN", "KEBAB_EVAL_RUN_A", "KEBAB_EVAL_RUN_B"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "no-data"))
