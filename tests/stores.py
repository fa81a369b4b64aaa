"""A store of each kind, which tests fill and look at from outside, and the PostgreSQL server that all share.

The server is one that is installed, in a temporary directory, once for all workers of xdist: who needs it
first starts it, and leaves its address in a directory that all workers know; the process that began the
session takes it away. It listens on a socket there, where everybody is trusted, and on a free port of
127.0.0.1, where a password is asked for. PostgreSQL does not run as root, so root starts it as another user.
`KEBAB_TEST_POSTGRES` may have the address of another server, for a role that may make databases and roles, or
`none`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pytest_kebab_eval.store import Address, to_address
from tests.builders import Json, make_database

TABLES = ("eval_runs", "eval_query_results", "documents", "chunks")


class Store:
    """A database that tests fill and look at; `db` names it as a user would."""

    db: str

    @property
    def address(self) -> Address:
        return to_address(self.db)

    def make(self, **given: Any) -> Address:
        """Fill it with runs, as `builders.make_database` takes them."""
        raise NotImplementedError

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        raise NotImplementedError

    def execute(self, statement: str, *values: Any) -> None:
        """Change something; parameters are `?`."""
        raise NotImplementedError

    def disown(self) -> None:
        raise NotImplementedError

    def aggregate_of(self, run_id: str) -> Any:
        """The stored aggregate of a run."""
        rows = self.rows("SELECT run_id, aggregate_json FROM eval_runs")
        return json.loads(dict(rows)[run_id])

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """All rows, to show that nothing changed."""
        return {table: sorted(self.rows(f"SELECT * FROM {table}"), key=repr) for table in self.tables()}

    def tables(self) -> list[str]:
        """Which of the four tables there are."""
        raise NotImplementedError


class SqliteStore(Store):
    """An SQLite file, which is made when it is filled or recorded into."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.db = str(path)

    def make(self, **given: Any) -> Address:
        return make_database(self.path, **given)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute(query).fetchall()

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(statement, values)

    def disown(self) -> None:
        """As if somebody else had made the tables."""
        self.execute("PRAGMA application_id = 0")

    def tables(self) -> list[str]:
        found = {name for (name,) in self.rows("SELECT name FROM sqlite_master")}
        return [table for table in TABLES if table in found]


class PostgresStore(Store):
    """A database of a server, which has its tables already."""

    def __init__(self, db: str) -> None:
        self.db = db
        self._kept: Any = None

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """One connection for all that is done in this block: each costs the server 15 ms."""
        import psycopg

        if self._kept is not None:
            yield self._kept
            return
        # Nothing is prepared: a test may change the tables.
        with psycopg.connect(self.db, autocommit=True, prepare_threshold=None) as self._kept:
            try:
                yield self._kept
            finally:
                self._kept = None

    def make(
        self,
        *,
        config: Json | None = None,
        configs: Mapping[str, Json | str] | None = None,
        corpus: Mapping[str, tuple[str, Sequence[Json]]] | None = None,
        corpus_version: str = "v1",
        **runs: Mapping[str, Json | str],
    ) -> Address:
        with self.connected():
            for day, (run_id, results) in enumerate(runs.items(), 1):
                own = (configs or {}).get(run_id, config or {"chunker_version": "v1"})
                snapshot = own if isinstance(own, str) else json.dumps(own)
                self.execute(
                    "INSERT INTO eval_runs VALUES (?, 'suite', ?, '{}', NULL, ?)",
                    *(run_id, snapshot, f"2026-01-{day:02}T00:00:00Z"),
                )
                for query_id, stored in results.items():
                    text = (
                        json.dumps({"query_id": query_id, **stored}) if isinstance(stored, dict) else stored
                    )
                    self.execute("INSERT INTO eval_query_results VALUES (?, ?, ?)", run_id, query_id, text)
            for doc_id in dict.fromkeys(doc_id for doc_id, _ in (corpus or {}).values()):
                self.execute("INSERT INTO documents VALUES (?, ?)", doc_id, f"{doc_id}.md")
            for chunk_id, (doc_id, spans) in (corpus or {}).items():
                self.execute(
                    "INSERT INTO chunks VALUES (?, ?, ?, '[]', ?, 10, ?)",
                    *(chunk_id, doc_id, f"text of {chunk_id}", json.dumps(list(spans)), corpus_version),
                )
        return self.address

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connected() as connection:
            found: list[tuple[Any, ...]] = connection.execute(query).fetchall()
        return found

    def execute(self, statement: str, *values: Any) -> None:
        with self.connected() as connection:
            connection.execute(statement.replace("?", "%s"), values or None)

    def disown(self) -> None:
        self.execute("COMMENT ON TABLE eval_runs IS NULL")

    def tables(self) -> list[str]:
        return [table for table in TABLES if self.rows(f"SELECT to_regclass('{table}')") != [(None,)]]


SUPERUSER = "kebab_super"
_INSTALLED = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
_SETTINGS = (
    *("fsync=off", "full_page_writes=off", "max_connections=100"),
    *("shared_buffers=64MB", "autovacuum=off", "log_min_messages=fatal", "lc_messages=C"),
)
_ACCESS = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


def find_programs() -> Path | None:
    """The directory of initdb and pg_ctl, the newest if there are several."""
    on_path = shutil.which("initdb")
    found = [Path(on_path).resolve().parent] if on_path else []
    for pattern in _INSTALLED:
        found += sorted(Path("/").glob(pattern[1:]), key=_version, reverse=True)
    return next((path for path in found if (path / "pg_ctl").exists() and (path / "initdb").exists()), None)


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in path.parent.name.replace("-", ".").split(".") if part.isdigit())


