"""The hits of every query of a run in few bytes, so that two runs' rankings can be compared."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pytest_kebab_eval.model import Hit


class Ranked(NamedTuple):
    """The keys of a query's hits, the best first, and their ranks, None if these are 1, 2, 3, …"""

    keys: Sequence[int]
    ranks: tuple[int, ...] | None = None


def key_of(hit: Hit) -> str | None:
    """What a hit is known by."""
    return hit.chunk_id or hit.doc_id or hit.doc_path


class HitKeys:
    """For each query, in its row, a number for each hit in rank order; equal ids have equal numbers."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._ends = array("q")
        self._cleared: set[int] = set()
        self._gapped: dict[int, tuple[int, ...]] = {}  # the ranks of hits that are not 1, 2, 3, …

    def add(self, hits: Sequence[Hit], chunk_ids: Sequence[str | None]) -> None:
        """The hits of the next query, and their chunk ids."""
        if hits:
            ids = chunk_ids
            if not all(ids):
                ids = [*map(key_of, hits)]
            self._keys.fromlist([*map(hash, ids)])
        self._ends.append(len(self._keys))
        if hits and hits[-1].rank != len(hits):
            self._gapped[len(self._ends) - 1] = tuple(hit.rank for hit in hits)

    def clear(self, row: int) -> None:
        """Forget the hits of a query."""
        self._cleared.add(row)
        self._gapped.pop(row, None)

    def of(self, row: int) -> Ranked:
        """A query's hits, the best first."""
        start = self._ends[row - 1] if row else 0
        keys = self._keys[start : start if row in self._cleared else self._ends[row]]
        return Ranked(keys, self._gapped.get(row))

    def without(self, ids: Iterable[str]) -> set[str]:
        """Which of these ids no hit of the run has."""
        unseen = {hash(name): name for name in ids}
        for key in self._keys:
            unseen.pop(key, None)
        return set(unseen.values())
