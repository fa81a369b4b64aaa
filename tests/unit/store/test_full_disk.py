"""Recording where the disk is full or fails: one error of ours, and the database as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pytest_kebab_eval import KebabEvalError, RunRecorder
from tests.builders import dump, make_database, result

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Within it, a write beyond so many bytes of a file fails, as on a disk that is full."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


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
    with files_of_at_most(100), pytest.raises(KebabEvalError, match=r"disk I/O error|File too large"):
        record(db, text)
    assert dump(db) == before
    assert [path.name for path in tmp_path.iterdir()] == ["eval.sqlite"]