class PostgresServer:
    """A server of its own, with its data in a directory that `remove` takes away."""

    def __init__(self, programs: Path, directory: Path | None = None) -> None:
        self.programs = programs
        # Not below pytest's temporary directory: only its owner may enter that, and a socket's path is short.
        self.directory = directory or Path(tempfile.mkdtemp(prefix="kebab-pg-"))
        self.port = free_port()
        self._user: dict[str, Any] = demoted(self.directory)

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @cached_property
    def address(self) -> str:
        """The address of its first database, for the superuser, over the socket."""
        return self.url("postgres")

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """The address of a database over the socket, where no password is asked for."""
        return f"postgresql://{user}@/{database}?host={self.directory}&port={self.port}"

    def tcp_url(self, database: str, user: str, password: str, port: int | None = None) -> str:
        """The address of a database over TCP."""
        return f"postgresql://{user}:{password}@127.0.0.1:{port or self.port}/{database}"

    def make(self) -> None:
        """Make the data directory, and start."""
        self.run(
            "initdb", "-D", str(self.data), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
        )
        (self.data / "pg_hba.conf").write_text(_ACCESS)
        self.start()

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        settings = [*_SETTINGS, f"port={self.port}", f"unix_socket_directories={self.directory}"]
        options = " ".join(f"-c {setting}" for setting in (*settings, "listen_addresses=127.0.0.1"))
        log = str(self.directory / "log")
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop; `immediate` is as if the machine lost its power."""
        self.run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-m", mode, "stop")

    def stop_command(self) -> str:
        """A command that stops it at once, for a shell."""
        pid = (self.data / "postmaster.pid").read_text().splitlines()[0]
        return f"kill -QUIT {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.1; done"

    def remove(self) -> None:
        """Stop, and take everything away."""
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self.programs / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            cwd=self.directory,
            **self._user,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")


def demoted(directory: Path) -> dict[str, Any]:
    """How to start a program as a user who is not root; the directory becomes that user's."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd

    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    os.chown(directory, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


_HOME = "KEBAB_TEST_SESSION"
_TEMPLATE = "kebab_template"
_NUMBERS = count()


def begin_session(config: pytest.Config) -> None:
    """Make the directory, in the process that starts the others."""
    if not hasattr(config, "workerinput"):
        os.environ[_HOME] = tempfile.mkdtemp(prefix="kebab-tests-")


def session_directory() -> Path:
    """A directory that all workers know, and that is gone when the session ends."""
    return Path(os.environ[_HOME])


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
    home = session_directory()
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
    if given == "none":
        return {"skip": "KEBAB_TEST_POSTGRES is none"}
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
def new_database(*, with_tables: bool = True, more: str = "") -> Iterator[PostgresStore]:
    """A database of its own on the shared server, with the tables or empty."""
    server = PostgresStore(shared_server()["address"])
    database = (
        _EMPTY.pop() if with_tables and _EMPTY else _created(server, with_tables=with_tables, more=more)
    )
    store = PostgresStore(address_of(server.db, database.name))
    is_empty = False
    try:
        with store.connected():
            yield store
            is_empty = with_tables and _can_be_emptied(store, database)
    finally:
        if is_empty:
            _EMPTY.append(database)
        else:
            _drop(server, database)


class _Database(NamedTuple):
    name: str
    catalog: list[tuple[Any, ...]]  # what `_CATALOG` gave when it was new


# Making and dropping one takes the server 0.3 s, so the next test gets one whose tables nobody changed.
_EMPTY: list[_Database] = []
_OTHERS = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
# Whatever is made, changed or dropped changes a number of rows here, or which transaction wrote the last one.
_CATALOG = " UNION ALL ".join(
    f"SELECT '{table}', count(*), max(xmin::text::bigint) FROM {table}"
    for table in ("pg_class", "pg_attribute", "pg_depend", "pg_namespace", "pg_description")
)


def _created(server: PostgresStore, *, with_tables: bool, more: str) -> _Database:
    name = f"kebab_{os.getpid()}_{next(_NUMBERS)}"
    server.execute(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE if with_tables else 'template0'} {more}")
    return _Database(name, PostgresStore(address_of(server.db, name)).rows(_CATALOG) if with_tables else [])


def _can_be_emptied(store: PostgresStore, database: _Database) -> bool:
    """End the connections that a test left, and delete all rows, unless it did more than writing rows."""
    import psycopg

    is_as_it_was = False
    with suppress(psycopg.Error):
        store.rows(f"SELECT pg_terminate_backend(pid, 5000) {_OTHERS}")
        is_as_it_was = store.rows(_CATALOG) == database.catalog
    for table in ("kebab_eval_tags", *reversed(TABLES)) if is_as_it_was else ():
        store.execute(f"DELETE FROM {table}")
    return is_as_it_was


def _drop(server: PostgresStore, database: _Database) -> None:
    server.execute(f"DROP DATABASE {database.name} WITH (FORCE)")


def leave_server() -> None:
    """Drop the databases that this process made, unless the server goes with them."""
    if _EMPTY and "remove" not in (found := shared_server()):
        for database in _EMPTY:
            _drop(PostgresStore(found["address"]), database)
