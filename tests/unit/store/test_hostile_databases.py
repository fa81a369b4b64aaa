"""Databases that would act when they are read or written: each is refused by name, and nothing in it runs."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.errors import DatabaseError, KebabEvalError, StoreError
from pytest_kebab_eval.store import open_database, write_aggregates
from pytest_kebab_eval.store.sqlite.connections import connect
from tests.builders import aggregate_of, dump, line, make_database, result
from tests.unit.store.conftest import change_schema, readable, run_ids

ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT"
COLUMNS = {
    "eval_runs": "n AS run_id, n AS suite, '{}' AS config_snapshot_json, '{}' AS aggregate_json,"
    " n AS commit_hash, n AS created_at",
    "eval_query_results": "'a' AS run_id, n AS query_id, '{}' AS result_json",
    "documents": "n AS doc_id, n AS workspace_path",
    "chunks": "n AS chunk_id, n AS doc_id, '' AS text, '[]' AS source_spans_json, 1 AS token_estimate",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    corpus = {"c1": ("d", [line(start=1, end=9)])}
    return make_database(tmp_path / "k.sqlite", corpus=corpus, a={"q1": result("c1")}, b={"q1": result("c1")})


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def read(path: Path) -> None:
    run_ids(path)


def store(path: Path) -> None:
    write_aggregates({(path, "a"): b'{"n": 1}'})


def record(path: Path) -> None:
    with RunRecorder(path, run_id="c") as run:
        run.record("q1", ["c1"])


USES = pytest.mark.parametrize("use", [read, store, record])


def refusal(use: Callable[[Path], None], path: Path) -> str:
    """What the use is refused with; the database stays as it was."""
    before = path.read_bytes()
    with pytest.raises(KebabEvalError) as caught:
        use(path)
    assert path.read_bytes() == before
    return str(caught.value)


# -- views and virtual tables ----------------------------------------------------------------------


@USES
@pytest.mark.parametrize("table", COLUMNS)
def test_a_view_that_never_ends_is_refused_by_name(
    path: Path, table: str, use: Callable[[Path], None]
) -> None:
    run_sql(path, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {ENDLESS} {COLUMNS[table]} FROM t")
    assert f"k.sqlite is refused: {table} is a view, not a table; make it a table" in refusal(use, path)


@USES
def test_a_view_whose_name_is_spelt_in_capitals_is_refused(path: Path, use: Callable[[Path], None]) -> None:
    run_sql(path, "DROP TABLE eval_runs", f"CREATE VIEW EVAL_RUNS AS {ENDLESS} {COLUMNS['eval_runs']} FROM t")
    assert "eval_runs is a view" in refusal(use, path)


@USES
@pytest.mark.parametrize("change", ["sql = ?", "sql = ?, rootpage = 0", "sql = ?, name = 'harmless'"])
def test_a_view_that_is_listed_as_something_else_is_refused(
    path: Path, change: str, use: Callable[[Path], None]
) -> None:
    view = f"CREATE VIEW documents AS {ENDLESS} {COLUMNS['documents']} FROM t"
    change_schema(path, "DELETE FROM sqlite_master WHERE name = 'sqlite_autoindex_documents_1'")
    change_schema(path, f"UPDATE sqlite_master SET {change} WHERE name = 'documents'", view)
    assert "malformed database schema" in refusal(use, path)


def test_tables_by_any_quotes_and_of_any_module_do_not_matter(path: Path) -> None:
    run_sql(
        path,
        'CREATE TABLE "a ""b" (x)',
        "CREATE TABLE [chunks of old] (x)",
        "CREATE TABLE `eval_runs``` AS SELECT 1 AS x",
        "ALTER TABLE documents RENAME TO former",
        "ALTER TABLE former RENAME TO documents",
        "CREATE VIEW broken AS SELECT nosuch(x) FROM missing",
        "CREATE TABLE numbered (n INTEGER PRIMARY KEY AUTOINCREMENT, chunks)",
        "ANALYZE",
    )
    module = "CREATE VIRTUAL TABLE vectors USING vec0(chunks float[3])"
    change_schema(path, "INSERT INTO sqlite_master VALUES ('table', 'vectors', 'vectors', 0, ?)", module)
    assert readable(path).hits
    store(path)
    record(path)


@USES
def test_a_virtual_table_is_refused_by_name(path: Path, use: Callable[[Path], None]) -> None:
    columns = "run_id, suite, config_snapshot_json, aggregate_json, commit_hash, created_at"
    run_sql(path, "DROP TABLE eval_runs", f"CREATE VIRTUAL TABLE eval_runs USING fts5({columns})")
    assert "eval_runs is a virtual table, not a table" in refusal(use, path)


def test_the_view_of_another_database_is_refused_when_both_are_written(path: Path, tmp_path: Path) -> None:
    other = make_database(tmp_path / "other.sqlite", c={})
    run_sql(other, "CREATE TRIGGER t AFTER UPDATE ON eval_runs BEGIN DELETE FROM eval_query_results; END")
    before = dump(path), dump(other)
    with pytest.raises(StoreError, match=r"other\.sqlite is refused: the trigger 't' would run"):
        write_aggregates({(path, "a"): b"{}", (other, "c"): b"{}"})
    assert (dump(path), dump(other)) == before


# -- triggers --------------------------------------------------------------------------------------


@USES
@pytest.mark.parametrize("table", ["eval_runs", "eval_query_results"])
@pytest.mark.parametrize("event", ["UPDATE", "INSERT", "DELETE"])
def test_a_trigger_that_deletes_rows_is_refused_by_name(
    path: Path, table: str, event: str, use: Callable[[Path], None]
) -> None:
    run_sql(path, f"CREATE TRIGGER wipe BEFORE {event} ON {table} BEGIN DELETE FROM eval_query_results; END")
    assert f"the trigger 'wipe' would run when {table} is written; drop it" in refusal(use, path)


@USES
def test_a_trigger_that_is_listed_for_another_table_is_refused(
    path: Path, use: Callable[[Path], None]
) -> None:
    run_sql(path, "CREATE TRIGGER t AFTER UPDATE ON eval_runs BEGIN DELETE FROM chunks; END")
    change_schema(path, "UPDATE sqlite_master SET tbl_name = ? WHERE type = 'trigger'", "chunks")
    assert "malformed database schema" in refusal(use, path)


def test_triggers_of_a_full_text_index_on_chunks_do_not_matter_to_a_reader(path: Path) -> None:
    run_sql(
        path,
        "CREATE VIRTUAL TABLE chunks_fts USING fts5(text, content='chunks')",
        "CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN"
        " INSERT INTO chunks_fts(rowid, text) VALUES (new.rowid, new.text); END",
        "CREATE VIEW chunks_of_documents AS SELECT * FROM chunks JOIN documents USING (doc_id)",
        "CREATE INDEX long_chunks ON chunks (length(text)) WHERE length(text) > 1000",
        "CREATE INDEX results_by_query ON eval_query_results (query_id)",
    )
    assert readable(path).hits
    with open_database(path) as opened:
        assert opened.corpus.text("c1", "v1") == "text of c1"
    store(path)
    record(path)
    assert aggregate_of(path, "a") == {"n": 1}
    assert run_ids(path) == ["a", "b", "c"]


def test_chunks_are_not_recorded_where_a_trigger_would_run(tmp_path: Path) -> None:
    db, chunk = tmp_path / "own.sqlite", {"chunk_id": "c1", "doc_id": "d", "text": "x"}
    with RunRecorder(db, run_id="a", chunks=[chunk]) as run:
        run.record("q1", ["c1"])
    run_sql(db, "CREATE TRIGGER wipe AFTER INSERT ON chunks BEGIN DELETE FROM eval_runs; END")
    before = dump(db)
    with pytest.raises(DatabaseError, match="the trigger 'wipe' would run when chunks is written"):
        RunRecorder(db, run_id="b", chunks=[chunk]).__enter__()
    assert dump(db) == before


def test_a_foreign_key_deletes_nothing_when_an_aggregate_is_stored(path: Path) -> None:
    run_sql(
        path,
        "CREATE UNIQUE INDEX one_each ON eval_runs (aggregate_json, run_id)",
        "CREATE TABLE diary (a, r, FOREIGN KEY (a, r) REFERENCES eval_runs (aggregate_json, run_id)"
        " ON UPDATE SET NULL)",
        "INSERT INTO diary VALUES ('{}', 'a')",
    )
    store(path)
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT * FROM diary").fetchone() == ("{}", "a")


# -- what a table computes -------------------------------------------------------------------------


@USES
def test_a_computed_column_is_refused_by_name(path: Path, use: Callable[[Path], None]) -> None:
    run_sql(
        path,
        "DROP TABLE eval_query_results",
        "CREATE TABLE eval_query_results (run_id, query_id, result_json AS (hex(zeroblob(1000000000))))",
    )
    assert "the column result_json of eval_query_results is computed, not stored" in refusal(use, path)


def test_a_check_that_the_json_is_valid_does_not_matter(path: Path) -> None:
    run_sql(path, "ALTER TABLE eval_runs ADD COLUMN note DEFAULT '' CHECK (json_valid(aggregate_json))")
    store(path)
    record(path)
    assert aggregate_of(path, "a") == {"n": 1}


# -- bounds ----------------------------------------------------------------------------------------


def test_a_value_that_is_too_long_is_a_database_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_kebab_eval.store.sqlite.connections.STORED_VALUE_BYTES", 1_000_000)
    run_sql(path, "UPDATE eval_query_results SET result_json = hex(zeroblob(600000))")
    if sys.version_info < (3, 11):
        pytest.skip("Python 3.10 has no limits")
    with pytest.raises(DatabaseError, match="a value longer than 1 MB"):
        readable(path)


def test_a_connection_does_not_trust_the_schema(path: Path) -> None:
    with closing(connect(path, "mode=ro", 1.0)) as connection:
        assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
        assert connection.execute("PRAGMA foreign_keys").fetchone() == (0,)
