"""The tables of a PostgreSQL database: how they are made, and what is refused where one is expected."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pytest_kebab_eval import DatabaseError, InputError, RunRecorder, StoreError
from pytest_kebab_eval.model import Span
from pytest_kebab_eval.store import Made, backend_of, open_database, write_aggregates
from tests.builders import Json, line, result
from tests.stores import TABLES, PostgresStore, new_database


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of an unfinished run may go into the working directory."""
    monkeypatch.chdir(tmp_path)


# -- made ----------------------------------------------------------------------------------------


def test_the_tables_are_made_once() -> None:
    with new_database(with_tables=False) as empty:
        assert [backend_of(empty.address).make_tables() for _ in range(3)] == [
            Made.NEW,
            Made.AS_THEY_WERE,
            Made.AS_THEY_WERE,
        ]
        assert empty.tables() == list(TABLES)
        assert empty.rows("SELECT version FROM kebab_eval_migrations ORDER BY version") == [(1,), (2,)]


def test_of_many_at_once_one_makes_the_tables_and_the_others_see_that() -> None:
    with new_database(with_tables=False) as empty:
        made: list[Made] = []
        threads = [
            threading.Thread(target=lambda: made.append(backend_of(empty.address).make_tables()))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(one.value for one in made) == ["as they were"] * 7 + ["new"]


def test_tables_of_a_newer_version_are_refused(postgres: PostgresStore) -> None:
    postgres.execute("INSERT INTO kebab_eval_migrations VALUES (7)")
    with pytest.raises(
        DatabaseError, match="are of version 7, and this pytest-kebab-eval knows 2; install a newer"
    ):
        backend_of(postgres.address).make_tables()


def test_tables_of_an_older_version_are_brought_up_to_date(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_kebab_eval.store.postgres import tables

    later = ("CREATE TABLE {schema}.later (a text)", "ALTER TABLE {schema}.eval_runs ADD COLUMN note text")
    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, later))
    assert [backend_of(postgres.address).make_tables(), backend_of(postgres.address).make_tables()] == [
        Made.UPDATED,
        Made.AS_THEY_WERE,
    ]
    assert postgres.rows("SELECT version FROM kebab_eval_migrations ORDER BY version") == [(1,), (2,), (3,)]


