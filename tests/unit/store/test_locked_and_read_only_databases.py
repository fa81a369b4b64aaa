"""Reading a database while others write to it, and where nothing can be written."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.model import QueryResult
from pytest_kebab_eval.store import open_database, sqlite
from tests.builders import make_database, result
from tests.unit.store.conftest import readable, run_ids

AN_UNPRIVILEGED_USER = 65534


def use_wal(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
    return path


INSERT_RUN_B = "INSERT INTO eval_runs VALUES ('b', 'suite', '{}', '{}', NULL, '2026-01-02T00:00:00Z')"


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that other users may enter, which pytest's own is not."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@contextmanager
def without_privileges() -> Iterator[None]:
    """Within, permissions bind: root steps down."""
    if os.name != "posix":
        pytest.skip("permissions are those of POSIX")
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(AN_UNPRIVILEGED_USER)
    except OSError as error:
        pytest.skip(f"root cannot step down here: {error}")
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def sealed(directory: Path) -> Iterator[None]:
    """Within, the directory can be read, and nothing can be written in it."""
    files = list(directory.iterdir())
    for file in files:
        file.chmod(0o444)
    directory.chmod(0o555)
    try:
        with without_privileges():
            if not os.access(directory, os.R_OK, effective_ids=True):
                pytest.skip("temporary directories are for their owner alone here")
            yield
    finally:
        directory.chmod(0o755)
        for file in files:
            file.chmod(0o644)


# -- while others write --------------------------------------------------------------------------


def test_a_wal_database_is_read_while_another_program_writes(tmp_path: Path) -> None:
    path = use_wal(make_database(tmp_path / "k.sqlite", a={}))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(INSERT_RUN_B)
        assert run_ids(path) == ["a"]  # what is not committed is not there
        writer.execute("COMMIT")
        assert run_ids(path) == ["a", "b"]


def test_an_open_database_keeps_to_one_state_of_it(tmp_path: Path) -> None:
    path = use_wal(make_database(tmp_path / "k.sqlite", a={"q1": result("before")}))
    with open_database(path) as opened, closing(sqlite3.connect(path)) as writer:
        writer.execute("UPDATE eval_query_results SET result_json = ?", (json.dumps(result("after")),))
        writer.execute(INSERT_RUN_B)
        writer.commit()
        found = opened.result("a", "q1")
        assert isinstance(found, QueryResult)
        assert found.hits[0].chunk_id == "before"
        assert [run.run_id for run in opened.runs()] == ["a"]


def test_a_database_without_wal_is_read_while_another_program_prepares_to_write(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute(INSERT_RUN_B)
        assert run_ids(path) == ["a"]


def test_a_database_locked_for_reading_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "READ_TIMEOUT_S", 0.05)
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DatabaseError, match=r"k\.sqlite: it is locked by another program"):
            run_ids(path)
    assert run_ids(path) == ["a"]


def test_a_wal_database_locked_for_reading_is_said_to_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "READ_TIMEOUT_S", 0.05)
    path = use_wal(make_database(tmp_path / "k.sqlite", a={}))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA locking_mode = EXCLUSIVE")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseError, match="locked"):
            run_ids(path)


# -- where nothing can be written ----------------------------------------------------------------


def with_a_log_left(directory: Path) -> Path:
    """A WAL database whose run `b` is only in the log, as a crashed writer leaves it."""
    live = directory / "live"
    left = directory / "left"
    live.mkdir()
    left.mkdir()
    path = use_wal(make_database(live / "k.sqlite", a={}))
    with closing(sqlite3.connect(path)) as writer:
        writer.execute(INSERT_RUN_B)
        writer.commit()
        for name in ("k.sqlite", "k.sqlite-wal"):
            shutil.copy(live / name, left / name)
    return left / "k.sqlite"


def test_what_is_only_in_the_log_of_a_wal_database_is_read(tmp_path: Path) -> None:
    assert run_ids(with_a_log_left(tmp_path)) == ["a", "b"]


def test_a_wal_database_in_a_read_only_directory_is_read(open_dir: Path) -> None:
    path = use_wal(make_database(open_dir / "k.sqlite", a={"q1": result("c1")}))
    with sealed(open_dir):
        assert run_ids(path) == ["a"]
        assert readable(path).hits[0].chunk_id == "c1"


def test_an_empty_log_in_a_read_only_directory_is_no_hindrance(open_dir: Path) -> None:
    path = use_wal(make_database(open_dir / "k.sqlite", a={}))
    (open_dir / "k.sqlite-wal").touch()
    with sealed(open_dir):
        assert run_ids(path) == ["a"]


def test_a_log_that_cannot_be_read_is_an_error_and_not_ignored(open_dir: Path) -> None:
    path = with_a_log_left(open_dir)
    with sealed(path.parent), pytest.raises(DatabaseError, match=r"k\.sqlite"):
        run_ids(path)


def test_a_log_is_not_ignored_where_the_database_is_named_by_a_link(open_dir: Path) -> None:
    path = with_a_log_left(open_dir)
    link = open_dir / "link.sqlite"
    link.symlink_to(path)
    with sealed(path.parent), pytest.raises(DatabaseError, match="sqlite"):
        run_ids(link)


def test_what_a_crash_left_half_written_is_undone_on_opening(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    (tmp_path / "left").mkdir()
    path = make_database(tmp_path / "live" / "k.sqlite", a={f"q{n}": result("c" * 50) for n in range(300)})
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA cache_size = 2")  # so that half of the change is in the file already
        writer.execute("BEGIN")
        writer.execute("UPDATE eval_query_results SET result_json = 'half written'")
        for name in ("k.sqlite", "k.sqlite-journal"):
            shutil.copy(tmp_path / "live" / name, tmp_path / "left" / name)
    with open_database(tmp_path / "left" / "k.sqlite") as database:
        assert all(isinstance(result, QueryResult) for result in database.results("a"))


def test_a_file_that_may_not_be_read_is_a_database_error(open_dir: Path) -> None:
    path = make_database(open_dir / "k.sqlite", a={})
    path.chmod(0)
    with (
        without_privileges(),
        pytest.raises(DatabaseError, match=r"cannot read the database .*k\.sqlite: Permission denied"),
    ):
        run_ids(path)
