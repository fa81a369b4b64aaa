"""The two roles of docs/postgres.md, with no more than it grants them."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import RunRecorder, StoreError
from pytest_kebab_eval.store import backend_of, to_address
from tests.integration.conftest import LEAN, Project, call
from tests.integration.stores.conftest import FOUND, PASSWORD, OwnServer
from tests.stores import PostgresStore

CHUNKS = [{"chunk_id": "c1", "doc_id": "d1", "path": "a.md", "text": "Rotate them.", "start": 1, "end": 3}]


def denied() -> AbstractContextManager[Any]:
    """PostgreSQL itself refuses it."""
    from psycopg.errors import InsufficientPrivilege

    return pytest.raises(InsufficientPrivilege)


def test_the_reader_judges_without_storing(project: Project, own_server: OwnServer) -> None:
    own_server.make(C=FOUND)
    before = own_server.dump()
    db = own_server.as_role("kebab_reader")
    outcome = project.pytest(f"--kebab-db={db}", "--kebab-no-store", b="C")
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == 0
    assert "aggregates: not stored (--kebab-no-store)" in str(outcome.stdout)
    assert own_server.dump() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("runs",),
        ("history", "hit@5"),
        ("compare", "B", "A"),
        ("report", "A", "B", "--format", "html"),
        ("validate",),
        ("site", "out"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_the_reader_may_call_every_command_that_reads(
    project: Project, own_server: OwnServer, arguments: tuple[str, ...]
) -> None:
    golden = () if arguments[0] == "runs" else ("--golden", str(project.golden))
    called = call(*arguments, "--db", own_server.as_role("kebab_reader"), *golden)
    assert called.code == 0, called.stderr


@pytest.mark.parametrize("arguments", [("aggregate", "A"), ("tag", "A", "green")], ids=lambda given: given[0])
def test_the_reader_may_call_no_command_that_writes(
    project: Project, own_server: OwnServer, arguments: tuple[str, ...]
) -> None:
    before = own_server.dump()
    golden = ("--golden", str(project.golden)) if arguments[0] == "aggregate" else ()
    called = call(*arguments, "--db", own_server.as_role("kebab_reader"), *golden)
    assert called.code == 1
    assert "permission denied for table" in called.stderr
    assert own_server.dump() == before


def test_the_recorder_records_a_run_with_the_chunks_of_its_index(own_server: OwnServer) -> None:
    for run_id in ("new", "again"):
        with RunRecorder(own_server.as_role("kebab_recorder"), run_id=run_id, chunks=CHUNKS) as run:
            run.record("q-001", ["c1"])
    assert own_server.rows("SELECT chunk_id, doc_id, text FROM chunks") == [("c1", "d1", "Rotate them.")]
    assert own_server.rows("SELECT count(*) FROM eval_runs WHERE run_id IN ('new', 'again')") == [(2,)]


def test_the_recorder_judges_and_stores_both_aggregates(project: Project, own_server: OwnServer) -> None:
    outcome = project.pytest(f"--kebab-db={own_server.as_role('kebab_recorder')}")
    outcome.assert_outcomes(passed=1, failed=1)
    assert f"stored the aggregates of A and B in {to_address(own_server.as_role('kebab_recorder'))}" in str(
        outcome.stdout
    )
    # A finds both queries at rank 1, B one of the two
    assert (own_server.aggregate_of("A")["mrr"], own_server.aggregate_of("B")["mrr"]) == (1.0, 0.5)


def test_the_recorder_takes_back_a_run_whose_golden_file_cannot_be_written(own_server: OwnServer) -> None:
    db = own_server.as_role("kebab_recorder")
    with RunRecorder(db, run_id="new") as run:
        run.record("q-001", ["c1"])
    backend_of(to_address(db)).remove_run("new", with_file=False)
    assert own_server.rows("SELECT count(*) FROM eval_query_results WHERE run_id = 'new'") == [(0,)]
    with pytest.raises(StoreError, match=r"run 'A' could not be removed again from .*: permission denied"):
        backend_of(to_address(own_server.as_role("kebab_reader"))).remove_run("A", with_file=False)


def test_the_recorder_imports_a_run(own_server: OwnServer, tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    results.write_text(json.dumps({"query_id": "q1", "hits_top_k": []}) + "\n")
    called = call(
        "import",
        "kebab",
        "--results",
        results,
        "--db",
        own_server.as_role("kebab_recorder"),
        "--run-id",
        "new",
    )
    assert (called.code, called.stdout) == (0, "new\n")
    assert called.stderr == f"imported 1 query into {to_address(own_server.as_role('kebab_recorder'))}\n"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE eval_runs SET run_id = 'x'",
        "UPDATE eval_query_results SET result_json = ''",
        "DROP TABLE chunks",
    ],
)
def test_the_recorder_cannot_change_what_was_recorded(own_server: OwnServer, statement: str) -> None:
    with denied():
        PostgresStore(own_server.as_role("kebab_recorder")).execute(statement)


def test_the_reader_cannot_write_at_all(own_server: OwnServer) -> None:
    reader = PostgresStore(own_server.as_role("kebab_reader"))
    for statement in ("DELETE FROM eval_runs", "INSERT INTO documents VALUES ('a', 'b')"):
        with denied():
            reader.execute(statement)


def test_recording_and_judging_in_one_session_under_xdist(project: Project, own_server: OwnServer) -> None:
    project.pytester.makepyfile("""
        def test_search(kebab_query, kebab_recorder):
            kebab_recorder.config["chunker_version"] = "v1"
            kebab_recorder.record(kebab_query.id, hits=["c1", "c2"])
    """)
    db = own_server.as_role("kebab_recorder")
    outcome = project.pytester.runpytest_inprocess(
        *LEAN, "--kebab-record=new", "--kebab-run-a=A", f"--kebab-db={db}", "-n1"
    )
    outcome.assert_outcomes(passed=4)
    # q-001 finds c1 at rank 1, q-002 finds c2 at rank 2
    assert own_server.aggregate_of("new")["mrr"] == 0.75


def test_the_first_steps_of_the_docs_work(
    project: Project, own_server: OwnServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_DB", own_server.as_role("kebab_recorder"))
    project.pytester.makepyfile("""
        def test_search(kebab_query, kebab_recorder):
            kebab_recorder.config["chunker_version"] = "v1"
            kebab_recorder.record(kebab_query.id, hits=["c1", "c2"])
    """)
    recorded = project.pytester.runpytest_inprocess(*LEAN, "--kebab-record", "candidate")
    recorded.assert_outcomes(passed=2)
    (project.path / "test_the_first_steps_of_the_docs_work.py").unlink()
    judged = project.pytest(a="B", b="candidate")
    # B found q-001 alone; both are found now, the second at rank 2
    judged.assert_outcomes(passed=2)


@pytest.mark.parametrize("way", ["variable", "password file", "service file", "address"])
def test_what_the_address_does_not_say_is_up_to_libpq(
    own_server: OwnServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    port, file = own_server.server.port, tmp_path / "file"
    db = f"postgresql://kebab_reader@127.0.0.1:{port}/evals"
    if way == "variable":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    if way == "password file":
        file.write_text(f"127.0.0.1:*:evals:kebab_reader:{PASSWORD}\n")
        file.chmod(0o600)
        db += f"?passfile={file}"
    if way == "service file":
        file.write_text(
            f"[evals]\nhost=127.0.0.1\nport={port}\ndbname=evals\nuser=kebab_reader\npassword={PASSWORD}\n"
        )
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        db = "postgresql:///?service=evals"
    if way == "address":
        db += f"?password={PASSWORD}&sslmode=disable&connect_timeout=5"
    called = call("runs", "--db", db)
    assert called.code == 0, called.stderr
    assert [line.split()[0] for line in called.lines] == ["B", "A"]