def test_a_migration_that_fails_leaves_nothing_behind(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_kebab_eval.store.postgres import tables

    broken = ("CREATE TABLE {schema}.later (a text)", "ALTER TABLE nosuch ADD COLUMN note text")
    monkeypatch.setattr(tables, "MIGRATIONS", (*tables.MIGRATIONS, broken))
    with pytest.raises(StoreError, match=r'no tables were made in .*: relation "nosuch" does not exist'):
        backend_of(postgres.address).make_tables()
    assert postgres.rows("SELECT to_regclass('later')") == [(None,)]
    assert postgres.rows("SELECT max(version) FROM kebab_eval_migrations") == [(2,)]


def test_tables_that_somebody_else_made_are_not_touched() -> None:
    with new_database(with_tables=False) as other:
        other.execute("CREATE TABLE chunks (a text)")
        with pytest.raises(
            DatabaseError, match="has a table chunks that kebab-eval store init did not make; name"
        ):
            backend_of(other.address).make_tables()
        assert other.tables() == ["chunks"]


def test_a_schema_of_its_own_is_a_store_of_its_own(postgres: PostgresStore) -> None:
    postgres.execute("CREATE SCHEMA team_a")
    team = PostgresStore(f"{postgres.db}&options=-csearch_path%3Dteam_a")
    assert backend_of(team.address).make_tables() is Made.NEW
    team.make(a={"q1": result("c1")})
    assert postgres.rows("SELECT count(*) FROM eval_runs") == [(0,)]
    with open_database(team.address) as database:
        assert [run.run_id for run in database.runs()] == ["a"]


def test_ids_are_ordered_by_their_bytes_whatever_the_database_says(postgres: PostgresStore) -> None:
    if postgres.rows("SELECT current_setting('server_version_num')::int < 150000") == [(True,)]:
        pytest.skip("a database has a collation of ICU from PostgreSQL 15 on")
    with new_database(with_tables=False, more="LOCALE_PROVIDER icu ICU_LOCALE 'en' ENCODING 'UTF8'") as icu:
        backend_of(icu.address).make_tables()
        icu.make(a=dict.fromkeys(("b", "a", "B", "é"), result("c1")))
        with open_database(icu.address) as database:
            assert [found.query_id for found in database.results("a")] == ["B", "a", "b", "é"]


def test_a_database_of_another_encoding_is_refused() -> None:
    expected = "is refused: its encoding is LATIN1; make one of UTF8"
    with (
        new_database(with_tables=False, more="ENCODING 'LATIN1' LOCALE 'C'") as latin,
        pytest.raises(DatabaseError, match=expected),
    ):
        backend_of(latin.address).make_tables()


def test_text_that_is_not_utf8_makes_its_row_unreadable_and_no_other() -> None:
    with new_database(with_tables=False, more="ENCODING 'SQL_ASCII' LOCALE 'C'") as plain:
        backend_of(plain.address).make_tables()
        plain.make(a={"q1": result("c1"), "q2": result("c1")})
        plain.execute(
            "UPDATE eval_query_results SET result_json = E'{\"query\": \"\\xff\"}' WHERE query_id = 'q1'"
        )
        with open_database(plain.address) as database:
            kinds = [type(found).__name__ for found in database.results("a")]
        assert kinds == ["Unreadable", "QueryResult"]


def test_chunks_are_not_written_into_tables_that_somebody_else_made(postgres: PostgresStore) -> None:
    postgres.execute("DROP TABLE kebab_eval_migrations")
    with RunRecorder(postgres.db, run_id="r") as run:
        run.record("q1", ["c1"])
    expected = "were not made by kebab-eval store init, so chunks are not written there; leave out chunks="
    with pytest.raises(InputError, match=expected), RunRecorder(postgres.db, run_id="s", chunks=[]):
        pass


def test_citations_resolve_without_an_index_on_the_documents_of_chunks(postgres: PostgresStore) -> None:
    postgres.make(a={}, corpus={"d1#1": ("d1", [line(start=1, end=10)])})
    for is_indexed in (True, False):
        with open_database(postgres.address) as database:
            cited = [Span(kind="line", path=path, start=10, end=12) for path in ("d1.md", "d2.md")]
            assert [database.corpus.resolves(span, "v1") for span in cited] == [True, False]
        if is_indexed:
            postgres.execute("DROP INDEX chunks_by_document")


def test_a_run_that_was_removed_meanwhile_is_not_tagged(postgres: PostgresStore) -> None:
    postgres.make(a={})
    backend_of(postgres.address).tag("green", "a")
    with pytest.raises(InputError, match="has no run 'b' any more; name another"):
        backend_of(postgres.address).tag("green", "b")
    assert postgres.rows("SELECT name, run_id FROM kebab_eval_tags") == [("green", "a")]


# -- refused -------------------------------------------------------------------------------------

RENAMED = "ALTER TABLE eval_query_results RENAME TO stored"
IMPOSTORS = {
    "a view": ["CREATE VIEW eval_query_results AS SELECT * FROM stored"],
    "a materialized view": ["CREATE MATERIALIZED VIEW eval_query_results AS SELECT * FROM stored"],
    "a partitioned table": ["CREATE TABLE eval_query_results (run_id text) PARTITION BY LIST (run_id)"],
    "a foreign table": [
        "CREATE EXTENSION file_fdw",
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        "CREATE FOREIGN TABLE eval_query_results (run_id text) SERVER files OPTIONS (filename '/etc/hosts')",
    ],
}


@pytest.mark.parametrize("kind", IMPOSTORS)
def test_what_is_no_table_is_refused_by_name(postgres: PostgresStore, kind: str) -> None:
    for statement in (RENAMED, *IMPOSTORS[kind]):
        postgres.execute(statement)
    expected = (
        f"is refused: eval_query_results is {kind}, not a table; make it a table, or name another database"
    )
    with pytest.raises(DatabaseError, match=expected), open_database(postgres.address):
        pass
    with pytest.raises(StoreError, match=expected):
        write_aggregates({(postgres.address, "a"): b"{}"})


FUNCTION = "CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''acted''; END'"


@pytest.mark.parametrize(
    ("statements", "what"),
    [
        (
            [FUNCTION, "CREATE TRIGGER t BEFORE UPDATE ON eval_runs EXECUTE FUNCTION act()"],
            "the trigger 't' would run when eval_runs is written; drop it",
        ),
        (
            ["CREATE RULE r AS ON INSERT TO eval_runs DO INSTEAD NOTHING"],
            "the rule 'r' would run when eval_runs is written; drop it",
        ),
    ],
    ids=["trigger", "rule"],
)
def test_a_table_in_which_something_runs_is_refused(
    postgres: PostgresStore, statements: list[str], what: str
) -> None:
    for statement in statements:
        postgres.execute(statement)
    with pytest.raises(DatabaseError, match=what), open_database(postgres.address):
        pass
    with pytest.raises(StoreError, match=what):
        write_aggregates({(postgres.address, "a"): b"{}"})
    with pytest.raises(InputError, match=what), RunRecorder(postgres.db, run_id="r"):
        pass


def test_a_trigger_on_chunks_is_refused_where_they_are_written(postgres: PostgresStore) -> None:
    postgres.execute(FUNCTION)
    postgres.execute("CREATE TRIGGER t BEFORE INSERT ON chunks EXECUTE FUNCTION act()")
    with open_database(postgres.address) as database:
        assert database.runs() == []
    with (
        pytest.raises(InputError, match="the trigger 't' would run when chunks is written"),
        RunRecorder(postgres.db, run_id="r", chunks=[]),
    ):
        pass


def test_a_value_that_is_too_long_is_an_error(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_kebab_eval.store.postgres import reading

    monkeypatch.setattr(reading, "STORED_VALUE_BYTES", 10_000)
    postgres.make(a={"q1": '"' + "x" * 10_000 + '"'})
    with (
        pytest.raises(DatabaseError, match="it has a value longer than"),
        open_database(postgres.address) as opened,
    ):
        list(opened.results("a"))


# -- what PostgreSQL's text cannot hold ------------------------------------------------------------


def test_a_query_id_with_a_nul_is_refused_when_it_is_recorded(postgres: PostgresStore) -> None:
    with RunRecorder(postgres.db, run_id="r") as run:
        with pytest.raises(
            InputError, match=r"the query id 'a\\x00b' cannot be recorded in PostgreSQL, whose text"
        ):
            run.record("a\0b", ["c1"])
        run.record("q1", ["c\0"], query="\0")
    with open_database(postgres.address) as database:
        assert database.result_count("r") == 1


@pytest.mark.parametrize("given", [{"run_id": "a\0"}, {"suite": "a\0"}, {"commit_hash": "a\0"}], ids=str)
def test_a_run_with_a_nul_in_a_name_is_refused(postgres: PostgresStore, given: Json) -> None:
    def record() -> None:
        with RunRecorder(postgres.db, **given) as run:
            run.record("q1", ["c1"])

    with pytest.raises(InputError, match="cannot be recorded in PostgreSQL"):
        record()
    assert postgres.rows("SELECT * FROM eval_runs") == []


def test_chunks_with_a_nul_are_refused_and_nothing_is_stored(postgres: PostgresStore) -> None:
    def record() -> None:
        with RunRecorder(
            postgres.db, run_id="r", chunks=[{"chunk_id": "c", "doc_id": "d", "text": "a\0"}]
        ) as run:
            run.record("q1", ["c"])

    with pytest.raises(InputError, match="cannot be recorded in PostgreSQL"):
        record()
    assert postgres.rows("SELECT * FROM eval_runs") == []
