"""Databases of a server whose owner wants code to run as the role of those who read, record or judge.

Each attack is shown to work on who does not refuse it: a plain statement fails with what the code raises.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from pytest_kebab_eval import DatabaseError, KebabEvalError, RunRecorder
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import backend_of, open_database, write_aggregates
from tests.builders import Json, result
from tests.stores import PostgresStore, new_database

RAN = "the code of the database ran"
# Whatever is made calls these; they do nothing before somebody has put a row into `armed`.
CODE = f"""
CREATE SCHEMA evil;
CREATE TABLE evil.armed (a text);
CREATE FUNCTION evil.run(text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN IF EXISTS (SELECT FROM evil.armed) THEN RAISE EXCEPTION '{RAN}'; END IF; RETURN true; END $$;
CREATE FUNCTION evil.same(text, text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.run(''); RETURN $1::bytea OPERATOR(pg_catalog.=) $2::bytea; END $$;
CREATE FUNCTION evil.act() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.run(''); RETURN coalesce(NEW, OLD); END $$;
CREATE OPERATOR evil.=== (FUNCTION = evil.same, LEFTARG = text, RIGHTARG = text);
CREATE DOMAIN evil.checked AS text CHECK (evil.run(''));
CREATE TYPE evil.pair AS (a text);
CREATE FUNCTION evil.shown(evil.pair) RETURNS text LANGUAGE plpgsql AS $$
BEGIN PERFORM evil.run(''); RETURN '{{}}'; END $$;
CREATE CAST (evil.pair AS text) WITH FUNCTION evil.shown (evil.pair) AS IMPLICIT;
"""
READ = "SELECT run_id::text FROM eval_runs WHERE run_id = 'A'"
READ_RESULTS = "SELECT result_json::text FROM eval_query_results"
READ_CHUNKS = "SELECT text FROM chunks WHERE doc_id = 'd'"
RECORD = "INSERT INTO eval_runs (run_id, suite, config_snapshot_json, created_at) VALUES ('B', '', '', '')"
DELETE = "DELETE FROM eval_query_results; DELETE FROM eval_runs"
WRITE_CHUNKS = "INSERT INTO documents VALUES ('d', 'd.md')"
NUMBERS = count()


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresStore]:
    with new_database(with_tables=False) as made:
        made.execute(CODE)
        yield made


@pytest.fixture
def hostile(database: PostgresStore, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> PostgresStore:
    """A store in a schema of its own, with a run; nothing in it is hostile yet."""
    monkeypatch.chdir(str(tmp_path))
    database.execute("TRUNCATE evil.armed")
    database.execute(f"CREATE SCHEMA store_{(number := next(NUMBERS))}")
    store = PostgresStore(f"{database.db}&options=-csearch_path%3Dstore_{number}")
    backend_of(store.address).make_tables()
    store.make(A={"q1": result("c1")})
    return store


def arm(store: PostgresStore, statements: str, plain: str) -> None:
    """Do that to the store; then the plain statement runs the code."""
    import psycopg

    store.execute(statements)
    store.execute("INSERT INTO evil.armed VALUES ('')")
    with pytest.raises(psycopg.errors.RaiseException, match=RAN):
        store.execute(plain)


def refusal_of(store: PostgresStore, *, read: bool = False, chunks: bool = False) -> str:
    """Why the store is refused by who reads, or by who records."""

    def use() -> None:
        if read:
            with open_database(store.address) as opened:
                list(opened.runs())
        else:
            record(store, "new", chunks=[] if chunks else None)

    with pytest.raises(KebabEvalError, match=" is refused: ") as refused:
        use()
    return str(refused.value).partition(" is refused: ")[2]


def record(store: PostgresStore, run_id: str, chunks: list[Json] | None = None) -> None:
    with RunRecorder(store.db, run_id=run_id, commit_hash="", chunks=chunks) as run:
        run.record("q1", ["c1"])


WHEN_READ = {
    "a column of a composite type with a cast": (
        "ALTER TABLE eval_query_results ALTER result_json TYPE evil.pair USING ROW(result_json)::evil.pair",
        READ_RESULTS,
        "in eval_query_results, the column result_json is of the type evil.pair; make it text",
    ),
    "a partial index": (
        "CREATE INDEX i ON eval_runs (suite) WHERE evil.run('')",
        READ,
        "the index 'i' of eval_runs runs code of the database; drop it",
    ),
    "an index of an expression": (
        "CREATE INDEX i ON chunks ((evil.run('')))",
        READ_CHUNKS,
        "the index 'i' of chunks runs code of the database; drop it",
    ),
    "an index with an operator": (
        "CREATE INDEX i ON eval_runs (suite) WHERE 'a' OPERATOR(evil.===) 'a'",
        READ,
        "the index 'i' of eval_runs runs code of the database; drop it",
    ),
    "statistics of an expression": (
        "CREATE STATISTICS evil.s ON (evil.run('')), suite FROM eval_runs",
        READ,
        "the statistics 's' of eval_runs run code of the database; drop them",
    ),
    "an operator class": (  # which only a superuser makes
        """
        CREATE FUNCTION evil.compare(text, text) RETURNS integer IMMUTABLE LANGUAGE plpgsql
            AS 'BEGIN PERFORM evil.run(''''); RETURN bttextcmp($1, $2); END';
        CREATE OPERATOR CLASS evil.c FOR TYPE text USING btree AS
            OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
            FUNCTION 1 evil.compare(text, text);
        ALTER TABLE eval_query_results DROP CONSTRAINT eval_query_results_run_id_fkey;
        ALTER TABLE eval_runs DROP CONSTRAINT eval_runs_pkey;
        INSERT INTO eval_runs SELECT i, 's', '{}', '{}', NULL, '' FROM generate_series(1, 2000) AS i;
        CREATE INDEX i ON eval_runs (run_id evil.c); ANALYZE eval_runs
        """,
        "SET enable_seqscan = off; " + READ,
        "the index 'i' of eval_runs runs code of the database; drop it",
    ),
    "a view in place of the tags": (
        (
            "DROP TABLE kebab_eval_tags; CREATE VIEW kebab_eval_tags AS SELECT 'a' AS name, 'A' AS run_id"
            " WHERE evil.run('')"
        ),
        "SELECT * FROM kebab_eval_tags",
        "kebab_eval_tags is a view, not a table; make it a table",
    ),
    "a view in place of the migrations": (
        (
            "DROP TABLE kebab_eval_migrations; CREATE VIEW kebab_eval_migrations AS SELECT 2 AS version"
            " WHERE evil.run('')"
        ),
        "SELECT * FROM kebab_eval_migrations",
        "kebab_eval_migrations is a view, not a table; make it a table",
    ),
}
WHEN_WRITTEN = {
    "a constraint": (
        "ALTER TABLE eval_runs ADD CONSTRAINT c CHECK (evil.run(suite))",
        RECORD,
        "the constraint 'c' would run when eval_runs is written; drop it",
    ),
    "a constraint by a function of PostgreSQL that runs SQL": (
        (
            "ALTER TABLE eval_runs ADD CONSTRAINT c"
            " CHECK (query_to_xml('SELECT evil.run('''')', true, true, '') IS NOT NULL)"
        ),
        RECORD,
        "the constraint 'c' would run when eval_runs is written; drop it",
    ),
    "a default": (
        "ALTER TABLE eval_runs ADD note boolean; ALTER TABLE eval_runs ALTER note SET DEFAULT evil.run('')",
        RECORD,
        "the expression of the column note would run when eval_runs is written; drop it",
    ),
    "a generated column": (
        "ALTER TABLE eval_runs ADD note boolean GENERATED ALWAYS AS (evil.run(suite)) STORED",
        RECORD,
        "the expression of the column note would run when eval_runs is written; drop it",
    ),
    "a domain": (
        "ALTER TABLE eval_runs ADD note evil.checked",
        RECORD,
        "the domain of the column note would run when eval_runs is written; make it text",
    ),
    "a domain in place of text": (
        "ALTER TABLE eval_runs ALTER suite TYPE evil.checked",
        RECORD,
        "in eval_runs, the column suite is of the type evil.checked; make it text",
    ),
    "an index with a domain": (
        "CREATE INDEX i ON eval_runs ((suite::evil.checked::text))",
        RECORD,
        "the index 'i' of eval_runs runs code of the database; drop it",
    ),
    "a trigger that waits for the end": (
        (
            "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON eval_runs DEFERRABLE INITIALLY DEFERRED"
            " FOR EACH ROW EXECUTE FUNCTION evil.act()"
        ),
        RECORD,
        "the trigger 't' would run when eval_runs is written; drop it",
    ),
    "a rule": (
        "CREATE RULE r AS ON INSERT TO eval_runs DO ALSO SELECT evil.run('')",
        RECORD,
        "the rule 'r' would run when eval_runs is written; drop it",
    ),
    "a trigger of a table that refers to it": (
        (
            "CREATE TABLE more (run_id text CONSTRAINT f REFERENCES eval_runs ON DELETE CASCADE);"
            " INSERT INTO more VALUES ('A');"
            " CREATE TRIGGER t AFTER DELETE ON more FOR EACH ROW EXECUTE FUNCTION evil.act()"
        ),
        DELETE,
        "the foreign key 'f' leads from eval_runs to another table, or from there; drop it",
    ),
    "a partition": (
        (
            "CREATE TABLE whole (LIKE eval_runs) PARTITION BY RANGE (evil.run(suite), suite);"
            " ALTER TABLE whole ATTACH PARTITION eval_runs"
            " FOR VALUES FROM (MINVALUE, MINVALUE) TO (MAXVALUE, MAXVALUE);"
            " ALTER TABLE whole DETACH PARTITION eval_runs;"
            " ALTER TABLE whole ATTACH PARTITION eval_runs FOR VALUES FROM (true, 'a') TO (true, 'z')"
        ),
        RECORD,
        "eval_runs is a partition of another table; detach it",
    ),
}


