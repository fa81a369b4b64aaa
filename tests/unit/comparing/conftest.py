"""Fixtures of several tests of comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.comparing.sides import Sides


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    found = Sides(tmp_path)
    found.expect("q1")
    return found
