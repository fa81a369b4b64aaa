"""Which type a result is streamed from fastest: 10,000 results of 10 kB, by a server-side cursor.

python benchmarks/postgres_types.py postgresql://user@/database?host=/run/postgresql [--queries 10000]

The tables are temporary, so nothing stays in the database. Each type is read in turn, several times over; the
least of each is shown. What `jsonb` gives back are not the bytes that were stored.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from generate import LOSS, Data, Texts, results

FETCHED = (100, 1000)  # rows at a time


class Kind(NamedTuple):
    name: str
    column: str
    value: str = "result_json"  # how it is read


KINDS = (
    Kind("text, compressed by pglz (the default)", "text COMPRESSION pglz"),
    Kind("text, compressed by lz4", "text COMPRESSION lz4"),
    Kind("text, not compressed", "text STORAGE EXTERNAL"),
    Kind("json", "json"),
    Kind("jsonb", "jsonb"),
    Kind("bytea, not compressed", "bytea STORAGE EXTERNAL"),
)


class Reading(NamedTuple):
    client: float  # CPU seconds of this process
    server: float | None  # and of the server's, where it is on this machine, and this is Linux
    wall: float


def make(connection: psycopg.Connection[Any], kind: Kind, rows: list[tuple[str, str]]) -> str:
    """A table with the rows; its size on disk."""
    column, _, rest = kind.column.partition(" ")
    connection.execute("DROP TABLE IF EXISTS kebab_rows")
    connection.execute(
        f'CREATE TEMPORARY TABLE kebab_rows (query_id text COLLATE "C" PRIMARY KEY, result_json {column})'
    )
    if rest:
        connection.execute(f"ALTER TABLE kebab_rows ALTER result_json SET {rest}")
    with connection.cursor().copy("COPY kebab_rows FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["text", "bytea" if column == "bytea" else column])
        for query_id, text in rows:
            copy.write_row((query_id, _value(column, text)))
    connection.execute("ANALYZE kebab_rows")
    (size,) = connection.execute("SELECT pg_size_pretty(pg_total_relation_size('kebab_rows'))").fetchone()  # type: ignore[misc]
    return size.decode() if isinstance(size, bytes) else str(size)


def _value(column: str, text: str) -> Any:
    from psycopg.types.json import Json, Jsonb

    if column == "bytea":
        return text.encode()
    wrappers: dict[str, Any] = {"json": Json, "jsonb": Jsonb}
    return wrappers[column](text, dumps=lambda value: value) if column in wrappers else text


def read(connection: psycopg.Connection[Any], rows: int, itersize: int) -> Reading:
    """Read all rows as bytes."""
    cpu, server, wall = time.process_time(), server_cpu(connection), time.perf_counter()
    with connection.cursor("kebab_rows", binary=True) as cursor:
        cursor.itersize = itersize
        cursor.execute("SELECT query_id, result_json FROM kebab_rows ORDER BY query_id")
        count = sum(len(text) > 1 for _, text in cursor)
    assert count == rows
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    after = server_cpu(connection)
    return Reading(cpu, None if server is None or after is None else after - server, wall)


def server_cpu(connection: psycopg.Connection[Any]) -> float | None:
    """CPU seconds that the server's process for this connection has taken so far."""
    try:
        stat = Path(f"/proc/{connection.info.backend_pid}/stat").read_text()
    except OSError:
        return None
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def as_bytes(connection: psycopg.Connection[Any]) -> None:
    """Let values be given as the bytes that came, without decoding them."""
    from psycopg.pq import Format
    from psycopg.types.string import TextBinaryLoader

    connection.execute("SET client_encoding = SQL_ASCII")
    for name in ("json", "jsonb"):
        connection.adapters.register_loader(name, _raw(TextBinaryLoader, Format.BINARY))


def _raw(base: Any, form: Any) -> Any:
    return type("Raw", (base,), {"format": form})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address")
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    rows = list(results(Data(given.queries), LOSS, Texts()))
    print(f"{'':42} {'rows a fetch':>12} {'client s':>9} {'server s':>9} {'wall s':>8}  size")
    with psycopg.connect(given.address) as connection:
        as_bytes(connection)
        for kind in KINDS:
            size = make(connection, kind, rows)
            for itersize in FETCHED:
                found = [read(connection, len(rows), itersize) for _ in range(given.repeats)]
                client, wall = min(cost.client for cost in found), min(cost.wall for cost in found)
                server = min((cost.server for cost in found if cost.server is not None), default=float("nan"))
                figures = f"{itersize:>12} {client:>9.3f} {server:>9.3f} {wall:>8.3f}"
                print(f"{kind.name:42} {figures}  {size}")


if __name__ == "__main__":
    main()