@pytest.mark.parametrize("attack", WHEN_READ)
def test_what_would_run_when_a_store_is_read_is_refused_by_its_name(
    hostile: PostgresStore, attack: str
) -> None:
    statements, plain, expected = WHEN_READ[attack]
    arm(hostile, statements, plain)
    assert refusal_of(hostile, read=True) == f"{expected}, or name another database"
    with pytest.raises(KebabEvalError, match="is refused: "):
        write_aggregates({(hostile.address, "A"): b"{}"})


@pytest.mark.parametrize("attack", WHEN_WRITTEN)
def test_what_would_run_when_a_store_is_written_is_refused_by_its_name(
    hostile: PostgresStore, attack: str
) -> None:
    statements, plain, expected = WHEN_WRITTEN[attack]
    arm(hostile, statements, plain)
    assert refusal_of(hostile) == f"{expected}, or name another database"
    with pytest.raises(KebabEvalError, match="is refused: "):
        backend_of(hostile.address).remove_runs(["A"])
    with pytest.raises(DatabaseError, match="is refused: "):
        backend_of(hostile.address).make_tables()


def test_tables_that_are_read_alone_may_have_what_runs_when_they_are_written(hostile: PostgresStore) -> None:
    statements = """
        ALTER TABLE chunks ADD words tsvector GENERATED ALWAYS AS (to_tsvector('english', text)) STORED,
            ADD CONSTRAINT c CHECK (evil.run(text));
        CREATE INDEX by_words ON chunks USING gin (words);
        CREATE INDEX by_path ON documents (lower(workspace_path)) WHERE workspace_path <> '';
        CREATE TABLE more (doc_id text CONSTRAINT f REFERENCES documents ON DELETE CASCADE);
        CREATE TRIGGER t AFTER INSERT ON documents FOR EACH ROW EXECUTE FUNCTION evil.act()
    """
    arm(hostile, statements, WRITE_CHUNKS)
    with open_database(hostile.address) as opened:
        assert not opened.corpus.has_chunks
    record(hostile, "new")
    assert refusal_of(hostile, chunks=True).startswith("the trigger 't' would run when documents is written")


