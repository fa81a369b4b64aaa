"""A server that tests may stop, with two roles as docs/postgres.md has them, and a proxy before it."""

from __future__ import annotations

import re
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from pytest_kebab_eval.store import backend_of, to_address
from tests.builders import result
from tests.stores import PostgresServer, PostgresStore, find_programs

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


class CuttingProxy(threading.Thread):
    """Passes on what clients send, until that has `cut_at`: then it hangs up, on both sides.

    What was sent with it does not arrive any more, unless `late`: then it arrives, and its answer does not.
    """

    def __init__(self, server_port: int, cut_at: bytes, *, late: bool = False) -> None:
        super().__init__(daemon=True)
        self._server_port = server_port
        self._cut_at, self._late = cut_at, late
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.has_cut = False
        self._other: dict[socket.socket, socket.socket] = {}  # the other end of each
        self._clients: set[socket.socket] = set()
        self._is_closed = threading.Event()

    def run(self) -> None:
        while not self._is_closed.is_set():
            for ready in self._ready():
                if ready is self._listener:
                    self._accept()
                elif ready in self._other:
                    self._pass_on(ready)
        for end in list(self._other):
            self._hang_up(end)
        self._listener.close()

    def _ready(self) -> list[socket.socket]:
        """What can be read from; whatever the numbers of the files are, which `select.select` limits."""
        with selectors.DefaultSelector() as selector:
            for end in (self._listener, *self._other):
                selector.register(end, selectors.EVENT_READ, end)
            return [key.data for key, _ in selector.select(0.02)]

    def close(self) -> None:
        self._is_closed.set()
        self.join()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        server = socket.create_connection(("127.0.0.1", self._server_port))
        self._other |= {client: server, server: client}
        self._clients.add(client)

    def _pass_on(self, source: socket.socket) -> None:
        data = b""
        with suppress(OSError):
            data = source.recv(65536)
        if data and source in self._clients and self._cut_at in data:
            self.has_cut = True
            if self._late:
                self._other[source].sendall(data)
                self._other[source].recv(65536)  # the server has done it
            data = b""
        if data:
            self._other[source].sendall(data)
        else:
            self._hang_up(source)

    def _hang_up(self, end: socket.socket) -> None:
        other = self._other.pop(end, None)
        if other is not None:
            self._other.pop(other)
            other.close()
            end.close()


@contextmanager
def cutting(server_port: int, cut_at: bytes, *, late: bool = False) -> Iterator[CuttingProxy]:
    """A proxy for as long as the block lasts, in which it must have cut."""
    proxy = CuttingProxy(server_port, cut_at, late=late)
    proxy.start()
    try:
        yield proxy
        assert proxy.has_cut
    finally:
        proxy.close()
