"""Results, many at a time: the index reads what they will be asked about in few statements.

To a server each statement is a round trip; what is not read ahead is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

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
    if corpus is None or not (corpus.has_chunks or corpus.has_paths):
        yield from results
        return
    results = iter(results)
    while some := [*islice(results, _TOGETHER)]:
        read_ahead([result for result in some if isinstance(result, QueryResult)], corpus, matcher, queries)
        some.reverse()
        while some:  # each is gone when the next one is judged
            yield some.pop()


def read_ahead(
    results: Iterable[QueryResult], corpus: Corpus, matcher: Matcher, queries: Mapping[str, GoldenQuery]
) -> None:
    """Have the index read what judging these results will ask for."""
    located: set[str] = set()  # chunks whose place is asked for, and those whose text may be
    read: set[str] = set()
    paths: set[str] = set()
    scoped: set[str] = set()  # documents, or chunks, whose paths are
    is_exact = matcher.mode is MatchMode.EXACT
    for result in results:
        query = queries.get(result.query_id)
        for cited in result.answer.citations if result.answer else ():
            if cited.citation is not None and cited.citation.path:
                paths.add(cited.citation.path)
            elif cited.chunk_id and all(cited.chunk_id != hit.chunk_id for hit in result.hits):
                located.add(cited.chunk_id)
        if query is None:
            continue
        if query.gold_supports or query.expected_answer is not None:
            read |= {hit.chunk_id for hit in result.hits if hit.chunk_id and hit.text is None}
        if not is_exact or query.expected_spans:
            targets = matcher.targets(query)
            near = (hit for hit in result.hits if hit.doc_id in targets.doc_ids or not has_document(hit))
            (located if is_exact else read).update(hit.chunk_id for hit in near if hit.chunk_id)
        if result.scope:
            targets = matcher.targets(query)
            located.update(targets.ids)
            scoped |= {*targets.doc_ids} or {*targets.ids}
    corpus.read_ahead(read)
    corpus.locate_ahead(located)
    corpus.cite_ahead(paths)
    corpus.read_paths(scoped)
