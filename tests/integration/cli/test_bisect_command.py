"""The command that `kebab-eval bisect` runs at each commit, and what is wrong use of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.cli.conftest import GOOD, LOST_1, GitProject, recording
from tests.integration.conftest import execute, script

pytestmark = pytest.mark.usefixtures("private_directory")

# -- the command -----------------------------------------------------------------------------------


def test_the_commit_stands_for_its_placeholder_and_other_braces_stay(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1, LOST_1)
    record = recording(tmp_path)
    project.bisect(run=f'echo "{{commit}} ${{HOME:+h}}" > "{tmp_path / "said"}" && {record}')
    assert (tmp_path / "said").read_text() == f"{project.commits[1]} h\n"


def test_the_runs_to_judge_by_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recording session that judged itself would fail at every bad commit."""
    monkeypatch.setenv("KEBAB_EVAL_RUN_A", "A")
    project = GitProject(tmp_path, GOOD, LOST_1, LOST_1)
    called = project.bisect(run=f'test -z "$KEBAB_EVAL_RUN_A" && {recording(tmp_path)}')
    assert called.code == 0, called.stderr


def test_what_the_command_prints_is_no_data(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1, LOST_1)
    run = f"echo noise && {recording(tmp_path)}"
    done = subprocess.run(
        [script(), *project.arguments(run=run)], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[0].startswith("first bad commit: ")
    assert "noise" in done.stderr


@pytest.mark.parametrize(
    ("run", "code", "said"),
    [
        ("exit 3", 1, "the command exited with 3 at the commit {c}; fix it, or have it exit with 125"),
        ("true", 2, "the command recorded no run of the suite 'suite' with the commit {c} in "),
        ("no-such-command-here", 1, "the command exited with 127 at the commit {c}"),
    ],
)
def test_a_command_that_does_not_record_stops_the_search_in_one_sentence(
    tmp_path: Path, run: str, code: int, said: str
) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1)
    called = project.bisect(run=run)
    assert (called.code, called.stdout) == (code, "")
    assert called.stderr.splitlines()[-1].startswith(f"kebab-eval: {said.format(c=project.commits[1][:12])}")
    project.assert_clean()


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize(
    ("number", "code", "last"),
    [(signal.SIGINT, 130, "kebab-eval: stopped"), (signal.SIGTERM, -signal.SIGTERM, "trying ")],
    ids=["Ctrl-C", "timeout"],
)
def test_a_signal_ends_the_command_and_leaves_no_worktree_behind(
    tmp_path: Path, number: int, code: int, last: str
) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, LOST_1)
    command = [script(), *project.arguments(run=f'touch "{tmp_path / "started"}"; sleep 3600')]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "started").exists():
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, number)
        said = process.communicate(timeout=300)[1]
    # `communicate` waited for all that have standard error open, so that the command has ended, too.
    assert process.returncode == code
    assert said.splitlines()[-1].startswith(last)
    project.assert_clean()


# -- wrong use -------------------------------------------------------------------------------------


def test_where_nothing_is_lost_nothing_is_tried(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, GOOD, GOOD)
    called = project.bisect()
    assert (called.code, called.stdout, called.stderr) == (
        0,
        "",
        "0 of 2 queries failed.\n",
    )


def test_a_run_without_a_commit_is_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    execute(project.database, "UPDATE eval_runs SET commit_hash = NULL WHERE run_id = 'A'")
    assert project.bisect().stderr == (
        "kebab-eval: run A, A, has no commit_hash, so nothing can be searched from it; record it in git\n"
    )


@pytest.mark.parametrize("commit", ["f" * 40, "--help", "main"])
def test_a_commit_that_the_repository_does_not_have_is_refused(tmp_path: Path, commit: str) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    execute(project.database, "UPDATE eval_runs SET commit_hash = ? WHERE run_id = 'B'", commit)
    called = project.bisect()
    assert called.code == 2
    assert f"run B, B, is of the commit {commit}, which " in called.stderr


def test_one_commit_for_both_runs_is_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    project.set_commit("A", -1)
    assert "A and B are of the same commit" in project.bisect().stderr


def test_a_commit_of_another_branch_is_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    execute(project.database, "UPDATE eval_runs SET commit_hash = 'x' WHERE run_id = 'A'")
    project.set_commit("A", 1)
    project.set_commit("B", 0)
    assert "is no ancestor of that of B" in project.bisect().stderr


def test_a_directory_without_a_repository_is_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    project.repo = tmp_path
    called = project.bisect()
    assert called.code == 2
    assert called.stderr.endswith(" is in no git repository; name yours with --repo DIR\n")


def test_a_query_that_is_not_lost_is_refused(tmp_path: Path) -> None:
    project = GitProject(tmp_path, GOOD, LOST_1)
    assert project.bisect("--query", "q-002").stderr.endswith(
        "kebab-eval: B did not lose the query 'q-002'; see kebab-eval blame --regressions A B\n"
    )
