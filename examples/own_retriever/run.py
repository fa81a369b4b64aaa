"""Two chunkers, one retriever, two recorded runs: did the change of chunker make the retriever worse?

    python run.py [DIRECTORY]            writes DIRECTORY/kebab.sqlite (default: here)
    python run.py [DIRECTORY] --gate     and lets pytest judge the second run against the first

The retriever is SQLite's full-text search with BM25. What is recorded is what it really returned.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval import RunRecorder, load_golden_set

HERE = Path(__file__).resolve().parent
GOLDEN = HERE / "golden_queries.yaml"
TOP_K = 10
WINDOW = 8  # lines


class Chunk(NamedTuple):
    """A passage of a note; its id is where it stands, so it is the same whenever it is made."""

    path: str
    headings: tuple[str, ...]
    start: int  # the first line, from 1
    end: int  # the last line
    text: str

    @property
    def chunk_id(self) -> str:
        """Such as `notes/oncall.md:5-8`."""
        return f"{self.path}:{self.start}-{self.end}"

    @property
    def doc_id(self) -> str:
        """Such as `oncall`."""
        return Path(self.path).stem


# -- the two chunkers ----------------------------------------------------------------------------


def by_heading(path: str, lines: list[str]) -> Iterator[Chunk]:
    """One chunk a section."""
    starts = [number for number, line in enumerate(lines) if line.startswith("#")]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        yield from _chunk(path, lines, start, end)


def by_window(path: str, lines: list[str]) -> Iterator[Chunk]:
    """One chunk every few lines, wherever that cuts."""
    for start in range(0, len(lines), WINDOW):
        yield from _chunk(path, lines, start, min(start + WINDOW, len(lines)))


def _chunk(path: str, lines: list[str], start: int, end: int) -> Iterator[Chunk]:
    """The lines without the blank ones around them; nothing if there is only a heading."""
    filled = [number for number in range(start, end) if lines[number].strip()]
    if any(not lines[number].startswith("#") for number in filled):
        start, end = filled[0], filled[-1] + 1
        above = [line.lstrip("# ") for line in lines[: start + 1] if line.startswith("#")]
        headings = tuple(dict.fromkeys([above[0], above[-1]]))  # the note's title, the section's
        yield Chunk(path, headings, start + 1, end, "\n".join(lines[start:end]))


Chunker = Callable[[str, list[str]], Iterator[Chunk]]
CHUNKERS: dict[str, Chunker] = {"by-heading": by_heading, "by-window": by_window}


def chunks_of(chunker: Chunker) -> list[Chunk]:
    """All notes, cut up."""
    return [
        chunk
        for note in sorted((HERE / "notes").glob("*.md"))
        for chunk in chunker(f"notes/{note.name}", note.read_text(encoding="utf-8").splitlines())
    ]


# -- the retriever -------------------------------------------------------------------------------


class Retriever:
    """BM25 over the chunks; any word of the question will do."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self._chunks = chunks
        self._index = sqlite3.connect(":memory:")
        self._index.execute("CREATE VIRTUAL TABLE passages USING fts5(text, tokenize='porter unicode61')")
        self._index.executemany("INSERT INTO passages VALUES (?)", [(chunk.text,) for chunk in chunks])

    def search(self, question: str) -> list[tuple[Chunk, float]]:
        """The best chunks and their scores, best first."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        found = self._index.execute(
            "SELECT rowid, -bm25(passages) AS score FROM passages WHERE passages MATCH ?"
            " ORDER BY score DESC, rowid LIMIT ?",
            (words, TOP_K),
        )
        return [(self._chunks[rowid - 1], score) for rowid, score in found]

    def close(self) -> None:
        """Forget the index."""
        self._index.close()


# -- the runs ------------------------------------------------------------------------------------


def record(database: Path, run_id: str) -> None:
    """Ask every golden query and keep what came back."""
    with (
        closing(Retriever(chunks_of(CHUNKERS[run_id]))) as retriever,
        RunRecorder(database, suite="notes", config={"chunker_version": f"{run_id}-1"}, run_id=run_id) as run,
    ):
        for query in load_golden_set(GOLDEN).queries:
            hits = [as_hit(chunk, score) for chunk, score in retriever.search(query.query)]
            run.record(query.id, hits=hits, query=query.query, mode="lexical")


def as_hit(chunk: Chunk, score: float) -> dict[str, Any]:
    """A hit as it is stored; with its text and its lines it can be judged after the chunks are gone."""
    place = {"kind": "line", "path": chunk.path, "start": chunk.start, "end": chunk.end}
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.doc_id,
        "doc_path": chunk.path,
        "heading_path": chunk.headings,
        "text": chunk.text,
        "citation": place,
        "retrieval": {"fusion_score": score},
    }


def store_chunks(database: Path) -> None:
    """The chunks that the golden file names, as kebab stores them; `kebab-eval lock` reads these tables."""
    chunks = chunks_of(by_heading)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE documents (doc_id TEXT PRIMARY KEY, workspace_path TEXT NOT NULL)")
        connection.execute(
            "CREATE TABLE chunks (chunk_id TEXT PRIMARY KEY, doc_id TEXT NOT NULL, text TEXT NOT NULL,"
            " heading_path_json TEXT NOT NULL, source_spans_json TEXT NOT NULL,"
            " token_estimate INTEGER NOT NULL, chunker_version TEXT NOT NULL)"
        )
        documents = {(chunk.doc_id, chunk.path) for chunk in chunks}
        connection.executemany("INSERT INTO documents VALUES (?, ?)", sorted(documents))
        connection.executemany(
            "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, 'by-heading-1')",
            [
                (
                    chunk.chunk_id,
                    chunk.doc_id,
                    chunk.text,
                    json.dumps(chunk.headings),
                    json.dumps([{"kind": "line", "start": chunk.start, "end": chunk.end}]),
                    len(chunk.text.split()),
                )
                for chunk in chunks
            ],
        )


def main() -> int:
    """Record both runs; with --gate, judge them."""
    parser = argparse.ArgumentParser(description="Record two runs over the notes, one for each chunker.")
    parser.add_argument("directory", nargs="?", type=Path, default=Path(), help="where kebab.sqlite goes")
    parser.add_argument("--gate", action="store_true", help="run pytest on the two runs")
    given = parser.parse_args()
    database = given.directory / "kebab.sqlite"
    for path in (database, given.directory / "runs" / "by-window"):
        if path.exists():
            parser.error(f"{path} is there already; name another directory")
    given.directory.mkdir(parents=True, exist_ok=True)
    for run_id in CHUNKERS:
        record(database, run_id)
    store_chunks(database)
    print(f"recorded {' and '.join(CHUNKERS)} in {database}; to gate them:")
    command = ["pytest", str(GOLDEN), f"--kebab-golden={GOLDEN}"]
    command += ["--kebab-run-a=by-heading", "--kebab-run-b=by-window", "--kebab-gate=delta hit@5 >= -0.02"]
    print(f"cd {given.directory.resolve()} && {shlex.join(command)}", flush=True)
    if not given.gate:
        return 0
    return subprocess.run([sys.executable, "-m", *command], cwd=given.directory, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
