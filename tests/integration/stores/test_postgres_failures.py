"""What can go wrong with a server: each is one sentence with the right exit code; nothing is half written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_kebab_eval import DatabaseError, RunRecorder, StoreError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import backend_of, open_database, postgres, to_address, write_aggregates
from tests.integration.conftest import LEAN, Project, call
from tests.integration.stores.conftest import PASSWORD, OwnServer, cutting

GONE = "postgresql://kebab_reader:s3cret-Pa55@127.0.0.1:1/evals"
USAGE = pytest.ExitCode.USAGE_ERROR
FAILED = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "READ_TIMEOUT_S", 0.1)
    monkeypatch.setattr(postgres, "AGGREGATES_TIMEOUT_S", 0.1)


def gate(project: Project, db: str, *args: str) -> tuple[int, str]:
    """The exit code of a gate, and all that it printed and wrote, in which there is no password."""
    outcome = project.pytest(f"--kebab-db={db}", "--junitxml=junit.xml", *args)
    text = f"{outcome.stdout}\n{outcome.stderr}"
    written = [
        path.read_text("utf-8") for path in project.path.rglob("*") if path.suffix in (".xml", ".md", ".html")
    ]
    assert PASSWORD not in "".join((text, *written))
    assert "Traceback" not in text
    return int(outcome.ret), text


def gate_while(project: Project, own_server: OwnServer, role: str, statement: str) -> tuple[int, str]:
    """The same, while another program has a transaction open in which it did this."""
    import psycopg

    with psycopg.connect(own_server.db) as other:
        other.execute(statement)
        return gate(project, own_server.as_role(role))


def gate_until(project: Project, own_server: OwnServer, cut_at: bytes) -> tuple[int, str]:
    """The same, with a connection that is lost when these bytes are sent; the database stays as it was."""
    before = own_server.dump()
    with cutting(own_server.server.port, cut_at) as proxy:
        outcome = gate(project, own_server.as_role("kebab_recorder", port=proxy.port))
    assert own_server.dump() == before
    return outcome


def session_that_records(project: Project, db: str) -> tuple[int, str]:
    """The exit code of a session that records, and what it printed, in which there is no password."""
    project.pytester.makepyfile("""
def test_search(kebab_recorder):
    kebab_recorder.record("q-001", hits=["c1"])
