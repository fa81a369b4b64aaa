"""A PostgreSQL server for tests: Debian's or any other that is installed, in a temporary directory.

It listens on a socket there, where everybody is trusted, and on a free port of 127.0.0.1, where a password is
asked for. PostgreSQL does not run as root, so root starts it as another user.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

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
        self._programs = programs
        # Not below pytest's temporary directory: only its owner may enter that, and a socket's path is short.
        self.directory = directory or Path(tempfile.mkdtemp(prefix="kebab-pg-"))
        self.port = _free_port()
        self._user: dict[str, Any] = _demoted(self.directory)

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
        self._run(
            "initdb", "-D", str(self.data), "-U", SUPERUSER, "-A", "trust", "-E", "UTF8", "--no-locale", "-N"
        )
        (self.data / "pg_hba.conf").write_text(_ACCESS)
        self.start()

    def start(self) -> None:
        """Start, and wait until it takes connections."""
        settings = [*_SETTINGS, f"port={self.port}", f"unix_socket_directories={self.directory}"]
        options = " ".join(f"-c {setting}" for setting in (*settings, "listen_addresses=127.0.0.1"))
        log = str(self.directory / "log")
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """Stop; `immediate` is as if the machine lost its power."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "-t", "60", "-m", mode, "stop")

    def stop_command(self) -> str:
        """A command that stops it at once, for a shell."""
        pid = (self.data / "postmaster.pid").read_text().splitlines()[0]
        return f"kill -QUIT {pid}; while kill -0 {pid} 2>/dev/null; do sleep 0.1; done"

    def remove(self) -> None:
        """Stop, and take everything away."""
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments],
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


def _demoted(directory: Path) -> dict[str, Any]:
    """How to start a program as a user who is not root; the directory becomes that user's."""
    if os.name == "nt" or os.geteuid() != 0:
        return {}
    import pwd

    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    os.chown(directory, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port
