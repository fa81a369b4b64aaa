"""Many runs of one suite in a database: queries are lost and come back, from run to run."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from generate import Texts, hit, query_id

from pytest_kebab_eval.store.sqlite.tables import SCHEMA

HITS = 10
LOST, FOUND_AGAIN, MOVED = 0.01, 0.5, 0.1  # shares of the queries, from run to run


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
    """Adds runs to a database, an hour apart.

    A query that is not moved has the hits of the run before.
    """

    def __init__(self, path: Path, queries: int) -> None:
        path.unlink(missing_ok=True)
        self._connection = sqlite3.connect(path)
        self._queries, self._evolution = queries, Evolution(queries)
        self._texts, self._count = Texts(), 0
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
                "hits_top_k": [
                    hit(number, rank, self._queries, self._texts, is_right=rank == place)
                    for rank in range(HITS)
                ],
                "answer": {"answer": f"procedure {number} takes two", "grounded": True, "citations": []},
                "elapsed_ms": times.randrange(20, 400),
                "error": None,
            }
            yield run_id, query_id(number), json.dumps(result)
