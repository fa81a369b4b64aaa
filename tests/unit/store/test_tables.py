"""The tables: made when a run is first recorded; what stands in their place is refused."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pytest_kebab_eval import DatabaseError, InputError, KebabEvalError, RunRecorder, StoreError
from pytest_kebab_eval.store import backend_of, open_database, write_aggregates
from tests.builders import aggregate_of, line, make_database, result
from tests.stores import TABLES, PostgresStore, SqliteStore, Store, new_database


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """A store without tables."""
    if request.param == "sqlite":
        yield SqliteStore(tmp_path / "kebab.sqlite")
    else:
        with new_database(with_tables=False) as database:
            yield database


def record(store: Store, run_id: str = "r", *, chunks: bool = False) -> None:
    given = [{"chunk_id": "c1", "doc_id": "d", "text": "x"}] if chunks else None
    with RunRecorder(store.db, run_id=run_id, chunks=given) as run:
        run.record("q1", ["c1"])


def read(store: Store) -> list[str]:
    with open_database(store.address) as database:
        return [found.query_id for run in database.runs() for found in database.results(run.run_id)]


# -- made ----------------------------------------------------------------------------------------------


def test_the_tables_are_made_when_a_run_is_first_recorded(empty: Store) -> None:
    record(empty)
    assert empty.tables() == list(TABLES[:2] if isinstance(empty, SqliteStore) else TABLES)
    record(empty, "second", chunks=True)
    assert empty.tables() == list(TABLES)
    assert read(empty) == ["q1", "q1"]


def test_a_run_that_is_not_stored_makes_no_table(empty: Store) -> None:
    with pytest.raises(ZeroDivisionError), RunRecorder(empty.db, run_id="r"):
        raise ZeroDivisionError
    if isinstance(empty, SqliteStore):
        assert not empty.path.exists()
    else:
        assert empty.tables() == []


def test_many_record_into_a_store_without_tables_at_once(empty: Store) -> None:
    threads = [threading.Thread(target=record, args=(empty, f"run-{number}")) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(empty.rows("SELECT run_id FROM eval_runs")) == [(f"run-{number}",) for number in range(8)]


@pytest.mark.parametrize("chunks", [False, True])
def test_tables_that_somebody_else_made_are_judged_and_not_recorded_into(store: Store, chunks: bool) -> None:
    store.make(a={"q1": result("c1")})
    store.disown()
    before = store.dump()
    with pytest.raises(InputError, match="were not made by pytest-kebab-eval, so nothing is recorded there"):
        record(store, chunks=chunks)
    assert store.dump() == before
    backend_of(store.address).tag("baseline", "a")
    write_aggregates({(store.address, "a"): b'{"n": 1}'})
    assert store.aggregate_of("a") == {"n": 1}
    with open_database(store.address) as database:
        assert database.tags() == {"baseline": "a"}


def test_a_run_that_was_removed_meanwhile_is_not_tagged(store: Store) -> None:
    store.make(a={})
    backend_of(store.address).tag("green", "a")
    with pytest.raises(InputError, match="has no run 'b' any more; name another"):
        backend_of(store.address).tag("green", "b")
    assert store.rows("SELECT name, run_id FROM kebab_eval_tags") == [("green", "a")]


def test_extra_columns_and_tables_are_ignored(store: Store) -> None:
    store.make(a={"q1": result("c1")})
    for statement in ("ALTER TABLE eval_runs ADD note TEXT", "CREATE TABLE songs (title TEXT)"):
        store.execute(statement)
    assert read(store) == ["q1"]
    record(store)


# -- what no database can hold -------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"run_id": "a\0"}, {"suite": "a\0"}, {"commit_hash": "a\0"}], ids=str)
def test_a_name_with_a_nul_is_refused(store: Store, given: dict[str, str]) -> None:
    with pytest.raises(InputError, match="cannot be recorded: databases hold no NUL"):  # noqa: SIM117
        with RunRecorder(store.db, **given) as run:  # type: ignore[arg-type]
            run.record("q1", ["c1"])


@pytest.mark.parametrize("query_id", ["a\0b", "\ud800"])
def test_a_query_id_that_cannot_be_stored_is_refused_when_it_is_recorded(store: Store, query_id: str) -> None:
    with RunRecorder(store.db, run_id="r") as run:
        with pytest.raises(InputError, match="cannot be recorded"):
            run.record(query_id, ["c1"])
        run.record("q1", ["c\0"], query="\0")
    assert read(store) == ["q1"]


# -- refused -------------------------------------------------------------------------------------------

TRIGGER = {
    "sqlite": ["CREATE TRIGGER t AFTER INSERT ON {table} BEGIN DELETE FROM documents; END"],
    "postgres": [
        "CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER t BEFORE INSERT ON {table} EXECUTE FUNCTION act()",
    ],
}


def add_trigger(store: Store, table: str) -> None:
    for statement in TRIGGER["sqlite" if isinstance(store, SqliteStore) else "postgres"]:
        store.execute(statement.format(table=table))


def refusal(store: Store, *, chunks: bool = False) -> str:
    """Why the store is refused by who records; reading and judging refuse it, too, or nobody does."""
    before = store.dump()
    with pytest.raises(DatabaseError) as caught:
        record(store, chunks=chunks)
    assert store.dump() == before
    return str(caught.value)


@pytest.mark.parametrize("table", ["eval_runs", "eval_query_results"])
def test_a_trigger_that_would_run_is_refused_by_name(store: Store, table: str) -> None:
    store.make(a={"q1": result("c1")})
    add_trigger(store, table)
    expected = f"is refused: the trigger 't' would run when {table} is written; drop it, or name another"
    assert expected in refusal(store)
    with pytest.raises(DatabaseError, match="the trigger 't' would run"):
        read(store)
    with pytest.raises(StoreError, match="the trigger 't' would run"):
        write_aggregates({(store.address, "a"): b"{}"})


def test_triggers_on_chunks_matter_only_where_they_are_written(store: Store) -> None:
    store.make(a={"q1": result("c1")}, corpus={"c1": ("d1", [line()])})
    add_trigger(store, "chunks")
    assert read(store) == ["q1"]
    with open_database(store.address) as database:
        assert database.corpus.text("c1", "v1") == "text of c1"
    assert "the trigger 't' would run when chunks is written" in refusal(store, chunks=True)
    record(store)


@pytest.mark.parametrize("table", [*TABLES, "kebab_eval_tags"])
def test_a_view_in_place_of_a_table_is_refused_by_name(store: Store, table: str) -> None:
    store.make(a={"q1": result("c1")}, corpus={"c1": ("d1", [line()])})
    backend_of(store.address).tag("green", "a")
    store.execute(f"ALTER TABLE {table} RENAME TO renamed")
    store.execute(f"CREATE VIEW {table} AS SELECT * FROM renamed")
    expected = f"is refused: {table} is a view, not a table; make it a table, or name another database"
    for use in (read, record):
        with pytest.raises(KebabEvalError, match=expected):
            use(store)
    with pytest.raises(StoreError, match=expected):
        write_aggregates({(store.address, "a"): b"{}"})


POSTGRES = {
    "a rule": (
        "CREATE RULE r AS ON INSERT TO eval_runs DO INSTEAD NOTHING",
        "the rule 'r' would run when eval_runs is written; drop it",
    ),
    "a partitioned table": (
        "DROP TABLE chunks; CREATE TABLE chunks (chunk_id text) PARTITION BY LIST (chunk_id)",
        "chunks is a partitioned table, not a table; make it a table",
    ),
    "a sequence": ("DROP TABLE chunks; CREATE SEQUENCE chunks", "chunks is a thing, not a table"),
}


@pytest.mark.parametrize("what", POSTGRES)
def test_what_is_no_plain_table_of_a_server_is_refused_by_name(postgres: PostgresStore, what: str) -> None:
    statement, expected = POSTGRES[what]
    postgres.execute(statement)
    with pytest.raises(DatabaseError, match=expected):
        read(postgres)


def test_row_security_that_hides_rows_is_refused(postgres: PostgresStore) -> None:
    role = f"limited_{postgres.rows('SELECT current_database()')[0][0]}"
    postgres.execute(f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}")
    try:
        postgres.execute("ALTER TABLE eval_runs ENABLE ROW LEVEL SECURITY")
        with pytest.raises(DatabaseError, match="the row-level security of eval_runs hides rows"):
            read(PostgresStore(postgres.db.replace("kebab_super", role)))
    finally:
        postgres.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


SQLITE = {
    "a virtual table": (
        "DROP TABLE documents; CREATE VIRTUAL TABLE documents USING fts5(doc_id, workspace_path)",
        "documents is a virtual table, not a table",
    ),
    "a computed column": (
        (
            "DROP TABLE eval_query_results;"
            " CREATE TABLE eval_query_results (run_id, query_id, result_json AS (hex(zeroblob(9))))"
        ),
        "the column result_json of eval_query_results is computed, not stored; store its values",
    ),
    "a view in capitals": (
        "DROP TABLE eval_runs; CREATE VIEW EVAL_RUNS AS SELECT 1 AS run_id",
        "eval_runs is a view, not a table",
    ),
}


@pytest.mark.parametrize("what", SQLITE)
def test_what_is_no_plain_table_of_a_file_is_refused_by_name(tmp_path: Path, what: str) -> None:
    statements, expected = SQLITE[what]
    path = make_database(tmp_path / "k.sqlite", corpus={}, a={"q1": result("c1")})
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(statements)
    before = path.read_bytes()
    for use in (read, record):
        with pytest.raises(KebabEvalError, match=expected):
            use(SqliteStore(path))
    assert path.read_bytes() == before


def test_what_kebab_has_beside_its_tables_does_not_matter(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", corpus={"c1": ("d1", [line()])}, a={"q1": result("c1")})
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE VIRTUAL TABLE chunks_fts USING fts5(text, content='chunks');"
            "CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN"
            " INSERT INTO chunks_fts(rowid, text) VALUES (new.rowid, new.text); END;"
            "CREATE VIEW chunks_of_documents AS SELECT * FROM chunks JOIN documents USING (doc_id);"
            "CREATE INDEX long_chunks ON chunks (length(text)) WHERE length(text) > 1000;"
            "ALTER TABLE eval_runs ADD COLUMN note DEFAULT '' CHECK (json_valid(aggregate_json));"
        )
    assert read(SqliteStore(path)) == ["q1"]
    write_aggregates({(path, "a"): b'{"n": 1}'})
    assert aggregate_of(path, "a") == {"n": 1}
    record(SqliteStore(path))


def test_a_foreign_key_deletes_nothing_when_an_aggregate_is_stored(tmp_path: Path) -> None:
    path = make_database(tmp_path / "k.sqlite", a={"q1": result("c1")})
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE UNIQUE INDEX one_each ON eval_runs (aggregate_json, run_id);"
            "CREATE TABLE diary (a, r, FOREIGN KEY (a, r) REFERENCES eval_runs (aggregate_json, run_id)"
            " ON UPDATE SET NULL);"
            "INSERT INTO diary VALUES ('{}', 'a');"
        )
    write_aggregates({(path, "a"): b'{"n": 1}'})
    assert SqliteStore(path).rows("SELECT * FROM diary") == [("{}", "a")]


@pytest.mark.parametrize("damage", ["schema", "page"])
def test_a_damaged_file_is_one_sentence(tmp_path: Path, damage: str) -> None:
    path = make_database(tmp_path / "k.sqlite", a={f"q{number}": result("c1") for number in range(200)})
    data = path.read_bytes()
    if damage == "schema":  # SQLite quotes this in its message, and Python cannot decode that
        path.write_bytes(data.replace(b"CREATE TABLE eval_runs", b"CREATE T\xe5BLE eval_runs"))
    else:
        path.write_bytes(data[: 4096 * 3] + b"\xff" * 4096 + data[4096 * 4 :])
    with pytest.raises(DatabaseError, match=r"k\.sqlite.*(damaged|malformed)"):
        read(SqliteStore(path))


# -- schemas of a server -------------------------------------------------------------------------------


def test_a_schema_of_its_own_is_a_store_of_its_own(postgres: PostgresStore) -> None:
    postgres.execute("CREATE SCHEMA team_a")
    team = PostgresStore(f"{postgres.db}&options=-csearch_path%3Dteam_a")
    record(team, "a")
    assert postgres.rows("SELECT count(*) FROM eval_runs") == [(0,)]
    assert read(team) == ["q1"]


@pytest.mark.parametrize("name", ['a"b\\', "a%sb", "a{schema}b?", "Ünï ; DROP TABLE x"])
def test_a_schema_may_have_any_name(name: str) -> None:
    with new_database(with_tables=False) as store:
        quoted = name.replace('"', '""')
        (database,) = store.rows("SELECT current_database()")[0]
        store.execute(f'CREATE SCHEMA "{quoted}"')
        store.execute(f'ALTER DATABASE {database} SET search_path = "{quoted}"')
        record(PostgresStore(store.db), chunks=True)
        assert read(PostgresStore(store.db)) == ["q1"]


def test_names_are_not_found_in_a_schema_of_the_search_path(postgres: PostgresStore) -> None:
    postgres.make(a={"q1": result("c1")})
    (database,) = postgres.rows("SELECT current_database()")[0]
    postgres.execute("CREATE SCHEMA evil")
    postgres.execute(
        "CREATE FUNCTION evil.to_char(timestamp, text) RETURNS text LANGUAGE plpgsql"
        " AS 'BEGIN RAISE EXCEPTION ''ran''; END'"
    )
    postgres.execute(f"ALTER DATABASE {database} SET search_path = evil, public, pg_catalog")
    record(postgres)
    assert sorted(postgres.rows("SELECT run_id FROM public.eval_runs")) == [("a",), ("r",)]


def test_ids_are_ordered_by_their_bytes_whatever_the_database_says(postgres: PostgresStore) -> None:
    if postgres.rows("SELECT current_setting('server_version_num')::int < 150000") == [(True,)]:
        pytest.skip("a database has a collation of ICU from PostgreSQL 15 on")
    with new_database(with_tables=False, more="LOCALE_PROVIDER icu ICU_LOCALE 'en' ENCODING 'UTF8'") as icu:
        backend_of(icu.address).make_tables()
        icu.make(a=dict.fromkeys(("b", "a", "B", "é"), result("c1")))
        assert read(icu) == ["B", "a", "b", "é"]
