"""What all tests have in common: a busy machine is no reason to fail, and there is a store of each kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pytest_kebab_eval.store.working_tree import VARIABLES
from tests import forked
from tests.stores import (
    PostgresStore,
    SqliteStore,
    Store,
    begin_session,
    end_session,
    leave_server,
    new_database,
)

# Between two edits, the same few examples each time; `make check` looks for new ones.
settings.register_profile(
    "everyday", deadline=None, max_examples=10, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("everyday"), max_examples=5)
settings.register_profile("thorough", settings.get_profile("everyday"), max_examples=200, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))


def pytest_configure(config: pytest.Config) -> None:
    begin_session(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    forked.stop()
    leave_server()
    end_session(config)


@pytest.fixture(scope="session", autouse=True)
def _no_branch_from_outside() -> Iterator[None]:
    """What is recorded here is of no branch, also where a CI service runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        for name in VARIABLES:
            patched.delenv(name, raising=False)
        yield


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store of each kind, empty; one claim about stores is tested on both."""
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "kebab.sqlite")
    else:
        with new_database() as database:
            yield database


@pytest.fixture
def postgres() -> Iterator[PostgresStore]:
    """A PostgreSQL database with the tables."""
    with new_database() as database:
        yield database
