"""What matching by text costs beside spans; `real_documents.py` has how often it is right.

    python benchmarks/matching_cost.py [--documents 60] [--seed 1] [--queries 2000] [--repeats 7]

The CPU time of judging a comparison by text over that by spans, all ways run in turn in one process; the hits
are the same, only that one database has no citations. With hashes alone, no hit has the id of an expected
chunk; otherwise run A has its text, which is compared instead. With the index, the table `chunks` has the
chunks of both chunkers, with spans or without, and is asked about copies of what was found.
"""

from __future__ import annotations

import argparse
import gc
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from passages import CHUNKERS, Chunk, Writer, chunks_of, overlap

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.matching.shingles import hashed_text
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store.sqlite.tables import CORPUS_SCHEMA, SCHEMA

HITS = 10
WAYS = ("span", "text", "hashes", "hashes alone", "span with the index", "text with the index")
OF_THE_DOCUMENT = 3  # of the hits of a query: so many are of the right document

Cut = dict[str, dict[str, list[Chunk]]]  # by chunker and document


def documents(count: int, seed: int) -> dict[str, str]:
    """Generated documents by their ids."""
    writer = Writer(seed)
    return {f"doc-{number}": writer.document() for number in range(count)}


def cut_up(texts: dict[str, str]) -> Cut:
    """The documents, cut by each chunker."""
    return {name: {doc: chunks_of(name, doc, text) for doc, text in texts.items()} for name in CHUNKERS}


def hit_of(rank: int, chunk_id: str, chunk: Chunk, *, with_span: bool) -> dict[str, Any]:
    citation = {"kind": "byte", "path": f"{chunk.doc_id}.md", "start": chunk.start, "end": chunk.end}
    return {
        "rank": rank,
        "chunk_id": chunk_id,
        "doc_id": chunk.doc_id,
        "doc_path": f"{chunk.doc_id}.md",
        "text": chunk.text,
        "citation": citation if with_span else None,
    }


