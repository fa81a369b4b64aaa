"""A repository on GitHub, before and after its main branch was recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.integration.ci.github import GitHub, push
from tests.integration.ci.starter import checkout, run


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What GitHub keeps after a first push to main."""
    directory = tmp_path_factory.mktemp("main")
    github = GitHub(directory, checkout(directory / "main"))
    outcome = run(github, push())
    assert outcome.failed_step is None, outcome.printed
    return github.state


@pytest.fixture
def empty(tmp_path: Path) -> GitHub:
    """A repository whose main branch has no run yet."""
    return GitHub(tmp_path, checkout(tmp_path / "checkout"))


@pytest.fixture
def github(empty: GitHub, recorded: Path) -> GitHub:
    """A repository whose main branch was recorded; the checkout is as main is."""
    shutil.copytree(recorded, empty.state, dirs_exist_ok=True)
    empty.run_number = 1
    return empty
