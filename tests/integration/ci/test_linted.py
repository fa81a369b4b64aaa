"""The action, the templates and the hook, held against the schemas of their services.

`make templates` installs the tools, and names their directory in LINTERS; without it they are looked for on
the PATH, and what is not there is skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.ci.github import ROOT

SCHEMA = ("check-jsonschema", "--builtin-schema")
COMMANDS = [
    (*SCHEMA, "vendor.github-actions", "action.yml", "comment/action.yml"),
    (*SCHEMA, "vendor.github-workflows", "examples/starter/github.yml", "examples/github-actions/gate.yml"),
    (*SCHEMA, "vendor.gitlab-ci", "--data-transform", "gitlab-ci", "examples/starter/gitlab.yml"),
    ("pre-commit", "validate-manifest", ".pre-commit-hooks.yaml"),
    ("shellcheck", *sorted(f"ci/{path.name}" for path in (ROOT / "ci").glob("*.sh"))),
]


def run(*command: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command[0], path=os.environ.get("LINTERS"))
    if program is None and "LINTERS" not in os.environ:
        pytest.skip(f"{command[0]} is not installed; make templates does that")
    assert program, f"{command[0]} is not in {os.environ['LINTERS']}"
    return subprocess.run([program, *command[1:]], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_file_is_as_its_service_wants_it(command: tuple[str, ...]) -> None:
    done = run(*command)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ((*SCHEMA, "vendor.github-actions"), "name: x\nruns: {using: composite, steps: [{rum: x}]}\n"),
        ((*SCHEMA, "vendor.gitlab-ci"), "job: {script: [x], artifacts: {wen: always}}\n"),
        (("pre-commit", "validate-manifest"), "- {id: x, name: x, entry: x}\n"),
        (("shellcheck",), "#!/bin/bash\nrm -r $1/*\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_noticed(tmp_path: Path, command: tuple[str, ...], text: str) -> None:
    (tmp_path / "file").write_text(text, encoding="utf-8")
    assert run(*command, "file", cwd=tmp_path).returncode != 0
