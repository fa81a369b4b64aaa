"""The hook for pre-commit checks golden files, and only those."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
import yaml

from tests.integration.ci.github import ROOT
from tests.integration.conftest import Project, call

HOOK: dict[str, Any] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))[0]


def test_a_commit_with_a_mistake_in_the_golden_file_is_stopped_without_a_database(project: Project) -> None:
    program, *args = shlex.split(HOOK["entry"])
    assert program == "kebab-eval"
    project.database.unlink()
    assert call(*args).code == 0
    project.write_golden({"id": "q-001"}, {"id": "q-001"})
    assert call(*args).code == 2


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("fixtures/golden_queries.yaml", True),
        ("evals/golden.jsonl", True),
        ("golden/readme.md", False),
        ("docs/golden.md", False),
        ("mkdocs.yml", False),
    ],
)
def test_it_runs_when_a_golden_file_changes(path: str, expected: bool) -> None:
    assert bool(re.search(HOOK["files"], path)) is expected