def test_a_constraint_that_the_planner_would_look_at_does_not_run(hostile: PostgresStore) -> None:
    statements = "ALTER TABLE chunks ADD CONSTRAINT c CHECK (evil.run(''))"
    with hostile.connected():
        arm(hostile, statements, f"SET constraint_exclusion = on; {READ_CHUNKS}")
    role = "kebab_super"
    hostile.execute(f"ALTER ROLE {role} IN DATABASE {database_of(hostile)} SET constraint_exclusion = on")
    with open_database(hostile.address) as opened:
        assert opened.corpus.text("c1", None) is None
    hostile.execute(f"ALTER ROLE {role} IN DATABASE {database_of(hostile)} RESET constraint_exclusion")


def database_of(store: PostgresStore) -> str:
    return str(store.rows("SELECT current_database()")[0][0])


# -- names that are found in another schema --------------------------------------------------------

# The same names as PostgreSQL's own, in a schema that the search path of the database has first.
SHADOWS = """
CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = text, RIGHTARG = text);
CREATE FUNCTION evil.same(name, name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN evil.run(''''); END';
CREATE OPERATOR evil.= (FUNCTION = evil.same, LEFTARG = name, RIGHTARG = name);
CREATE FUNCTION evil.octet_length(text) RETURNS integer LANGUAGE plpgsql
    AS 'BEGIN PERFORM evil.run(''''); RETURN 1; END';
CREATE FUNCTION evil.to_regclass(text) RETURNS regclass LANGUAGE plpgsql
    AS 'BEGIN PERFORM evil.run(''''); RETURN NULL; END';
CREATE FUNCTION evil.to_char(timestamp, text) RETURNS text LANGUAGE plpgsql
    AS 'BEGIN PERFORM evil.run(''''); RETURN ''2000-01-01T00:00:00Z''; END';
CREATE FUNCTION evil.pg_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE plpgsql
    AS 'BEGIN RETURN evil.run(''''); END';
CREATE FUNCTION evil.pg_is_in_recovery() RETURNS boolean LANGUAGE plpgsql
    AS 'BEGIN RETURN evil.run(''''); END';
CREATE DOMAIN evil.text AS pg_catalog.text CHECK (evil.run(''));
CREATE VIEW evil.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE evil.run('');
CREATE VIEW evil.pg_depend AS SELECT * FROM pg_catalog.pg_depend WHERE evil.run('');
CREATE VIEW evil.documents AS SELECT 'd'::pg_catalog.text AS doc_id, 'd.md'::pg_catalog.text AS workspace_path
    WHERE evil.run('');
"""


