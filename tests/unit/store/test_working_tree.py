"""A run knows its commit, its branch and whether the tree had uncommitted changes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.store import open_database
from pytest_kebab_eval.store.working_tree import WorkingTree, working_tree
from tests.integration.conftest import execute
from tests.stores import Store
from tests.unit.store.conftest import rows


def git(*args: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *args], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on the branch `feature/x`, with one commit."""
    path = tmp_path / "repo"
    path.mkdir()
    monkeypatch.chdir(path)
    git("init", "-q", "-b", "feature/x")
    (path / "code.py").write_text("1")
    git("add", "-A")
    git("commit", "-q", "-m", "one")
    return path


def test_outside_of_a_repository_nothing_is_known() -> None:
    assert working_tree() == WorkingTree()


def test_commit_branch_and_changes_are_git_s(repository: Path) -> None:
    commit = git("rev-parse", "HEAD")
    (repository / "new.txt").touch()  # git does not know it
    assert working_tree() == WorkingTree(commit, "feature/x", is_dirty=False)
    (repository / "code.py").write_text("2")
    assert working_tree() == WorkingTree(commit, "feature/x", is_dirty=True)


def test_a_change_of_the_database_itself_does_not_count(repository: Path) -> None:
    (repository / "kebab.sqlite").write_text("1")
    git("add", "-A")
    assert working_tree(repository / "kebab.sqlite").is_dirty is False
    assert working_tree(repository / "other.sqlite").is_dirty is True


@pytest.mark.parametrize(
    ("variables", "branch"),
    [
        ({}, None),
        ({"GITHUB_REF": "refs/heads/main"}, "main"),
        ({"GITHUB_REF": "refs/pull/12/merge", "GITHUB_HEAD_REF": "fix", "GITHUB_BASE_REF": "main"}, "fix"),
        ({"GITHUB_REF": "refs/tags/v1"}, None),
        ({"GITHUB_HEAD_REF": "main", "GITHUB_BASE_REF": "main"}, None),  # a fork's main is not ours
        ({"CI_COMMIT_BRANCH": "main"}, "main"),
        (
            {
                "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix",
                "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            },
            "fix",
        ),
        ({"CIRCLE_BRANCH": ""}, None),
    ],
)
def test_where_no_branch_is_checked_out_the_service_names_it(
    repository: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], branch: str | None
) -> None:
    assert repository.exists()
    git("checkout", "-q", "--detach")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert working_tree().branch == branch


def recorded(db: Path, **given: Any) -> Any:
    with RunRecorder(db, run_id="r", **given) as run:
        run.record("q1", ["c1"])
    ((config,),) = rows(db, "SELECT config_snapshot_json FROM eval_runs")
    return json.loads(config)


def test_a_run_has_it_beside_its_configuration(repository: Path, db: Path) -> None:
    (repository / "code.py").write_text("2")
    stored = recorded(db, config={"chunker_version": "v1"})
    assert stored == {"chunker_version": "v1", "pytest_kebab_eval": {"branch": "feature/x", "dirty": True}}
    with open_database(db) as database:
        (run,) = database.runs()
        assert (run.recorded.branch, run.recorded.dirty) == ("feature/x", True)
        assert database.with_config(run).config == {"chunker_version": "v1"}


def test_a_branch_that_is_given_counts_and_of_another_commit_no_changes_are_known(
    repository: Path, db: Path
) -> None:
    (repository / "code.py").write_text("2")
    assert recorded(db, branch="main", commit_hash="abc1234") == {"pytest_kebab_eval": {"branch": "main"}}


@pytest.mark.parametrize("config", ['{"pytest_kebab_eval": 3}', '{"pytest_kebab_eval": {"branch": 1}}', "{"])
def test_what_cannot_be_read_of_it_says_nothing(db: Path, config: str) -> None:
    recorded(db)
    execute(db, "UPDATE eval_runs SET config_snapshot_json = ?", config)
    with open_database(db) as database:
        assert not database.runs()[0].recorded.is_partial


def test_the_time_of_a_run_is_the_store_s(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pytest_kebab_eval.store.sqlite.SqliteConnection.now", lambda _: "2001-02-03T00:00:00Z"
    )
    with RunRecorder(store.db, run_id="r") as run:
        run.record("q1", ["c1"])
    ((created_at,),) = store.rows("SELECT created_at FROM eval_runs")
    is_this_machine_s = created_at == "2001-02-03T00:00:00Z"
    assert is_this_machine_s is not store.db.startswith("postgresql")