""")
    outcome = project.pytester.runpytest_inprocess(*LEAN, "--kebab-record=new", f"--kebab-db={db}")
    text = f"{outcome.stdout}\n{outcome.stderr}"
    assert PASSWORD not in text
    return int(outcome.ret), text


def sentence(text: str) -> str:
    """The one error of a session."""
    (found,) = re.findall(r"^ERROR: (.*)", text, re.MULTILINE)
    return str(found)


def command(*args: str) -> str:
    """What the command says of a wrong use, in one line, without a password."""
    called = call(*args)
    assert called.code == 2
    assert not called.stdout
    (line,) = called.stderr.splitlines()
    assert PASSWORD not in line
    return line


# -- before judging ------------------------------------------------------------------------------


def test_a_server_that_is_gone_is_a_usage_error(project: Project) -> None:
    pytest.importorskip("psycopg")
    expected = (
        "cannot connect to postgresql://kebab_reader@127.0.0.1:1/evals: connection to server at"
        ' "127.0.0.1", port 1 failed: Connection refused; check the address, and that the server runs'
        " and can be reached"
    )
    code, text = gate(project, GONE)
    assert (code, sentence(text)) == (USAGE, expected)
    assert command("runs", "--db", GONE) == f"kebab-eval: {expected}"


@pytest.mark.parametrize(
    ("role", "password", "database", "why"),
    [
        (
            "kebab_reader",
            "wr0ng-Pa55",
            "evals",
            'password authentication failed for user "kebab_reader"; check',
        ),
        ("nosuch", PASSWORD, "evals", 'password authentication failed for user "nosuch"; check the role'),
        ("kebab_reader", PASSWORD, "nosuch", 'database "nosuch" does not exist; make it, or name another'),
        (
            "kebab_reader",
            PASSWORD,
            "postgres",
            "has no table eval_runs and no table eval_query_results; is it",
        ),
        ("nobody", PASSWORD, "evals", "permission denied for table eval_runs; see docs/postgres.md"),
    ],
)
def test_what_keeps_one_from_reading_is_a_usage_error(
    project: Project, own_server: OwnServer, role: str, password: str, database: str, why: str
) -> None:
    db = own_server.server.tcp_url(database, role, password)
    code, text = gate(project, db)
    assert code == USAGE
    assert why in sentence(text)
    assert f"postgresql://{role}@127.0.0.1:{own_server.server.port}/{database}" in sentence(text)
    assert password not in text
    assert why in command("compare", "A", "B", "--db", db, "--golden", str(project.golden))


def test_a_database_that_is_locked_even_for_reading_is_a_usage_error(
    project: Project, own_server: OwnServer
) -> None:
    lock = "LOCK TABLE eval_runs IN ACCESS EXCLUSIVE MODE"
    code, text = gate_while(project, own_server, "kebab_reader", lock)
    assert code == USAGE
    assert "it is locked by another program; try again when it is done" in sentence(text)


@pytest.mark.parametrize("cut_at", [b"FETCH FORWARD", b'FROM "public".eval_runs', b"pg_class"])
def test_a_connection_lost_while_reading_is_a_usage_error(
    project: Project, own_server: OwnServer, cut_at: bytes
) -> None:
    code, text = gate_until(project, own_server, cut_at)
    assert code == USAGE
    assert re.search(
        r"^cannot read the database postgresql://kebab_recorder@127\.0\.0\.1:\d+/evals:"
        r" the connection was lost \(.*\); try again when the server can be reached$",
        sentence(text),
    )


def test_a_backend_that_is_terminated_while_reading_is_a_database_error(own_server: OwnServer) -> None:
    def read() -> None:
        with open_database(to_address(own_server.as_role("kebab_reader"))) as database:
            own_server.terminate("kebab_reader")
            list(database.results("A"))

    with pytest.raises(DatabaseError, match=r"the connection was lost \(terminating connection due to"):
        read()


# -- after judging -------------------------------------------------------------------------------


def test_without_permission_to_write_failures_and_reports_are_there_and_an_error(
    project: Project, own_server: OwnServer
) -> None:
    before = own_server.dump()
    code, text = gate(project, own_server.as_role("kebab_reader"))
    assert code == FAILED
    assert "lost c2, at rank 1 in A" in text
    assert project.reports() == ["runs/B/report.html", "runs/B/report.json", "runs/B/report.md"]
    assert sentence(text).startswith("the aggregates were not stored in postgresql://kebab_reader@127.0.0.1")
    assert "permission denied for table eval_runs" in sentence(text)
    assert sentence(text).count("--kebab-no-store") == 1
    assert own_server.dump() == before


@pytest.mark.parametrize("cut_at", [b'UPDATE "public".eval_runs', b"COMMIT\0"])
def test_a_connection_lost_while_storing_is_an_error_in_the_summary(
    project: Project, own_server: OwnServer, cut_at: bytes
) -> None:
    code, text = gate_until(project, own_server, cut_at)
    assert code == FAILED
    assert "lost c2, at rank 1 in A" in text
    assert "report: runs/B/report.json" in text
    assert "the aggregates were not stored" in sentence(text)
    assert "the connection was lost" in sentence(text)


def test_a_run_that_another_program_holds_is_an_error_in_the_summary(
    project: Project, own_server: OwnServer
) -> None:
    hold = "SELECT * FROM eval_runs WHERE run_id = 'B' FOR UPDATE"
    code, text = gate_while(project, own_server, "kebab_recorder", hold)
    assert code == FAILED
    assert "it is locked by another program; try again when it is done" in sentence(text)
    assert own_server.aggregate_of("A") == {}


def test_a_server_that_stops_after_judging_costs_the_storing_alone(
    project: Project, own_server: OwnServer
) -> None:
    project.pytester.makeconftest("""
import os
def pytest_kebab_compared(report):
    os.system(os.environ["STOP"])
