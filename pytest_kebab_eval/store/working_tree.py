"""Where a run is recorded: its commit, branch and uncommitted changes, and where commits can be looked at.

git says so, or a CI service's variables.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pytest_kebab_eval.store.address import Address, files_of
from pytest_kebab_eval.text import pattern

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

    def is_dirty_for(self, commit: str | None, *, is_given: bool) -> bool | None:
        """The same of a run of that commit; at another, it was resumed, or its commit is given."""
        if self.commit is None or commit == self.commit:
            return self.is_dirty
        return None if is_given else True


def working_tree(db: Address | None = None) -> WorkingTree:
    """The state of the working directory; a change of the database itself does not count."""
    status = _git("--no-optional-locks", "status", "--porcelain=v2", "--branch", "-uno")
    lines = status.splitlines()
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


def _git(*command: str) -> str:
    """What git says; empty where there is no repository, or no git."""
    try:
        done = subprocess.run(  # noqa: S603  ours
            ["git", *command],  # noqa: S607
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout if done.returncode == 0 else ""


# -- the repository on the web -----------------------------------------------------------------------

_COMMIT = pattern(r"[0-9a-f]{7,64}")
_HOST = pattern(r"[a-z0-9][a-z0-9.-]*(:[0-9]+)?")
_PATH = pattern(r"(/[\w~.-]*[\w~-])+")  # each part is a plain name, which does not end in a dot
_SCP = pattern(r"(?:[\w.-]+@)?([\w.-]+):(?!/)(.+)")  # git@host:owner/name
# What stands between the address of a repository and the hash of a commit, by a part of the host's name.
_COMMITS = {"gitlab": "/-/commit/", "bitbucket": "/commits/"}


class WebRepository(NamedTuple):
    """A repository on the web."""

    url: str
    commits: str = "/commit/"

    def commit_url(self, commit: str | None) -> str | None:
        """The address of a commit; None of what is not the hash of one."""
        return f"{self.url}{self.commits}{commit}" if commit and _COMMIT.fullmatch(commit) else None


def find_repository(environment: Mapping[str, str] = os.environ) -> WebRepository | None:
    """The repository of the working directory, if it is one on the web."""
    github, name = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
    if github and name:
        return to_repository(f"{github}/{name}")
    if gitlab := environment.get("CI_PROJECT_URL"):
        found = to_repository(gitlab)
        return found._replace(commits=_COMMITS["gitlab"]) if found else None
    return to_repository(_git("remote", "get-url", "origin").strip())


def to_repository(remote: str) -> WebRepository | None:
    """A remote as an address of the web: host and path alone, so that no user, password or token is in it."""
    if "://" in remote:
        try:
            parts = urlsplit(remote)
            host, path = parts.hostname or "", parts.path
            is_web = parts.scheme in ("http", "https")
            host += f":{parts.port}" if is_web and parts.port else ""  # another port is that of SSH
        except ValueError:
            return None
        scheme = parts.scheme if is_web else "https" if parts.scheme in ("ssh", "git", "git+ssh") else ""
    else:
        match = _SCP.fullmatch(remote)
        scheme, host, path = ("https", match[1].lower(), f"/{match[2]}") if match else ("", "", "")
    path = path.rstrip("/").removesuffix(".git")
    if not scheme or not _HOST.fullmatch(host) or not _PATH.fullmatch(path):
        return None
    commits = next((words for part, words in _COMMITS.items() if part in host), "/commit/")
    return WebRepository(f"{scheme}://{host}{path}", commits)
