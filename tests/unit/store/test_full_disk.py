"""Recording where the disk is full or fails: one error of ours, and the database as it was."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import pytest

from fuzzing.faults.injecting import Fault, Injector
from pytest_kebab_eval import RunRecorder, StoreError
from tests.builders import dump, make_database, result

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def record(db: Path, text: str) -> None:
    with RunRecorder(db, run_id="new") as run:
        for number in range(5):
            run.record(f"q{number}", hits=["c1"], query=text)


@pytest.mark.parametrize("text", ["short", "long" * 10_000])
def test_a_file_beside_the_database_that_cannot_be_written_is_a_store_error(
    text: str, tmp_path: Path
) -> None:
    db = make_database(tmp_path / "eval.sqlite", old={"q1": result("c1")})
    before = dump(db)
    injector = Injector(tmp_path, Fault("write", 1, error=errno.ENOSPC, lasting=True))
    injector.install()
    try:
        with pytest.raises(StoreError, match="No space left on device"):
            record(db, text)
    finally:
        injector.restore()
    assert dump(db) == before
    assert [path.name for path in tmp_path.iterdir()] == ["eval.sqlite"]