""")
    stop = own_server.server.stop_command()
    project.pytester.plugins = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STOP", stop)
        code, text = gate(project, own_server.as_role("kebab_recorder"))
    own_server.server.start()
    assert code == FAILED
    assert "lost c2, at rank 1 in A" in text
    assert "report: runs/B/report.json" in text
    assert "the aggregates were not stored" in text
    assert own_server.aggregate_of("A") == own_server.aggregate_of("B") == {}


# -- recording -----------------------------------------------------------------------------------


def rows_until(own_server: OwnServer, event: str) -> Iterator[tuple[str, bytes]]:
    """Rows of a run, in the middle of which something happens to the server."""
    for number in range(2000):
        if number == 1000:
            if event == "terminated":
                own_server.terminate("kebab_recorder")
            else:
                own_server.server.stop(event)
        yield f"q{number}", b'{"query_id": "q", "hits_top_k": []}' + b" " * 1000


@pytest.mark.parametrize("event", ["immediate", "fast", "terminated"])
def test_a_server_that_stops_in_the_middle_of_recording_has_nothing_of_the_run(
    own_server: OwnServer, event: str
) -> None:
    before = own_server.dump()
    address = to_address(own_server.as_role("kebab_recorder"))
    run = Run(run_id="new", suite="s", created_at="2026-01-01T00:00:00Z")
    with pytest.raises(
        StoreError, match=r"^the run was not recorded in postgresql://kebab_recorder@.*: the connec"
    ):
        backend_of(address).write_run(run, rows_until(own_server, event))
    if event != "terminated":
        own_server.server.start()
    assert own_server.dump() == before


def test_a_server_that_stops_while_the_retriever_works_has_nothing_of_the_run(own_server: OwnServer) -> None:
    before = own_server.dump()

    def record() -> None:
        with RunRecorder(own_server.as_role("kebab_recorder"), run_id="new", commit_hash="") as run:
            run.record("q1", ["c1"])
            own_server.server.stop("fast")

    with pytest.raises(
        StoreError, match=r"^the run was not recorded: cannot connect to postgresql://kebab_rec"
    ):
        record()
    own_server.server.start()
    assert own_server.dump() == before


@pytest.mark.parametrize("late", [False, True], ids=["not arrived", "arrived"])
def test_where_the_commit_is_lost_the_error_says_that_the_run_may_be_there(
    own_server: OwnServer, late: bool
) -> None:
    def record(db: str) -> None:
        with RunRecorder(db, run_id="new", commit_hash="") as run:
            run.record("q1", ["c1"])
            run.record("q2", ["c1"])

    with (
        cutting(own_server.server.port, b"COMMIT\0", late=late) as proxy,
        pytest.raises(
            StoreError,
            match="was lost while the run was committed; see with kebab-eval runs whether it is there",
        ),
    ):
        record(own_server.as_role("kebab_recorder", port=proxy.port))
    whole = own_server.rows("SELECT count(*) FROM eval_query_results WHERE run_id = 'new'")
    assert whole == [(2 if late else 0,)]


def test_a_session_whose_role_may_not_record_is_a_usage_error(
    project: Project, own_server: OwnServer
) -> None:
    code, text = session_that_records(project, own_server.as_role("kebab_reader"))
    assert code == USAGE
    assert "permission denied for table eval_runs; see docs/postgres.md" in text


def test_a_session_that_loses_the_server_while_recording_fails(
    project: Project, own_server: OwnServer
) -> None:
    before = own_server.dump()
    with cutting(own_server.server.port, b"q-001") as proxy:
        code, text = session_that_records(project, own_server.as_role("kebab_recorder", port=proxy.port))
    assert code == FAILED
    assert re.search(
        r"run new was not recorded in postgresql://kebab_recorder@.*: the connection was lost", text
    )
    assert own_server.dump() == before


def test_an_import_that_loses_the_server_has_nothing_of_the_run(
    own_server: OwnServer, tmp_path: Path
) -> None:
    results = tmp_path / "r.jsonl"
    results.write_text('{"query_id": "q1", "hits_top_k": []}\n')
    before = own_server.dump()
    with cutting(own_server.server.port, b'"hits_top_k": []') as proxy:
        db = own_server.as_role("kebab_recorder", port=proxy.port)
        called = call("import", "kebab", "--results", results, "--db", db, "--run-id", "new")
    assert called.code == 1
    assert "the run was not recorded in postgresql://kebab_recorder@127.0.0.1" in called.stderr
    assert PASSWORD not in called.stderr
    assert own_server.dump() == before


def test_aggregates_of_two_stores_are_not_stored_where_one_fails(
    own_server: OwnServer, project: Project
) -> None:
    before = own_server.dump()
    with pytest.raises(StoreError, match="nothing was stored: there is no run 'nosuch' in "):
        write_aggregates(
            {(to_address(own_server.db), "A"): b'{"n": 1}', (project.database, "nosuch"): b'{"n": 1}'}
        )
    assert own_server.dump() == before
