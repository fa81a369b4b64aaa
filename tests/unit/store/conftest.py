"""Recording and reading a database in a test, and damage to its file, made for real."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.model import QueryResult, Unreadable
from pytest_kebab_eval.store import open_database


@pytest.fixture(autouse=True)
def _outside_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is recorded has no commit and no branch."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "eval.sqlite"


def rows(db: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(db)) as connection:
        return connection.execute(sql).fetchall()


def record_one(db: Path, *args: Any) -> None:
    """A run of one query."""
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", *args)


def read(path: Path, query_id: str = "q1") -> QueryResult | Unreadable:
    """The result of a query of run `a`."""
    with open_database(path) as opened:
        (found,) = (result for result in opened.results("a") if result.query_id == query_id)
    return found


def readable(path: Path, query_id: str = "q1") -> QueryResult:
    found = read(path, query_id)
    assert isinstance(found, QueryResult), found
    return found


def unreadable(path: Path, query_id: str = "q1") -> str:
    found = read(path, query_id)
    assert isinstance(found, Unreadable), found
    return found.reason


def run_ids(path: Path) -> list[str]:
    with open_database(path) as opened:
        return sorted(run.run_id for run in opened.runs())


_LEVELS = 8  # of pages above the rows
_WIDTH = 100  # how often a page leads to the one below it


def change_schema(path: Path, statement: str, *parameters: object) -> None:
    """Change `sqlite_master` itself, as SQLite would not."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement, parameters)
        connection.commit()


def root_page(path: Path, name: str) -> int:
    """The number of the page that a table or an index starts at."""
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return int(connection.execute(query, (name,)).fetchone()[0])


def page_size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA page_size").fetchone()[0])


def lose_entries(path: Path, index: str, statements: str) -> None:
    """Give an index, small enough for one page, the page that it has after these statements in a copy."""
    size, number = page_size(path), root_page(path, index)
    copy = path.with_name("copy.sqlite")
    copy.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        connection.executescript(statements)
    place = slice((number - 1) * size, number * size)
    content = bytearray(path.read_bytes())
    content[place] = copy.read_bytes()[place]
    path.write_bytes(content)
    copy.unlink()


def lose_a_page(path: Path, index: str) -> None:
    """Make the first page of an index of several pages forget the last but one of those below it."""
    content = bytearray(path.read_bytes())
    start = (root_page(path, index) - 1) * page_size(path)
    assert content[start] == 2, "the index has one page"
    cells = int.from_bytes(content[start + 3 : start + 5], "big")
    content[start + 3 : start + 5] = (cells - 1).to_bytes(2, "big")
    path.write_bytes(content)


def endless_table(path: Path, table: str) -> None:
    """Put pages above the table's rows that each lead 100 times to the next: 10 ** 16 times its rows."""
    size, root = page_size(path), root_page(path, table)
    content = path.read_bytes()
    below, pages = root, []
    for number in range(len(content) // size + 1, len(content) // size + 1 + _LEVELS):
        pages.append(_interior_page(size, below))
        below = number
    header = bytearray(content[:size])
    header[28:32] = (len(content) // size + _LEVELS).to_bytes(4, "big")  # pages in the file
    path.write_bytes(bytes(header) + content[size:] + b"".join(pages))
    change_schema(path, "UPDATE sqlite_master SET rootpage = ? WHERE name = ?", below, table)


def _interior_page(size: int, child: int) -> bytes:
    """A page of a table's tree, all of whose entries lead to one other page."""
    cell = child.to_bytes(4, "big") + b"\x7f"  # rows up to number 127
    start = size - len(cell) * _WIDTH
    pointers = b"".join((start + number * len(cell)).to_bytes(2, "big") for number in range(_WIDTH))
    header = (
        b"\x05\0\0" + _WIDTH.to_bytes(2, "big") + start.to_bytes(2, "big") + b"\0" + child.to_bytes(4, "big")
    )
    return (header + pointers).ljust(start, b"\0") + cell * _WIDTH
