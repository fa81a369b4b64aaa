"""`kebab-eval init`: what it writes works at once, it asks first, and replaces nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked import python
from tests.integration.conftest import LEAN, call, script

GOLDEN, TEST, IGNORED = "fixtures/golden_queries.yaml", "tests/test_retrieval.py", ".gitignore"
GITHUB, GITLAB, GITLAB_JOBS = (
    ".github/workflows/retrieval-gate.yml",
    ".gitlab-ci.yml",
    ".gitlab/retrieval-gate.yml",
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, which is the working directory."""
    directory = tmp_path / "empty"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def written(directory: Path) -> list[str]:
    found = (path for path in directory.rglob("*") if path.is_file())
    return sorted(path.relative_to(directory).as_posix() for path in found)


def run_pytest(directory: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = python("-m", "pytest", *LEAN, *args)
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, encoding="utf-8", check=False
    )


# -- what is written works -------------------------------------------------------------------------


def test_an_empty_directory_is_recorded_and_gated_at_once_and_a_retriever_made_worse_fails(
    here: Path,
) -> None:
    call("init", "--yes")
    recorded = run_pytest(here, "--kebab-record=first")
    assert "kebab-eval: run first: 3 of 3 golden queries recorded in kebab.sqlite\n" in recorded.stdout
    gated = run_pytest(here, "--kebab-run-b=first", "--kebab-gate=hit@3 >= 0.9")
    assert "4 passed, 3 skipped" in gated.stdout  # 3 queries and 1 gate; 3 tests that record
    assert (recorded.returncode, gated.returncode) == (0, 0)
    source = (here / TEST).read_text("utf-8")
    (here / TEST).write_text(source.replace("[:5]", "[1:5]"), encoding="utf-8")  # drops every best hit
    run_pytest(here, "--kebab-record=after")
    outcome = run_pytest(here, GOLDEN, "--kebab-run-a=first", "--kebab-run-b=after")
    assert outcome.returncode == pytest.ExitCode.TESTS_FAILED
    assert "query[loan-period] - lost loans, at rank 1 in A\n" in outcome.stdout
    assert "3 failed" in outcome.stdout


def test_the_golden_file_has_no_mistakes(here: Path) -> None:
    call("init", "--yes")
    checked = call("validate", "--golden-only")
    assert (checked.code, checked.stderr) == (0, "3 queries, 0 findings\n")


# -- which workflow --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("existing", "args", "workflow"),
    [
        ([], [], [GITHUB]),
        ([".github/dependabot.yml"], [], [GITHUB]),
        ([GITLAB], [], [GITLAB_JOBS]),
        ([GITLAB, ".github/dependabot.yml"], [], [GITHUB]),
        ([], ["--ci", "gitlab"], [GITLAB]),
        ([GITLAB], ["--ci", "github"], [GITHUB]),
        ([], ["--ci", "none"], []),
    ],
)
def test_the_workflow_is_that_of_the_service_that_the_project_uses(
    here: Path, existing: list[str], args: list[str], workflow: list[str]
) -> None:
    for name in existing:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("theirs", encoding="utf-8")
    assert call("init", "--yes", *args).code == 0
    assert written(here) == sorted([IGNORED, GOLDEN, TEST, *existing, *workflow])


def test_jobs_beside_an_existing_gitlab_file_say_how_they_are_included(here: Path) -> None:
    (here / GITLAB).write_text("test: {script: [make]}\n", encoding="utf-8")
    called = call("init", "--yes")
    assert "once .gitlab-ci.yml has include: [{local: .gitlab/retrieval-gate.yml}]" in called.stdout


def test_a_second_call_changes_nothing_and_says_so(here: Path) -> None:
    for ci in ("github", "gitlab"):
        call("init", "--yes", "--ci", ci)
    before = {name: (here / name).read_bytes() for name in written(here)}
    called = call("init", "--ci", "gitlab")  # there is nothing to ask, so it needs no --yes
    assert (called.code, called.stdout) == (0, "")
    assert called.stderr.splitlines() == [
        f"{name} is there already; left alone" for name in (IGNORED, GOLDEN, TEST, GITLAB)
    ]
    assert {name: (here / name).read_bytes() for name in written(here)} == before


