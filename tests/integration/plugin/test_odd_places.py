"""pytest where something usual is not there: a sentence and an exit code, never INTERNALERROR."""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import aggregate_of
from tests.forked import python
from tests.integration.conftest import Project

posix = pytest.mark.skipif(sys.platform == "win32", reason="of POSIX")
RECORDS = """
def test_search(kebab_query, kebab_recorder):
    kebab_recorder.record(kebab_query.id, ["c1"])
"""


def assert_no_traceback(outcome: pytest.RunResult) -> None:
    for stream in (outcome.stdout, outcome.stderr):
        stream.no_fnmatch_line("*INTERNALERROR*")
        stream.no_fnmatch_line("*Traceback*")


@pytest.fixture
def _no_home(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in some containers: no HOME (pytester, behind `project`, has set one), and an unknown user."""
    import pwd

    def unknown(uid: int) -> object:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@posix
@pytest.mark.usefixtures("_no_home")
def test_without_a_home_directory_runs_are_compared(project: Project) -> None:
    assert project.pytest(b="A2").ret == 0


@posix
@pytest.mark.usefixtures("_no_home")
def test_without_a_home_directory_a_missing_database_is_wrong_use(project: Project) -> None:
    project.database.unlink()
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: there is no database kebab.sqlite; name yours with --kebab-db=FILE"]
    )
    assert_no_traceback(outcome)


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may enter every directory")
def test_a_home_directory_that_may_not_be_entered_holds_no_database(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.database.unlink()
    (project.path / "home").mkdir(mode=0)
    monkeypatch.setenv("XDG_DATA_HOME", str(project.path / "home"))
    assert project.pytest().ret == pytest.ExitCode.USAGE_ERROR


@posix
def test_closed_standard_input_changes_nothing(project: Project) -> None:
    command = f"{shlex.join(python('-m', 'pytest'))} -q --kebab-run-a=A --kebab-run-b=A2 <&-"
    outcome = project.pytester.run("bash", "-c", command)
    assert outcome.ret == 0
    assert_no_traceback(outcome)


@pytest.mark.parametrize("option", ["--kebab-db", "--kebab-golden"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_name_that_is_too_long_is_wrong_use(project: Project, option: str, joined: bool) -> None:
    name = "x" * 300
    outcome = project.pytest(*([f"{option}={name}"] if joined else [option, name]))
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: cannot * {name}: *"])
    assert_no_traceback(outcome)


# -- two names of one file -------------------------------------------------------------------------


@pytest.mark.parametrize("make", [os.link, os.symlink])
def test_a_and_b_in_one_file_of_two_names_are_stored(project: Project, make: object) -> None:
    assert callable(make)
    make(project.database, project.path / "other.sqlite")
    outcome = project.pytest("--kebab-db-a=kebab.sqlite", "--kebab-db-b=other.sqlite", b="A2")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(["stored the aggregates of A and B in other.sqlite"])
    assert aggregate_of(project.database, "A")["mrr"] == 1.0
    assert aggregate_of(project.database, "A2")["mrr"] == 1.0


@pytest.mark.parametrize("make", [os.link, os.symlink])
def test_a_run_held_against_itself_by_another_name_is_noticed(project: Project, make: object) -> None:
    assert callable(make)
    make(project.database, project.path / "other.sqlite")
    outcome = project.pytest("--kebab-db-a=kebab.sqlite", "--kebab-db-b=other.sqlite", b="A")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: the run 'A' of other.sqlite is named for A and for B*"])


# -- temporary files -------------------------------------------------------------------------------


def test_the_reports_need_no_temporary_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    outcome = project.pytest("--capture=no", b="A2")
    assert outcome.ret == 0
    assert len(project.reports()) == 3


def test_recording_needs_no_temporary_files(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.pytester.makepyfile(RECORDS)
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    outcome = project.pytest_without_runs("--capture=no", "--kebab-record=new", "--kebab-db=new.sqlite")
    assert outcome.ret == 0
    assert (project.path / "new.sqlite").exists()


# -- a damaged schema ------------------------------------------------------------------------------


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize("name", ["'eval_runs'", "x'ff41'"], ids=["SQL", "name"])
def test_a_damaged_schema_is_wrong_use_and_left_as_it_is(
    project: Project, name: str, recording: bool
) -> None:
    damage(project.database, f"sql = 'CREATE TABLE x (((', name = {name}, tbl_name = {name}")
    before = project.database.read_bytes()
    project.pytester.makepyfile(RECORDS)
    outcome = project.pytest_without_runs("--kebab-record=new") if recording else project.pytest()
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: *kebab.sqlite*schema*"])
    assert_no_traceback(outcome)
    assert project.database.read_bytes() == before


def damage(database: Path, values: str) -> None:
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"UPDATE sqlite_master SET {values} WHERE name = 'eval_runs'")
        connection.commit()
