"""Fixtures of the tests that call pytest."""

from __future__ import annotations

import pytest

from pytest_kebab_eval.store import sqlite


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr(sqlite, "AGGREGATES_TIMEOUT_S", 0.05)
