"""A server that a team shares: limits of roles, a pool of connections (PgBouncer), and a standby."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from pytest_kebab_eval import DatabaseError, InputError, RunRecorder, StoreError
from pytest_kebab_eval.model import Run
from pytest_kebab_eval.store import backend_of, open_database, to_address, write_aggregates
from tests.integration.conftest import Project, call
from tests.integration.stores.conftest import OwnServer
from tests.stores import PostgresServer, PostgresStore, demoted, free_port

ALL_TAKEN = "all connections that the server or its pool allows are taken; try again, or allow more"
READ_ONLY = "it is read-only, as a standby is, or a role with default_transaction_read_only; name another"


def record(db: str, run_id: str = "new") -> None:
    with RunRecorder(db, run_id=run_id, commit_hash="") as run:
        run.record("q-001", ["c1"])


def runs_of(db: str) -> list[str]:
    with open_database(to_address(db)) as database:
        return sorted(run.run_id for run in database.runs())


# -- roles -----------------------------------------------------------------------------------------


def limit(own_server: OwnServer, setting: str) -> str:
    """The address for a role that records, with a setting of its own."""
    own_server.execute(f"ALTER ROLE kebab_recorder IN DATABASE evals SET {setting}")
    return own_server.as_role("kebab_recorder")


def test_a_role_that_is_read_only_writes_nothing_and_is_told_so(own_server: OwnServer) -> None:
    before = own_server.dump()
    db = limit(own_server, "default_transaction_read_only = on")
    with pytest.raises(InputError, match=f"cannot record into postgresql://.*: {READ_ONLY}$"):
        record(db)
    with pytest.raises(StoreError, match=f"the aggregates were not stored in .*: {READ_ONLY}$"):
        write_aggregates({(to_address(db), "A"): b'{"n": 1}'})
    with pytest.raises(StoreError, match=f"nothing was changed in .*: {READ_ONLY}$"):
        backend_of(to_address(db)).tag("green", "A")
    assert runs_of(db) == ["A", "B"]
    assert own_server.dump() == before


def test_a_statement_that_takes_longer_than_the_role_may_is_named(own_server: OwnServer) -> None:
    db = limit(own_server, "statement_timeout = 500")
    run = Run(run_id="new", suite="s", created_at="2026-01-01T00:00:00Z")
    expected = (
        "the run was not recorded in .*: canceling statement due to statement timeout; let the role take"
        " longer, with ALTER ROLE … SET statement_timeout, or try again"
    )
    with own_server.connected() as other, other.transaction():
        other.execute("LOCK TABLE eval_runs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(StoreError, match=expected):
            backend_of(to_address(db)).write_run(run, [("q-001", b"{}")])
    assert runs_of(db) == ["A", "B"]


def test_a_limit_on_being_idle_does_not_end_who_reads_slowly(own_server: OwnServer) -> None:
    db = limit(own_server, "idle_in_transaction_session_timeout = 100")
    with open_database(to_address(db)) as database:
        time.sleep(0.3)
        assert [found.query_id for found in database.results("A")] == ["q-001", "q-002"]


def test_where_no_connection_is_left_that_is_said(own_server: OwnServer) -> None:
    own_server.execute("ALTER ROLE kebab_recorder CONNECTION LIMIT 0")
    try:
        with pytest.raises(
            DatabaseError, match=f'too many connections for role "kebab_recorder"; {ALL_TAKEN}$'
        ):
            runs_of(own_server.as_role("kebab_recorder"))
    finally:
        own_server.execute("ALTER ROLE kebab_recorder CONNECTION LIMIT -1")


# -- a pool ----------------------------------------------------------------------------------------

_POOL = """
[databases]
evals = host={host} port={port} pool_size=1
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
query_wait_timeout = 3
"""


@pytest.fixture
def pooled(own_server: OwnServer) -> Iterator[str]:
    """The address of the database behind a pool of one connection, which others use after a transaction."""
    program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed")
    directory, server = own_server.server.directory, own_server.server
    users, config, listen = directory / "users.txt", directory / "pool.ini", free_port()
    users.write_text('"kebab_recorder" ""\n')
    given = {"host": directory, "port": server.port, "listen": listen, "users": users}
    config.write_text(_POOL.format(**given))
    with subprocess.Popen(
        [program, "-q", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **demoted(directory)
    ) as process:
        db = f"postgresql://kebab_recorder@127.0.0.1:{listen}/evals"
        try:
            while process.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", listen)):
                    break
                time.sleep(0.05)
            yield db
        finally:
            process.terminate()


def test_a_pool_of_one_connection_is_enough(own_server: OwnServer, pooled: str, project: Project) -> None:
    record(pooled)
    outcome = project.pytest(f"--kebab-db={pooled}?options=-csearch_path%3Dpublic", a="B", b="A")
    outcome.assert_outcomes(passed=2)
    assert own_server.aggregate_of("A")["mrr"] == 1.0
    tagged = call("tag", "A", "green", "--db", pooled)
    assert tagged.code == 0, tagged.stderr


def test_a_pool_whose_connections_are_taken_is_one_sentence(own_server: OwnServer, pooled: str) -> None:
    with open_database(to_address(pooled)), pytest.raises(DatabaseError, match=f"query_wait.*; {ALL_TAKEN}$"):
        runs_of(pooled)
    assert runs_of(pooled) == ["A", "B"]


# -- a standby -------------------------------------------------------------------------------------


@contextmanager
def standby_of(own_server: OwnServer) -> Iterator[PostgresServer]:
    """A server that follows it."""
    server = own_server.server
    access = server.data / "pg_hba.conf"
    access.write_text(f"local replication all trust\n{access.read_text()}")
    own_server.execute("SELECT pg_reload_conf()")
    standby = PostgresServer(server.programs)
    try:
        source = ("-h", str(server.directory), "-p", str(server.port), "-U", "kebab_super")
        standby.run("pg_basebackup", "-D", str(standby.data), "-R", "-c", "fast", *source)
        standby.start()
        yield standby
    finally:
        standby.remove()


def test_a_standby_is_judged_and_says_that_it_is_not_written(own_server: OwnServer, project: Project) -> None:
    with standby_of(own_server) as standby:
        db = standby.url("evals", "kebab_recorder")
        outcome = project.pytest(f"--kebab-db={db}", "--kebab-no-store", a="B", b="A")
        outcome.assert_outcomes(passed=2)
        with pytest.raises(InputError, match=f"^cannot record into postgresql://.*: {READ_ONLY}$"):
            record(db)
        with pytest.raises(StoreError, match=f"^the aggregates were not stored in .*: {READ_ONLY}$"):
            write_aggregates({(to_address(db), "A"): b'{"n": 1}'})
        made = PostgresStore(standby.url("evals"))
        assert made.rows("SELECT pg_is_in_recovery()") == [(True,)]
        with pytest.raises(StoreError, match=f"nothing was changed in .*: {READ_ONLY}$"):
            backend_of(to_address(db)).remove_runs(["A"])
