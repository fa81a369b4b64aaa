"""One PostgreSQL server for all tests of a session, also where xdist has several workers.

Who needs it first starts it, and leaves its address in a directory that all workers know; the process that
began the session takes it away. `KEBAB_TEST_POSTGRES` may have the address of another server, for a role that
may make databases and roles.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import PostgresServer, find_programs
from tests.stores import PostgresStore

_HOME = "KEBAB_TEST_SESSION"
_TEMPLATE = "kebab_template"
_NUMBERS = count()


def begin_session(config: pytest.Config) -> None:
    """Make the directory, in the process that starts the others."""
    if not hasattr(config, "workerinput"):
        os.environ[_HOME] = tempfile.mkdtemp(prefix="kebab-tests-")


def end_session(config: pytest.Config) -> None:
    """Stop the server, in the process that began the session."""
    home = os.environ.get(_HOME)
    if home and not hasattr(config, "workerinput"):
        for directory in _read(Path(home)).get("remove", ()):
            programs = find_programs()
            if programs:
                PostgresServer(programs, Path(directory)).remove()
        shutil.rmtree(home, ignore_errors=True)


def _read(home: Path) -> dict[str, Any]:
    file = home / "server.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return found


def shared_server() -> dict[str, Any]:
    """The address of the server, and its port and directory; skips the test where there is none."""
    pytest.importorskip("psycopg")
    fcntl = pytest.importorskip("fcntl")
    home = Path(os.environ[_HOME])
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = _read(home)
        if not found:
            found = _start()
            (home / "server.json").write_text(json.dumps(found))
    if "skip" in found:
        pytest.skip(found["skip"])
    return found


def _start() -> dict[str, Any]:
    given = os.environ.get("KEBAB_TEST_POSTGRES")
    if given:
        return {"address": given} | _with_template(given)
    programs = find_programs()
    if programs is None:
        return {"skip": "no PostgreSQL server: neither initdb and pg_ctl, nor KEBAB_TEST_POSTGRES"}
    server = PostgresServer(programs)
    try:
        server.make()
    except (RuntimeError, OSError) as error:
        server.remove()
        return {"skip": f"no PostgreSQL server can be started here: {error}"}
    found = {"address": server.address, "remove": [str(server.directory)], "port": server.port}
    return found | _with_template(server.address)


def _with_template(address: str) -> dict[str, Any]:
    from pytest_kebab_eval.store import backend_of, to_address

    server = PostgresStore(address)
    server.execute(f"DROP DATABASE IF EXISTS {_TEMPLATE}")
    server.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'")
    backend_of(to_address(address_of(address, _TEMPLATE))).make_tables()
    return {}


def address_of(server: str, database: str) -> str:
    """The address of another database of a server."""
    before, _, parameters = server.partition("?")
    return f"{before.rpartition('/')[0]}/{database}{f'?{parameters}' if parameters else ''}"


@contextmanager
def new_database(
    *, with_tables: bool = True, template: str = "template0", more: str = ""
) -> Iterator[PostgresStore]:
    """A database of its own on the shared server, with the tables or empty."""
    server = PostgresStore(shared_server()["address"])
    name = f"kebab_{os.getpid()}_{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE if with_tables else template} {more}")
    try:
        yield PostgresStore(address_of(server.db, name))
    finally:
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")
