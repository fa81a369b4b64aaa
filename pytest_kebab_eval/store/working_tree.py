"""Where a run is recorded: commit, branch and uncommitted changes, by git or a CI service's variables."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from pytest_kebab_eval.store.address import Address, files_of

# The branch of a pull request, and the one that it is to be merged into; a fork may call both the same.
_PULL_REQUESTS = (
    ("GITHUB_HEAD_REF", "GITHUB_BASE_REF"),
    ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"),
    ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "SYSTEM_PULLREQUEST_TARGETBRANCH"),
    ("CHANGE_BRANCH", "CHANGE_TARGET"),  # Jenkins
    ("TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH"),
    ("BITBUCKET_BRANCH", "BITBUCKET_PR_DESTINATION_BRANCH"),
    ("BUILDKITE_BRANCH", "BUILDKITE_PULL_REQUEST_BASE_BRANCH"),
)
_BRANCHES = (
    *("GITHUB_REF", "CI_COMMIT_BRANCH", "BUILD_SOURCEBRANCH", "BRANCH_NAME", "TRAVIS_BRANCH"),
    *("BITBUCKET_BRANCH", "BUILDKITE_BRANCH", "CIRCLE_BRANCH"),
)
VARIABLES = frozenset(name for names in (_BRANCHES, *_PULL_REQUESTS) for name in names)
_TIMEOUT_S = 10


class WorkingTree(NamedTuple):
    """What is known of the working directory; nothing outside a repository."""

    commit: str | None = None
    branch: str | None = None
    is_dirty: bool | None = None  # whether files that git knows have uncommitted changes


def working_tree(db: Address | None = None) -> WorkingTree:
    """The state of the working directory; a change of the database itself does not count."""
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "-uno"],  # noqa: S607
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
        lines = done.stdout.splitlines() if done.returncode == 0 else []
    except (OSError, subprocess.SubprocessError):
        lines = []
    head = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    own = tuple(path.name for path in files_of(db)) if db is not None else ()
    changed = [line for line in lines if not line.startswith("#") and not (own and line.endswith(own))]
    commit, branch = head.get("branch.oid"), head.get("branch.head")
    on_branch = None if branch in (None, "(detached)") else branch
    return WorkingTree(
        None if commit in (None, "(initial)") else commit,
        _branch(os.environ, on_branch),
        bool(changed) if head else None,
    )


def _branch(environment: Mapping[str, str], checked_out: str | None) -> str | None:
    """That of a pull request, if it is one; else the one that is checked out, or that a service names."""
    for source, target in _PULL_REQUESTS:
        branch, merged_into = (_plain(environment.get(name)) for name in (source, target))
        if branch and merged_into:
            return branch if branch != merged_into else None  # a fork's, which is not that branch here
    named = (_plain(environment.get(name)) for name in _BRANCHES)
    return checked_out or next(filter(None, named), None)


def _plain(ref: str | None) -> str | None:
    """The name of a branch, which may be written as a ref; None of another ref."""
    name = (ref or "").removeprefix("refs/heads/")
    return None if not name or name.startswith("refs/") else name
