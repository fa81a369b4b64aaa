"""Calling the command, and what the tests of several commands need."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from pytest_kebab_eval.cli import COMMANDS, main
from tests.builders import result

for command in COMMANDS:
    command.load()  # now, since pytester forgets the modules that are first imported in a test

FOUND = {"q-001": result("c1"), "q-002": result("c2")}  # what both queries of `project` expect


class Called(NamedTuple):
    """What a call of the command gave."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


def call(*args: str | Path, given: str | None = None) -> Called:
    """Call the command in this process; an exception that it does not handle is raised."""
    runner = CliRunner()
    vars(runner)["mix_stderr"] = False  # click 8.1 mixes standard error into standard output
    called = runner.invoke(main, list(map(str, args)), input=given, catch_exceptions=False)
    return Called(called.exit_code, called.stdout, called.stderr)


def script() -> str:
    """The installed command."""
    found = shutil.which("kebab-eval", path=str(Path(sys.executable).parent)) or shutil.which("kebab-eval")
    assert found, "kebab-eval is not installed"
    return found


def execute(db: Path, sql: str, *values: str) -> None:
    """Change a database."""
    with closing(sqlite3.connect(db)) as connection:
        connection.execute(sql, values)
        connection.commit()