def test_no_name_is_found_in_a_schema_of_the_search_path(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    with new_database() as store:
        store.make(A={"q1": result("c1")})
        store.execute(CODE + SHADOWS)
        path = "evil, public, pg_catalog"
        store.execute(f"ALTER DATABASE {database_of(store)} SET search_path = {path}")
        for plain in (READ, "SELECT * FROM pg_class"):
            arm(PostgresStore(store.db), "", plain)  # with a connection that has this path
        record(store, "B", chunks=[])
        backend_of(store.address).tag("green", "A")
        backend_of(store.address).make_tables()
        write_aggregates({(store.address, "B"): b"{}"})
        with open_database(store.address) as opened:
            assert sorted(run.run_id for run in opened.runs()) == ["A", "B"]
            assert [found.query_id for found in opened.results("A")] == ["q1"]
            assert opened.tags() == {"green": "A"}
        backend_of(store.address).remove_runs(["B"])


def test_runs_in_two_schemas_of_the_search_path_are_refused(hostile: PostgresStore) -> None:
    # Who may make a schema of the name of a role could else replace what that role reads.
    hostile.execute("CREATE SCHEMA kebab_super; CREATE TABLE kebab_super.eval_runs (run_id text)")
    (schema,) = hostile.rows("SELECT current_schema()")[0]
    both = PostgresStore(hostile.db.replace("search_path%3D", "search_path%3Dkebab_super,"))
    assert refusal_of(both, read=True) == (
        f"eval_runs is in the schemas kebab_super and {schema}; say which one is meant by search_path, as"
        " docs/postgres.md has it"
    )
    hostile.execute("DROP SCHEMA kebab_super CASCADE")


@pytest.mark.parametrize("name", ['a"b\\', "a%sb", "a{schema}b", "Ünï ; DROP TABLE x"])
def test_a_schema_may_have_any_name(
    database: PostgresStore, name: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    quoted = name.replace('"', '""')
    database.execute(f'CREATE SCHEMA "{quoted}"')
    database.execute(f'ALTER DATABASE {database_of(database)} SET search_path = "{quoted}"')
    try:
        backend_of(database.address).make_tables()
        record(database, "A")
        with open_database(database.address) as opened:
            assert [found.query_id for found in opened.results("A")] == ["q1"]
            assert not opened.corpus.has_chunks
    finally:
        database.execute(f"ALTER DATABASE {database_of(database)} RESET search_path")


def test_a_policy_that_would_run_is_refused_by_the_name_of_its_table(hostile: PostgresStore) -> None:
    (schema,) = hostile.rows("SELECT current_schema()")[0]
    role = f"limited_{database_of(hostile)}"
    hostile.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema}, evil TO {role}")
    try:
        hostile.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema}, evil TO {role}")
        hostile.execute("CREATE POLICY p ON eval_runs USING (evil.run(suite))")
        hostile.execute("ALTER TABLE eval_runs ENABLE ROW LEVEL SECURITY")
        limited = PostgresStore(hostile.db.replace("kebab_super", role))
        arm(hostile, "", f"SET ROLE {role}; {READ}")
        assert refusal_of(limited, read=True) == (
            "the row-level security of eval_runs hides rows from this role; disable it, or name another"
            " database"
        )
    finally:
        hostile.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_what_was_checked_cannot_be_changed_before_it_is_used(hostile: PostgresStore) -> None:
    import psycopg

    changes = ("ALTER TABLE eval_runs ALTER suite TYPE varchar", "DROP TABLE kebab_eval_tags")
    trigger = "CREATE TRIGGER t AFTER INSERT ON eval_runs EXECUTE FUNCTION evil.act()"

    def change(*statements: str) -> None:
        for statement in statements:
            with pytest.raises(psycopg.errors.LockNotAvailable):
                hostile.execute(f"SET lock_timeout = 50; {statement}")

    def rows() -> Iterator[tuple[str, bytes]]:
        change(*changes, trigger, "CREATE INDEX i ON eval_runs (evil.run(''))")
        yield "q1", b"{}"

    with open_database(hostile.address):
        change(*changes)
    run = Run(run_id="new", suite="s", created_at="2026-01-01T00:00:00Z")
    backend_of(hostile.address).write_run(run, rows())
    assert hostile.rows("SELECT count(*) FROM eval_runs") == [(2,)]
