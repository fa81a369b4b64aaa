"""A database that would act: a sentence, exit 4 or 2, nothing changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import result
from tests.integration.conftest import Project, call

Change = Callable[[Path], None]


def _execute(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)


def trigger(path: Path) -> None:
    _execute(path, "CREATE TRIGGER wipe AFTER UPDATE ON eval_runs BEGIN DELETE FROM eval_query_results; END")


def view(path: Path) -> None:
    _execute(
        path,
        "DROP TABLE eval_query_results; CREATE VIEW eval_query_results AS WITH RECURSIVE t(n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT 'A' run_id, n query_id, '{}' result_json FROM t",
    )


CASES = pytest.mark.parametrize(
    ("change", "message"),
    [
        (trigger, "kebab.sqlite is refused: the trigger 'wipe' would run when eval_runs is written; drop it"),
        (view, "kebab.sqlite is refused: eval_query_results is a view, not a table; make it a table"),
    ],
)


@pytest.fixture
def two_queries(project: Project) -> Project:
    project.write_golden(
        {"id": "q-001", "expected_chunk_ids": ["c1"]}, {"id": "q-002", "expected_chunk_ids": ["c2"]}
    )
    found = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=found, B=found)
    return project


@CASES
def test_the_gate_refuses_it(two_queries: Project, change: Change, message: str) -> None:
    change(two_queries.database)
    before = two_queries.database.read_bytes()
    outcome = two_queries.pytest()
    printed = "\n".join([*outcome.outlines, *outcome.errlines])
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert message in printed
    assert "Traceback" not in printed
    assert "INTERNALERROR" not in printed
    assert two_queries.database.read_bytes() == before
    assert two_queries.reports() == []


@CASES
@pytest.mark.parametrize("command", ["compare A B", "report A B", "aggregate A", "history"])
def test_every_command_refuses_it(two_queries: Project, change: Change, message: str, command: str) -> None:
    change(two_queries.database)
    before = two_queries.database.read_bytes()
    called = call(*command.split(), "--golden", two_queries.golden, "--db", two_queries.database)
    assert called.code == 2
    assert message in called.stderr
    assert two_queries.database.read_bytes() == before
