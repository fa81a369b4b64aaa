"""A stored row, as the contract reads it (sections 2.2 and 8)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .case import Entry


@dataclass(frozen=True)
class Result:
    """What a run has for a query; `hits` are in order of rank, each chunk once."""

    hits: tuple[Entry, ...] = ()
    answer: Entry | None = None
    error: str | None = None
    readable: bool = True

    @property
    def errored(self) -> bool:
        """Whether it counts as an error: a row that cannot be read has nothing to judge either."""
        return self.error is not None or not self.readable

    @property
    def usable_answer(self) -> Entry | None:
        """The answer, if there is one without an error."""
        return None if self.errored else self.answer

    @property
    def shipped(self) -> bool:
        """'exists, has no error and is grounded'."""
        return self.usable_answer is not None and bool(self.usable_answer["grounded"])

    @property
    def refused(self) -> bool:
        """'has `grounded` false'."""
        return self.usable_answer is not None and not self.usable_answer["grounded"]


UNREADABLE = Result(readable=False)


def read_row(text: str) -> Result:
    """A row; one that does not parse, or whose ranks are wrong, is unreadable."""
    try:
        row = json.loads(text)
    except ValueError:
        return UNREADABLE
    if not isinstance(row, dict) or not isinstance(row.get("hits_top_k"), list):
        return UNREADABLE
    answer = row.get("answer")
    if not ranks_are_valid(row["hits_top_k"]) or (answer is not None and "grounded" not in answer):
        return UNREADABLE
    return Result(distinct_hits(row["hits_top_k"]), answer, row.get("error"))


def ranks_are_valid(hits: list[Any]) -> bool:
    """'one that is missing, below 1 or repeated makes the row unreadable'."""
    ranks = [hit.get("rank") for hit in hits]
    return all(isinstance(rank, int) and rank >= 1 for rank in ranks) and len(set(ranks)) == len(ranks)


def distinct_hits(hits: list[Entry]) -> tuple[Entry, ...]:
    """'Ranks come from `rank`, not from the order'; 'a chunk that a result holds twice counts once'."""
    first: dict[str, Entry] = {}
    for hit in sorted(hits, key=lambda hit: hit["rank"]):
        first.setdefault(hit["chunk_id"], hit)
    return tuple(first.values())
