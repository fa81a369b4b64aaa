"""The documents and chunks that random comparisons are about."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from .case import Chunk, Entry

LINES = 30
FIRST, SECOND = "heading-1", "window-2"
TEXT = "text"  # the kind of chunks that have no span
SECTIONS = ("Setup", "Setup guide", "Usage", "Usage > Notes")
WORDS = (
    "copper",
    "lantern",
    "harbour",
    "meadow",
    "violin",
    "saffron",
    "glacier",
    "thimble",
    "orchard",
    "pebble",
)


@dataclass(frozen=True)
class World:
    """Documents cut by two chunkers; no two documents share a line number, so that only one can overlap."""

    first: tuple[Chunk, ...]
    second: tuple[Chunk, ...]
    with_tables: str
    with_citations: bool
    with_text: bool
    kind: str
    ids_used_again: bool = False

    @property
    def tables(self) -> tuple[Chunk, ...] | None:
        """What the table `chunks` holds; None where there is no such table."""
        contents = {"none": None, "empty": (), "first": self.first, "second": self.second}
        return contents[self.with_tables] if self.with_tables in contents else self.first + self.second

    def chunks(self, version: str | None) -> tuple[Chunk, ...]:
        """What a run of that chunker can return."""
        return self.second if version == SECOND else self.first

    def hit(self, chunk: Chunk, rank: int) -> Entry:
        """A stored hit."""
        hit: Entry = {
            "rank": rank,
            "chunk_id": chunk.chunk_id,
            "doc_id": chunk.doc_id,
            "doc_path": chunk.path,
        }
        hit["heading_path"] = list(chunk.heading)
        if self.with_citations and chunk.spans:
            hit["citation"] = {**chunk.spans[0], "path": chunk.path}
        if self.with_text:
            hit["text"] = hit["snippet"] = chunk.text
        return hit


def make_world(rng: random.Random) -> World:
    """A world: one to four documents, and what is stored about their chunks."""
    if rng.random() < 0.25:
        return make_texts(rng)
    kind = rng.choices(["line", "code", "byte", "time", "page", "mixed"], [6, 2, 1, 1, 1, 1])[0]
    documents = range(rng.randint(1, 4))
    first = tuple(chunk for number in documents for chunk in cut(rng, number, FIRST, kind))
    second = tuple(chunk for number in documents for chunk in cut(rng, number, SECOND, kind))
    if rng.random() < 0.25:
        shared = with_ids_used_again(second)
        tables = rng.choice(["none", "second", "both"])
        with_citations = tables == "none" or rng.random() < 0.7
        return World(first, shared, tables, with_citations, False, kind, ids_used_again=True)
    with_citations = rng.random() < 0.7
    with_tables = rng.choices(["none", "empty", "first", "second", "both"], [5, 1, 3, 2, 3])[0]
    return World(first, second, with_tables, with_citations, with_citations and rng.random() < 0.6, kind)


def make_texts(rng: random.Random) -> World:
    """A world of which nothing but texts is known; the second chunker also makes scraps, and other markup."""
    documents = range(rng.randint(1, 3))
    first = tuple(chunk for number in documents for chunk in cut(rng, number, FIRST, TEXT))
    second = [chunk for number in documents for chunk in cut(rng, number, SECOND, TEXT)]
    scraps = [scrap(rng, chunk, number) for number, chunk in enumerate(second) if rng.random() < 0.4]
    form = rng.choice(FORMS)
    stored = tuple(replace(chunk, text=form(chunk.text)) for chunk in [*second, *scraps])
    return World(first, stored, rng.choice(["none", "none", "first", "both"]), False, True, TEXT)


def scrap(rng: random.Random, chunk: Chunk, number: int) -> Chunk:
    """What splitters leave: nothing but marks, a heading, or the start of a sentence."""
    words = chunk.text.split()
    text = rng.choice(["---", "```", " ", "Mill", "Old mill", " ".join(words[:4]), " ".join(words[3:9])])
    return replace(chunk, chunk_id=f"{chunk.doc_id}-x{number}", text=text)


def bold(text: str) -> str:
    """Markdown, in which some words are marked."""
    return text.replace("door", "**door**").replace("mill", "[mill](mill.md)")


def escaped(text: str) -> str:
    """As it stands in HTML, wrapped."""
    return text.replace(". ", ".&nbsp;").replace(" is ", " is\n")


FORMS = (str, bold, escaped)


def with_ids_used_again(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    """The second chunker's chunks under ids of the first's."""
    return tuple(replace(chunk, chunk_id=chunk.chunk_id.replace("-w", "-c")) for chunk in chunks)


def cut(rng: random.Random, number: int, version: str, kind: str) -> list[Chunk]:
    """One document in chunks: the first chunker cuts by tens, the second anywhere."""
    ends = (
        [10, 20, LINES]
        if version == FIRST
        else [*sorted(rng.sample(range(1, LINES), rng.randint(0, 4))), LINES]
    )
    starts = [0, *ends[:-1]]
    pieces = zip(starts, ends, strict=True)
    return [piece(number, version, kind, index, place) for index, place in enumerate(pieces)]


def piece(number: int, version: str, kind: str, index: int, place: tuple[int, int]) -> Chunk:
    """One chunk, from a place between two lines of its document."""
    start, end = place
    base = 100 * number
    name = f"d{number}-{'c' if version == FIRST else 'w'}{index}"
    if kind == "mixed":
        kind = "line" if version == FIRST else "time"
    form = "{} {}." if kind != TEXT else "{0} {1} is kept beside the door of the old mill {1}."
    text = " ".join(form.format(WORDS[line % len(WORDS)], base + line) for line in range(start, end))
    heading = tuple(f"Doc > {SECTIONS[start * len(SECTIONS) // LINES]}".split(" > "))
    spans = () if kind == TEXT else spans_of(kind, base + start, base + end)
    return Chunk(name, f"d{number}", f"notes/d{number}.md", heading, spans, text, version)


def spans_of(kind: str, start: int, end: int) -> tuple[Entry, ...]:
    """The spans of a chunk: one, or one for each page that it touches, of ten lines each."""
    if kind == "page":
        return tuple({"kind": "page", "page": page + 1} for page in range(start // 10, (end - 1) // 10 + 1))
    return (span_of(kind, start, end),)


def span_of(kind: str, start: int, end: int) -> Entry:
    """The span from one line to before another; lines count from 1 and are inclusive."""
    if kind == "line":
        return {"kind": "line", "start": start + 1, "end": end}
    if kind == "code":
        return {"kind": "code", "line_start": start + 1, "line_end": end}
    if kind == "time":
        return {"kind": "time", "start_ms": start, "end_ms": end}
    return {"kind": "byte", "start": start, "end": end}
