"""A passage that its document has several times: which of the hits that have its text are of its place.

The hits of a query are held against each other and, where the index has the document, against its other
chunks: a copy must not count for the passage only because the passage itself is not among the hits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, combinations

from pytest_kebab_eval.matching.letters import letters_of
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.shingles import SHINGLE, compare_texts, is_short, length_of, shared_part
from pytest_kebab_eval.matching.strategies import JudgedHits, Match
from pytest_kebab_eval.model import Hit, Value
from pytest_kebab_eval.store import ChunkText

_LEAST_OF_SHORT = 8  # short hits are evidence where they have an eighth of a longer target's letters
_MOST_CHUNKS = 16  # of the index that are held against a hit: a footer is in all of them


class _FoundCopy(Value, frozen=True):
    """A chunk that is the target by its text, and its place among the hits; None if it is not one of them."""

    at: int | None
    hit: Hit
    match: Match

    @property
    def length(self) -> int:
        return self.match.place[1] - self.match.place[0]


class FoundTexts:
    """The hits that are a target by their text, held against each other."""

    def __init__(self, judged: JudgedHits, number: int, passages: Passages) -> None:
        self._judged = judged
        self._passages = passages
        self._found = [
            _FoundCopy(at, hit, match)
            for at, (hit, matches) in enumerate(judged)
            for match in matches
            if match.target == number and match.by_text and match.is_correct
        ]

    def only_short(self, target: str | None) -> list[int]:
        """The hits, if they are short and the target is not, and there are longer ones or they say little."""
        if target is None or not all(self._is_short(found.hit) for found in self._found) or is_short(target):
            return []
        has_longer = not all(self._is_short(hit) for hit, _ in self._judged)
        letters = sum(length_of(self._passages.text(found.hit) or "") for found in self._found)
        is_little = _LEAST_OF_SHORT * letters < length_of(target)
        return [found.at for found in self._found if found.at is not None] if has_longer or is_little else []

    def _is_short(self, hit: Hit) -> bool:
        text = self._passages.text(hit)
        return text is None or is_short(text)

    def add_indexed(
        self, match: Callable[[Hit], Match | None], others: Callable[[], Collection[str]]
    ) -> None:
        """Add the chunks of the index that are the target, too, by the text that a hit shares with it."""
        if self._passages.hits_are_all:
            return
        known = {hit.chunk_id for hit, _ in self._judged}
        for found in tuple(self._found):
            document = self._passages.document(found.hit, others)
            for hit in document.having(self._shared_text(found)) if document else ():
                if hit.chunk_id not in known and len(known) < len(self._judged) + _MOST_CHUNKS:
                    known.add(hit.chunk_id)
                    matched = match(hit)
                    if matched and matched.is_correct:
                        self._found.append(_FoundCopy(None, hit, matched))

    def _shared_text(self, found: _FoundCopy) -> str:
        """The middle of the letters that the hit shares with the target."""
        start, stop, offset = found.match.place
        letters = letters_of(self._passages.text(found.hit) or "")[start + offset : stop + offset]
        middle = max(0, (len(letters) - SHINGLE) // 2)
        return letters[middle : middle + SHINGLE]

    def copies(self, around: Callable[[], str | None]) -> tuple[set[int], bool]:
        """The hits of other places, and whether it cannot be told of some: the text beside them is the same.

        Two chunks that have the same part of the target and differ around that are of two places. The one
        that shares more of the target is of the right one, with the chunks beside it if need be.
        """
        copies: set[int] = set()
        is_unclear = False
        for one, other in combinations(self._found, 2):
            if one.at is None and other.at is None:
                continue
            if one.hit.chunk_id == other.hit.chunk_id or not self._are_apart(one, other):
                continue
            less = self._less(one, other, around)
            if less is None:
                is_unclear = True
            elif less.at is not None:
                copies.add(less.at)
        return copies, is_unclear

    def _are_apart(self, one: _FoundCopy, other: _FoundCopy) -> bool:
        (start, stop, _), (other_start, other_stop, _) = one.match.place, other.match.place
        both = min(stop, other_stop) - max(start, other_start)
        if 2 * both < min(stop - start, other_stop - other_start):
            return False
        text, other_text = self._passages.text(one.hit) or "", self._passages.text(other.hit) or ""
        letters, other_letters = letters_of(text), letters_of(other_text)
        shared = shared_part(text, other_text) or 0.0
        return letters == other_letters or shared * min(len(letters), len(other_letters)) < both

    def _less(
        self, one: _FoundCopy, other: _FoundCopy, around: Callable[[], str | None]
    ) -> _FoundCopy | None:
        """Which of two shares less of the target, or of what is around it; None if that is not known."""
        if abs(one.length - other.length) >= SHINGLE:
            return min(one, other, key=lambda found: found.length)
        beside = [self._around(found.hit) for found in (one, other)]
        expected = around()
        if expected is None or not all(beside):
            return None
        lengths = []
        for text in beside:
            shared = compare_texts(expected, text)
            lengths.append(shared.stretch.stop - shared.stretch.start if shared else 0)
        if abs(lengths[0] - lengths[1]) < SHINGLE:
            return None
        return one if lengths[0] < lengths[1] else other

    def _around(self, hit: Hit) -> str:
        document = self._passages.document(hit)
        return document.around(hit.chunk_id) if document else ""


# -- the chunks of one document as the index has them, in its order --------------------------------


class IndexedDocument:
    """What the chunks of a document say, by one chunker."""

    def __init__(self, doc_id: str, chunks: Sequence[ChunkText]) -> None:
        self._doc_id = doc_id
        self._chunks = chunks
        self._position = {chunk.chunk_id: number for number, chunk in enumerate(chunks)}

    @cached_property
    def _letters(self) -> list[str]:
        return [letters_of(chunk.text) for chunk in self._chunks]

    @cached_property
    def _joined(self) -> str:
        return "\n".join(self._letters)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(letters) + 1 for letters in self._letters)]

    def has(self, chunk_id: str | None, text: str) -> bool:
        """Whether the chunk still says that: ids are used again."""
        number = self._position.get(chunk_id or "")
        return number is not None and self._letters[number] == letters_of(text)

    def having(self, piece: str) -> Iterator[Hit]:
        """The chunks with these letters."""
        at = self._joined.find(piece) if piece else -1
        while at >= 0:
            number = bisect_right(self._starts, at) - 1
            chunk = self._chunks[number]
            yield Hit(rank=1, chunk_id=chunk.chunk_id, doc_id=self._doc_id, text=chunk.text)
            at = self._joined.find(piece, self._starts[number + 1])

    def around(self, chunk_id: str | None) -> str:
        """The text of a chunk and of those beside it."""
        number = self._position[chunk_id or ""]
        return "\n".join(chunk.text for chunk in self._chunks[max(0, number - 1) : number + 2])
