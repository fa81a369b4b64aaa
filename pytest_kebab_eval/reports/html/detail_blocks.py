"""The details of all queries of `report.html`, a block of the list at a time, within the size of a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec
from markupsafe import Markup

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.model import GoldenQuery
from pytest_kebab_eval.reports.html.details import brief_details, query_details
from pytest_kebab_eval.reports.html.markup import Packer, escape_script
from pytest_kebab_eval.reports.html.query_index import (
    QUERIES_A_BLOCK,
    Evidence,
    PageQueries,
    QueryIndex,
)

PAGE_SIZE = 4_000_000  # bytes, for what is not the list of queries, which is always whole
CHARTS_SIZE = 300_000  # of them for all but queries
LEAST_SIZE = 1_000_000  # for details, however long the list is
IN_FULL_AT_LEAST = 300  # queries with the texts of their hits and answers, if they are not too large
IN_FULL_AT_MOST = 1_000  # which is how many are read again, where so many changed
BLOCK_SIZE = 400_000  # bytes of a block, before it is packed; what comes after them is in brief


class DetailBlocks:
    """Script blocks with what queries show when they are opened; the first is plain, the others are packed.

    The first queries of the list are in full, their results read again; the others have what was kept of
    them. Where that is too much for a page, the end of the list has none.
    """

    def __init__(self, index: QueryIndex, queries: PageQueries) -> None:
        self._index = index
        self._briefs = queries.briefs
        self._read = queries.read
        self.in_full = min(max(index.count_changed(), IN_FULL_AT_LEAST), IN_FULL_AT_MOST, len(index.listed))
        list_size = sum(map(len, index.packed_rows))
        self._room = max(PAGE_SIZE - CHARTS_SIZE - list_size, LEAST_SIZE)
        self._room_in_full = self._room // 2

    def __iter__(self) -> Iterator[Markup]:
        """The blocks, made one at a time."""
        listed = self._index.listed
        with closing(self._read(listed[: self.in_full])) as evidence:
            for start in range(0, len(listed), QUERIES_A_BLOCK):
                details = self._encode(listed[start : start + QUERIES_A_BLOCK], evidence)
                script = _script(start // QUERIES_A_BLOCK, details)
                size = len(script.encode())
                if size > self._room:
                    return
                self._room -= size
                self._room_in_full -= size
                yield Markup(script)  # noqa: S704  escaped, or base64

    def _encode(self, queries: list[GoldenQuery], evidence: Evidence) -> bytes:
        """The details of a block as JSON; in full as long as there are results and room for them."""
        encoded: list[bytes] = []
        size = 0
        for query in queries:
            found = next(evidence, None) if self._room_in_full > 0 else None
            if found is not None and size < BLOCK_SIZE:
                encoded.append(self._full(*found))
                size += len(encoded[-1])
            else:
                encoded.append(self._brief(query))
        return b"[%b]" % b",".join(encoded)

    def _full(self, query: GoldenQuery, evidence: QueryEvidence) -> bytes:
        comparison = self._index.comparison(query)
        return msgspec.json.encode(query_details(query, evidence, comparison, alone=self._index.alone))

    def _brief(self, query: GoldenQuery) -> bytes:
        expected = self._briefs.expected(query)
        return msgspec.json.encode(
            brief_details(query, expected, self._index.comparison(query), self._briefs)
        )


def _script(number: int, details: bytes) -> str:
    if number == 0:
        return f'<script type="application/json" id="details-0">{escape_script(details.decode())}</script>\n'
    packer = Packer()
    packer.add(details)
    return f'<script type="text/plain" id="details-{number}">{"".join(packer.finish())}</script>\n'
