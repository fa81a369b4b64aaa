"""Stored results that are looked at again, read by key: those of the run that is shown of each query."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_kebab_eval.comparing.facts import Stored
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import Hit, QueryResult
from pytest_kebab_eval.store.database import decode_row

TOGETHER = 500  # queries whose results and passages are in memory at once, read by a few statements


def decoded(query_id: str, rows: Mapping[str, object]) -> Stored:
    """A result of rows that were read by key."""
    return decode_row(query_id, rows[query_id]) if query_id in rows else None


class StoredSide:
    """The results of a side; those asked for next are read together."""

    def __init__(self, passages: Passages, read: Callable[[Sequence[str]], Mapping[str, object]]) -> None:
        self.passages = passages
        self._read = read
        self._coming: list[str] = []
        self._asked: set[str] = set()
        self._found: Mapping[str, object] = {}

    def will_ask(self, query_ids: Iterable[str]) -> None:
        """The queries that come next, in this order; what was read before them is forgotten."""
        self._coming, self._asked, self._found = [*query_ids], set(), {}

    def result(self, query_id: str) -> QueryResult | None:
        """The stored result; None where there is none that can be read."""
        if query_id not in self._asked:
            first = self._coming.index(query_id) if query_id in self._coming else len(self._coming)
            some = self._coming[first : first + TOGETHER] or [query_id]
            del self._coming[: first + len(some)]
            self._asked, self._found = {*some}, self._read(some)
        found = decoded(query_id, self._found)
        return found if isinstance(found, QueryResult) else None

    def hits(self, query_id: str) -> Sequence[Hit]:
        result = self.result(query_id)
        return result.hits if result else ()


class StoredSides:
    """The stored results of both sides, and what the queries want found."""

    def __init__(self, a: StoredSide, b: StoredSide, targets: Callable[[str], Targets]) -> None:
        self.a, self.b, self.targets = a, b, targets

    def will_ask(self, query_ids: Sequence[str]) -> None:
        """The queries that come next; what was read before them is forgotten."""
        self.a.will_ask(query_ids)
        self.b.will_ask(query_ids)
