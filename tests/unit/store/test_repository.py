"""Where commits can be looked at: never with a user, a password or a token."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_kebab_eval.store.working_tree import WebRepository, find_repository, to_repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("remote", "url"),
    [
        ("https://github.com/acme/docs.git", f"https://github.com/acme/docs/commit/{COMMIT}"),
        ("https://github.com/acme/docs/", f"https://github.com/acme/docs/commit/{COMMIT}"),
        ("git@github.com:acme/docs.git", f"https://github.com/acme/docs/commit/{COMMIT}"),
        (
            "ssh://git@git.example.org:2222/acme/docs.git",
            f"https://git.example.org/acme/docs/commit/{COMMIT}",
        ),
        ("http://git.example.org:8080/acme/docs", f"http://git.example.org:8080/acme/docs/commit/{COMMIT}"),
        ("https://gitlab.com/a/b/docs.git", f"https://gitlab.com/a/b/docs/-/commit/{COMMIT}"),
        ("git@bitbucket.org:acme/docs.git", f"https://bitbucket.org/acme/docs/commits/{COMMIT}"),
        ("https://user:s3cret@github.com/acme/docs", f"https://github.com/acme/docs/commit/{COMMIT}"),
        (
            "https://x-access-token:s3cret@github.com/acme/docs",
            f"https://github.com/acme/docs/commit/{COMMIT}",
        ),
        ("https://github.com/acme/docs?token=s3cret#s3cret", f"https://github.com/acme/docs/commit/{COMMIT}"),
    ],
)
def test_a_commit_is_linked_to_by_host_and_path_alone(remote: str, url: str) -> None:
    repository = to_repository(remote)
    assert repository is not None
    assert repository.commit_url(COMMIT) == url


@pytest.mark.parametrize(
    "remote",
    [
        "",
        "/srv/git/docs.git",
        "../docs",
        "file:///srv/git/docs",
        "C:\\work\\docs",
        "javascript://github.com/acme/docs",
        "https://github.com",
        "https://github.com/acme/../docs",
        "https://github.com/acme/do cs",
        'https://github.com/acme/"><script>alert(1)</script>',
        "https://[broken/acme/docs",
        "https://github.com:port/acme/docs",
        "https://user:s3cret@/acme/docs",
    ],
)
def test_what_is_no_plain_address_of_the_web_is_not_linked_to(remote: str) -> None:
    assert to_repository(remote) is None


@pytest.mark.parametrize("commit", [None, "", "main", "abc", "0123456/../..", "0123456 ", "DEADBEEF"])
def test_what_is_no_hash_is_not_linked_to(commit: str | None) -> None:
    assert WebRepository("https://github.com/acme/docs").commit_url(commit) is None


def test_the_variables_of_a_ci_service_say_where_it_is() -> None:
    github = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "acme/docs"}
    assert find_repository(github) == WebRepository("https://github.com/acme/docs")
    gitlab = {"CI_PROJECT_URL": "https://git.example.org/acme/docs"}
    assert find_repository(gitlab) == WebRepository("https://git.example.org/acme/docs", "/-/commit/")


def test_elsewhere_it_is_the_remote_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_repository({}) is None
    subprocess.run(["git", "init", "-q"], check=True)
    assert find_repository({}) is None
    subprocess.run(["git", "remote", "add", "origin", "https://me:s3cret@example.org/acme/docs"], check=True)
    assert find_repository({}) == WebRepository("https://example.org/acme/docs")
    monkeypatch.setenv("PATH", "")
    assert find_repository({}) is None
