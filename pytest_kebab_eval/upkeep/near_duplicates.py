"""Questions that are nearly the same: alike in their words, whatever their order, case and punctuation."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

LEAST_SHARED = 0.8  # of the pieces of two questions, for them to count as one


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, case, punctuation and spacing aside."""
    return tuple(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def normalised(text: str) -> str:
    """The text as its words: the same for texts that differ in case, punctuation or spacing alone."""
    return " ".join(words_of(text))


class _Pieces(NamedTuple):
    """What two questions are compared by: three letters in a row within a word, and the numbers."""

    letters: frozenset[str]
    numbers: frozenset[str]  # these must be the same: version 1 is not version 2

    def shared(self, other: _Pieces) -> float:
        union = len(self.letters | other.letters)
        is_same = self.numbers == other.numbers and union
        return len(self.letters & other.letters) / union if is_same else 0.0


def _pieces(text: str) -> _Pieces:
    words = words_of(text)
    letters = {f" {word} "[at : at + 3] for word in words for at in range(len(word))}
    return _Pieces(
        frozenset(letters), frozenset(word for word in words if any(char.isdigit() for char in word))
    )


class NearDuplicates:
    """Finds the question that a new one nearly is, among those that were added.

    Two questions that share most of their pieces share one of the rarest pieces of each, so that only those
    are looked up. All questions that will be asked about are given first, to know which pieces are rare.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._counts = Counter(piece for text in texts for piece in _pieces(text).letters)
        self._by_piece: dict[str, list[str]] = {}
        self._added: dict[str, _Pieces] = {}

    def add(self, name: str, text: str) -> None:
        """A question to be found by its name."""
        pieces = self._added[name] = _pieces(text)
        for piece in self._rarest(pieces):
            self._by_piece.setdefault(piece, []).append(name)

    def find(self, text: str) -> str | None:
        """The name of the most alike question that was added; None if none is alike enough."""
        pieces = _pieces(text)
        names = dict.fromkeys(
            name for piece in self._rarest(pieces) for name in self._by_piece.get(piece, ())
        )
        shared = {name: pieces.shared(self._added[name]) for name in names}
        best = max(shared, key=lambda name: shared[name], default=None)
        return best if best is not None and shared[best] >= LEAST_SHARED else None

    def _rarest(self, pieces: _Pieces) -> list[str]:
        """As many of the rarest pieces as two questions can have and not share any, and one more."""
        in_order = sorted(pieces.letters, key=lambda piece: (self._counts[piece], piece))
        return in_order[: len(in_order) - math.ceil(LEAST_SHARED * len(in_order)) + 1]
