"""Kills and failing system calls, some of each; `make faults` makes hundreds. And the injector itself."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from fuzzing.faults.injecting import Fault, Injector
from fuzzing.faults.scenarios import SCENARIOS
from tests.builders import dump, make_database, result
from tests.forked import python
from tests.stores import PostgresStore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, and reads /proc")
ROOT = Path(__file__).parents[1]


@contextmanager
def faulty(root: Path, fault: Fault | None = None) -> Iterator[Injector]:
    injector = Injector(root, fault)
    injector.install()
    try:
        yield injector
    finally:
        injector.restore()


# The one that starts other Pythons takes as long as all others.
IN_PROCESS = [scenario.name for scenario in SCENARIOS if scenario.in_process]
OTHERS = [scenario.name for scenario in SCENARIOS if not scenario.in_process]


@pytest.mark.parametrize("scenario", [*IN_PROCESS, *(OTHERS if settings().max_examples > 10 else ())])
def test_after_kills_and_failures_the_state_is_old_or_new_and_the_next_run_cleans_up(scenario: str) -> None:
    command = python("-m", "fuzzing.faults", f"--only={scenario}", "--seed=12", "-v")
    done = subprocess.run(
        [*command, "--kills=1", "--failures=1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (total,) = [row.split() for row in done.stdout.splitlines() if row.startswith("all ")]
    assert total[:3] == ["all", "1", "1"]


def test_recorders_into_postgresql_that_are_killed_end_as_one_that_never_was(
    postgres: PostgresStore,
) -> None:
    command = python("-m", "fuzzing.faults.server", "--kills=3", "--seed=12", f"--db={postgres.db}")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 12: 3 killed" in done.stdout


# -- the injector --------------------------------------------------------------------------------

reaches_pathlib = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="pathlib of Python 3.10 keeps the functions that it has imported"
)


def write(path: Path) -> None:
    path.write_text("new")


def sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_to_descriptor(path: Path) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY), "w") as file:
        file.write("new")


CALLS: list[tuple[str, Callable[[Path], object]]] = [
    ("open", write),
    ("write", write),
    ("open", lambda path: os.close(os.open(path, os.O_RDONLY))),
    ("write", write_to_descriptor),
    ("replace", lambda path: path.replace(path.with_name("other"))),
    ("unlink", Path.unlink),
    ("mkdir", lambda path: path.with_name("directory").mkdir()),
    ("fsync", sync),
]


@reaches_pathlib
@pytest.mark.parametrize(("call", "action"), CALLS, ids=[str(number) for number in range(len(CALLS))])
def test_the_chosen_call_fails_with_the_chosen_error(
    call: str, action: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with (
        faulty(tmp_path, Fault(call, 1, error=errno.ENOSPC)),
        pytest.raises(OSError, match="No space left") as raised,
    ):
        action(path)
    assert raised.value.errno == errno.ENOSPC


@reaches_pathlib
def test_only_the_call_of_that_number_fails_unless_the_fault_is_lasting(tmp_path: Path) -> None:
    paths = [tmp_path / str(number) for number in range(3)]
    for lasting, expected in ((False, [True, False, True]), (True, [True, False, False])):
        with faulty(tmp_path, Fault("mkdir", 2, lasting=lasting)):
            for path in paths:
                try:
                    path.mkdir()
                except OSError:
                    continue
        assert [path.exists() for path in paths] == expected
        for path in paths:
            if path.exists():
                path.rmdir()


def test_calls_elsewhere_do_not_fail(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with faulty(root, Fault("open", 1, lasting=True)):
        (tmp_path / "file").write_text("fine")
    assert (tmp_path / "file").read_text() == "fine"


@reaches_pathlib
def test_a_write_fails_halfway(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with faulty(tmp_path, Fault("write", 1, error=errno.EIO)), pytest.raises(OSError, match="Input/output"):
        path.write_bytes(b"12345678")
    assert path.read_bytes() == b"1234"


@pytest.mark.parametrize("call", ["connect", "sql", "page"])
def test_a_database_that_cannot_be_written_to_is_unchanged(call: str, tmp_path: Path) -> None:
    path = make_database(tmp_path / "eval.sqlite", A={"q1": result("c1")})
    before = dump(path)
    fault = Fault(call, 0 if call == "page" else 1)
    with (
        faulty(tmp_path, fault),
        pytest.raises(sqlite3.OperationalError),
        closing(sqlite3.connect(path)) as connection,
    ):
        connection.execute("CREATE TABLE new AS SELECT hex(randomblob(100000))")
    assert dump(path) == before


def test_after_it_all_calls_are_as_they_were(tmp_path: Path) -> None:
    before = (os.open, os.replace, open, sqlite3.connect)
    with faulty(tmp_path):
        assert os.replace is not before[1]
    assert (os.open, os.replace, open, sqlite3.connect) == before


@pytest.mark.parametrize("call", [pytest.param("write", marks=reaches_pathlib), "size"])
def test_a_process_can_be_killed_at_a_call_or_at_a_size(call: str, tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from fuzzing.faults.injecting import Fault, Injector
Injector(Path({str(tmp_path)!r}), Fault({call!r}, 1, kill=True)).install()
Path({str(tmp_path / "file")!r}).write_text("12345678")
"""
    done = subprocess.run(python("-c", script), cwd=ROOT, check=False, capture_output=True)
    assert done.returncode < 0
    assert (tmp_path / "file").read_text() in {"1", "1234"}
