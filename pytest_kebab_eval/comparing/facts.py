"""A golden query and what a run stored for it -> `Facts`, all that checks and most metrics look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from pytest_kebab_eval.comparing.asked import GOLDEN, question_asked
from pytest_kebab_eval.comparing.passage_texts import PassageTexts
from pytest_kebab_eval.comparing.rules import broken_rules, counted_claims, made_claims
from pytest_kebab_eval.matching.citations import CitationCheck, check_citations, uncited
from pytest_kebab_eval.matching.locations import Passages, has_document
from pytest_kebab_eval.matching.strategies import Ranking, first_of_each, text_for_answer
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.metrics import AnswerFacts, Containment, Facts, TargetFacts, TextStates
from pytest_kebab_eval.model import (
    Answer,
    GoldenQuery,
    Hit,
    MatchMode,
    QueryResult,
    Unreadable,
    is_labelled,
    members_of,
)
from pytest_kebab_eval.store import Corpus
from pytest_kebab_eval.text.folding import contains, is_blank

Look = Callable[[Sequence[Hit], Ranking, Passages], TextStates]  # at the passages that a run found
_Ranks = tuple[int | None, ...]
_NO_DOCUMENTS: tuple[_Ranks, _Ranks] = ((), ())


class QueryJudge:
    """Judges results against what their golden queries want."""

    def __init__(self, matcher: Matcher, cutoff: int) -> None:
        self.matcher = matcher
        self._cutoff = cutoff
        self._across_chunkers = matcher.mode is MatchMode.FALLBACK

    def wanted(self, query: GoldenQuery, targets: Targets) -> TargetFacts:
        """What is the same in every run."""
        return TargetFacts(
            targets.gains,
            targets.matched_by,
            targets.has_chunk_targets,
            query.required_support_groups,
            self._across_chunkers or query.alternatives != (),
            query.must_rank_at_most,
            query.require,
            query.must_cite is not None,
        )

    def facts(
        self,
        query: GoldenQuery,
        targets: Targets,
        wanted: TargetFacts,
        result: QueryResult,
        passages: Passages,
        *,
        is_golden: bool,
        texts: Look | None = None,
    ) -> Facts:
        """What is known of the query in a run; one that errored found and answered nothing."""
        errored = result.error is not None
        hits, answer = ((), None) if errored else (result.hits, result.answer)
        ranking = targets.judge(hits, passages)
        expected, doc_ids = query.expected_answer, query.expected_doc_ids
        return Facts(  # in their order: by keyword it takes a fifth longer
            wanted,
            ranking,
            query.k or self._cutoff,
            *(_document_ranks(doc_ids, hits, query.doc_alternatives) if doc_ids else _NO_DOCUMENTS),
            hits[-1].rank if hits else 0,
            errored,
            bool(result.timed_out),
            is_golden,
            query.can_be_answered if is_golden else None,
            _answer_facts(
                query,
                answer,
                check_citations(answer, hits, targets.strategy, ranking, passages),
                uncited(answer, hits, targets.to_cite, passages) if targets.to_cite else (),
            )
            if answer
            else None,
            _containment(expected, hits, passages) if expected is not None else None,
            tuple([hit.rank for hit in hits if targets.forbidden.has(hit)]) if targets.forbidden else None,
            _wrong_ranks(query, hits, ranking) if query.relevance and not self._across_chunkers else (),
            question_asked(query, result) if is_golden and result.query != query.query else GOLDEN,
            texts(hits, ranking, passages) if texts and ranking.correct else (),
        )


def distinct_hits(hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """The hits without those of a chunk that was there before: it counts once, at its first rank."""
    seen: set[str | None] = set()
    kept = []
    for hit in hits:
        if hit.chunk_id is None or hit.chunk_id not in seen:
            kept.append(hit)
        seen.add(hit.chunk_id)
    return tuple(kept)


def _wrong_ranks(query: GoldenQuery, hits: Sequence[Hit], ranking: Ranking) -> tuple[int, ...]:
    """The ranks of hits that somebody judged, and that are not correct."""
    return tuple(hit.rank for hit in hits if is_labelled(query, hit) and hit.rank not in ranking.correct)


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


def _answer_facts(
    query: GoldenQuery, answer: Answer, citations: CitationCheck, not_cited: tuple[str, ...]
) -> AnswerFacts:
    return AnswerFacts(
        answer.grounded,
        broken_rules(query, answer.text) if query.must_contain or query.forbidden else None,
        is_blank(answer.text),
        any(made_claims(query, answer.text)) if counted_claims(query) else None,
        citations,
        not_cited,
    )


def _containment(expected: str, hits: Sequence[Hit], passages: Passages) -> Containment:
    """The rank of the first hit whose text has the expected answer, and whether any text is at hand."""
    has_texts = False
    for hit in hits:
        text = text_for_answer(hit, passages)
        if text is not None:
            has_texts = True
            if contains(text, expected, any_case=True):
                return Containment(hit.rank, has_texts=True)
    return Containment(None, has_texts)


# -- what the index is asked for, read for many queries at once ---------------------------------------

_TOGETHER = 800  # queries whose results are in memory at once

Stored = QueryResult | Unreadable | None
Row = tuple[str, tuple[Stored, ...]]  # a query id, and what each run has stored for it


class IndexReader:
    """Reads what judging results will ask an index for, in few statements: each is a round trip."""

    def __init__(
        self,
        corpus: Corpus,
        matcher: Matcher,
        queries: Mapping[str, GoldenQuery],
        count: int,
        texts: PassageTexts | None = None,
    ) -> None:
        self._corpus, self._matcher, self._queries = corpus, matcher, queries
        self._is_exact = matcher.mode is MatchMode.EXACT
        self._knows_cited: bool | None = None
        self._texts = texts
        self.reads_found = texts is not None and texts.own_index  # texts of what is found are compared
        self._count = count  # of the results that are read in all
        self._located: set[str] = set()  # chunks whose place is asked for, and those whose text may be
        self._read: set[str] = set()
        self._paths: set[str] = set()
        self._scoped: set[str] = set()  # documents, or chunks, whose paths are

    def __bool__(self) -> bool:
        return bool(self._located or self._read or self._paths or self._scoped)

    def add(self, result: QueryResult) -> None:
        """Note what this result will ask for."""
        for cited in result.answer.citations if result.answer else ():
            if cited.citation is not None and cited.citation.path:
                if self._knows_cited is None:
                    self._knows_cited = self._corpus.knows_cited(self._count)
                if not self._knows_cited:
                    self._paths.add(cited.citation.path)
            elif cited.chunk_id and all(cited.chunk_id != hit.chunk_id for hit in result.hits):
                self._located.add(cited.chunk_id)
        query = self._queries.get(result.query_id)
        if query is None:
            return
        if query.gold_supports or query.expected_answer is not None:
            self._read |= {hit.chunk_id for hit in result.hits if hit.chunk_id and hit.text is None}
        elif self._is_exact and (self.reads_found or (self._texts and self._texts.may_be_written(query))):
            expected = query.relevance or query.expected_chunk_ids
            found = [hit for hit in result.hits if hit.text is None and hit.chunk_id in expected]
            self._read |= {hit.chunk_id for hit in found if hit.chunk_id}
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
        """Read it."""
        self._corpus.read_ahead(self._read)
        self._corpus.locate_ahead(self._located)
        self._corpus.cite_ahead(self._paths)
        self._corpus.read_paths(self._scoped)
        for names in (self._located, self._read, self._paths, self._scoped):
            names.clear()


def with_index(rows: Iterable[Row], readers: Sequence[IndexReader | None]) -> Iterator[Row]:
    """The rows, as they come; the index of each run has read what judging them will ask for."""
    asked = [*{id(reader): reader for reader in readers if reader is not None}.values()]
    if not asked:
        yield from rows
        return
    waiting: list[Row] = []
    for query_id, results in rows:
        has_texts = any(isinstance(result, QueryResult) and _has_text(result) for result in results)
        for reader, result in zip(readers, results, strict=True):
            if reader is not None and isinstance(result, QueryResult):
                reader.reads_found = reader.reads_found or has_texts
                reader.add(result)
        if waiting or any(asked):
            waiting.append((query_id, results))
            if len(waiting) == _TOGETHER:
                yield from _read_for(waiting, asked)
        else:  # nothing of the index is asked for: none has to wait for others
            yield query_id, results
        del results  # so that the next ones are decoded into the same memory
    yield from _read_for(waiting, asked)


def _has_text(result: QueryResult) -> bool:
    return bool(result.hits) and result.hits[0].text is not None


def _read_for(waiting: list[Row], readers: Iterable[IndexReader]) -> Iterator[Row]:
    """Empty the list from its start; each row is gone when the next one is judged."""
    for reader in readers:
        reader.read()
    waiting.reverse()
    while waiting:
        yield waiting.pop()


def with_first_of_repeated(result: QueryResult) -> QueryResult:
    """The result, each of its chunks once."""
    hits = distinct_hits(result.hits)
    return result if len(hits) == len(result.hits) else msgspec.structs.replace(result, hits=hits)
