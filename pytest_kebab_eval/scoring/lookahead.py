"""Results, many at a time: the index reads what they will be asked about in few statements.

To a server each statement is a round trip; what is not read ahead is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from pytest_kebab_eval.matching.locations import has_document
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import GoldenQuery, MatchMode, QueryResult, Unreadable
from pytest_kebab_eval.store import Corpus

_TOGETHER = 1_600  # results in memory at once


def with_lookahead(
    results: Iterable[QueryResult | Unreadable],
    corpus: Corpus | None,
    matcher: Matcher,
    queries: Mapping[str, GoldenQuery],
) -> Iterator[QueryResult | Unreadable]:
    """The results, as they come; the corpus has read what judging them will ask for."""
    if corpus is None or corpus.is_empty:
        yield from results
        return
    waiting: list[QueryResult | Unreadable] = []
    wanted = _Wanted(corpus, matcher, queries, len(queries))
    for result in results:
        if isinstance(result, QueryResult):
            wanted.add(result)
        if not waiting and not wanted:  # nothing of the index is asked for: none has to wait for others
            yield result
        else:
            waiting.append(result)
        del result  # so that the next one is decoded into the same memory
        if len(waiting) == _TOGETHER:
            wanted.read()
            yield from _one_by_one(waiting)
    wanted.read()
    yield from _one_by_one(waiting)


def _one_by_one(waiting: list[QueryResult | Unreadable]) -> Iterator[QueryResult | Unreadable]:
    """Empty the list from its start; each is gone when the next one is judged."""
    waiting.reverse()
    while waiting:
        yield waiting.pop()


def read_ahead(
    results: Sequence[QueryResult], corpus: Corpus, matcher: Matcher, queries: Mapping[str, GoldenQuery]
) -> None:
    """Have the index read what judging these results will ask for."""
    wanted = _Wanted(corpus, matcher, queries, len(results))
    for result in results:
        wanted.add(result)
    wanted.read()


class _Wanted:
    """What judging results will ask the index for, and it has not read."""

    def __init__(
        self, corpus: Corpus, matcher: Matcher, queries: Mapping[str, GoldenQuery], count: int
    ) -> None:
        self._corpus, self._matcher, self._queries, self._count = corpus, matcher, queries, count
        self._is_exact = matcher.mode is MatchMode.EXACT
        self._located: set[str] = set()  # chunks whose place is asked for, and those whose text may be
        self._read: set[str] = set()
        self._paths: set[str] = set()
        self._scoped: set[str] = set()  # documents, or chunks, whose paths are

    @cached_property
    def _knows_cited(self) -> bool:
        return self._corpus.knows_cited(self._count)

    def __bool__(self) -> bool:
        return bool(self._located or self._read or self._paths or self._scoped)

    def add(self, result: QueryResult) -> None:
        query = self._queries.get(result.query_id)
        for cited in result.answer.citations if result.answer else ():
            if cited.citation is not None and cited.citation.path:
                if not self._knows_cited:
                    self._paths.add(cited.citation.path)
            elif cited.chunk_id and all(cited.chunk_id != hit.chunk_id for hit in result.hits):
                self._located.add(cited.chunk_id)
        if query is None:
            return
        if query.gold_supports or query.expected_answer is not None:
            self._read |= {hit.chunk_id for hit in result.hits if hit.chunk_id and hit.text is None}
        if not self._is_exact or query.expected_spans:
            targets = self._matcher.targets(query)
            near = (hit for hit in result.hits if hit.doc_id in targets.doc_ids or not has_document(hit))
            of_place = self._located if self._is_exact else self._read
            of_place.update(hit.chunk_id for hit in near if hit.chunk_id)
        if result.scope:
            targets = self._matcher.targets(query)
            self._located.update(targets.ids)
            self._scoped |= {*targets.doc_ids} or {*targets.ids}

    def read(self) -> None:
        """Read it in few statements."""
        self._corpus.read_ahead(self._read)
        self._corpus.locate_ahead(self._located)
        self._corpus.cite_ahead(self._paths)
        self._corpus.read_paths(self._scoped)
        for names in (self._located, self._read, self._paths, self._scoped):
            names.clear()
