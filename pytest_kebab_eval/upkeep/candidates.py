"""The chunks of one document that an expected chunk may have become, found without asking all of them.

The gate's rules then decide which of these it is. So a chunk of a long document costs little more than one of
a short document: 2,000 chunks take some four times as long as 500 (`benchmarks/reanchoring.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from pytest_kebab_eval.golden.lock import HashedText
from pytest_kebab_eval.matching.letters import letters_of
from pytest_kebab_eval.matching.located import ExpectedLocation
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.shingles import SHINGLE, hash_codes, shingle_hashes, shingle_size
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
        letters = [letters_of(self._passages.text(hit) or "") for hit in self._hits]
        return _Texts(letters, self._least_part)


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

    def __init__(self, letters: Sequence[str], least_part: float) -> None:
        self._letters = letters
        self._least_part = least_part
        self._size = min(map(shingle_size, letters), default=SHINGLE)
        self._pieces: dict[int, _PieceIndex] = {}  # by the letters of a shingle
        self._hashes: dict[int, _PieceIndex] = {}
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
            pieces = [_pieces(text, size) for text in self._letters]
            self._pieces[size] = self._index(pieces, 2 * size, size)
        yield from self._pieces[size].sharing(_pieces(letters, size), len(letters), letters)

    def _sharing_hashes(self, text: HashedText) -> Iterator[int]:
        size = text.size
        if size not in self._hashes:
            hashes = [{*shingle_hashes(letters, size)} for letters in self._letters]
            self._hashes[size] = self._index(hashes, 3 * size)
        return self._hashes[size].sharing({*hash_codes(text.hashes)}, text.letters)

    def _index(self, pieces: Sequence[set[str]], letters: int, around: int = 0) -> _PieceIndex:
        """Of pieces that stand for at most so many letters in a shared run, so many of them on each side."""
        often = _Often(self._letters, around, self._least_part) if around else None
        return _PieceIndex(pieces, [*map(len, self._letters)], self._least_part / letters, often)


class _Often(NamedTuple):
    """Whether pieces that very many chunks have, such as those of a footer, may be enough of a text."""

    letters: Sequence[str]
    around: int  # letters beside a piece that may be shared with it
    least_part: float

    def is_enough(self, text: str, pieces: Iterable[str]) -> bool:
        """By the letters that these pieces, and those around them, have of the text."""
        end = covered = 0
        for start, stop in sorted(self._places(text, pieces)):
            covered += max(0, stop - max(start, end))
            end = max(end, stop)
        return covered >= self.least_part * len(text)

    def _places(self, text: str, pieces: Iterable[str]) -> Iterator[tuple[int, int]]:
        for piece in pieces:
            at = text.find(piece)
            while at >= 0:
                yield max(0, at - self.around), min(len(text), at + len(piece) + self.around)
                at = text.find(piece, at + 1)


class _PieceIndex:
    """Which chunks have pieces of a text; what very many have counts only where it may be enough."""

    def __init__(
        self,
        pieces: Sequence[set[str]],
        lengths: Sequence[int],
        needed: float,
        often: _Often | None = None,  # None: the texts are not known
    ) -> None:
        self._lengths = lengths
        self._by_letters = often
        self._needed = needed  # pieces for each letter of the shorter text
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for number, own in enumerate(pieces):
            for piece in own:
                self._having[piece].append(number)
        self._often = {piece: numbers for piece, numbers in self._having.items() if len(numbers) > _OFTEN}
        self._common = {  # chunks
            number
            for number, own in enumerate(pieces)
            if self._may_be_enough(own & self._often.keys(), lengths[number], often and often.letters[number])
        }
        for piece, numbers in self._often.items():
            self._often[piece] = [number for number in numbers if number in self._common]

    def sharing(self, pieces: set[str], length: int, text: str | None = None) -> Iterator[int]:
        """The chunks that may have enough of the pieces of a text of so many letters."""
        often = pieces & self._often.keys()
        uncounted = 0 if self._may_be_enough(often, length, text) else len(often)
        found = [
            self._often[piece] if uncounted and piece in self._often else self._having[piece]
            for piece in pieces & self._having.keys()
        ]
        for number, count in Counter(chain.from_iterable(found)).items():
            shorter = min(length, self._lengths[number])
            if self._is_enough(count if number in self._common else count + uncounted, shorter):
                yield number

    def _may_be_enough(self, often: set[str], length: int, text: str | None) -> bool:
        """Whether what very many have may be enough of a text."""
        if not self._is_enough(len(often), length):
            return False
        return self._by_letters is None or text is None or self._by_letters.is_enough(text, often)

    def _is_enough(self, count: int, length: int) -> bool:
        return count >= max(1, self._needed * length)


def _pieces(letters: str, shingle: int) -> set[str]:
    """Pieces of a text, such that texts which share a shingle have one in common.

    Of those that begin within a few letters of each other, the first in the order of letters is chosen.
    """
    size = shingle - shingle // 6
    window = shingle - size + 1
    runs = _runs(letters, size)
    return {min(runs[at : at + window]) for at in range(max(0, len(runs) - window + 1))}


def _runs(letters: str, size: int) -> list[str]:
    """The runs of so many letters, at each place."""
    return [letters[at : at + size] for at in range(len(letters) - size + 1)]
