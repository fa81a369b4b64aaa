"""Opening a database and reading its runs, from tables as they are found."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.errors import DatabaseError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import open_database
from tests.builders import make_database, result
from tests.unit.store.conftest import readable, run_ids

DEEP = 100_000  # levels of nesting


# -- runs ----------------------------------------------------------------------------------------


def run_with_config(path: Path) -> tuple[Run, list[str]]:
    with open_database(path) as opened:
        (run,) = opened.runs()
        return opened.with_config(run), opened.warnings


def test_a_run_without_a_commit_has_none(tmp_path: Path) -> None:
    run, _ = run_with_config(make_database(tmp_path / "k.sqlite", a={}))
    assert run.commit_hash is None


def test_the_keys_of_a_config_may_all_be_missing(tmp_path: Path) -> None:
    run, warnings = run_with_config(make_database(tmp_path / "k.sqlite", configs={"a": "{}"}, a={}))
    assert (run.config, run.chunker_version, warnings) == ({}, None, [])


def test_a_chunker_version_may_be_a_number(tmp_path: Path) -> None:
    run, _ = run_with_config(make_database(tmp_path / "k.sqlite", config={"chunker_version": 2}, a={}))
    assert run.chunker_version == "2"


def test_a_config_of_no_text_at_all_counts_as_empty_with_a_warning(tmp_path: Path) -> None:
    run, warnings = run_with_config(make_database(tmp_path / "k.sqlite", configs={"a": ""}, a={}))
    assert run.config == {}
    assert len(warnings) == 1


def test_the_warning_shows_a_hostile_run_id_inert(tmp_path: Path) -> None:
    hostile = "a\x1b[31m\n"
    runs: Any = {hostile: {}}
    _, (warning,) = run_with_config(make_database(tmp_path / "k.sqlite", configs={hostile: "{"}, **runs))
    assert warning.isprintable()


# -- the tables as they are ----------------------------------------------------------------------


def test_both_missing_tables_are_named(tmp_path: Path) -> None:
    path = tmp_path / "k.sqlite"
    path.touch()  # an empty file is an empty database
    with pytest.raises(DatabaseError, match="no table eval_runs and no table eval_query_results"):
        run_ids(path)
    assert path.read_bytes() == b""


def test_a_missing_column_is_a_database_error_that_names_it(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE eval_runs DROP COLUMN commit_hash")
    with pytest.raises(DatabaseError, match=r"k\.sqlite.*commit_hash"):
        run_ids(path)


# -- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "with space.sqlite",
        "q?mode=memory.sqlite",
        "a#b.sqlite",
        "100%41.sqlite",
        "dönér 烤肉串.sqlite",
        "a&b;c='d\".db",
    ],
)
def test_a_path_is_taken_by_the_letter(tmp_path: Path, name: str) -> None:
    if os.name != "posix" and set(name) & set('?"'):
        pytest.skip("no such file names here")
    directory = tmp_path / f"in {name}"
    directory.mkdir()
    path = make_database(directory / name, a={})
    assert run_ids(path) == ["a"]
    assert [file.name for file in directory.iterdir()] == [name]


def test_a_relative_path_is_relative_to_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_database(tmp_path / "k.sqlite", a={})
    monkeypatch.chdir(tmp_path)
    assert run_ids(Path("k.sqlite")) == ["a"]


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match=r"no database .*k\.sqlite.*--kebab-db"):
        run_ids(tmp_path / "k.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="is a directory"):
        run_ids(tmp_path)


@pytest.mark.parametrize(
    "content", [b"\n" * 5000, b"SQLite format 3\0" + b"\0" * 84, b"PK\x03\x04" * 300, b"{}"]
)
def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "k.sqlite"
    path.write_bytes(content)
    with pytest.raises(DatabaseError, match=r"k\.sqlite"):
        run_ids(path)
    assert path.read_bytes() == content


def test_a_hostile_path_is_shown_inert(tmp_path: Path) -> None:
    with pytest.raises(DatabaseError) as caught:
        run_ids(tmp_path / "x\x1b[31m\n.sqlite")
    assert str(caught.value).isprintable()


def test_an_error_of_the_callers_own_stays_what_it_is(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with pytest.raises(ZeroDivisionError), open_database(path):
        _ = 1 / 0


def test_reading_changes_no_byte_of_the_database(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("c1")})
    before = path.read_bytes()
    assert readable(path).hits
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["k.sqlite"]
