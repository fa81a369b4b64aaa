"""A golden query and what a run stored for it -> `Facts`, all that most metrics look at.

The index reads what judging many results will ask it for in few statements, since to a server each is a round
trip; what is not read ahead is read when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from pytest_kebab_eval.matching.locations import Passages, has_document
from pytest_kebab_eval.matching.strategies import (
    CitationCheck,
    Ranking,
    check_citations,
    each_resolves,
    first_of_each,
)
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.metrics import AnswerFacts, Containment, Facts, TargetFacts
from pytest_kebab_eval.model import (
    Answer,
    GoldenQuery,
    Hit,
    MatchMode,
    QueryResult,
    Unreadable,
    broken_rules,
    is_labelled,
    members_of,
)
from pytest_kebab_eval.store import Corpus

SHORTEST_CLAIM = 5  # a shorter one means nothing


class QueryJudge:
    """Judges results against what their golden queries want."""

    def __init__(self, matcher: Matcher, cutoff: int) -> None:
        self._matcher = matcher
        self._cutoff = cutoff
        self._across_chunkers = matcher.mode is MatchMode.FALLBACK

    def targets(self, query: GoldenQuery) -> Targets:
        return self._matcher.targets(query)

    def facts(self, query: GoldenQuery, result: QueryResult, passages: Passages, *, is_golden: bool) -> Facts:
        """What is known of the query in a run; one that errored found and answered nothing."""
        targets = self._matcher.targets(query)
        errored = result.error is not None
        hits = () if errored else result.hits
        answer = None if errored else result.answer
        ranking = targets.strategy.judge(hits, passages)
        expected, doc_ids = query.expected_answer, query.expected_doc_ids
        return Facts(  # in their order: by keyword it takes a fifth longer
            TargetFacts(
                targets.gains,
                targets.matched_by,
                targets.has_chunk_targets,
                query.required_support_groups,
                self._across_chunkers or query.alternatives != (),
                query.must_rank_at_most,
                query.require,
            ),
            ranking,
            query.k or self._cutoff,
            *(_document_ranks(doc_ids, hits, query.doc_alternatives) if doc_ids else _NO_DOCUMENTS),
            hits[-1].rank if hits else 0,
            errored,
            bool(result.timed_out),
            is_golden,
            query.can_be_answered if is_golden else None,
            _answer_facts(query, answer, check_citations(answer, hits, targets.strategy, ranking, passages))
            if answer
            else None,
            _containment(expected, hits, passages) if expected is not None else None,
            tuple([hit.rank for hit in hits if targets.forbidden.has(hit)]) if targets.forbidden else None,
            _wrong_ranks(query, hits, ranking.correct)
            if query.relevance and not self._across_chunkers
            else (),
        )

    def ranking(self, query: GoldenQuery, result: QueryResult | None, passages: Passages) -> Ranking:
        """Which hits of a result are correct; none of one that is not there, or that errored."""
        hits = distinct_hits(result.hits) if result and result.error is None else ()
        return self.targets(query).judge(hits, passages)

    def citations_resolve(self, result: QueryResult | None, passages: Passages) -> tuple[bool, ...]:
        """For each citation of a result's answer, whether it leads to a chunk."""
        answer = result.answer if result else None
        if result is None or answer is None:
            return ()
        return each_resolves(answer, result.hits, passages)


def distinct_hits(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """The hits without those of a chunk that was there before: it counts once, at its first rank."""
    seen: set[str | None] = set()
    kept = []
    for hit in hits:
        if hit.chunk_id is None or hit.chunk_id not in seen:
            kept.append(hit)
        seen.add(hit.chunk_id)
    return tuple(kept)


def _wrong_ranks(query: GoldenQuery, hits: Sequence[Hit], correct: Sequence[int]) -> tuple[int, ...]:
    """The ranks of hits that somebody judged, and that are not correct."""
    return tuple(hit.rank for hit in hits if is_labelled(query, hit) and hit.rank not in correct)


_Ranks = tuple[int | None, ...]
_NO_DOCUMENTS: tuple[_Ranks, _Ranks] = ((), ())


def _document_ranks(
    doc_ids: Sequence[str], hits: Sequence[Hit], alternatives: Sequence[tuple[str, ...]]
) -> tuple[_Ranks, _Ranks]:
    """For each document, the rank of its first hit, and its position among the distinct documents."""
    ids = [hit.doc_id for hit in hits]
    ranks: list[int | None] = []
    positions: list[int | None] = []
    for doc_id in doc_ids:
        if doc_id in ids:
            first = ids.index(doc_id)
            ranks.append(hits[first].rank)
            positions.append(len({*ids[:first], None}))
        else:
            ranks.append(None)
            positions.append(None)
    if alternatives:
        members = members_of(doc_ids, alternatives)
        return first_of_each(ranks, members), first_of_each(positions, members)
    return tuple(ranks), tuple(positions)


def _answer_facts(query: GoldenQuery, answer: Answer, citations: CitationCheck) -> AnswerFacts:
    return AnswerFacts(
        answer.grounded,
        broken_rules(query, answer.text) if query.must_contain or query.forbidden else None,
        not answer.text.strip(),
        _has_claim(query, answer) if query.claims else False,
        citations,
    )


def _has_claim(query: GoldenQuery, answer: Answer) -> bool:
    """Whether the answer contains any claim."""
    text = answer.text.casefold()
    return any(len(claim) >= SHORTEST_CLAIM and claim.casefold() in text for claim in query.claims)


def _containment(expected: str, hits: Sequence[Hit], passages: Passages) -> Containment:
    """The rank of the first hit whose text has the expected answer, and whether any text is at hand."""
    wanted = _folded(expected)
    has_texts = False
    for hit in hits:
        text = passages.text(hit) or hit.snippet
        if text:
            has_texts = True
            if wanted in _folded(text):
                return Containment(hit.rank, has_texts=True)
    return Containment(None, has_texts)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# -- what the index is asked for, read ahead -----------------------------------------------------------

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
