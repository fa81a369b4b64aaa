"""What all tests have in common: a busy machine is no reason to fail, and there is a store of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.stores import PostgresStore, SqliteStore, Store, begin_session, end_session, new_database

settings.register_profile("kebab-eval", deadline=None)
settings.load_profile("kebab-eval")


def pytest_configure(config: pytest.Config) -> None:
    begin_session(config)


def pytest_unconfigure(config: pytest.Config) -> None:
    end_session(config)


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
