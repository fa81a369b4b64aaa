"""Recording and reading a database in a test, and damage to its file, made for real."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.model import QueryResult, Unreadable
from pytest_kebab_eval.store import open_database


@pytest.fixture(autouse=True)
def _outside_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded has no commit and no branch."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "eval.sqlite"


def rows(db: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql).fetchall()


def record_one(db: Path, *args: Any) -> None:
    """A run of one query."""
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", *args)


def read(path: Path, query_id: str = "q1") -> QueryResult | Unreadable:
    """The result of a query of run `a`."""
    with open_database(path) as opened:
        (found,) = (result for result in opened.results("a") if result.query_id == query_id)
    return found


def readable(path: Path, query_id: str = "q1") -> QueryResult:
    found = read(path, query_id)
    assert isinstance(found, QueryResult), found
    return found


def unreadable(path: Path, query_id: str = "q1") -> str:
    found = read(path, query_id)
    assert isinstance(found, Unreadable), found
    return found.reason


def run_ids(path: Path) -> list[str]:
    with open_database(path) as opened:
        return sorted(run.run_id for run in opened.runs())
