"""Recording a run in a test, and looking into its database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from pytest_kebab_eval import RunRecorder


def rows(db: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql).fetchall()


def record_one(db: Path, *args: Any) -> None:
    """A run of one query."""
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", *args)
