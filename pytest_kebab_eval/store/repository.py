"""Where a repository can be looked at: links to its commits, by a CI service's variables or git's remote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pytest_kebab_eval.text import pattern

_TIMEOUT_S = 10
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
    return to_repository(_origin())


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


def _origin() -> str:
    """git's remote `origin`; empty where there is none."""
    try:
        done = subprocess.run(
            ["git", "remote", "get-url", "origin"],  # noqa: S607
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
