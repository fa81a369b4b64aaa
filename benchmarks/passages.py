"""Prose and chunkers to try matching by text on: seeded, with boilerplate, templates, Markdown and wrapping.

A document is Markdown source. A chunker cuts it at character offsets, so how much two chunks share is known;
the text that it stores is the source as it is, or wrapped anew.
"""

from __future__ import annotations

import random
import re
import textwrap
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from typing import NamedTuple

_SMALL = "the of and to in a is that for it as was with be by on not but at are this have from or"
_ENDINGS = ("", "s", "ed", "ing", "er", "tion", "ly", "al")
_SYLLABLES = "ba ce di fo gu la me ni po ru sa te vi wo ze bra cle dro fli gre pla sto tri"
_TEMPLATES = (
    "The default value of {0} is {1}, and it can be changed in the settings of the {2}.",
    "If {0} is not set, then the value of {1} is used for every {2} of the project.",
    "See the page on {0} for how to set up a {1} with more than one {2}.",
    "Only an administrator can change the {0} of a {1}, and only while no {2} is running.",
)
LINE_LENGTHS = (64, 80, 100)


class Chunk(NamedTuple):
    """A passage: where it is in its document, and the text that is stored of it."""

    doc_id: str
    start: int
    end: int
    text: str


class Writer:
    """Writes documents; all share their vocabulary and their boilerplate."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._small, self._syllables = _SMALL.split(), _SYLLABLES.split()
        self._words = [self._word() for _ in range(4_000)]
        self._weights = list(accumulate(1 / rank for rank in range(10, 10 + len(self._words))))
        self._stock = [self._sentence(longest=14) for _ in range(60)]
        self._notice = " ".join(self._sentence() for _ in range(3))

    def _word(self) -> str:
        stem = "".join(self._random.choices(self._syllables, k=self._random.choice((1, 2, 2, 3))))
        return stem + self._random.choice(_ENDINGS)

    def _sentence(self, longest: int = 24) -> str:
        words = [
            self._random.choice(self._small)
            if self._random.random() < 0.4
            else self._random.choices(self._words, cum_weights=self._weights)[0]
            for _ in range(self._random.randint(5, longest))
        ]
        text = " ".join(self._marked(word) for word in words)
        return f"{text[0].upper()}{text[1:]}."

    def _marked(self, word: str) -> str:
        chance = self._random.random()
        if chance < 0.03:
            return f"**{word}**"
        if chance < 0.05:
            return f"`{word}`"
        if chance < 0.056:
            return f"[{word}](../{word}.md)"
        return f"{word}," if chance > 0.95 else word

    def _any_sentence(self) -> str:
        """Mostly one of its own; else one from stock, which others have too, or one by a template."""
        chance = self._random.random()
        if chance < 0.1:
            return self._random.choice(self._stock)
        if chance < 0.2:
            words = self._random.choices(self._words, cum_weights=self._weights, k=3)
            return self._random.choice(_TEMPLATES).format(*words)
        return self._sentence()

    def document(self) -> str:
        """A title, a notice that all documents have, and sections of paragraphs and lists."""
        width = self._random.choice(LINE_LENGTHS)
        parts = [f"# {self._title()}", textwrap.fill(self._notice, width)]
        for _ in range(self._random.randint(5, 10)):
            parts.append(f"## {self._title()}")
            parts += [self._paragraph(width) for _ in range(self._random.randint(1, 4))]
        return "\n\n".join(parts) + "\n"

    def _title(self) -> str:
        return " ".join(self._random.choices(self._words, cum_weights=self._weights, k=3)).capitalize()

    def _paragraph(self, width: int) -> str:
        sentences = [self._any_sentence() for _ in range(self._random.randint(2, 7))]
        if self._random.random() < 0.2:
            return "\n".join(
                textwrap.fill(text, width, initial_indent="- ", subsequent_indent="  ") for text in sentences
            )
        return textwrap.fill(" ".join(sentences), width)


# -- what is stored of a passage -------------------------------------------------------------------


def as_it_is(text: str) -> str:
    return text


def wrapped_anew(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), 50)


# -- chunkers --------------------------------------------------------------------------------------

Cuts = Callable[[str], Iterator[tuple[int, int]]]


def by_lines(text: str, lines: int = 8) -> Iterator[tuple[int, int]]:
    """So many lines a chunk."""
    ends = [0, *(match.end() for match in re.finditer("\n", text))]
    cuts = [*ends[::lines], len(text)]
    return ((start, end) for start, end in pairwise(cuts) if end > start)


def by_sentences(text: str, sentences: int = 3) -> Iterator[tuple[int, int]]:
    """So many sentences a chunk."""
    ends = [0, *(match.end() for match in re.finditer(r"\.\s+", text))]
    return ((start, end) for start, end in pairwise([*ends[::sentences], len(text)]) if end > start)


def by_characters(text: str, size: int = 500, overlap: int = 100) -> Iterator[tuple[int, int]]:
    """So many characters a chunk, wherever that cuts; each begins within the one before it."""
    return ((start, min(start + size, len(text))) for start in range(0, len(text) - overlap, size - overlap))


CHUNKERS: dict[str, tuple[Cuts, Callable[[str], str]]] = {
    "lines": (by_lines, as_it_is),
    "sentences": (by_sentences, wrapped_anew),
    "characters": (by_characters, as_it_is),
}


def chunks_of(name: str, doc_id: str, text: str) -> list[Chunk]:
    """A document, cut by the chunker of that name."""
    cut, stored = CHUNKERS[name]
    return [Chunk(doc_id, start, end, stored(text[start:end])) for start, end in cut(text)]


def overlap(one: Chunk, other: Chunk) -> float:
    """The truth: how much of the shorter passage both cover, in characters of the document."""
    shared = min(one.end, other.end) - max(one.start, other.start)
    if one.doc_id != other.doc_id or shared <= 0:
        return 0.0
    return shared / min(one.end - one.start, other.end - other.start)
