"""A `latest` B that was recorded at another commit than the one that is checked out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import working_tree
from tests.builders import make_database, result, write_golden

HERE = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("run_b", "recorded", "here", "is_warned"),
    [
        ("latest", "fedcba98", HERE, True),
        ("latest", HERE, HERE, False),
        ("latest", HERE[:8].upper(), HERE, False),
        ("latest", None, HERE, False),
        ("latest", "fedcba98", None, False),  # no repository
        ("c", "fedcba98", HERE, False),
        ("latest~1", "fedcba98", HERE, False),
    ],
)
def test_it_is_warned_of(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run_b: str,
    recorded: str | None,
    here: str | None,
    is_warned: bool,
) -> None:
    found = {"q1": result("c1")}
    db = make_database(tmp_path / "kebab.sqlite", a=found, b=found, c=found)
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE eval_runs SET commit_hash = ?", (recorded,))
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    monkeypatch.setattr(working_tree, "working_tree", lambda: working_tree.WorkingTree(here))
    settings = Settings(run_a="a", run_b=run_b, db_a=db, db_b=db, golden=golden)
    warned = [text for text in evaluate(settings).report.warnings if "is checked out" in text]
    assert bool(warned) is is_warned
