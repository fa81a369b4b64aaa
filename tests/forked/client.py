"""Stands for a process that the server forks: has its streams, gets its signals, ends as it does."""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import socket
import sys

# Below `nohup`, for example, SIGINT is not.
HEEDED = [
    int(number) for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) != signal.SIG_IGN
]


def ask(server: str, args: list[str]) -> socket.socket | None:
    """Have the server fork a process, where that can be."""
    with contextlib.suppress(OSError):
        for stream in (0, 1, 2):
            os.fstat(stream)  # or else it is closed
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(server)
        here = os.getcwd()  # noqa: PTH109  pathlib takes long to import
        request = marshal.dumps((args, here, dict(os.environ), HEEDED))
        socket.send_fds(connection, [len(request).to_bytes(4, "big")], [0, 1, 2])
        connection.sendall(request)
        if connection.recv(1) == b"y":
            return connection
    return None


def follow(connection: socket.socket) -> None:
    """Pass signals on, and end as the forked process does."""
    for number in HEEDED:
        signal.signal(number, lambda number, frame: connection.sendall(bytes([number])))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # so that the other ends see when the forked process closes these
        os.dup2(nowhere, stream)
    answer = connection.recv(4)
    code = int.from_bytes(answer, "big", signed=True) if answer else 70  # 70: the server died
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    answered = ask(sys.argv[1], sys.argv[2:])
    if answered is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    follow(answered)
