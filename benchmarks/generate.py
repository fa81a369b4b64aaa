"""Databases and golden files as people have them, of any size: seeded, and written in a stream.

python benchmarks/generate.py DIRECTORY --queries 10000 --hits 10

Two runs of answers with citations over kebab's own tables: ids of chunks and documents are hashes of 32
digits, and what is retrieved and cited is in `documents` and `chunks`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sqlite3
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.store import backend_of

HANDBOOK = (
    "rotate credentials service account before quarter ends tell owner write down which key went where keep"
    " copy until new has been seen working then remove old first week cluster answers slowly because caches"
    " are cold nobody should restart twice page on call engineer if error rate stays above one percent after"
    " ten minutes roll back deploy by hand describe incident review open ticket for each finding that remains"
)
TEXT_LENGTH = 600  # characters of a chunk: with ten hits, a result has about 11 kB
CHUNKS_OF_A_DOCUMENT = 8
MISSED_BY_BOTH = 0.02
REORDERED = 10  # in one query of so many, B has two wrong hits in another order
LOSS = 0.03  # the share of queries that B loses
DIFFICULTIES = ("easy", "medium", "hard")


class Data(NamedTuple):
    """How large a database is, and how its runs differ."""

    queries: int
    hits: int = 10
    loss_b: float = LOSS
    missed_by_both: float = MISSED_BY_BOTH
    older_runs: int = 0


def query_id(number: int) -> str:
    return f"q-{number:07}"


@cache
def chunk_id(chunk: int) -> str:
    return _hashed(f"chunk {chunk}")


@cache
def doc_id(chunk: int) -> str:
    """Of the document that the chunk is in."""
    return _hashed(f"document {chunk // CHUNKS_OF_A_DOCUMENT}")


def _hashed(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _path(chunk: int) -> str:
    return f"handbook/procedure-{chunk // CHUNKS_OF_A_DOCUMENT}.md"


def _headings(chunk: int) -> list[str]:
    return ["Handbook", f"Procedure {chunk // CHUNKS_OF_A_DOCUMENT}", f"Step {chunk % CHUNKS_OF_A_DOCUMENT}"]


def _lines(chunk: int) -> dict[str, Any]:
    start = 1 + 15 * (chunk % CHUNKS_OF_A_DOCUMENT)
    return {"kind": "line", "start": start, "end": start + 14}


def chunk_count(queries: int) -> int:
    return min(max(2 * queries, 1_000), 40_000)


def right_chunk(query: int, queries: int) -> int:
    return 7 * query % chunk_count(queries)


def wrong_chunk(query: int, rank: int, queries: int) -> int:
    """Of another document than the right one, and another chunk for each rank."""
    return (7 * query + CHUNKS_OF_A_DOCUMENT + 11 * rank) % chunk_count(queries)


def golden_yaml(queries: int) -> Iterator[str]:
    """A golden file as people write it: block style, a few fields each."""
    for number in range(queries):
        right = right_chunk(number, queries)
        expected = [right, right + 1] if number % 3 == 0 else [right]
        yield (
            f"- id: {query_id(number)}\n"
            f"  query: How is procedure {number} of the handbook carried out in practice?\n"
            f"  expected_chunk_ids: [{', '.join(map(chunk_id, expected))}]\n"
            f"  expected_doc_ids: [{doc_id(right)}]\n"
            f'  must_contain: ["procedure {number}"]\n'
            f"  difficulty: {DIFFICULTIES[number % 3]}\n"
            f"  tags: [tag-{number % 7}]\n"
        )


class Texts:
    """Texts of chunks: many different ones, made of few words, as a handbook has them."""

    def __init__(self, count: int = 2_000) -> None:
        generator, words = random.Random(7), HANDBOOK.split()
        self._texts = [self._text(generator, words) for _ in range(count)]

    def _text(self, generator: random.Random, words: list[str]) -> str:
        return " ".join(generator.choices(words, k=TEXT_LENGTH // 5))[:TEXT_LENGTH]

    def of(self, chunk: int) -> str:
        return self._texts[chunk % len(self._texts)]


def results(data: Data, loss: float, texts: Texts) -> Iterator[tuple[str, str]]:
    """What a run stored: the first target somewhere in the top 10, or nowhere for a share of the queries.

    With no loss it is run A; with one it is B, where that share of the queries lost the target.
    """
    places, losses, hits = random.Random(1), random.Random(2), data.hits
    for number in range(data.queries):
        at = places.randrange(min(hits, 10)) if places.random() >= data.missed_by_both else hits
        if losses.random() < loss:
            at = hits
        found = [hit(number, rank, data.queries, texts, is_right=rank == at) for rank in range(hits)]
        if loss and number % REORDERED == 0 and at < hits - 2:
            found[-2:] = [{**found[-1], "rank": hits - 1}, {**found[-2], "rank": hits}]
        yield query_id(number), json.dumps(_result(number, found, places))


def hit(query: int, rank: int, queries: int, texts: Texts, *, is_right: bool) -> dict[str, Any]:
    chunk = right_chunk(query, queries) if is_right else wrong_chunk(query, rank, queries)
    path = _path(chunk)
    return {
        "rank": rank + 1,
        "chunk_id": chunk_id(chunk),
        "doc_id": doc_id(chunk),
        "doc_path": path,
        "heading_path": _headings(chunk),
        "snippet": texts.of(chunk),
        "citation": {**_lines(chunk), "path": path, "section": None},
        "retrieval": {"fusion_score": 0.5, "lexical_score": 0.4, "vector_score": 0.6},
        "chunker_version": "v1",
    }


def _result(number: int, found: list[dict[str, Any]], generator: random.Random) -> dict[str, Any]:
    return {
        "query_id": query_id(number),
        "query": f"How is procedure {number} of the handbook carried out in practice?",
        "mode": "hybrid",
        "hits_top_k": found,
        "answer": {
            "answer": f"As the handbook says, procedure {number} takes two people [1], and an hour [2].",
            "grounded": True,
            "refusal_reason": None,
            "citations": [
                {"marker": f"[{at}]", "citation": cited["citation"]} for at, cited in enumerate(found[:2], 1)
            ],
            "usage": {"prompt_tokens": 900, "completion_tokens": 40, "latency_ms": 300},
        },
        "elapsed_ms": generator.randrange(20, 400),
        "error": None,
    }


def _corpus(connection: sqlite3.Connection, chunks: int, texts: Texts) -> None:
    documents = ((doc_id(first), _path(first)) for first in range(0, chunks, CHUNKS_OF_A_DOCUMENT))
    connection.executemany("INSERT INTO documents VALUES (?, ?)", documents)
    rows = (
        (
            *(chunk_id(number), doc_id(number), texts.of(number)),
            *(json.dumps(_headings(number)), json.dumps([_lines(number)]), TEXT_LENGTH // 4, "v1"),
        )
        for number in range(chunks)
    )
    connection.executemany("INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def generate(directory: Path, data: Data) -> None:
    """`kebab.sqlite` with runs a and b, and older ones if wanted, and `golden.yaml`."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "kebab.sqlite"
    path.unlink(missing_ok=True)
    backend_of(path).make_tables()
    connection = sqlite3.connect(path)
    texts = Texts()
    with connection:
        _corpus(connection, chunk_count(data.queries), texts)
        older = [(f"older-{number}", 0.0) for number in range(data.older_runs)]
        for day, (run_id, loss) in enumerate([*older, ("a", 0.0), ("b", data.loss_b)], 1):
            connection.execute(
                "INSERT INTO eval_runs VALUES (?, 'bench', '{\"chunker_version\": \"v1\"}', '{}', NULL, ?)",
                (run_id, f"2026-01-{day:02}T00:00:00Z"),
            )
            rows = ((run_id, name, text) for name, text in results(data, loss, texts))
            connection.executemany("INSERT INTO eval_query_results VALUES (?, ?, ?)", rows)
    connection.close()
    with (directory / "golden.yaml").open("w", encoding="utf-8") as file:
        file.writelines(golden_yaml(data.queries))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--hits", type=int, default=10)
    parser.add_argument("--loss-b", type=float, default=LOSS)
    given = parser.parse_args()
    generate(given.directory, Data(given.queries, given.hits, given.loss_b))
