"""An index that has lost entries, for real: SQLite then skips rows without a word, and that is an error."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.errors import DatabaseError, InputError
from pytest_kebab_eval.store import open_database, write_aggregates
from tests.builders import aggregate_of, line, make_database, result
from tests.unit.store.conftest import lose_a_page, lose_entries

RESULTS, RUNS = "sqlite_autoindex_eval_query_results_1", "sqlite_autoindex_eval_runs_1"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    corpus = {f"c{number}": (f"d{number}", [line(start=1, end=9)]) for number in range(3)}
    runs: Any = {name: {f"q{number}": result("c1") for number in range(4)} for name in "abc"}
    return make_database(tmp_path / "k.sqlite", corpus=corpus, **runs)


def read(path: Path, run_id: str) -> list[str]:
    with open_database(path) as opened:
        return [found.query_id for found in opened.results(run_id)]


def sqlite_finds(path: Path, sql: str) -> int:
    """How many rows SQLite finds, by the index."""
    with closing(sqlite3.connect(path)) as connection:
        return len(connection.execute(sql).fetchall())


@pytest.mark.parametrize(
    ("lost", "left"),
    [("query_id = 'q0'", 3), ("query_id = 'q3'", 3), ("query_id IN ('q1', 'q2')", 2), ("query_id > ''", 0)],
    ids=["the first", "the last", "in the middle", "all"],
)
def test_results_that_the_index_has_lost_are_an_error(path: Path, lost: str, left: int) -> None:
    lose_entries(path, RESULTS, f"DELETE FROM eval_query_results WHERE run_id = 'b' AND {lost}")
    assert sqlite_finds(path, "SELECT result_json FROM eval_query_results WHERE run_id = 'b'") == left
    with pytest.raises(DatabaseError) as caught:
        read(path, "b")
    assert f"is damaged, and rows are lost: its index {RESULTS} leads to {left} of the 4" in str(caught.value)
    assert "results of run 'b'; restore it from a backup, or repair it with SQLite's REINDEX" in str(
        caught.value
    )


def test_runs_of_which_nothing_is_lost_can_still_be_read(path: Path) -> None:
    lose_entries(path, RESULTS, "DELETE FROM eval_query_results WHERE run_id = 'b'")
    assert read(path, "a") == read(path, "c") == ["q0", "q1", "q2", "q3"]


def test_a_repaired_index_is_no_error(path: Path) -> None:
    lose_entries(path, RESULTS, "DELETE FROM eval_query_results WHERE run_id = 'b'")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("REINDEX")
    assert len(read(path, "b")) == 4


def test_an_index_that_lost_a_whole_page_is_an_error(tmp_path: Path) -> None:
    runs: Any = {"a": {f"q{number:05}": result() for number in range(2000)}}
    path = make_database(tmp_path / "k.sqlite", **runs)
    lose_a_page(path, RESULTS)
    assert 0 < sqlite_finds(path, "SELECT result_json FROM eval_query_results WHERE run_id = 'a'") < 2000
    with pytest.raises(DatabaseError, match="of the 2000 results of run 'a'"):
        read(path, "a")


def test_an_index_that_leads_to_the_rows_of_another_run_is_an_error(path: Path) -> None:
    rename = "UPDATE eval_query_results SET run_id = '{}' WHERE run_id = '{}';"
    lose_entries(path, RESULTS, rename.format("x", "a") + rename.format("a", "b") + rename.format("b", "x"))
    with pytest.raises(DatabaseError, match="leads to other rows than the results of run 'a'"):
        read(path, "a")


def test_a_run_without_results_is_no_error(tmp_path: Path) -> None:
    assert read(make_database(tmp_path / "k.sqlite", a={}, b={"q1": result()}), "a") == []


def test_rows_of_several_runs_may_be_mixed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        rows = [(run_id, f"r{number}", "{}") for number in range(50) for run_id in "abc"]
        connection.executemany("INSERT INTO eval_query_results VALUES (?, ?, ?)", rows)
        connection.commit()
    assert len(read(path, "b")) == 54


@pytest.mark.parametrize(
    "table",
    [
        "(run_id TEXT, query_id TEXT, result_json TEXT, PRIMARY KEY (run_id, query_id)) WITHOUT ROWID",
        "(run_id TEXT, query_id TEXT, result_json TEXT)",
        "(run_id TEXT COLLATE NOCASE, query_id TEXT, result_json TEXT, PRIMARY KEY (run_id, query_id))",
        "(query_id TEXT, run_id TEXT, result_json TEXT, PRIMARY KEY (query_id, run_id))",
        "(run_id TEXT, query_id TEXT, result_json TEXT, n INTEGER PRIMARY KEY, UNIQUE (run_id, query_id))",
    ],
    ids=["without rowid", "no key", "other collation", "other order", "key of its own"],
)
def test_a_table_with_other_keys_is_read_all_the_same(tmp_path: Path, table: str) -> None:
    path = make_database(tmp_path / "k.sqlite", a={})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE eval_query_results")
        connection.execute(f"CREATE TABLE eval_query_results {table}")
        insert = "INSERT INTO eval_query_results (run_id, query_id, result_json) VALUES (?, ?, '{}')"
        connection.executemany(insert, [("a", "q1"), ("b", "q1"), ("a", "q2")])
        connection.commit()
    assert read(path, "a") == ["q1", "q2"]


def test_a_run_that_the_index_has_lost_keeps_its_configuration_and_takes_its_aggregate(path: Path) -> None:
    lose_entries(path, RUNS, "DELETE FROM eval_runs WHERE run_id = 'b'")
    with open_database(path) as opened:
        (run,) = (run for run in opened.runs() if run.run_id == "b")
        assert opened.with_config(run).chunker_version == "v1"
    write_aggregates({(path, "b"): b'{"n": 1}'})
    with open_database(path) as opened:
        assert opened.stored_aggregate("b") == {"n": 1}
    assert aggregate_of(path, "a") == {}
    with pytest.raises(InputError, match="has a run 'b' already"):
        RunRecorder(path, run_id="b").__enter__()


@pytest.mark.parametrize(
    ("table", "key"),
    [("chunks", "chunk_id = 'c1'"), ("documents", "doc_id = 'd1'")],
    ids=["chunk", "document"],
)
def test_a_corpus_whose_index_has_lost_a_row_is_an_error(path: Path, table: str, key: str) -> None:
    lose_entries(path, f"sqlite_autoindex_{table}_1", f"DELETE FROM {table} WHERE {key}")
    message = (
        f"is damaged, and rows are lost: its index sqlite_autoindex_{table}_1 has 2 entries for the 3 rows"
    )
    with pytest.raises(DatabaseError, match=message), open_database(path) as opened:
        assert None not in (opened.corpus.documents.path_of("d1"), opened.corpus.chunk("c1", "v1"))


def test_an_index_on_the_document_of_a_chunk_is_checked_too(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE INDEX chunks_of ON chunks (doc_id)")
    lose_entries(path, "chunks_of", "DELETE FROM chunks WHERE chunk_id = 'c2'")
    with (
        pytest.raises(DatabaseError, match="its index chunks_of has 2 entries"),
        open_database(path) as opened,
    ):
        opened.corpus.coverage("v1")
