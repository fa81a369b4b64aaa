"""A server for one test, which tests may stop, with two roles as docs/postgres.md has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_kebab_eval.store import backend_of, to_address
from tests.builders import result
from tests.postgres_server import PostgresServer, find_programs
from tests.stores import PostgresStore

with suppress(ImportError):  # with these here, no inner pytest imports them anew
    import psycopg  # noqa: F401

    import pytest_kebab_eval.store.postgres  # noqa: F401

DOCS = Path(__file__).parents[3] / "docs" / "postgres.md"
PASSWORD = "s3cret-Pa55"
FOUND = {"q-001": result("c1"), "q-002": result("c2")}
LOST = {"q-001": result("c1"), "q-002": result("c8", "c9")}


class OwnServer(PostgresStore):
    """The database `evals` of a server that tests may stop; it has the runs A and B of `project`."""

    def __init__(self, server: PostgresServer) -> None:
        super().__init__(server.url("evals"))
        self.server = server

    def as_role(self, role: str, password: str = PASSWORD, port: int | None = None) -> str:
        """Its address for a role, over TCP, where a password is asked for."""
        return self.server.tcp_url("evals", role, password, port)

    def terminate(self, role: str) -> None:
        """End the connections of a role, and wait until they are gone."""
        self.execute(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = '{role}'")


@pytest.fixture(scope="module")
def started() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg")
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server: neither initdb nor pg_ctl is installed")
    server = PostgresServer(programs)
    try:
        server.make()
    except (RuntimeError, OSError) as error:
        server.remove()
        pytest.skip(f"no PostgreSQL server can be started here: {error}")
    try:
        first = PostgresStore(server.address)
        for role in ("kebab_reader", "kebab_recorder", "nobody"):
            first.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        server.remove()


@pytest.fixture
def own_server(
    request: pytest.FixtureRequest, started: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OwnServer]:
    """A fresh database on it, with the grants that the docs give to the roles."""
    if "project" not in request.fixturenames:
        monkeypatch.chdir(tmp_path)
    first = PostgresStore(started.address)
    first.execute("CREATE DATABASE evals TEMPLATE template0")
    own = OwnServer(started)
    backend_of(to_address(own.db)).make_tables()
    for statement in documented_grants():
        own.execute(statement)
    own.make(A=FOUND, B=LOST)
    yield own
    first.execute("DROP DATABASE evals WITH (FORCE)")


def documented_grants() -> list[str]:
    """The SQL of docs/postgres.md that grants something."""
    blocks = re.findall(r"```postgresql\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    lines = " ".join(re.sub(r"--.*", "", block) for block in blocks)
    return [text.strip() for text in lines.split(";") if text.strip().startswith("GRANT")]
