"""What a page shows of every result, kept in few bytes while a run is scored: none is read again for it."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
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

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


class RunBriefs:
    """For each golden query of a run: ids and ranks of its hits, which are correct, its time, its error.

    Kept as JSON: `[[id, …], [correct rank, …], milliseconds, answered]`; `answered` is false for a
    refusal, null without an answer; an object with what is unusual may follow.
    """

    def __init__(self) -> None:
        self.records: dict[str, bytes] = {}
        self.errored: set[str] = set()
        self.times = array("d")  # in milliseconds

    def __contains__(self, query_id: object) -> bool:
        return query_id in self.records

    def add(
        self, query_id: str, result: QueryResult, ids: Sequence[str | None], correct: tuple[int, ...]
    ) -> None:
        """Keep a result with its chunk ids; one that was kept for the query before no longer counts."""
        time, answer = result.elapsed_ms, result.answer
        if time is not None:
            self.times.append(time)
        answered = answer.grounded if answer else None
        if result.error is not None:
            self.errored.add(query_id)
        elif not result.timed_out and all(ids) and _counts_up(result.hits):
            plain = _encode((ids, correct, time, answered))
            if _is_plain(plain):
                self.records[query_id] = plain
                return
        self.records[query_id] = _encode(_unusual(result, correct, answered))

    def of(self, query_id: str) -> list[Any] | None:
        """What is kept of a query's result; None if the run has none."""
        record = self.records.get(query_id)
        return None if record is None else _decode(record)


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


class Briefs:
    """An observer that keeps the results of both sides in brief; `a` is empty where run B is judged alone."""

    def __init__(self) -> None:
        self._runs: dict[int, RunBriefs] = {}  # by the number of the run, those of A first
        self._matcher: Matcher | None = None
        self.a = self.b = RunBriefs()

    @property
    def matcher(self) -> Matcher | None:
        return self._matcher

    def add(self, run: int, query_id: str, result: QueryResult, correct: tuple[int, ...]) -> None:
        """Keep a result of the run of that number."""
        ids = [hit.chunk_id for hit in result.hits]
        self._runs.setdefault(run, RunBriefs()).add(query_id, result, ids, correct)

    def finish(self, matcher: Matcher, count_a: int, runs: int, shown: Mapping[str, tuple[int, int]]) -> None:
        """Choose the runs that are shown."""
        self._matcher = matcher
        self.a = self._chosen(range(count_a), 0, shown)
        self.b = self._chosen(range(count_a, runs), 1, shown)

    def _chosen(self, runs: range, position: int, shown: Mapping[str, tuple[int, int]]) -> RunBriefs:
        """Of several runs, for each query the one that is shown; times are those of all."""
        if len(runs) == 1:
            return self._runs.get(runs[0], RunBriefs())
        chosen = RunBriefs()
        for number, run in enumerate(self._runs[run] for run in runs if run in self._runs):
            chosen.times.extend(run.times)
            for query_id, record in run.records.items():
                if shown.get(query_id, (0, 0))[position] == number:
                    chosen.records[query_id] = record
                    chosen.errored |= run.errored & {query_id}
        return chosen

    def expected(self, query: GoldenQuery) -> tuple[str, ...]:
        """The ids of what a query wants found."""
        return self._matcher.target_ids(query) if self._matcher else ()
