"""The chunks of one document that an expected chunk may have become, found without asking all of them.

The gate's rules then decide which of these it is. So a chunk of a long document costs little more than one of
a short document: 2,000 chunks take some four times as long as 500, and six times by hashes if all end with
the same footer (`benchmarks/reanchoring.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from pytest_kebab_eval.golden import HashedText
from pytest_kebab_eval.matching.letters import hash_codes, letters_of, shingle_hashes
from pytest_kebab_eval.matching.located import ExpectedLocation
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.shingles import (
    MOST_SUBSTITUTED,
    SHINGLE,
    shingle_size,
    word_hashes,
)
from pytest_kebab_eval.model import Hit
from pytest_kebab_eval.spans import Box

_OFTEN = 32  # chunks; what more of them have tells little


class Candidates:
    """The chunks of one document, to be looked up by their place and by their text."""

    def __init__(self, hits: Sequence[Hit], passages: Passages, least_part: float) -> None:
        self._hits = hits
        self._passages = passages
        self._least_part = least_part
        self._extents = [passages.extents(hit) for hit in hits]
        boxes: defaultdict[str, list[tuple[int, Box]]] = defaultdict(list)
        for number, extents in enumerate(self._extents):
            for box in extents:
                boxes[box.axis].append((number, box))
        self._places = {axis: _Places(found) for axis, found in boxes.items()}

    def of(self, target: ExpectedLocation) -> Iterator[Hit]:
        """The chunks that may be the target, some of them more than once."""
        extents = target.location.extents
        for box in extents:
            yield from self._numbered(self._places[box.axis].near(box) if box.axis in self._places else ())
        if target.text is not None and not (extents and all(self._extents)):
            yield from self._numbered(self._texts.sharing(target.text))
        yield from self._numbered(self._one_of_each_kind)

    def _numbered(self, numbers: Iterable[int]) -> Iterator[Hit]:
        return (self._hits[number] for number in numbers)

    @cached_property
    def _one_of_each_kind(self) -> list[int]:
        """Where neither spans nor texts compare, the document decides, for all chunks of a kind alike."""
        kinds: dict[object, int] = {}
        for number, extents in enumerate(self._extents):
            axes = tuple(box.axis for box in extents)
            kinds.setdefault(axes or bool(self._passages.text(self._hits[number])), number)
        return list(kinds.values())

    @cached_property
    def _texts(self) -> _Texts:
        return _Texts([self._passages.text(hit) or "" for hit in self._hits], self._least_part)


class _Places:
    """Chunks by where they start; by their length, too, lest one long chunk make all before it candidates."""

    def __init__(self, boxes: Iterable[tuple[int, Box]]) -> None:
        self._by_length: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
        for number, box in boxes:
            start, end = _ends(box)
            self._by_length[int(end - start).bit_length()].append((start, number))
        for found in self._by_length.values():
            found.sort()

    def near(self, box: Box) -> Iterator[int]:
        """Those that overlap the box, and a few more."""
        start, end = _ends(box)
        for length, found in self._by_length.items():
            first, last = bisect_left(found, (start - 2.0**length,)), bisect_left(found, (end,))
            yield from (number for _, number in found[first:last])


def _ends(box: Box) -> tuple[float, float]:
    """Where it starts and ends; a part of a page by its page."""
    return (box.top, box.bottom) if box.axis == "page" else (box.left, box.right)


class _Texts:
    """Chunks by their letters."""

    def __init__(self, texts: Sequence[str], least_part: float) -> None:
        self._texts = texts
        self._letters = letters = [*map(letters_of, texts)]
        self._least_part = least_part
        self._size = min(map(shingle_size, letters), default=SHINGLE)
        self._pieces: dict[int, _PieceIndex] = {}  # by the letters of a shingle
        self._hashes: dict[int, _PieceIndex] = {}
        self._words: dict[int, defaultdict[str, list[int]]] = {}  # by how many letters they have together
        self._short: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(letters):
            if 0 < len(text) < SHINGLE:
                self._short[text].append(number)
        self._short_lengths = {len(text) for text in self._short}

    def sharing(self, text: str | HashedText) -> Iterator[int]:
        """The chunks that may share enough with a text."""
        if isinstance(text, HashedText):
            yield from self._sharing_hashes(text)
            return
        letters = letters_of(text)
        for length in self._short_lengths:
            for short in {*_runs(letters, length)} & self._short.keys():
                yield from self._short[short]
        if len(letters) < SHINGLE:
            yield from (number for number, other in enumerate(self._letters) if letters and letters in other)
        size = min(self._size, shingle_size(letters))
        if size not in self._pieces:
            cut = [_ChunkPieces.of(text, size) for text in self._letters]
            self._pieces[size] = _PieceIndex(cut, self._least_part, 2 * size)
        yield from self._pieces[size].sharing(_ChunkPieces.of(letters, size))

    def _sharing_hashes(self, text: HashedText) -> Iterable[int]:
        if text.is_whole:
            return self._having_words(text.size)[hash_codes(text.hashes)]
        if text.size not in self._hashes:
            hashes = ((shingle_hashes(letters, text.size), len(letters)) for letters in self._letters)
            cut = [_ChunkPieces.of_hashes(codes, 1, length, text.size) for codes, length in hashes]
            self._hashes[text.size] = _PieceIndex(cut, self._least_part, 3 * text.size)
        own = _ChunkPieces.of_hashes(hash_codes(text.hashes), text.size, text.letters, text.size)
        return self._hashes[text.size].sharing(own)

    def _having_words(self, size: int) -> defaultdict[str, list[int]]:
        """Which chunks have the hash of words of so many letters."""
        if size not in self._words:
            self._words[size] = defaultdict(list)
            for number, text in enumerate(self._texts):
                for code in word_hashes(text, size):
                    self._words[size][code].append(number)
        return self._words[size]


class _ChunkPieces(NamedTuple):
    """Pieces of a text, or hashes of them."""

    distinct: set[str]
    length: int  # of the text
    size: int  # of a piece
    around: int  # letters beside a piece that may be shared with it
    searched: str  # the text, or its hashes
    step: int  # how many letters these are apart

    @classmethod
    def of(cls, letters: str, shingle: int) -> _ChunkPieces:
        """Pieces such that texts which share a shingle have one in common.

        Of those that begin within a few letters of each other, the first in the order of letters is chosen.
        """
        size = shingle - shingle // 6
        window = shingle - size + 1
        runs = _runs(letters, size)
        chosen = {min(runs[at : at + window]) for at in range(max(0, len(runs) - window + 1))}
        return cls(chosen, len(letters), size, shingle, letters, 1)

    @classmethod
    def of_hashes(cls, codes: str, step: int, length: int, size: int) -> _ChunkPieces:
        """Hashes that are so many letters apart."""
        return cls({*codes}, length, size, size, codes, step)

    def cover(self, pieces: AbstractSet[str]) -> _Cover:
        """What these pieces, and what is around them, have of the text at most."""
        end = covered = 0
        first = self.length
        for at in sorted(chain.from_iterable(map(self._places, pieces))):
            first = min(first, at)
            start, stop = max(at - self.around, end), min(at + self.size + self.around, self.length)
            covered += max(0, stop - start)
            end = max(end, stop)
        slack = MOST_SUBSTITUTED * self.length
        return _Cover(covered, first - self.around <= slack, end >= self.length - slack)

    def _places(self, piece: str) -> Iterator[int]:
        at = self.searched.find(piece)
        while at >= 0:
            yield at * self.step
            at = self.searched.find(piece, at + 1)


class _Cover(NamedTuple):
    """How many letters of a text, and whether they are at its start and at its end."""

    letters: int
    at_start: bool
    at_end: bool

    def fits(self, other: _Cover) -> bool:
        """Whether not both texts go on with something else beside what they share."""
        return (self.at_start or other.at_start) and (self.at_end or other.at_end)


class _PieceIndex:
    """Which chunks have pieces of a text.

    What very many have, such as a footer, counts where it may be enough of either text, and not both texts
    have something else beside it.
    """

    def __init__(self, texts: Sequence[_ChunkPieces], least_part: float, letters: int) -> None:
        self._texts = texts
        self._least_part = least_part
        self._letters = letters  # that a piece stands for in a shared run, at most
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for number, text in enumerate(texts):
            for piece in text.distinct:
                self._having[piece].append(number)
        # What many chunks have, by how it stands in them: they are asked about together.
        self._often: dict[str, dict[_Cover, list[int]]] = {
            piece: {} for piece, numbers in self._having.items() if len(numbers) > _OFTEN
        }
        for number, text in enumerate(texts):
            if often := text.distinct & self._often.keys():
                cover = self._cover(often, text)
                for piece in often:
                    self._often[piece].setdefault(cover, []).append(number)

    def sharing(self, text: _ChunkPieces) -> Iterator[int]:
        """The chunks that may have enough of the pieces of a text, some of them twice."""
        often = text.distinct & self._often.keys()
        rare = (text.distinct & self._having.keys()) - often
        uncounted = text.cover(often).letters if often else 0
        yield from self._enough(text, (self._having[piece] for piece in rare), uncounted)
        if often:
            cover = self._cover(often, text)
            found = (
                numbers
                for piece in often
                for other, numbers in self._often[piece].items()
                if (cover.letters or other.letters) and cover.fits(other)
            )
            yield from self._enough(text, found)

    def _enough(self, text: _ChunkPieces, found: Iterable[list[int]], uncounted: int = 0) -> Iterator[int]:
        for number, count in Counter(chain.from_iterable(found)).items():
            other = self._texts[number]
            length = min(text.length, other.length)
            if self._is_enough(count, length, uncounted):
                # Hashes are the same by chance, too, the more often the longer the document is.
                shared = text.distinct & other.distinct
                cover = text.cover(shared)
                if cover.letters >= self._least_part * length and cover.fits(other.cover(shared)):
                    yield number

    def _cover(self, often: AbstractSet[str], text: _ChunkPieces) -> _Cover:
        """How what very many have stands in a text: of its letters, whether they may be enough."""
        cover = text.cover(often)
        is_enough = self._is_enough(len(often), text.length)
        may_be_enough = is_enough and cover.letters >= self._least_part * text.length
        return cover._replace(letters=int(may_be_enough))

    def _is_enough(self, count: int, length: int, uncounted: int = 0) -> bool:
        return self._letters * count + uncounted >= max(self._letters, self._least_part * length)


def _runs(letters: str, size: int) -> list[str]:
    """The runs of so many letters, at each place."""
    return [letters[at : at + size] for at in range(len(letters) - size + 1)]
