"""Stands for a process that the server forks: has its streams, gets its signals, ends as it does."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # typeshed has no stub of it
import _socket
import marshal
import os
import sys

# The modules in C, since `signal` and `socket` take as long to import as all else that happens here.

# Below `nohup`, for example, SIGINT is not.
SIGNALS = (_signal.SIGINT, _signal.SIGTERM)
HEEDED = [int(number) for number in SIGNALS if _signal.getsignal(number) != _signal.SIG_IGN]


def ask(server: str, args: list[str]) -> _socket.socket | None:
    """Have the server fork a process, where that can be."""
    closed = [stream for stream in (0, 1, 2) if not is_open(stream)]
    try:
        for _ in closed:  # so that the socket is none of the three
            os.open(os.devnull, os.O_RDWR)
        connection = _socket.socket(_socket.AF_UNIX)
        connection.connect(server)
        here = os.open(".", os.O_RDONLY)  # which may have been deleted
        request = marshal.dumps((args, closed, dict(os.environ), HEEDED))
        files = b"".join(number.to_bytes(4, sys.byteorder) for number in (here, 0, 1, 2))
        header = len(request).to_bytes(4, "big")
        connection.sendmsg([header], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
        connection.sendall(request)
        if connection.recv(1) == b"y":
            return connection
    except OSError:
        pass
    return None


def is_open(stream: int) -> bool:
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True


def follow(connection: _socket.socket) -> None:
    """Pass signals on, and end as the forked process does."""
    for number in HEEDED:
        _signal.signal(number, lambda number, frame: connection.sendall(bytes([number])))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # so that the other ends see when the forked process closes these
        os.dup2(nowhere, stream)
    answer = connection.recv(4)
    code = int.from_bytes(answer, "big", signed=True) if answer else 70  # 70: the server died
    if code < 0:
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    answered = ask(sys.argv[1], sys.argv[2:])
    if answered is None:
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    follow(answered)
