"""`kebab-eval schema COMMAND`: what each command prints with `--json` is what its schema says.

`call`, by which most tests of the command call it, holds all that is printed against the schema; `bisect` and
what is rare have their tests there.
"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from pytest_kebab_eval.cli import COMMANDS
from pytest_kebab_eval.cli.schemas import OUTPUTS
from tests.builders import result
from tests.integration.conftest import Project, call, check_output

CALLS = [
    ("aggregate", "--all"),
    ("blame", "--all"),
    ("churn", "A", "B"),
    ("compare", "A", "B", "--gate", "delta mrr >= -0.1"),
    ("compare", "A,A2", "B,B2"),
    ("copy", "A", "--to", "other.sqlite"),
    ("history",),
    ("leaderboard", "A", "B", "B2"),
    ("noise", "A", "A2"),
    ("propose", "--from", "log.jsonl", "--run", "A"),
    ("prune", "--keep", "2"),
    ("prune", "--keep", "2", "--dry-run"),
    ("reanchor", "--to", "B", "--check"),
    ("runs",),
    ("tag", "A", "baseline"),
    ("validate",),
]


@pytest.fixture
def stored(project: Project) -> Project:
    """Four runs, of which the last two lost a query."""
    found, lost = (
        {"q-001": result("c1"), "q-002": result("c2")},
        {"q-001": result("x"), "q-002": result("c2")},
    )
    project.write_golden(
        {"id": "q-001", "query": "one?", "expected_chunk_ids": ["c1"]},
        {"id": "q-002", "query": "two?", "expected_chunk_ids": ["c2"]},
    )
    project.make_database(A=found, A2=found, B=lost, B2=lost)
    Path("log.jsonl").write_text('{"question": "where is it?"}\n{"question": "one?"}\n', encoding="utf-8")
    return project


@pytest.mark.parametrize("arguments", CALLS, ids=" ".join)
def test_what_a_command_prints_is_what_its_schema_says(stored: Project, arguments: tuple[str, ...]) -> None:
    done = call(*arguments, "--json")
    assert done.code in {0, 1}, done.stderr
    check_output(arguments[0], done.stdout)


def test_every_command_with_json_has_a_schema_and_is_called_here() -> None:
    with_json = {
        command.name
        for command in COMMANDS
        if any("--json" in parameter.opts for parameter in command.load().params)
    }
    assert set(OUTPUTS) == with_json
    assert with_json - {arguments[0] for arguments in CALLS} == {"bisect"}  # see test_bisect.py


@pytest.mark.parametrize("command", sorted(OUTPUTS))
def test_the_schema_is_printed_and_is_one(command: str) -> None:
    printed = json.loads(call("schema", command).stdout)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["title"] == f"kebab-eval {command} --json"


def test_a_field_that_no_schema_has_is_noticed(stored: Project) -> None:
    (run, *_) = json.loads(call("runs", "--json").stdout)
    with pytest.raises(jsonschema.ValidationError, match="Additional properties are not allowed"):
        check_output("runs", json.dumps([{**run, "colour": "green"}]))


def test_a_command_without_json_has_no_schema() -> None:
    called = call("schema", "export")
    assert called.code == 2
    assert "'export' is no command with --json; there is aggregate, bisect" in called.stderr
