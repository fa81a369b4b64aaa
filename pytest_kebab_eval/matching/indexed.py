"""The chunks of one document as the index has them, in its order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from pytest_kebab_eval.matching.letters import letters_of
from pytest_kebab_eval.model import Hit
from pytest_kebab_eval.store import ChunkText


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
