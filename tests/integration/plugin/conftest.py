"""Fixtures of the tests that call pytest."""

from __future__ import annotations

import pytest

from pytest_kebab_eval.store.sqlite import aggregates, reading


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr(aggregates, "WRITE_TIMEOUT_S", 0.05)
