"""The project and the workflow that `kebab-eval init` writes, run as GitHub runs them."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.ci.github import ROOT, Evaluator, Event, GitHub, Outcome
from tests.integration.conftest import LEAN

on_github = pytest.mark.skipif(
    sys.platform == "win32" or not (shutil.which("bash") and shutil.which("jq")),
    reason="the scripts are for bash, and the stand-in for gh needs jq",
)
STARTER = ROOT / "examples" / "starter"
WORKFLOW: dict[str, Any] = yaml.safe_load((STARTER / "github.yml").read_text("utf-8"))
INPUTS: dict[str, str] = WORKFLOW["jobs"]["gate"]["steps"][-1]["with"] | {"pytest-args": "\n".join(LEAN)}
MARKER = "<!-- kebab-eval: kebab -->"
DROPS_THE_BEST_HIT = ("[:5]", "[1:5]")


def checkout(directory: Path) -> Path:
    """A project as `kebab-eval init` makes it."""
    for source, target in (("golden_queries.yaml", "fixtures"), ("test_retrieval.py", "tests")):
        (directory / target).mkdir(parents=True)
        shutil.copy(STARTER / source, directory / target)
    return directory


def run(github: GitHub, event: Event, environment: dict[str, str] | None = None, /, **inputs: str) -> Outcome:
    evaluator = Evaluator({"github.event_name": event.name}.__getitem__, {})
    given = {name.replace("-", "_"): evaluator.fill(value) for name, value in INPUTS.items()}
    return github.run(event, environment=environment, **{**given, **inputs})


def run_unchanged(
    github: GitHub, event: Event, environment: dict[str, str] | None = None, /, **inputs: str
) -> Outcome:
    """Run it for a change that finds what main finds: main's own run is copied, which is quicker."""
    copied = Path(
        shutil.copy(github.artifact("kebab-baseline") / "kebab.sqlite", github.state / "copied.sqlite")
    )
    with closing(sqlite3.connect(copied)) as connection, connection:
        connection.execute(
            "UPDATE eval_runs SET config_snapshot_json = replace(config_snapshot_json, 'main', 'pr')"
        )
    renames = "; ".join(
        f"c.execute('UPDATE {table} SET run_id = ?', [os.environ['KEBAB_RUN']])"
        for table in ("eval_query_results", "eval_runs")
    )
    rename = f"import os, sqlite3; c = sqlite3.connect(os.environ['KEBAB_EVAL_DB']); {renames}; c.commit()"
    record = f'cp "{copied}" "$KEBAB_EVAL_DB" && python -c "{rename}"'
    return run(github, event, environment, record=record, **inputs)


def make_worse(github: GitHub) -> None:
    test = github.workspace / "tests" / "test_retrieval.py"
    test.write_text(test.read_text("utf-8").replace(*DROPS_THE_BEST_HIT), encoding="utf-8")
    (github.workspace / "kebab.sqlite").unlink(missing_ok=True)


def run_ids(database: Path) -> list[str]:
    with closing(sqlite3.connect(database)) as connection:
        return [run_id for (run_id,) in connection.execute("SELECT run_id FROM eval_runs ORDER BY run_id")]
