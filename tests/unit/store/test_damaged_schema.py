"""A schema that is no longer text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.store import open_database
from tests.builders import make_database, result


def test_a_schema_that_is_not_utf_8_is_a_database_error(tmp_path: Path) -> None:
    path = make_database(tmp_path / "eval.sqlite", A={"q1": result("c1")})
    data = path.read_bytes()
    # SQLite quotes this in its message, and Python cannot decode that.
    damaged = data.replace(b"CREATE TABLE eval_runs", b"CREATE T\xe5BLE eval_runs")
    assert damaged != data
    path.write_bytes(damaged)
    expected = r"eval\.sqlite cannot be read as an SQLite database"
    with pytest.raises(DatabaseError, match=expected), open_database(path):
        pass
    assert path.read_bytes() == damaged
