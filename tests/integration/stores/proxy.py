"""A proxy before a server that cuts a connection in the middle of what is sent over it."""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


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
                time.sleep(0.5)
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
