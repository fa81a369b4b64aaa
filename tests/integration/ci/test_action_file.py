"""action.yml itself: what is pinned, what may run, what is documented; and how the package is installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.ci.github import ACTION, COMMENT, ROOT, STEPS, bash

SCRIPTS = sorted((ROOT / "ci").glob("*.sh"))
TEXT = (ROOT / "action.yml").read_text("utf-8")
WORKFLOWS = [
    ROOT / "action.yml",
    ROOT / "comment" / "action.yml",
    ROOT / "examples" / "github-actions" / "gate.yml",
    ROOT / "examples" / "starter" / "github.yml",
    *sorted((ROOT / ".github" / "workflows").glob("*.yml")),
]
OWN = ("pytest-kebab-eval/pytest-kebab-eval@v", "pytest-kebab-eval/pytest-kebab-eval/comment@v")


EVERY_STEP = [*STEPS, *COMMENT["runs"]["steps"]]


def test_no_expression_is_part_of_a_command() -> None:
    commands = [step["run"] for step in EVERY_STEP if "run" in step]
    assert len(commands) == len(SCRIPTS)
    assert [command for command in commands if "${{" in command] == []


def test_each_step_runs_a_script_that_is_there_and_can_be_executed() -> None:
    called = {match for step in EVERY_STEP for match in re.findall(r"ci/[\w-]+\.sh", step.get("run", ""))}
    assert called == {f"ci/{script.name}" for script in SCRIPTS}
    assert all(script.stat().st_mode & 0o111 for script in SCRIPTS)


def test_every_variable_that_a_script_reads_is_set_for_it() -> None:
    of_runner = {"KEBAB_MARKER"}  # which comment.sh sets itself
    for step in (step for step in EVERY_STEP if "run" in step):
        (name,) = re.findall(r"ci/[\w-]+\.sh", step["run"])
        script = (ROOT / name).read_text("utf-8")
        read = set(re.findall(r"\$\{?((?:KEBAB|GH)_\w+)", script)) - of_runner
        assert read <= step.get("env", {}).keys(), name


def test_no_step_with_a_token_comes_after_code_of_the_project() -> None:
    names = [step.get("name") for step in STEPS]
    (with_token,) = (at for at, step in enumerate(STEPS) if "github.token" in str(step))
    assert names[with_token] == "Fetch the baseline"
    assert with_token < names.index("Install") < names.index("Record")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_others_are_pinned_to_a_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)(.*)", path.read_text("utf-8"))
    for action, comment in used:
        is_pinned = re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) and re.fullmatch(
            r" # v\d+\.\d+\.\d+", comment
        )
        assert is_pinned or action.startswith(OWN), action


def test_every_input_is_used_and_described() -> None:
    for name, declared in ACTION["inputs"].items():
        assert f"${{{{ inputs.{name} }}}}" in TEXT or f"inputs.{name} !=" in TEXT, name
        assert declared["description"]
        assert "default" in declared


# -- installing ------------------------------------------------------------------------------------


def install(directory: Path, *, has_package: bool, command: str = "") -> list[str]:
    """What install.sh calls `python` with."""
    program = directory / "python"
    code = 0 if has_package else 1
    program.write_text(
        f'#!/bin/sh\necho "$@" >> "{directory}/called"\n[ "$1" = -m ] || exit {code}\n', encoding="utf-8"
    )
    program.chmod(0o755)
    subprocess.run(
        ["bash", str(ROOT / "ci" / "install.sh")],
        cwd=directory,
        env={
            "PATH": f"{directory}:/usr/local/bin:/usr/bin:/bin",
            "KEBAB_INSTALL": command,
            "GITHUB_ACTION_PATH": "/action",
        },
        check=True,
    )
    return (directory / "called").read_text("utf-8").splitlines()


@bash
def test_the_package_is_installed_as_the_action_has_it(tmp_path: Path) -> None:
    assert install(tmp_path, has_package=False)[-1] == "-m pip install /action"


@bash
def test_a_package_that_the_project_brought_is_kept(tmp_path: Path) -> None:
    called = install(tmp_path, has_package=True, command="python -m pip install -r requirements.txt")
    assert called == ["-m pip install -r requirements.txt", "-c import pytest_kebab_eval"]


@bash
def test_an_install_command_that_fails_stops_the_job(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        install(tmp_path, has_package=True, command="false; true")


@pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for bash")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs_on_the_bash_of_a_mac(script: Path) -> None:
    text = script.read_text("utf-8")
    newer = r"\bmapfile\b|\breadarray\b|declare -A|\$\{\w+(,,|\^\^|@)|\|&|&>>"  # than bash 3.2
    assert not re.search(newer, text)
    assert subprocess.run(["bash", "-n", str(script)], check=False).returncode == 0
