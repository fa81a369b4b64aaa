"""A test collection in the manner of Cranfield, but generated: documents, queries, and graded judgments.

A document is mostly about one theme and a little about another. A query names two words of what is wanted to
be known of a theme; a document is relevant if it is about that theme and says enough of all that is wanted.
The same seed gives the same collection.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

DOCUMENTS_PER_THEME = 20
WORDS_PER_THEME = 30
COMMON_WORDS = 200
JUDGED_NOT_RELEVANT = 10
_SYLLABLES = [consonant + vowel for consonant in "bdfghklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Collection:
    """Texts of documents and queries by their ids; judgments are 0 to 3, by query and document."""

    documents: dict[str, str]
    queries: dict[str, str]
    judgments: dict[str, dict[str, int]]


@dataclass(frozen=True)
class _Document:
    theme: int
    other_theme: int
    words: list[str]


def make_collection(documents: int, queries: int, seed: int = 1) -> Collection:
    """A collection of that size."""
    chance = random.Random(seed)
    themes = max(2, documents // DOCUMENTS_PER_THEME)
    vocabulary = _words(chance, COMMON_WORDS + themes * WORDS_PER_THEME)
    common, rest = vocabulary[:COMMON_WORDS], vocabulary[COMMON_WORDS:]
    words = [rest[theme * WORDS_PER_THEME :][:WORDS_PER_THEME] for theme in range(themes)]
    written = {f"{n:04}": _write(chance, words, common) for n in range(1, documents + 1)}
    asked: dict[str, str] = {}
    judgments: dict[str, dict[str, int]] = {}
    while len(asked) < queries:
        theme = chance.randrange(themes)
        wanted = chance.sample(words[theme], chance.randint(3, 6))
        judged = {doc_id: _grade(wanted, theme, document) for doc_id, document in written.items()}
        if any(judged.values()):
            query_id = str(len(asked) + 1)
            asked[query_id] = " ".join([*chance.sample(wanted, 2), *chance.sample(common, 3)])
            judgments[query_id] = _judged(chance, judged)
    texts = {doc_id: " ".join(document.words) for doc_id, document in written.items()}
    return Collection(texts, asked, judgments)


def _words(chance: random.Random, count: int) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choices(_SYLLABLES, k=chance.randint(2, 4)))] = None
    return list(found)


def _write(chance: random.Random, words: list[list[str]], common: list[str]) -> _Document:
    theme, other = chance.sample(range(len(words)), 2)
    text = [
        *_draw(chance, words[theme], chance.randint(10, 30)),
        *_draw(chance, words[other], chance.randint(0, 12)),
        *_draw(chance, common, chance.randint(20, 90)),
    ]
    chance.shuffle(text)
    return _Document(theme, other, text)


def _draw(chance: random.Random, words: list[str], count: int) -> list[str]:
    """Words, the first of them far more often than the last, as in any language."""
    return chance.choices(words, weights=[1 / rank for rank in range(1, len(words) + 1)], k=count)


def _grade(wanted: list[str], theme: int, document: _Document) -> int:
    share = sum(word in document.words for word in wanted) / len(wanted)
    if theme == document.theme:
        return 3 if share == 1 else 2 if share > 0.5 else 0
    return 1 if theme == document.other_theme and share > 0.5 else 0


def _judged(chance: random.Random, judged: dict[str, int]) -> dict[str, int]:
    """The relevant documents, and a few that someone looked at and found not to be."""
    others = [doc_id for doc_id, grade in judged.items() if not grade]
    looked_at = chance.sample(others, min(JUDGED_NOT_RELEVANT, len(others)))
    return {doc_id: judged[doc_id] for doc_id in judged if judged[doc_id] or doc_id in looked_at}
