"""The README is short, and what it points to holds what it says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks_of, reader_environment, steps_of

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = list(blocks_of(ROOT / "README.md"))
IN_A_CLONE = [step.command for block in BLOCKS[1:3] for step in steps_of(block)][:4]

in_a_clone = pytest.mark.skipif(
    any(shutil.which(program) is None for program in ("bash", "git", "make")),
    reason="bash, git or make is missing",
)


def test_the_readme_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) < 200


def test_the_readme_links_to_every_page_of_the_docs() -> None:
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert {page for page in pages if f"(docs/{page})" not in README} == set()


# -- the first commands ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files, in a repository of their own, with an environment that is already made."""
    directory = tmp_path_factory.mktemp("home") / "clone"
    names = (
        "*.md",
        "*.py",
        "*.toml",
        "LICENSE",
        "Makefile",
        "docs",
        "examples",
        "pytest_kebab_eval",
        "tests",
    )
    for path in (path for name in names for path in ROOT.glob(name)):
        if path.is_dir():
            shutil.copytree(path, directory / path.name)  # with what is compiled already
        else:
            directory.mkdir(exist_ok=True)
            shutil.copy(path, directory)
    python = directory / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    for mark in (".package", ".installed"):
        (directory / ".venv" / mark).touch()
    (directory / ".gitignore").write_text(".venv\n__pycache__\n", encoding="utf-8")
    for command in ("init --quiet", "add .", "-c user.name=a -c user.email=a commit --quiet -m first"):
        subprocess.run(["git", *command.split()], cwd=directory, check=True)
    return directory


def follow(command: str, cwd: Path, **environment: str) -> str:
    """What a command of the README prints; it succeeds."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=cwd,
        env={**reader_environment(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_below_the_first_regression_are_the_commands_that_work_in_a_clone() -> None:
    assert [block.language for block in BLOCKS[:3]] == ["console", "sh", "sh"]
    assert [command.partition("  ")[0] for command in IN_A_CLONE[:2]] == ["make demo", "make test"]


@in_a_clone
def test_make_demo_says_in_words_what_was_caught(clone: Path) -> None:
    printed = follow(IN_A_CLONE[0], clone)
    assert "secrets-3 was found at rank 1 and is now missing" in printed
    assert (clone / "build" / "demo" / "runs" / "candidate" / "report.md").exists()


@in_a_clone
def test_make_test_runs_the_tests(clone: Path) -> None:
    with_plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "", "PYTEST_ADDOPTS": ""}
    printed = follow(IN_A_CLONE[1], clone, TESTS="-n0 tests/unit/test_spans.py", **with_plugins)
    assert " passed in " in printed


@in_a_clone
@pytest.mark.parametrize("command", IN_A_CLONE[2:])
def test_it_can_be_installed_from_the_repository_and_from_a_clone(
    command: str, clone: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pip", reason="this environment has no pip")
    address = "https://github.com/pytest-kebab-eval/pytest-kebab-eval"
    no_network = {
        "PIP_NO_COMPILE": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_INDEX": "1",
    }
    here = {
        "PIP_TARGET": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"url.{clone.as_uri()}.insteadOf",
        "GIT_CONFIG_VALUE_0": address,
    }
    follow(command.replace("path/to/the/clone", str(clone)), tmp_path, **no_network, **here)
    installed = {"PYTHONPATH": str(tmp_path)}
    asked = f"'{sys.executable}' -c 'import pytest_kebab_eval as it; print(it.__file__)'"
    where = follow(asked, tmp_path, **installed)
    assert where.strip() == str(tmp_path / "pytest_kebab_eval" / "__init__.py")
    assert (tmp_path / "bin" / "kebab-eval").exists()


# -- what it points to -----------------------------------------------------------------------------


def test_the_shortest_example_is_as_short_as_the_docs_say() -> None:
    example = (ROOT / "examples/minimal/regression.py").read_text(encoding="utf-8")
    page = (ROOT / "docs/getting-runs-in.md").read_text(encoding="utf-8")
    assert f"in one file of {len(example.splitlines())} lines" in page


def test_the_shipped_golden_files_explain_the_should_refuse_convention() -> None:
    files = [path for path in (ROOT / "examples").rglob("golden*.yaml") if "lock" not in path.name]
    assert files
    for path in files:
        header = path.read_text(encoding="utf-8").split("\n-", 1)[0]
        assert "expected_doc_ids: []" in header, path
