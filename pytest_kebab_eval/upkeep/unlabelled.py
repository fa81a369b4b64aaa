"""Queries of a comparison, with what nobody has judged: unlabelled top hits of B."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.facts import distinct_hits
from pytest_kebab_eval.evaluate import Evaluation
from pytest_kebab_eval.golden import LockedChunk
from pytest_kebab_eval.inputs import Inputs
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.matching.text import length_of, shared_part
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, is_labelled
from pytest_kebab_eval.open_runs import HITS_KNOWN, OpenRuns, open_runs
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.text.folding import normalized
from pytest_kebab_eval.upkeep.locking import as_locked, found_in_index

_SNIPPET_LENGTH = 120
_LEAST_LETTERS = 16  # of a snippet; a shorter one may be anywhere


class ExpectedPassage(NamedTuple):
    """A target of a query, and what is known of it."""

    id: str
    text: str | None = None
    doc_id: str | None = None
    support: dict[str, Any] | None = None  # by which it is found whatever the chunker
    where: str = ""  # its document and heading


class UnlabelledHit(NamedTuple):
    """A hit of B that the golden file says nothing of."""

    hit: Hit
    text: str | None
    path: str | None
    shared: float | None = None  # of the expected text that it is nearest to; None: it cannot be compared
    nearest: str | None = None  # the target of that text
    support: dict[str, Any] | None = None
    locked: LockedChunk | None = None  # as a lock file has it

    @property
    def id(self) -> str:
        """The chunk, or where the hit has none, the document."""
        return self.hit.chunk_id or self.hit.doc_id or ""


class QueryToReview(NamedTuple):
    """A query, what it expects, and the hits of B that are to be judged."""

    query: GoldenQuery
    expected: tuple[ExpectedPassage, ...]
    hits: tuple[UnlabelledHit, ...]
    lost: tuple[str, ...]  # targets that A found and B did not
    found_by: str  # what labels are written as: chunk | anchor | document
    labelled: frozenset[str] = frozenset()  # chunks that are not asked about: they have a label
    has_own_ids: bool = (
        True  # False: the ids of B's chunks are those of another chunker than the golden file's
    )


def find_unlabelled(
    settings: Settings, inputs: Inputs, evaluation: Evaluation, queries: Sequence[GoldenQuery]
) -> Iterator[QueryToReview]:
    """These queries, without those that expect nothing; some may have no hits left to label."""
    report = evaluation.report
    lost = {comparison.query_id: comparison.lost for comparison in report.per_query}
    shown = report.replicates.shown if report.replicates else {}
    with open_runs(settings, inputs, evaluation.matcher) as runs:
        finder = _Finder(runs, inputs, settings.compare_k)
        known = (HITS_KNOWN[0], max(HITS_KNOWN[1], settings.compare_k))
        for query, evidence in zip(queries, runs.evidence(queries, shown, known), strict=True):
            if evidence.expected:
                yield finder.find(query, evidence, lost.get(query.id, ()))


class _Finder:
    def __init__(self, runs: OpenRuns, inputs: Inputs, compare_k: int) -> None:
        self._runs = runs
        self._a = runs.passages_a
        self._is_exact = inputs.mode is MatchMode.EXACT
        self._version = inputs.run_b.chunker_version
        self._lock = inputs.golden.lock
        self._k = compare_k

    def find(self, query: GoldenQuery, evidence: QueryEvidence, lost: tuple[str, ...]) -> QueryToReview:
        targets = self._runs.targets(query.id)
        found_by = _found_by(targets, is_exact=self._is_exact)
        with_supports = found_by == "anchor" or bool(query.gold_supports)
        expected = self._expected(query, evidence, targets, with_supports=with_supports)
        top = [hit for hit in (evidence.b.hits if evidence.b else ()) if hit.rank <= self._k]
        open_hits = [
            hit
            for hit in _distinct(top, found_by)
            if hit.rank not in evidence.correct_b and not self._is_labelled(query, hit)
        ]
        unlabelled = [self._hit(query, hit, expected, with_supports=with_supports) for hit in open_hits]
        labelled = {hit.chunk_id or hit.doc_id or "" for hit in top if hit not in open_hits}
        documents = {passage.doc_id for passage in expected if passage.doc_id}
        unlabelled.sort(key=lambda hit: (-(hit.shared or 0), hit.hit.doc_id not in documents, hit.hit.rank))
        labelled |= {*query.expected_chunk_ids, *query.relevance} if self._is_exact else set()
        hits = tuple(unlabelled)
        return QueryToReview(query, expected, hits, lost, found_by, frozenset(labelled), self._is_exact)

    def _is_labelled(self, query: GoldenQuery, hit: Hit) -> bool:
        """Whether the golden file names a hit; its chunk ids are not those of another chunker."""
        return is_labelled(query, hit) if self._is_exact else hit.doc_id in query.forbidden_doc_ids

    def _expected(
        self, query: GoldenQuery, evidence: QueryEvidence, targets: Targets, *, with_supports: bool
    ) -> tuple[ExpectedPassage, ...]:
        """The targets, with what is known of them; a document by the hit of A in it."""
        hits = {hit.rank: hit for hit in distinct_hits(evidence.a.hits)} if evidence.a else {}
        found = targets.judge(tuple(hits.values()), self._a).found
        words = {*_words_of(query.query)}
        passages = []
        for name, rank in zip(targets.ids, found, strict=True):
            hit = hits[rank] if rank is not None else Hit(rank=1, chunk_id=name)
            known = evidence.expected_passage(name)
            support = _support_of(hit, words) if with_supports else None
            passages.append(ExpectedPassage(name, known.text or hit.text, hit.doc_id, support, known.where))
        return tuple(passages)

    def _hit(
        self, query: GoldenQuery, hit: Hit, expected: Sequence[ExpectedPassage], *, with_supports: bool
    ) -> UnlabelledHit:
        shares = [
            (share, passage.id)
            for passage in expected
            if passage.text and hit.text and (share := _share_of(passage.text, hit.text)) is not None
        ]
        share, nearest = max(shares, key=lambda found: found[0], default=(None, None))
        return UnlabelledHit(
            hit,
            hit.text or hit.snippet,
            hit.doc_path,
            share,
            nearest if share else None,
            _support_of(hit, {*_words_of(query.query)}) if with_supports else None,
            self._locked(hit) if self._lock else None,
        )

    def _locked(self, hit: Hit) -> LockedChunk | None:
        indexed = found_in_index(hit.chunk_id or "", self._runs.b[0][0].corpus, self._version)
        locked = indexed.chunk if indexed else as_locked(hit)
        if locked is None or locked.text:
            return locked
        return msgspec.structs.replace(locked, text=hit.text)


def _found_by(targets: Targets, *, is_exact: bool) -> str:
    """What tells a hit of the golden file's and of the runs' chunkers."""
    if not targets.has_chunk_targets:
        return "document"
    return "chunk" if is_exact and targets.matched_by != "anchor" else "anchor"


def _distinct(hits: Iterable[Hit], found_by: str) -> Iterator[Hit]:
    """The hits that have an id, each once; where documents are labelled, one hit of each."""
    seen = set()
    for hit in hits:
        name = hit.doc_id if found_by == "document" else hit.chunk_id
        if name and name not in seen:
            seen.add(name)
            yield hit


def _share_of(expected: str, text: str) -> float | None:
    """How much of the expected text another has; 0 also where they are alike and not the same."""
    part, length = shared_part(expected, text), length_of(expected)
    return None if part is None or not length else part * min(length_of(text), length) / length


# -- snippets -----------------------------------------------------------------------------------------


def _support_of(hit: Hit, words: set[str]) -> dict[str, Any] | None:
    """The place of a hit in words that the next chunker keeps; None if its path or text is not known."""
    snippet = _snippet(hit.text, words) if hit.doc_path and hit.text else None
    return {"path": hit.doc_path, "snippets": [snippet]} if snippet else None


def _snippet(text: str, words: set[str]) -> str | None:
    """The sentence, within a line, that has most of the words; of those that have as many, the longest."""
    sentences = (
        sentence.strip()[:_SNIPPET_LENGTH].strip()
        for line in text.splitlines()
        for sentence in re.split(r"(?<=[.!?])\s+|(?<=[。！？])", line)
    )
    long_enough = [found for found in sentences if sum(map(str.isalnum, found)) >= _LEAST_LETTERS]
    return max(
        long_enough, key=lambda found: (len(words.intersection(_words_of(found))), len(found)), default=None
    )


def _words_of(text: str) -> list[str]:
    """The words, as they are compared: case and Unicode forms make no difference."""
    return re.findall(r"\w+", normalized(text).casefold())
