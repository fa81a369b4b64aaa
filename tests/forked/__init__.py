"""Python processes that are forked from one that has pytest and this package imported already.

A worker of xdist, or pytest in a process of its own, takes 0.6 s of CPU time to start, nearly all of it for
imports; forked from a server that did these once, a fifth of that, and the tests start hundreds. What a test
starts is `client.py`, which stands for the forked process. Where coverage is measured, and on platforms
without `pidfd_open`, every process is started anew; so is one whose imports are what a test is about.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tests.stores import session_directory

_HERE = Path(__file__).parent
_CAN_FORK = hasattr(os, "pidfd_open") and not any(name.startswith("COVERAGE_") for name in os.environ)
_SERVERS: list[subprocess.Popen[bytes]] = []


def python(*args: str | Path) -> list[str]:
    """The command that does what `python` does with these arguments."""
    given = list(map(str, args))
    if not _CAN_FORK:
        return [sys.executable, *given]
    return [sys.executable, "-I", "-S", str(_HERE / "client.py"), str(_address()), *given]


def programs() -> Path:
    """A directory for the front of PATH, whose `python`, `pytest` and `kebab-eval` are started so."""
    directory = _address().with_suffix(".bin")
    if not directory.exists():
        directory.mkdir()
        for name in ("python", "pytest", "kebab-eval"):
            script = () if name == "python" else (installed(name),)
            (directory / name).write_text(f'#!/bin/sh\nexec {shlex.join(python(*script))} "$@"\n', "utf-8")
            (directory / name).chmod(0o755)
    return directory


def installed(name: str) -> str:
    """Where a command is."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    assert found, f"{name} is not installed"
    return found


def _address() -> Path:
    """Where the server of this process listens; it is started when it is first needed."""
    path = session_directory() / f"forks-{os.getpid()}"
    if _CAN_FORK and not _SERVERS:
        outside = ("PYTEST", "PYTHONPATH", "KEBAB")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            server = subprocess.Popen(
                [sys.executable, "-m", "tests.forked.server", str(listener.fileno())],
                cwd=_HERE.parents[1],
                env={name: value for name, value in os.environ.items() if not name.startswith(outside)},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )
        _SERVERS.append(server)
    return path


def stop() -> None:
    """End the server of this process."""
    for server in _SERVERS:
        server.communicate()
    _SERVERS.clear()
