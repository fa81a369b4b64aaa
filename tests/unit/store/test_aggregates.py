from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.store import sqlite, write_aggregates
from tests.builders import aggregate_of, dump, line, make_database, result


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "AGGREGATES_TIMEOUT_S", 0.05)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_database(tmp_path / "k.sqlite", a={"q1": result("c1")}, b={"q1": result("c2")})


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    return make_database(tmp_path / "one.sqlite", a={}), make_database(tmp_path / "two.sqlite", b={})


def write_protect(path: Path) -> Path:
    """Mark a database as read-only in its header, which binds root, too: byte 18 is the write version."""
    content = bytearray(path.read_bytes())
    content[18] = 3
    path.write_bytes(content)
    return path


@contextmanager
def held(path: Path, *, by: str) -> Iterator[None]:
    """Another program has the database open, as a `writer` or as a `reader`."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE" if by == "writer" else "BEGIN")
        other.execute("SELECT * FROM eval_runs").fetchall()
        yield


# -- what is written -----------------------------------------------------------------------------


def test_an_aggregate_is_stored_as_text(path: Path) -> None:
    write_aggregates({(path, "a"): '{"ü": 1}'.encode()})
    with closing(sqlite3.connect(path)) as connection:
        row = connection.execute("SELECT typeof(aggregate_json), aggregate_json FROM eval_runs").fetchone()
    assert row == ("text", '{"ü": 1}')


def test_an_aggregate_replaces_the_one_before(path: Path) -> None:
    write_aggregates({(path, "a"): b'{"mrr": 1.0, "old": 1}'})
    write_aggregates({(path, "a"): b'{"mrr": 0.25}'})
    assert aggregate_of(path, "a") == {"mrr": 0.25}


def test_two_database_files_are_written_together(two: tuple[Path, Path]) -> None:
    first, other = two
    write_aggregates({(first, "a"): b'{"n": 1}', (other, "b"): b'{"n": 2}'})
    assert aggregate_of(first, "a") == {"n": 1}
    assert aggregate_of(other, "b") == {"n": 2}


def test_one_database_under_two_names_is_one_database(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    write_aggregates({(path, "a"): b'{"n": 1}', (link, "b"): b'{"n": 2}'})
    assert aggregate_of(path, "a") == {"n": 1}
    assert aggregate_of(path, "b") == {"n": 2}


def test_no_aggregates_are_no_reason_to_open_a_database(path: Path) -> None:
    before = path.stat().st_mtime_ns
    write_aggregates({})
    assert path.stat().st_mtime_ns == before


@pytest.mark.parametrize("run_id", ["x' OR '1'='1", "läuft\n\x1b", "../../x", "%"])
def test_a_run_id_means_only_itself(tmp_path: Path, run_id: str) -> None:
    runs: Any = {run_id: {}, "other": {}}
    path = make_database(tmp_path / "k.sqlite", **runs)
    write_aggregates({(path, run_id): b'{"n": 1}'})
    assert aggregate_of(path, run_id) == {"n": 1}
    assert aggregate_of(path, "other") == {}


@pytest.mark.parametrize(
    "name", ["with space.sqlite", "a?mode=memory#b.sqlite", "100%41.sqlite", "烤肉串.sqlite"]
)
def test_a_path_is_taken_by_the_letter(tmp_path: Path, name: str) -> None:
    directory = tmp_path / "d"
    directory.mkdir()
    path = make_database(directory / name, a={})
    write_aggregates({(path, "a"): b'{"n": 1}'})
    assert aggregate_of(path, "a") == {"n": 1}
    assert [file.name for file in directory.iterdir()] == [name]


# -- what is not ---------------------------------------------------------------------------------


def pragmas(path: Path) -> list[object]:
    names = ("user_version", "application_id", "schema_version", "journal_mode", "auto_vacuum", "encoding")
    with closing(sqlite3.connect(path)) as connection:
        return [connection.execute(f"PRAGMA {name}").fetchone() for name in names]


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_nothing_else_in_the_database_changes(tmp_path: Path, journal: str) -> None:
    path = make_database(
        tmp_path / "k.sqlite",
        a={"q1": result("c1"), "q2": "{"},
        b={"q1": result("c2")},
        corpus={"c1": ("d1", [line(start=1, end=9)])},
    )
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            f"""
            PRAGMA journal_mode = {journal}; PRAGMA user_version = 41; PRAGMA application_id = 7;
            ALTER TABLE eval_runs ADD COLUMN future TEXT DEFAULT 'x';
            CREATE TABLE schema_migrations (version INTEGER); INSERT INTO schema_migrations VALUES (3);
            """
        )
    before, pragmas_before = dump(path), pragmas(path)
    write_aggregates({(path, "a"): b'{"new": 1}'})
    changed = [(old, new) for old, new in zip(before, dump(path), strict=True) if old != new]
    ((old, new),) = changed  # the row of run a, in nothing but its aggregate
    assert new == old.replace("'{}'", "'{\"new\": 1}'")
    assert pragmas(path) == pragmas_before


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"k\.sqlite"):
        write_aggregates({(tmp_path / "k.sqlite", "a"): b"{}"})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "k.sqlite"
    path.write_bytes(b"not a database " * 100)
    with pytest.raises(StoreError, match=r"k\.sqlite"):
        write_aggregates({(path, "a"): b"{}"})
    assert path.read_bytes() == b"not a database " * 100


def test_an_unknown_run_in_one_file_keeps_the_other_from_being_written(two: tuple[Path, Path]) -> None:
    first, other = two
    with pytest.raises(StoreError, match="nosuch"):
        write_aggregates({(first, "a"): b'{"n": 1}', (other, "nosuch"): b'{"n": 2}'})
    assert aggregate_of(first, "a") == {}


def test_a_hostile_run_id_is_shown_inert(path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        write_aggregates({(path, "\x1b[31m\n"): b"{}"})
    assert str(caught.value).isprintable()


# -- locked, read-only ---------------------------------------------------------------------------


def test_a_database_that_another_program_writes_to_is_said_to_be_locked(path: Path) -> None:
    before = dump(path)
    with held(path, by="writer"), pytest.raises(StoreError, match="another program"):
        write_aggregates({(path, "a"): b'{"n": 1}', (path, "b"): b'{"n": 2}'})
    assert dump(path) == before


def test_a_reader_that_keeps_the_commit_waiting_loses_nothing(path: Path) -> None:
    before = dump(path)
    with held(path, by="reader"), pytest.raises(StoreError, match="another program"):
        write_aggregates({(path, "a"): b'{"n": 1}', (path, "b"): b'{"n": 2}'})
    assert dump(path) == before


def test_readers_do_not_hinder_a_wal_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    with held(path, by="reader"):
        write_aggregates({(path, "a"): b'{"n": 1}'})
    assert aggregate_of(path, "a") == {"n": 1}


@pytest.mark.parametrize("by", ["writer", "reader"])
@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_one_locked_file_keeps_both_from_being_written(two: tuple[Path, Path], which: int, by: str) -> None:
    first, other = two
    with held(two[which], by=by), pytest.raises(StoreError, match="is locked by another program"):
        write_aggregates({(first, "a"): b'{"n": 1}', (other, "b"): b'{"n": 2}'})
    assert aggregate_of(first, "a") == {}
    assert aggregate_of(other, "b") == {}


def test_a_read_only_database_is_an_error_that_says_so(path: Path) -> None:
    write_protect(path)
    with pytest.raises(StoreError, match=r"k\.sqlite: attempt to write a readonly database$"):
        write_aggregates({(path, "a"): b'{"n": 1}'})
    assert aggregate_of(path, "a") == {}


@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_one_read_only_file_keeps_both_from_being_written(two: tuple[Path, Path], which: int) -> None:
    first, other = two
    write_protect(two[which])
    with pytest.raises(StoreError, match="readonly"):
        write_aggregates({(first, "a"): b'{"n": 1}', (other, "b"): b'{"n": 2}'})
    assert aggregate_of(first, "a") == {}
    assert aggregate_of(other, "b") == {}


def test_a_rule_of_the_database_that_forbids_the_write_is_an_error(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE eval_runs SET aggregate_json = '{\"n\": 0}' WHERE run_id = 'b'")
        connection.execute("CREATE UNIQUE INDEX no_two_alike ON eval_runs (aggregate_json)")
        connection.commit()
    before = dump(path)
    with pytest.raises(StoreError, match="UNIQUE constraint failed"):
        write_aggregates({(path, "a"): b'{"n": 1}', (path, "b"): b'{"n": 1}'})
    assert dump(path) == before
