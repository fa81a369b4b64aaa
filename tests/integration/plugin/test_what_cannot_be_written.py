"""A database or a report that cannot be written: the message, the exit code, and what stays as it was."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.builders import aggregate_of, result
from tests.integration.conftest import Project, held, write_protect
from tests.integration.plugin.conftest import printed

# -- storing ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_a_database_locked_for_writing_is_an_error_but_the_reports_are_there(
    project: Project, workers: list[str]
) -> None:
    before = project.database.read_bytes()
    with held(project.database, "BEGIN IMMEDIATE"):
        outcome = project.pytest(*workers, b="A2")
    text = printed(outcome)
    outcome.assert_outcomes(passed=2, failed=1)
    assert "ERROR: the aggregates were not stored in kebab.sqlite: it is locked by another program" in text
    assert "the aggregates of" not in text
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert {"runs/A2/report.json", "runs/A2/report.md"} <= set(project.reports())
    assert project.database.read_bytes() == before


def test_a_read_only_database_is_an_error_but_the_reports_are_there(project: Project) -> None:
    write_protect(project.database)
    before = project.database.read_bytes()
    outcome = project.pytest(b="A2")
    text = printed(outcome)
    outcome.assert_outcomes(passed=2, failed=1)
    assert "ERROR: the aggregates were not stored in kebab.sqlite" in text
    assert "readonly database; --kebab-no-store skips storing" in text
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert {"runs/A2/report.json", "runs/A2/report.md"} <= set(project.reports())
    assert project.database.read_bytes() == before


@pytest.mark.usefixtures("impatient")
def test_nothing_needs_to_be_written_to_the_database_with_no_store(project: Project) -> None:
    write_protect(project.database)
    before = project.database.read_bytes()
    with held(project.database, "BEGIN"):
        outcome = project.pytest("--kebab-no-store", b="A2")
    assert "aggregates: not stored (--kebab-no-store)" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.OK
    assert {"runs/A2/report.json", "runs/A2/report.md"} <= set(project.reports())
    assert project.database.read_bytes() == before


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("locked", ["one.sqlite", "two.sqlite"])
def test_of_two_databases_neither_is_written_where_one_cannot_be(project: Project, locked: str) -> None:
    one = project.make_database("one.sqlite", A={"q-001": result("c1")})
    two = project.make_database("two.sqlite", B={"q-001": result("c1")})
    with held(project.path / locked, "BEGIN IMMEDIATE"):
        outcome = project.pytest("--kebab-db-a=one.sqlite", "--kebab-db-b=two.sqlite")
    assert "not stored in " in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert aggregate_of(one, "A") == aggregate_of(two, "B") == {}


def test_storing_changes_nothing_but_the_two_aggregates(project: Project) -> None:
    def rest() -> list[Any]:
        with closing(sqlite3.connect(project.database)) as connection:
            return [
                *connection.execute("SELECT * FROM sqlite_master"),
                *connection.execute("SELECT run_id, suite, config_snapshot_json, created_at FROM eval_runs"),
                *connection.execute("SELECT aggregate_json FROM eval_runs WHERE run_id = 'A2'"),
                *connection.execute("SELECT * FROM eval_query_results"),
                *connection.execute("PRAGMA user_version"),
            ]

    before = rest()
    printed(project.pytest())
    assert rest() == before
    assert aggregate_of(project.database, "B")["total_queries"] == 2


# -- the reports -----------------------------------------------------------------------------------


@pytest.mark.parametrize("in_the_way", ["runs", "runs/A2"])
def test_a_file_in_the_place_of_the_reports_is_an_error_and_stays(project: Project, in_the_way: str) -> None:
    path = project.path / in_the_way
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    outcome = project.pytest(b="A2")
    assert "ERROR: cannot write the reports to runs/A2: " in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert path.read_text() == "mine"
    assert aggregate_of(project.database, "A2")["total_queries"] == 2


def test_a_directory_in_the_place_of_a_report_is_an_error(project: Project) -> None:
    (project.path / "runs/A2/report.md").mkdir(parents=True)
    outcome = project.pytest(b="A2")
    assert "ERROR: cannot write runs/A2/report.md: " in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert not list((project.path / "runs/A2").glob("*.part"))
    assert not list((project.path / "runs/A2").glob(".*.part"))


@pytest.mark.parametrize(
    ("number", "said"), [(errno.EACCES, "Permission denied"), (errno.EROFS, "Read-only file system")]
)
def test_a_directory_that_may_not_be_made_is_an_error(
    project: Project, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    mkdir = Path.mkdir

    def failing(path: Path, *args: Any, **more: Any) -> None:
        if "runs" in path.parts:
            raise OSError(number, said, str(path))
        mkdir(path, *args, **more)

    monkeypatch.setattr(Path, "mkdir", failing)
    outcome = project.pytest(b="A2")
    assert f"ERROR: cannot write the reports to runs/A2: {said}" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_full_disk_leaves_the_previous_report(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    old = project.path / "runs/A2/report.md"
    old.parent.mkdir(parents=True)
    old.write_text("of before")

    def full(context: dict[str, Any]) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pytest_kebab_eval.reports.publishing.render_markdown", full)
    outcome = project.pytest(b="A2")
    assert "ERROR: cannot write runs/A2/report.md: No space left on device" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert old.read_text() == "of before"
    assert {path.name for path in old.parent.iterdir()} == {"report.md", "report.json", "report.html"}
