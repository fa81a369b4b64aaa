"""An address that stands in the wrong place, or is typed wrong, is quoted without its password."""

from __future__ import annotations

import pytest

from tests.integration.conftest import FOUND, Project, call

ADDRESS = "postgresql://me:hunter2@db.example/evals"
MISTYPED = ("postgresql//me:hunter2@db/evals", "postgres/me:hunter2@db")


@pytest.mark.parametrize(
    "command",
    [
        ("runs", ADDRESS),
        ("tag", ADDRESS, "x"),
        ("blame", ADDRESS),
        ("compare", ADDRESS, "B"),
        ("compare", "A", ADDRESS),
        ("history", ADDRESS),
        *(("runs", "--db", address) for address in MISTYPED),
    ],
    ids=" ".join,
)
def test_a_password_on_the_command_line_is_not_shown(project: Project, command: tuple[str, ...]) -> None:
    project.make_database(A=FOUND, B=FOUND)
    called = call(*command)
    assert called.code == 2
    assert "hunter2" not in called.stdout + called.stderr
    assert "me:***@" in called.stderr