# -- nothing is replaced, and it asks first --------------------------------------------------------


@pytest.mark.parametrize("name", [GOLDEN, TEST, GITHUB])
def test_a_file_that_is_there_stays_and_the_others_are_written(here: Path, name: str) -> None:
    (here / name).parent.mkdir(parents=True)
    (here / name).write_text("precious", encoding="utf-8")
    called = call("init", "--yes")
    assert called.code == 0
    assert f"{name} is there already; left alone\n" in called.stderr
    assert (here / name).read_text("utf-8") == "precious"
    assert written(here) == sorted([IGNORED, GOLDEN, TEST, GITHUB])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "kebab.sqlite\nruns/\n"),
        ("*.pyc", "*.pyc\nkebab.sqlite\nruns/\n"),
        ("/runs\n*.pyc\n", "/runs\n*.pyc\nkebab.sqlite\n"),
        ("runs/\nkebab.sqlite\n", "runs/\nkebab.sqlite\n"),
    ],
)
def test_what_is_not_for_git_is_added_to_its_ignored_files_once(
    here: Path, before: str | None, after: str
) -> None:
    if before is not None:
        (here / IGNORED).write_text(before, encoding="utf-8")
    for _ in range(2):
        assert call("init", "--yes").code == 0
        assert (here / IGNORED).read_text("utf-8") == after


def test_a_link_that_leads_nowhere_is_not_written_through(here: Path) -> None:
    (here / "tests").mkdir()
    (here / TEST).symlink_to(here / "elsewhere.py")
    assert f"{TEST} is there already; left alone\n" in call("init", "--yes").stderr
    assert not (here / "elsewhere.py").exists()


def test_a_file_where_a_directory_should_be_is_an_error(here: Path) -> None:
    (here / "tests").write_text("precious", encoding="utf-8")
    called = call("init", "--yes")
    assert called.code == 1
    assert called.stderr.startswith(f"kebab-eval: cannot write {TEST}: ")
    assert (here / "tests").read_text("utf-8") == "precious"


def test_without_a_terminal_it_needs_yes(here: Path) -> None:
    called = call("init")
    assert (called.code, called.stdout) == (2, "")
    names = f"{IGNORED}, {GOLDEN}, {TEST}, {GITHUB}"
    assert called.stderr == f"kebab-eval: there is no terminal to ask at; say --yes to write {names}\n"
    assert written(here) == []


def test_a_directory_may_be_named_and_is_in_the_advice(here: Path) -> None:
    called = call("init", "mine", "--yes")
    assert "next, in mine:\n" in called.stderr
    assert written(here / "mine") == sorted([IGNORED, GOLDEN, TEST, GITHUB])


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ("y\ny\nn\ny\n", [IGNORED, GOLDEN, GITHUB]),
        ("\n\n\n\n", [IGNORED, GOLDEN, TEST, GITHUB]),
        ("n\nn\nn\nn\n", []),
    ],
)
def test_at_a_terminal_it_asks_before_each_file(here: Path, answers: str, expected: list[str]) -> None:
    import pty

    ours, theirs = pty.openpty()
    os.write(ours, answers.encode())
    done = subprocess.run(
        [script(), "init"], cwd=here, stdin=theirs, capture_output=True, text=True, check=False
    )
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 0, done.stderr
    assert f"write {TEST} (records what a toy retriever finds)? [Y/n]:" in done.stderr
    assert written(here) == sorted(expected)
    assert ("pytest --kebab-record first" in done.stderr) == (TEST in expected)
    assert ("record a run with a test of your own" in done.stderr) == (TEST not in expected)


def test_a_workflow_below_the_top_of_a_repository_is_warned_of(here: Path) -> None:
    (here / ".git").mkdir()
    assert "warning" not in call("init", "--yes").stderr
    called = call("init", "part/one", "--yes")
    assert f"warning: {GITHUB} is read at the top of the repository only: .\n" in called.stderr
    assert "warning" not in call("init", "part/two", "--yes", "--ci", "none").stderr