class Case(NamedTuple):
    """A database with two runs, a golden file and a lock file, in a directory."""

    directory: Path
    cut: Cut
    queries: int
    way: str  # one of WAYS; hashes alone: no hit is an expected chunk itself

    def settings(self) -> Settings:
        database, golden = self.directory / "kebab.sqlite", self.directory / "golden.jsonl"
        return Settings(run_a="a", run_b="b", db_a=database, db_b=database, golden=golden)

    def write(self) -> None:
        self.directory.mkdir()
        places = list(self._places())
        entries = (
            json.dumps({"id": f"q{number}", "query": "?", "expected_chunk_ids": [f"{doc}#{at}"]})
            for number, (doc, at) in enumerate(places)
        )
        (self.directory / "golden.jsonl").write_text("\n".join(entries) + "\n", encoding="utf-8")
        chunks = {f"{doc}#{at}": self._locked(self.cut["lines"][doc][at]) for doc, at in places}
        lock = json.dumps({"chunker_version": "lines", "chunks": chunks})
        (self.directory / "golden.lock.json").write_text(lock, encoding="utf-8")
        with closing(sqlite3.connect(self.directory / "kebab.sqlite")) as connection, connection:
            for statement in SCHEMA:
                connection.execute(statement)
            self._write_run(connection, "a", "lines", places)
            self._write_run(connection, "b", "characters", places)
            if "index" in self.way:
                self._write_index(connection)

    def _write_index(self, connection: sqlite3.Connection) -> None:
        for statement in CORPUS_SCHEMA:
            connection.execute(statement)
        rows = (
            (f"{doc}#{at}", doc, chunk.text, json.dumps(self._spans(chunk)), name)
            for name in ("lines", "characters")
            for doc, found in self.cut[name].items()
            for at, chunk in enumerate(found)
        )
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?)", [(doc, f"{doc}.md") for doc in self.cut["lines"]]
        )
        connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, '[]', ?, 10, ?)", rows)

    def _spans(self, chunk: Chunk) -> list[dict[str, Any]]:
        return [{"kind": "byte", "start": chunk.start, "end": chunk.end}] if self._has_spans else []

    @property
    def _has_spans(self) -> bool:
        return self.way.startswith("span")

    def _places(self) -> Iterator[tuple[str, int]]:
        everything = [(doc, at) for doc, found in self.cut["lines"].items() for at in range(len(found))]
        return (everything[number * 7 % len(everything)] for number in range(self.queries))

    def _locked(self, chunk: Chunk) -> dict[str, Any]:
        hashed = hashed_text(chunk.text) if self.way.startswith("hashes") else None
        said: dict[str, Any] = {"text": chunk.text} if self.way.startswith("text") else {}
        if hashed:
            said = {"shingles": msgspec.to_builtins(hashed)}
        return {"doc_id": chunk.doc_id, "spans": self._spans(chunk), **said}

    def _write_run(
        self, connection: sqlite3.Connection, run_id: str, chunker: str, places: list[tuple[str, int]]
    ) -> None:
        config = json.dumps({"chunker_version": chunker})
        connection.execute(
            "INSERT INTO eval_runs VALUES (?, 'suite', ?, '{}', NULL, '2031-01-01T00:00:00Z')",
            (run_id, config),
        )
        rows = ((run_id, f"q{at}", self._result(chunker, at, place)) for at, place in enumerate(places))
        connection.executemany("INSERT INTO eval_query_results VALUES (?, ?, ?)", rows)

    def _result(self, chunker: str, number: int, place: tuple[str, int]) -> str:
        """The right chunk and its neighbours, and chunks of other documents."""
        doc, at = place
        expected, own = self.cut["lines"][doc][at], self.cut[chunker][doc]
        best = max(range(len(own)), key=lambda other: overlap(expected, own[other]))
        first = max(0, min(best - 1, len(own) - OF_THE_DOCUMENT))
        found = [(doc, index) for index in range(first, min(first + OF_THE_DOCUMENT, len(own)))]
        others = [name for name in self.cut[chunker] if name != doc]
        while len(found) < HITS:
            other = others[(number + len(found)) % len(others)]
            found.append((other, (number + len(found)) % len(self.cut[chunker][other])))
        mark = "+" if self.way == "hashes alone" else "#"
        hits = [
            hit_of(rank, f"{name}{mark}{index}", self.cut[chunker][name][index], with_span=self._has_spans)
            for rank, (name, index) in enumerate(found, 1)
        ]
        return json.dumps({"query_id": f"q{number}", "query": "?", "hits_top_k": hits, "elapsed_ms": 1})


def cpu_seconds(settings: Settings, way: str) -> float:
    """The time of one comparison, which must have been matched in that way."""
    gc.collect()
    started = time.process_time()
    report = evaluate(settings).report
    taken = time.process_time() - started
    assert report.deltas is not None
    counted = "span" if way.startswith("span") else "text"
    assert report.deltas.matched_by[counted] == sum(report.deltas.matched_by.values()), (
        report.deltas.matched_by
    )
    return taken


def cost(cut: Cut, queries: int, repeats: int) -> Iterator[str]:
    """The rows of the table."""
    yield "| matched by | CPU time per query and run | over spans |"
    yield "| --- | ---: | ---: |"
    with tempfile.TemporaryDirectory() as root:
        cases = {way: Case(Path(root, way), cut, queries, way) for way in WAYS}
        times: dict[str, list[float]] = {way: [] for way in cases}
        for case in cases.values():
            case.write()
        for _ in range(repeats):
            for way, case in cases.items():
                times[way].append(cpu_seconds(case.settings(), way))
    medians = {way: statistics.median(found) for way, found in times.items()}
    for way, taken in medians.items():
        ratio = taken / medians["span with the index" if "index" in way else "span"]
        yield f"| {way} | {1e6 * taken / queries / 2:.0f} µs | {ratio:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what matching by text costs.")
    parser.add_argument("--documents", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--queries", type=int, default=2_000)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()
    cut = cut_up(documents(given.documents, given.seed))
    passages = sum(len(found) for by_document in cut.values() for found in by_document.values())
    print(f"{passages:,} passages of {given.documents} documents\n", flush=True)
    print(*cost(cut, given.queries, given.repeats), sep="\n")


if __name__ == "__main__":
    main()
