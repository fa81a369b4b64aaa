"""Two chunkers that share chunk ids: what one stored is neither replaced by nor taken for the other's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_kebab_eval import InputError, RunRecorder
from pytest_kebab_eval.store import Made, backend_of
from pytest_kebab_eval.store.postgres import tables
from pytest_kebab_eval.store.sqlite.tables import FIRST_CHUNKS_SCHEMA
from tests.builders import Json
from tests.integration.conftest import Project, call
from tests.stores import PostgresStore, SqliteStore, Store

DOCUMENTS = [f"d{number}" for number in range(6)]
# The golden file expects what v1 calls dN-2: the lines 11 to 20. To v2, dN-2 is the lines 5 to 8.
V1 = {1: (1, 10), 2: (11, 20)}
V2 = {1: (1, 4), 2: (5, 8), 3: (9, 20)}
GOLDEN = [{"id": f"q-{doc}", "expected_chunk_ids": [f"{doc}-2"]} for doc in DOCUMENTS]


def chunks(cuts: dict[int, tuple[int, int]]) -> list[Json]:
    return [
        {"chunk_id": f"{doc}-{number}", "doc_id": doc, "start": start, "end": end, "text": f"{doc} {start}"}
        for doc in DOCUMENTS
        for number, (start, end) in cuts.items()
    ]


def record(store: Store, run_id: str, version: str, given: Sequence[Json] | None, found: int = 2) -> None:
    """A run that finds one chunk in each document, and stores nothing but the ids."""
    with RunRecorder(store.db, run_id=run_id, config={"chunker_version": version}, chunks=given) as run:
        for doc in DOCUMENTS:
            run.record(f"q-{doc}", hits=[(f"{doc}-{found}", doc)])


def make_older(store: Store) -> None:
    """The table as recorders made it before: an id has room for one chunk."""
    if isinstance(store, SqliteStore):
        store.execute("ALTER TABLE chunks RENAME TO newer")
        store.execute(FIRST_CHUNKS_SCHEMA)
        store.execute("INSERT INTO chunks SELECT * FROM newer")
        store.execute("DROP TABLE newer")
    else:
        store.execute("ALTER TABLE chunks DROP CONSTRAINT chunks_chunk_id_chunker_version_key")
        store.execute("ALTER TABLE chunks ADD PRIMARY KEY (chunk_id)")
        store.execute("DELETE FROM kebab_eval_migrations WHERE version > 1")


@pytest.mark.parametrize("found", [2, 3], ids=["lost", "kept"])
def test_ids_that_two_chunkers_share_hide_no_loss(project: Project, store: Store, found: int) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2), found)
    outcome = project.pytest(f"--kebab-db={store.db}")
    outcome.assert_outcomes(**({"failed": 6} if found == 2 else {"passed": 6}))
    assert outcome.ret == (1 if found == 2 else 0)
    outcome.stdout.fnmatch_lines(["matched by span: 6 queries (fallback_doc_span)"])


def test_a_golden_file_that_is_locked_for_one_chunker_is_not_told_by_ids_of_another(
    project: Project, store: Store
) -> None:
    project.write_golden(*GOLDEN)
    record(store, "locked", "v1", chunks(V1))
    assert call("lock", f"--db={store.db}", "--run", "locked").code == 0
    record(store, "A", "v2", chunks(V2), found=3)
    record(store, "B", "v2", chunks(V2), found=2)  # the expected ids, which mean other lines
    outcome = project.pytest(f"--kebab-db={store.db}")
    assert outcome.ret == 1
    outcome.assert_outcomes(failed=6)


def test_the_recorder_keeps_the_rows_of_both_chunkers(project: Project, store: Store) -> None:
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2))
    counted = "SELECT chunker_version, count(*) FROM chunks GROUP BY chunker_version ORDER BY 1"
    assert store.rows(counted) == [("v1", 12), ("v2", 18)]
    record(store, "B2", "v2", chunks(V1))  # those of a version are replaced by the next of that version
    assert store.rows(counted) == [("v1", 12), ("v2", 12)]


def test_an_older_file_of_ours_is_changed_and_keeps_all_of_its_rows(project: Project) -> None:
    store = SqliteStore(project.path / "own.sqlite")
    record(store, "A", "v1", chunks(V1))
    make_older(store)
    before = store.rows("SELECT * FROM chunks ORDER BY chunk_id")
    record(store, "B", "v2", chunks(V2))
    assert store.rows("SELECT * FROM chunks WHERE chunker_version = 'v1' ORDER BY chunk_id") == before
    assert store.rows("SELECT count(*) FROM chunks WHERE chunker_version = 'v2'") == [(18,)]
    assert store.tables() == ["eval_runs", "eval_query_results", "documents", "chunks"]


def test_an_older_file_is_read_as_it_is_and_left_so(project: Project) -> None:
    store = SqliteStore(project.path / "own.sqlite")
    record(store, "A", "v1", chunks(V1))
    make_older(store)
    record(store, "B", "v2", None, found=1)
    before = store.dump()["chunks"], store.rows("SELECT sql FROM sqlite_master WHERE name = 'chunks'")
    project.write_golden(*GOLDEN)
    project.pytest(f"--kebab-db={store.db}", "--kebab-no-store")
    assert (
        store.dump()["chunks"],
        store.rows("SELECT sql FROM sqlite_master WHERE name = 'chunks'"),
    ) == before


def test_older_tables_of_a_server_are_refused_with_the_command_that_changes_them(
    project: Project,
    postgres: PostgresStore,
) -> None:
    record(postgres, "A", "v1", chunks(V1))
    make_older(postgres)
    with pytest.raises(InputError) as refusal:
        record(postgres, "B", "v2", chunks(V2))
    assert str(refusal.value).endswith(
        "are of version 1, in which a chunk would replace that of another chunker with the same id;"
        " bring them up to date with kebab-eval store init"
    )
    called = call("store", "init", "--db", postgres.db)
    assert (called.code, backend_of(postgres.address).make_tables()) == (0, Made.AS_THEY_WERE)
    record(postgres, "B", "v2", chunks(V2))
    assert postgres.rows("SELECT count(*) FROM chunks") == [(30,)]
    assert postgres.rows("SELECT max(version) FROM kebab_eval_migrations") == [(len(tables.MIGRATIONS),)]


# -- naming what is lacking ------------------------------------------------------------------------


def test_the_hit_that_is_named_has_neither_text_nor_place_in_the_index_either(
    project: Project, store: Store
) -> None:
    # d0-1 is in the table chunks; nothing says where d0-9, of the same document, is.
    project.write_golden({"id": "q", "expected_chunk_ids": ["d0-2"]})
    for run_id, version, cuts in (("A", "v1", V1), ("B", "v2", V2)):
        config = {"chunker_version": version}
        with RunRecorder(store.db, run_id=run_id, config=config, chunks=chunks(cuts)) as run:
            run.record("q", hits=[("d0-1", "d0"), ("d0-9", "d0")] if run_id == "B" else [("d0-2", "d0")])
    outcome = project.pytest(f"--kebab-db={store.db}")
    outcome.stdout.fnmatch_lines(["*query 'q', whose hit 'd0-9' in run B has neither*"])


# -- the golden file's own chunker -----------------------------------------------------------------


def test_lock_takes_the_chunks_of_the_run_that_is_named(project: Project, store: Store) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2))
    refused = call("lock", "--db", store.db)
    assert refused.code == 2
    assert (
        "the expected chunk 'd0-2' is another one for each chunker (v1, v2); name with --run RUN a run of the"
        " chunker that the golden file is of"
    ) in refused.stderr
    for run, version, start in (("A", "v1", 11), ("B", "v2", 5)):
        locked = call("lock", "--db", store.db, "--run", run, "--force")
        assert locked.code == 0, locked.stderr
        assert f"6 chunks of chunker {version}, from the table chunks" in locked.stderr
        lock = (project.golden.parent / "golden_queries.lock.json").read_text("utf-8")
        assert lock.count(f'"start": {start}') == 6


def test_validate_has_no_finding_where_an_expected_chunk_is_of_two_chunkers(
    project: Project, store: Store
) -> None:
    project.write_golden(*GOLDEN)
    record(store, "A", "v1", chunks(V1))
    record(store, "B", "v2", chunks(V2))
    assert call("validate", "--db", store.db).code == 0
