"""What `kebab-eval copy` takes from an SQLite file to PostgreSQL, once more, and back.

    python benchmarks/copying.py [--queries 10000] [--runs 2] [--before REVISION]

CPU seconds of the command and of the server, and wall time. The results have ten hits and about 10 kB. *Once
more* compares every row with what is there. A server is started on a local socket, and is gone afterwards;
--before has the package of another revision do the same, in a database of its own.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from commands import KEBAB_EVAL
from local_postgres import local_database
from many_runs import Runs
from measuring import run, unpacked

HEAD = ("| what | client | server | wall |", "| --- | ---: | ---: | ---: |")


def server_cpu(address: str) -> float:
    """CPU seconds of the server so far, of the connections that are closed; on Linux."""
    import psycopg

    with psycopg.connect(address) as connection:
        (data,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    pid = Path(data, "postmaster.pid").read_text().split()[0]
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, stat[11:15])) / os.sysconf("SC_CLK_TCK")


def copies(directory: Path, server: str, name: str, runs: int, package: dict[str, str]) -> Iterator[str]:
    """Each copy, measured."""
    import psycopg

    database = server.replace("/postgres?", f"/{name}?")
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    run(KEBAB_EVAL, "store", "init", "--db", database, cwd=directory, **package)
    back = directory / f"{name}.sqlite"
    for what, source, target in (
        ("to PostgreSQL", "kebab.sqlite", database),
        ("once more", "kebab.sqlite", database),
        ("back to SQLite", database, back.name),
        ("back once more", database, back.name),
    ):
        before = server_cpu(server)
        command = (KEBAB_EVAL, "copy", f"--latest={runs}", "--from", source, "--to", target)
        cost = run(*command, cwd=directory, **package)
        server_s = server_cpu(server) - before
        yield f"| {what}, {name} | {cost.cpu:.1f} s | {server_s:.1f} s | {cost.wall:.1f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--before", metavar="REVISION")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, local_database() as server:
        if server is None:
            sys.exit("no PostgreSQL server or no psycopg is installed")
        directory = Path(temporary)
        Runs(directory / "kebab.sqlite", given.queries).add(given.runs)
        print(*HEAD, sep="\n")
        if given.before:
            tree = str(unpacked(given.before, directory / "before"))
            print(
                *copies(directory, server, "before", given.runs, {"PYTHONPATH": tree}), sep="\n", flush=True
            )
        print(*copies(directory, server, "now", given.runs, {}), sep="\n", flush=True)


if __name__ == "__main__":
    main()
