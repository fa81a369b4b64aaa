"""A gate whose PostgreSQL server is some milliseconds away: wall time, and how often it waits for the server.

    python benchmarks/delay.py [--queries 100 1000] [--delay 5] [--repeats 3] [--before REVISION]

A server is started on 127.0.0.1, and between it and the gate a proxy there that holds back what is sent, half
of the delay each way. An answer is what the server sends after the gate has sent something: each takes the
delay once. --before measures the package of another revision, too, in turn.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from commands import Commands
from generate import Data
from local_postgres import fill, local_database
from measuring import Cost, interleaved, unpacked

HEAD = ("| gate | wall | answers waited for |", "| --- | ---: | ---: |")
_PIECE = 1 << 16


class Proxy:
    """Passes on what clients and a server on 127.0.0.1 send each other, each way later by a time."""

    def __init__(self, port: int, delay_s: float) -> None:
        self._server_port, self._delay_s = port, delay_s
        self._loop = asyncio.new_event_loop()
        self._client_spoke = False
        self.answers = 0
        self.port = 0

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await asyncio.open_connection("127.0.0.1", self._server_port)
        await asyncio.gather(
            self._pass_on(reader, server[1], is_client=True),
            self._pass_on(server[0], writer, is_client=False),
        )

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_client: bool
    ) -> None:
        while piece := await reader.read(_PIECE):
            self.answers += self._client_spoke and not is_client
            self._client_spoke = is_client
            self._loop.call_later(self._delay_s, writer.write, piece)
        self._loop.call_later(self._delay_s, writer.close)

    def start(self) -> None:
        async def listen() -> None:
            server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            self.port = server.sockets[0].getsockname()[1]

        self._loop.run_until_complete(listen())
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


@contextmanager
def proxied(address: str, delay_s: float) -> Iterator[tuple[str, Proxy]]:
    """The address of the same database through a proxy, and the proxy."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER ROLE CURRENT_USER PASSWORD 'benchmark'")  # which TCP asks for
    proxy = Proxy(int(str(conninfo_to_dict(address)["port"])), delay_s / 2)
    proxy.start()
    user = str(conninfo_to_dict(address)["user"])
    try:
        yield f"postgresql://{user}:benchmark@127.0.0.1:{proxy.port}/postgres", proxy
    finally:
        proxy.stop()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--delay", type=float, default=5.0, help="milliseconds, both ways together")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--before", metavar="REVISION")
    given = parser.parse_args()
    print(*HEAD, sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        trees: dict[str, Path | None] = {"now": None}
        if given.before:
            trees["before"] = unpacked(given.before, Path(temporary, "before"))
        for queries in given.queries:
            for line in measured(Commands(Path(temporary)), Data(queries), trees, given):
                print(line, flush=True)


def measured(
    commands: Commands, data: Data, trees: dict[str, Path | None], given: argparse.Namespace
) -> Iterator[str]:
    """A line for each tree, on a server of its own."""
    with local_database() as address:
        if address is None:
            sys.exit("no PostgreSQL server or no psycopg is installed")
        fill(address, commands.directory(data) / "kebab.sqlite", ["a", "b"])
        with proxied(address, given.delay / 1000) as (through, proxy):
            answers: dict[str, int] = {}

            def gate(name: str, tree: Path | None) -> Cost:
                proxy.answers = 0
                cost = commands.gate(data, f"--kebab-db={through}", tree=tree)
                answers[name] = proxy.answers
                return cost

            gates = [partial(gate, name, tree) for name, tree in trees.items()]
            direct = partial(commands.gate, data, f"--kebab-db={address}")
            *costs, near = interleaved(given.repeats, *gates, direct)
        what = f"{data.queries:,} queries"
        for name, cost in zip(trees, costs, strict=True):
            yield f"| {what}, {given.delay:g} ms, {name} | {cost.wall:.2f} s | {answers[name]} |"
        yield f"| {what}, over a socket | {near.wall:.2f} s | |"


if __name__ == "__main__":
    main()
