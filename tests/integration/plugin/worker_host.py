"""A host for workers of xdist, as execnet's own socket server, but with a process for each worker.

    python worker_host.py ADDRESS

It prints its port. A worker that is killed leaves the host running, so that xdist can start another there.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from execnet.gateway_base import get_execmodel
from execnet.script import socketserver


def main(address: str) -> None:
    """Serve one worker after the other, until the process is ended."""
    setattr(socketserver, "execmodel", get_execmodel("thread"))  # noqa: B010  as its own main program does
    listening: Any = socketserver.bind_and_listen((address, 0), get_execmodel("thread"))
    print(listening.getsockname()[1], flush=True)  # noqa: T201
    os.dup2(2, 1)  # what the worker's host says is not for the test
    while True:
        child = os.fork()
        if child == 0:
            socketserver.startserver(listening)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(sys.argv[1])
