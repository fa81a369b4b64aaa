"""What a page shows of every result, kept in few bytes while a run is scored: none is read again for it."""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import GoldenQuery, Hit, QueryResult
from pytest_kebab_eval.text import brief

HITS_KEPT = 10  # of a result, and beyond them the correct ones
CORRECT_KEPT = 40  # below the first hits
NAME_KEPT = 200  # characters of an id
ERROR_KEPT = 300
RECORD_SIZE = HITS_KEPT * NAME_KEPT // 2  # bytes; ids of a longer one are cut
RESULTS_A_BLOCK = 64
PLAIN_SIZE = 4_000_000  # bytes of a run that are kept as they are; further ones are compressed

_encode = msgspec.json.Encoder().encode


class RunBriefs:
    """For each golden query of a run: ids and ranks of its hits, which are correct, its time, its error.

    Kept as JSON in blocks: `[[id, …], [correct rank, …], milliseconds, answered]`; `answered` is
    false for a refusal, null without an answer; an object with what is unusual may follow.
    """

    def __init__(self) -> None:
        self._rows: dict[str, int] = {}
        self._blocks: list[bytes] = []
        self._plain_blocks = 0  # the first ones; the others are compressed
        self._kept = 0  # results in the blocks
        self._last: list[bytes] = []  # of the block that is not full yet
        self.size = 0  # bytes in the blocks
        self._opened: tuple[int, list[bytes]] = (-1, [])  # the block that was read last
        self.errored: set[str] = set()
        self.times = array("d")  # in milliseconds

    def __contains__(self, query_id: object) -> bool:
        return query_id in self._rows

    def add(
        self, query_id: str, result: QueryResult, ids: Sequence[str | None], correct: tuple[int, ...]
    ) -> None:
        """Keep a result with its chunk ids; one that was kept for the query before no longer counts."""
        if result.elapsed_ms is not None:
            self.times.append(result.elapsed_ms)
        self._keep(query_id, result, ids, correct)

    def replace(self, query_id: str, result: QueryResult, correct: tuple[int, ...]) -> None:
        """Keep a result that was kept before, of which other hits are correct now."""
        self._keep(query_id, result, [hit.chunk_id for hit in result.hits], correct)

    def _keep(
        self, query_id: str, result: QueryResult, ids: Sequence[str | None], correct: tuple[int, ...]
    ) -> None:
        time, answer = result.elapsed_ms, result.answer
        answered = answer.grounded if answer else None
        record = None
        if result.error is not None:
            self.errored.add(query_id)
        elif not result.timed_out and all(ids) and _counts_up(result.hits):
            plain = _encode((ids, correct, time, answered))
            record = plain if _is_plain(plain) else None
        last = self._last
        self._rows[query_id] = self._kept + len(last)
        last.append(record or _encode(_unusual(result, correct, answered)))
        if len(last) == RESULTS_A_BLOCK:
            self._close_block()

    def _close_block(self) -> None:
        block = b"\n".join(self._last)
        if self.size < PLAIN_SIZE:
            self._plain_blocks += 1
        else:
            block = zlib.compress(block, 1)
        self.size += len(block)
        self._blocks.append(block)
        self._kept += RESULTS_A_BLOCK
        self._last = []

    def of(self, query_id: str) -> msgspec.Raw | None:
        """What is kept of a query's result, as JSON; None if the run has none."""
        row = self._rows.get(query_id)
        if row is None:
            return None
        block, place = divmod(row, RESULTS_A_BLOCK)
        return msgspec.Raw(self._open(block)[place])

    def _open(self, block: int) -> list[bytes]:
        if block == len(self._blocks):
            return self._last
        if block != self._opened[0]:
            data = self._blocks[block]
            records = data if block < self._plain_blocks else zlib.decompress(data)
            self._opened = block, records.split(b"\n")
        return self._opened[1]


def _counts_up(hits: Sequence[Hit]) -> bool:
    """Whether there are few hits, of ranks 1, 2, 3, …; nearly always."""
    return not hits or (len(hits) <= HITS_KEPT and hits[-1].rank == len(hits))


def _is_plain(record: bytes) -> bool:
    """Whether no id is long or not printable; ASCII that JSON does not escape is, but for DEL."""
    if len(record) > RECORD_SIZE or b"\\" in record or b"\x7f" in record:
        return False
    return record.isascii() or record.decode().isprintable()


def _unusual(result: QueryResult, correct: tuple[int, ...], answered: bool | None) -> tuple[Any, ...]:
    right = {*correct}
    kept = [hit for place, hit in enumerate(result.hits) if place < HITS_KEPT or hit.rank in right]
    kept = kept[: HITS_KEPT + CORRECT_KEPT]
    more: dict[str, Any] = {"ranks": [hit.rank for hit in kept], "more": len(result.hits) - len(kept)}
    if result.error is not None:
        more["error"] = brief(result.error, ERROR_KEPT)
    if result.timed_out:
        more["timed_out"] = True
    shown = [hit.rank for hit in kept if hit.rank in right]
    return [_name(hit) for hit in kept], shown, result.elapsed_ms, answered, more


def _name(hit: Hit) -> str:
    name = hit.chunk_id or hit.doc_path or hit.doc_id or ""
    return name if len(name) <= NAME_KEPT and name.isprintable() else brief(name, NAME_KEPT)


class ChosenBriefs(RunBriefs):
    """The results of several runs, one for each query; times are those of all."""

    def __init__(self, runs: Sequence[RunBriefs], chosen: Callable[[str], int]) -> None:
        super().__init__()
        self._runs = runs
        self._chosen = chosen
        for run in runs:
            self.times.extend(run.times)
        self.errored = {
            query_id
            for number, run in enumerate(runs)
            for query_id in run.errored
            if chosen(query_id) == number
        }

    def __contains__(self, query_id: object) -> bool:
        return any(query_id in run for run in self._runs)

    def of(self, query_id: str) -> msgspec.Raw | None:
        """What is kept of the result that is shown."""
        return self._runs[self._chosen(query_id)].of(query_id) if self._runs else None


class Briefs:
    """An observer that keeps the results of both sides in brief; `a` is empty where run B is judged alone."""

    def __init__(self) -> None:
        self._runs: dict[str, list[RunBriefs]] = {"a": [], "b": []}
        self.matcher: Matcher | None = None
        self.a = self.b = RunBriefs()

    def watch(self, side: str) -> RunBriefs:
        """What keeps the results of the next run of a side."""
        self._runs[side].append(RunBriefs())
        return self._runs[side][-1]

    def finish(
        self, queries: Iterable[GoldenQuery], matcher: Matcher, shown: Mapping[str, tuple[int, int]]
    ) -> None:
        """Have all targets found while the databases are open, and choose the runs that are shown."""
        for query in queries:
            matcher.target_ids(query)
        self.matcher = matcher
        self.a, self.b = (self._chosen(side, number, shown) for number, side in enumerate("ab"))

    def _chosen(self, side: str, number: int, shown: Mapping[str, tuple[int, int]]) -> RunBriefs:
        runs = self._runs[side]
        if len(runs) == 1:
            return runs[0]
        return ChosenBriefs(runs, lambda query_id: shown.get(query_id, (0, 0))[number])

    def expected(self, query: GoldenQuery) -> tuple[str, ...]:
        """The ids of what a query wants found."""
        return self.matcher.target_ids(query) if self.matcher else ()
