"""How long `kebab-eval site` takes: the first time, again, and for one more run; CPU seconds of each.

python benchmarks/site.py [DIRECTORY] --runs 100 --queries 500

The results have ten hits and about 10 kB. From run to run one query in a hundred is lost, half of the lost
ones come back, and one in ten is found at another rank.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from generate import Texts, golden_yaml, query_id

from pytest_kebab_eval.store.schema import SCHEMA

HITS = 10
LOST, FOUND_AGAIN, MOVED = 0.01, 0.5, 0.1  # shares of the queries, from run to run
COMMAND = "import sys; from pytest_kebab_eval.cli import main; main(sys.argv[1:])"


class Evolution:
    """Where the target of each query is, run after run; `HITS` for one that is not found."""

    def __init__(self, queries: int) -> None:
        self._random = random.Random(3)
        self._places = [self._random.randrange(HITS) for _ in range(queries)]

    def next_run(self) -> list[int]:
        self._places = [self._step(place) for place in self._places]
        return self._places

    def _step(self, place: int) -> int:
        chance = self._random.random()
        if place == HITS:
            return self._random.randrange(HITS) if chance < FOUND_AGAIN else HITS
        if chance < LOST:
            return HITS
        return self._random.randrange(HITS) if chance < MOVED else place


class Runs:
    """Adds runs to a database, an hour apart."""

    def __init__(self, path: Path, queries: int) -> None:
        path.unlink(missing_ok=True)
        self._connection = sqlite3.connect(path)
        self._evolution, self._texts, self._count = Evolution(queries), Texts(), 0
        for table in SCHEMA:
            self._connection.execute(table)

    def add(self, runs: int) -> None:
        with self._connection:
            for number in range(self._count, self._count + runs):
                run_id, when = f"run-{number:04}", self._when(number)
                values = (run_id, '{"chunker_version": "v1"}', f"{number * 2654435761 % 2**32:08x}", when)
                self._connection.execute("INSERT INTO eval_runs VALUES (?, 'bench', ?, '{}', ?, ?)", values)
                self._connection.executemany(
                    "INSERT INTO eval_query_results VALUES (?, ?, ?)", self._results(run_id)
                )
        self._count += runs

    def _when(self, number: int) -> str:
        return f"2026-{1 + number // 672:02}-{1 + number // 24 % 28:02}T{number % 24:02}:00:00Z"

    def _results(self, run_id: str) -> Iterator[tuple[str, str, str]]:
        times = random.Random(run_id)
        for number, place in enumerate(self._evolution.next_run()):
            result = {
                "query_id": query_id(number),
                "query": f"How is procedure {number} of the handbook carried out in practice?",
                "mode": "hybrid",
                "hits_top_k": [self._hit(rank, number, place) for rank in range(HITS)],
                "answer": {"answer": f"procedure {number} takes two", "grounded": True, "citations": []},
                "elapsed_ms": times.randrange(20, 400),
                "error": None,
            }
            yield run_id, query_id(number), json.dumps(result)

    def _hit(self, rank: int, number: int, place: int) -> dict[str, object]:
        doc = f"doc-{number}" if rank == place else f"doc-{rank}"
        return {
            "rank": rank + 1,
            "chunk_id": f"chunk-{number}-a" if rank == place else f"other-{number}-{rank}",
            "doc_id": doc,
            "doc_path": f"handbook/{doc}.md",
            "heading_path": ["Handbook", f"Procedure {number}"],
            "snippet": self._texts.of(number, rank),
            "citation": {"kind": "line", "path": f"handbook/{doc}.md", "start": 10, "end": 24},
            "retrieval": {"fusion_score": 0.5, "lexical_score": 0.4, "vector_score": 0.6},
        }


def measure(label: str, directory: Path) -> None:
    """Call the command and print what it took and said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "site", "site", "--db=kebab.sqlite", "--golden=golden.yaml"],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{label:<16}{seconds:7.2f} s CPU   {done.stderr.strip()}", flush=True)
    if done.returncode:
        sys.exit(done.returncode)


def main(directory: Path, runs: int, queries: int) -> None:
    """The first time, again, and three times one run more."""
    directory.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(directory / "site", ignore_errors=True)
    with (directory / "golden.yaml").open("w", encoding="utf-8") as file:
        file.writelines(golden_yaml(queries))
    stored = Runs(directory / "kebab.sqlite", queries)
    stored.add(runs)
    measure("the first time", directory)
    measure("again", directory)
    for _ in range(3):
        stored.add(1)
        measure("one more run", directory)
    sizes = [path.stat().st_size for path in (directory / "site").rglob("*") if path.is_file()]
    print(f"{len(sizes)} files, {sum(sizes) / 1e6:.1f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--queries", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.directory or Path(temporary), given.runs, given.queries)
