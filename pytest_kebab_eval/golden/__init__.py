"""A golden file (YAML, JSON or JSONL) and the lock file beside it -> a `GoldenSet`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden.entries import check_entries
from pytest_kebab_eval.golden.lock import Lock, lock_path, read_lock
from pytest_kebab_eval.golden.packing import PackedQueries, is_unusual, kept
from pytest_kebab_eval.golden.reading import Problem, read_entries
from pytest_kebab_eval.model import GoldenQuery, Value
from pytest_kebab_eval.text import shown_path

__all__ = ["GoldenSet", "Lock", "load_golden_set", "lock_path"]

MAX_PROBLEMS_SHOWN = 50

_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def canonical(query: GoldenQuery) -> bytes:
    """What a query says, always in the same bytes."""
    return _encode_sorted(msgspec.structs.replace(query, line=0, xfail=None))


class Fingerprint:
    """The hash of `canonical` queries, which come in the order of their ids; some may be joined by commas."""

    def __init__(self, queries: Iterable[bytes] = ()) -> None:
        self._content = hashlib.sha256(b"[")
        self._separator = b""
        for query in queries:
            self.add(query)

    def add(self, query: bytes) -> None:
        self._content.update(self._separator + query)
        self._separator = b","

    def hexdigest(self) -> str:
        """The hash, when all have come."""
        content = self._content.copy()
        content.update(b"]")
        return content.hexdigest()


class GoldenSet(Value, frozen=True, dict=True, gc=True):
    """The golden queries of one file, in the file's order, and its lock file if there is one."""

    path: Path
    queries: Sequence[GoldenQuery]
    lock: Lock | None = None

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the queries' content; their order, the layout, comments and xfail do not change it."""
        by_id = self.by_id()
        return Fingerprint(canonical(by_id[query_id]) for query_id in sorted(by_id)).hexdigest()

    def unusual(self) -> Sequence[GoldenQuery]:
        """The queries that are in a group, have an xfail or are not reviewed, in the file's order."""
        if isinstance(self.queries, PackedQueries):
            return self.queries.unusual()
        return [query for query in self.queries if is_unusual(query)]

    def by_id(self) -> Mapping[str, GoldenQuery]:
        return self._by_id

    @cached_property
    def _by_id(self) -> Mapping[str, GoldenQuery]:
        if isinstance(self.queries, PackedQueries):
            return self.queries.by_id()
        return {query.id: query for query in self.queries}


def load_golden_set(path: str | Path) -> GoldenSet:
    """Read and check a golden file; raises one `GoldenError` that lists everything wrong with it."""
    path = Path(path)
    problems: list[Problem] = []
    queries = kept(check_entries(read_entries(path, problems), problems))
    if problems:
        raise GoldenError(_describe(path, problems))
    return GoldenSet(path=path, queries=queries, lock=read_lock(lock_path(path)))


def _describe(path: Path, problems: list[Problem]) -> str:
    name = shown_path(path)
    problems = sorted(problems, key=lambda problem: problem.line)
    lines = [f"{name}:{problem.line}: {problem.text}" for problem in problems]
    if len(lines) == 1:
        return lines[0]
    cut = lines[:MAX_PROBLEMS_SHOWN]
    if len(lines) > len(cut):
        cut.append(f"… and {len(lines) - len(cut)} more")
    return "\n  ".join([f"{name} has {len(lines)} problems:", *cut])
