"""A stored row, as the contract reads it (sections 2.2 and 8)."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

from .case import Entry, Run


@dataclass(frozen=True)
class Result:
    """What a run has for a query; `hits` are in order of rank, each chunk once.

    `version` is the run's chunker; `depths` is that of the list, by its last rank, its chunks and its hits.
    """

    hits: tuple[Entry, ...] = ()
    answer: Entry | None = None
    error: str | None = None
    readable: bool = True
    depths: tuple[int, ...] = (0, 0, 0)
    version: str | None = None

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


def result_of(run: Run, query_id: str) -> Result | None:
    """What a run has stored for a query."""
    return read_row(run, query_id) if query_id in run.rows else None


def results_of(run: Run) -> list[Result]:
    """All that a run has stored."""
    return [read_row(run, query_id) for query_id in run.rows]


def read_row(run: Run, query_id: str) -> Result:
    """The row of a query."""
    return read_text(run.rows[query_id], query_id, run.chunker_version)


@functools.lru_cache(maxsize=1000)
def read_text(text: str, query_id: str, version: str | None) -> Result:
    """A row; one that does not parse, is of another query, or whose ranks are wrong, is unreadable."""
    try:
        row = json.loads(text)
    except ValueError:
        return UNREADABLE
    if not isinstance(row, dict) or not isinstance(row.get("hits_top_k"), list):
        return UNREADABLE
    if row.get("query_id", query_id) != query_id:
        return UNREADABLE
    answer = row.get("answer")
    if not ranks_are_valid(row["hits_top_k"]) or (answer is not None and "grounded" not in answer):
        return UNREADABLE
    hits = distinct_hits([{"chunker_version": version, **hit} for hit in row["hits_top_k"]])
    for hit in hits:
        hit["beside"] = hits
    last = max((hit["rank"] for hit in hits), default=0)
    depths = (last, len(hits), len(row["hits_top_k"]))
    return Result(hits, answer, row.get("error"), depths=depths, version=version)


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
