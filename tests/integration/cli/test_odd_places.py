"""`kebab-eval` where something usual is not there: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.builders import dump
from tests.forked import python
from tests.integration.conftest import Project, call, script

posix = pytest.mark.skipif(sys.platform == "win32", reason="of POSIX")


def shell(command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line; `kebab-eval` is the installed command."""
    done = subprocess.run(
        ["bash", "-c", command.replace("kebab-eval", shlex.join(python(script())))],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


# -- no home directory -----------------------------------------------------------------------------

NO_HOME = """
import os, sys
os.environ.pop("HOME", None)
os.environ.pop("XDG_DATA_HOME", None)
import pwd
def unknown(_):
    raise KeyError("uid not found")
pwd.getpwuid = unknown
from pytest_kebab_eval.cli import main
main()
"""


def without_home(project: Project, *args: str) -> tuple[int, str]:
    command = python("-c", NO_HOME, *args)
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@posix
def test_without_a_home_directory_the_database_here_is_used(project: Project) -> None:
    assert without_home(project, "runs") == (0, "")


@posix
def test_without_a_home_directory_a_missing_database_is_named(project: Project) -> None:
    project.database.unlink()
    expected = "kebab-eval: there is no database kebab.sqlite; name yours with --db=FILE\n"
    assert without_home(project, "runs") == (2, expected)


@posix
def test_without_a_home_directory_a_path_in_it_is_not_there(project: Project) -> None:
    code, error = without_home(project, "runs", "--db", "~/eval.sqlite")
    assert (code, error) == (2, "kebab-eval: there is no database ~/eval.sqlite; name yours with --db=FILE\n")


# -- no working directory --------------------------------------------------------------------------


@posix
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("runs", 0),
        ("compare A B --golden {golden}", 1),
        ("report A B --golden {golden}", 0),
        ("history --golden {golden}", 0),
        ("validate --golden {golden}", 0),
        ("aggregate --all --golden {golden}", 0),
        ("report A B --golden {golden} -o {here}/report.html --format html", 0),
    ],
)
def test_without_a_working_directory_commands_work_by_full_paths(
    project: Project, command: str, code: int
) -> None:
    (project.path / "gone").mkdir()
    given = command.format(golden=project.golden, here=project.path)
    done = shell(f"cd gone && rmdir ../gone && kebab-eval {given} --db {project.database}", project.path)
    assert done.returncode == code, done.stderr


@posix
@pytest.mark.parametrize(
    ("command", "code", "error"),
    [
        ("runs", 2, "there is no database kebab.sqlite; name yours with --db=FILE"),
        (
            "compare A B",
            2,
            "there is no golden file fixtures/golden_queries.yaml; name yours with --golden=FILE",
        ),
        (
            "report A B --db {db} --golden {golden} -o x.md",
            1,
            "cannot write x.md: No such file or directory",
        ),
        ("demo", 1, "cannot write to kebab-demo: No such file or directory"),
    ],
)
def test_without_a_working_directory_what_is_relative_to_it_is_not_there(
    project: Project, command: str, code: int, error: str
) -> None:
    (project.path / "gone").mkdir()
    given = command.format(golden=project.golden, db=project.database)
    done = shell(f"cd gone && rmdir ../gone && kebab-eval {given}", project.path)
    assert done.returncode == code
    assert done.stderr.removeprefix("kebab-eval: ") == f"{error}\n"


# -- closed streams --------------------------------------------------------------------------------

CLOSED = ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"]
IMPORT = "import trec --run run.txt --qrels qrels.txt --db new.sqlite --run-id r --golden-out g.yaml"


@posix
@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize(
    ("command", "code"),
    [("compare A B", 1), ("runs --db nowhere", 2), ("report A B -o r.md", 0), (IMPORT, 0)],
)
def test_with_a_closed_stream_the_exit_code_is_the_same(
    project: Project, command: str, code: int, closed: str
) -> None:
    (project.path / "run.txt").write_text("q1 Q0 d1 1 9.0 t\n", encoding="utf-8")
    (project.path / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    before = dump(project.database)
    assert shell(f"kebab-eval {command} {closed}", project.path).returncode == code
    assert dump(project.database) == before
    if command == IMPORT:
        assert call("runs", "--db", project.path / "new.sqlite").lines[0].startswith("r ")


@posix
def test_a_file_from_a_closed_standard_input_is_empty(project: Project) -> None:
    done = shell("kebab-eval import kebab --results - --db new.sqlite <&-", project.path)
    assert done.returncode == 2
    assert done.stderr == "kebab-eval: standard input: there is no result in this file\n"


@posix
def test_the_demo_works_with_all_streams_closed(tmp_path: Path) -> None:
    assert shell("kebab-eval demo demo <&- >&- 2>&-", tmp_path).returncode == 0
    assert (tmp_path / "demo" / "runs" / "candidate" / "report.md").exists()


# -- a damaged schema ------------------------------------------------------------------------------

DAMAGES = {
    "not SQL": "sql = 'CREATE TABLE eval_runs ((('",
    "not text": "sql = x'ff00fe'",
    "a name that is not UTF-8": "sql = 'CREATE TABLE x (((', name = x'ff41', tbl_name = x'ff41'",
    "no such page": "rootpage = 99999",
    "a name that acts": "sql = 'CREATE TABLE x (((', name = '\x1b[31mred', tbl_name = '\x1b[31mred'",
}
COMMANDS = ("runs", "compare A B", "report A B", "history", "validate", "lock", "aggregate --all", IMPORT)


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_damaged_schema_is_wrong_use_and_left_as_it_is(project: Project, command: str, damage: str) -> None:
    (project.path / "run.txt").write_text("q1 Q0 d1 1 9.0 t\n", encoding="utf-8")
    (project.path / "qrels.txt").write_text("q1 0 d1 1\n", encoding="utf-8")
    with closing(sqlite3.connect(project.database)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(f"UPDATE sqlite_master SET {damage} WHERE name = 'eval_runs'")
        connection.commit()
    before = project.database.read_bytes()
    called = call(*command.replace("new.sqlite", "kebab.sqlite").split())
    assert (called.code, called.stdout) == (2, "")
    assert "kebab.sqlite" in called.stderr
    assert "schema" in called.stderr
    assert len(called.stderr.splitlines()) == 1
    assert "\x1b" not in called.stderr
    assert project.database.read_bytes() == before
    assert not (project.path / "g.yaml").exists()
