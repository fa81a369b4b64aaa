"""How long `kebab-eval reanchor` takes for one document of many chunks, and how that grows.

python benchmarks/reanchoring.py [DIRECTORY] --chunks 500 2000 [--footer]

One golden query expects each chunk of the older chunker; both chunkers have about as many chunks. They are
told by their spans, by their texts, or by the hashes of a lock file without texts. CPU seconds of what is
decided and of the edited file, within one process. Four times the chunks should take some four times as long.
Where all chunks end with the same footer, those that are little else are asked about for every target; by
hashes, four times the chunks then take six times as long.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from passages import Chunk, Writer, chunks_of

from pytest_kebab_eval import RunRecorder
from pytest_kebab_eval.golden import Lock, LockedChunk, load_golden_set, lock_path, render_lock
from pytest_kebab_eval.matching.shingles import hashed_text
from pytest_kebab_eval.model import Span
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.upkeep.reanchoring import Reanchoring, reanchor

WAYS = ("span", "text", "hashes")
FOOTER = (
    "\nThis page is part of the handbook for operators; ask the documentation team before you copy it, and"
    " tell them of mistakes by the form that is linked at the end of every page of this handbook."
)


class _ManualWriter(Writer):
    """Writes what a long document has: it seldom says the same twice."""

    def _any_sentence(self) -> str:
        return self._sentence()


@cache
def _document(chunks: int, footer: str) -> tuple[list[Chunk], list[Chunk]]:
    """One long document, cut by both chunkers: so many chunks of the older one, each with the footer."""
    writer, text = _ManualWriter(seed=1), ""
    while True:
        sections = (writer.document().split("\n\n", 2)[2] for _ in range(20))  # without title and notice
        text += "\n".join(sections)
        old = chunks_of("characters", "d1", text)
        if len(old) >= chunks:
            end = old[chunks - 1].end
            new = [chunk for chunk in chunks_of("sentences", "d1", text) if chunk.start < end]
            return with_footer(old[:chunks], footer), with_footer(new, footer)


def with_footer(chunks: list[Chunk], footer: str) -> list[Chunk]:
    return [chunk._replace(text=chunk.text + footer) for chunk in chunks]


def _locked(chunk: Chunk, way: str) -> LockedChunk:
    if way == "span":
        return LockedChunk("d1", (Span(kind="byte", start=chunk.start, end=chunk.end),))
    if way == "text":
        return LockedChunk("d1", text=chunk.text)
    return LockedChunk("d1", shingles=hashed_text(chunk.text))


def write_project(root: Path, chunks: int, way: str, footer: str = "") -> Path:
    """A golden file with its lock, and a run of the newer chunker with its index; returns the golden file."""
    old, new = _document(chunks, footer)
    golden = root / f"{way}-{chunks}.jsonl"
    entries = (
        {"id": f"q{number}", "query": f"question {number}", "expected_chunk_ids": [f"old-{number}"]}
        for number in range(len(old))
    )
    golden.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")
    locked = {f"old-{number}": _locked(chunk, way) for number, chunk in enumerate(old)}
    lock_path(golden).write_text(render_lock(Lock("older", locked)), encoding="utf-8")
    rows = [_row(f"new-{number}", chunk, way) for number, chunk in enumerate(new)]
    config = {"chunker_version": "newer"}
    with RunRecorder(golden.with_suffix(".sqlite"), config=config, run_id="new", chunks=rows) as run:
        run.record("q0", hits=[{"chunk_id": "new-0", "doc_id": "d1"}])
    return golden


def _row(chunk_id: str, chunk: Chunk, way: str) -> dict[str, object]:
    place = {"char_start": chunk.start, "char_end": chunk.end} if way == "span" else {}
    return {"chunk_id": chunk_id, "doc_id": "d1", "text": chunk.text, **place}


def measured(golden: Path) -> tuple[float, Reanchoring]:
    """The CPU seconds of one call, and what it decided."""
    loaded, text = load_golden_set(golden), golden.read_text(encoding="utf-8")
    with open_database(golden.with_suffix(".sqlite")) as database:
        run = find_run(database, "new")
        start = time.process_time()
        made = reanchor(loaded, text, (database, run))
        return time.process_time() - start, made


def rows(root: Path, sizes: Sequence[int], ways: Sequence[str] = WAYS, footer: str = "") -> Iterator[str]:
    """A table: a row for each way, with the seconds for each size and the last over the first."""
    yield f"| told by | {' | '.join(f'{size:,} chunks' for size in sizes)} | growth | re-anchored |"
    yield f"| --- |{' ---: |' * (len(sizes) + 2)}"
    for way in ways:
        taken = []
        for size in sizes:
            seconds, made = measured(write_project(root, size, way, footer))
            taken.append(seconds)
        share = len(made.changed) / (len(made.changed) + len(made.undecided))
        cells = [f"{seconds:.2f} s" for seconds in taken]
        yield f"| {way} | {' | '.join(cells)} | {taken[-1] / taken[0]:.1f} | {share:.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", nargs="?", type=Path)
    parser.add_argument("--chunks", nargs="+", type=int, default=[500, 2_000])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--footer", action="store_true", help="all chunks end with the same sentence")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = arguments.directory or Path(temporary)
        for row in rows(root, arguments.chunks, arguments.ways, FOOTER if arguments.footer else ""):
            print(row, flush=True)


if __name__ == "__main__":
    main()
