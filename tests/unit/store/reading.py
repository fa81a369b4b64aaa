"""Reading a database in a test: the results of run `a`, and the ids of all runs."""

from __future__ import annotations

from pathlib import Path

from pytest_kebab_eval.model import QueryResult, Unreadable
from pytest_kebab_eval.store import open_database


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
