"""Ways to decide whether a hit is an expected passage, or a citation of one: by chunk id, anchor, document.

`located` has more. To add one: a class here, its word in `MATCHED_BY`, a branch in `targets.Matcher`;
CONTRIBUTING has the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Protocol

import msgspec

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Answer, Cited, Hit, Span, Support, Value
from pytest_kebab_eval.spans import Box, extent, touches
from pytest_kebab_eval.text.folding import contains, fold_heading, fold_path, is_same_path

MATCHED_BY = ("chunk", "anchor", "span", "text", "document")
_FEW = 8  # up to here, looking through a tuple is faster than hashing


class Match(NamedTuple):
    """A target that a hit satisfies, and whether only by being in the right document, or by its text."""

    target: int
    by_document: bool = False
    by_text: bool = False
    coarser: str | None = None  # text | document: the hit lacks what a finer way would have compared
    is_correct: bool = True  # false: no match; only its text or document could be compared


Coarser = tuple[tuple[int, str], ...]
"""Targets, by their number, that a hit could be compared with only by their `text` or `document`."""


JudgedHits = Sequence[tuple[Hit, Sequence["Match"]]]


class Ranking(Value, frozen=True):
    """A list of hits, judged."""

    found: tuple[int | None, ...]  # for each target, the rank of its first matching hit
    correct: tuple[int, ...]  # the ranks of the correct hits, ascending
    by_document: bool = False  # a hit counted only for being in the right document
    by_text: bool = False  # a hit counted for its text
    coarser: Coarser = ()  # what hits of the right documents lack, although the golden file has it

    @property
    def first(self) -> int | None:
        """The rank of the first correct hit."""
        return self.correct[0] if self.correct else None


class Strategy(Protocol):
    """One way of telling which hits are correct, for the targets of one query."""

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:
        """Which hits are correct, and where each target was found first."""

    def first(self, hits: Sequence[Hit], passages: Passages) -> int | None:
        """The rank of the first correct hit, as `judge` has it; the hits after it are not looked at."""

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:
        """Whether a citation, which is of these hits, is of a target; also one that was not retrieved."""


class ByChunk(Value, frozen=True):
    """A hit is correct if its chunk id is expected."""

    ids: tuple[str, ...]

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:  # noqa: ARG002
        ids = self.ids
        if len(ids) <= _FEW:
            hits = [hit for hit in hits if hit.chunk_id in ids]
            if not hits:
                return _nothing_found(len(ids))
            if len(hits) == 1:  # as most often
                only = hits[0]
                rank, chunk_id = only.rank, only.chunk_id
                return Ranking(tuple([rank if target == chunk_id else None for target in ids]), (rank,))
        ranks = {hit.chunk_id: hit.rank for hit in reversed(hits)}
        found = tuple([ranks.get(target) for target in ids])
        return Ranking(found, tuple(sorted([rank for rank in found if rank is not None])))

    def first(self, hits: Sequence[Hit], passages: Passages) -> int | None:  # noqa: ARG002
        ids = self.ids
        for hit in hits:
            if hit.chunk_id in ids:
                return hit.rank
        return None

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:  # noqa: ARG002
        """Whether a target is cited; by its id, so the hits need not be asked."""
        return cited.chunk_id in self.ids


class AnyOf(Value, frozen=True):
    """Targets of which any alternative will do, each of them known by another strategy."""

    strategy: Strategy
    members: tuple[tuple[int, ...], ...]  # for each target, its alternatives

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:
        ranking = self.strategy.judge(hits, passages)
        return msgspec.structs.replace(ranking, found=first_of_each(ranking.found, self.members))

    def first(self, hits: Sequence[Hit], passages: Passages) -> int | None:
        return self.strategy.first(hits, passages)

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:
        return self.strategy.is_cited(cited, hits, passages)


def first_of_each(ranks: Sequence[int | None], members: Sequence[Sequence[int]]) -> tuple[int | None, ...]:
    """For each target, the best rank of its alternatives."""
    return tuple(
        min((rank for place in places if (rank := ranks[place]) is not None), default=None)
        for places in members
    )


class HitByHit(ABC):
    """What strategies share that look at one hit at a time."""

    count: int  # of the targets

    @abstractmethod
    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The targets that a hit satisfies."""

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:
        found: list[int | None] = [None] * self.count
        correct = []
        by_document = by_text = False
        coarser: set[tuple[int, str]] = set()
        for hit, matches in self.review([(hit, self.matches(hit, passages)) for hit in hits], passages):
            for match in matches:
                if match.coarser:
                    coarser.add((match.target, match.coarser))
                if match.is_correct:
                    by_document = by_document or match.by_document
                    by_text = by_text or match.by_text
                    if found[match.target] is None:
                        found[match.target] = hit.rank
            if matches and any(match.is_correct for match in matches):
                correct.append(hit.rank)
        ways = tuple(sorted(coarser))
        return Ranking(tuple(found), tuple(correct), by_document, by_text, ways)

    def review(self, judged: JudgedHits, passages: Passages) -> JudgedHits:  # noqa: ARG002
        """The matches that hold beside those of the other hits."""
        return judged

    def first(self, hits: Sequence[Hit], passages: Passages) -> int | None:
        for hit in hits:
            for match in self.matches(hit, passages):
                if match.is_correct:
                    return hit.rank
        return None

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:
        """Whether the cited passage, or a hit that it is of, is a target; a citation has no text."""
        cited_passages = (*hits, as_hit(cited, passages))
        return any(self.matches(hit, passages.without_texts) for hit in cited_passages)


def as_hit(cited: Cited, passages: Passages) -> Hit:
    """What a citation says of the passage, as a hit."""
    citation = cited.citation
    path = citation.path if citation else None
    return Hit(
        rank=1,
        chunk_id=cited.chunk_id,
        doc_id=passages.document_at(path) if path else None,
        doc_path=path,
        heading_path=(citation.section,) if citation and citation.section else None,
        citation=citation,
    )


class ByDocument(HitByHit):
    """A hit is correct if it is in an expected document."""

    def __init__(self, doc_ids: Sequence[str]) -> None:
        self._targets = {doc_id: (Match(number),) for number, doc_id in enumerate(doc_ids)}
        self.count = len(self._targets)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:  # noqa: ARG002
        """The document of the hit, if it is expected."""
        return self._targets.get(hit.doc_id or "", ())


class Anchor:
    """A support as it is compared with passages of its document."""

    def __init__(self, support: Support) -> None:
        self.path = fold_path(support.path)
        self.heading = fold_heading(support.heading)
        self.snippets = support.snippets

    def is_above(self, heading_path: Sequence[str]) -> bool:
        """Whether a passage with these headings is under the support's."""
        return fold_heading(" > ".join(heading_path)).startswith(self.heading)

    def is_in(self, text: str | None) -> bool:
        """Whether any snippet is in the text; where the text is not known, no snippet is asked for."""
        if text is None:
            return True
        if any(contains(text, snippet, any_case=True) for snippet in self.snippets):
            return True
        from pytest_kebab_eval.matching.letters import words_of

        words = words_of(text)  # the same without markup
        return any(len(found := words_of(snippet)) > 2 and found in words for snippet in self.snippets)


class ByAnchor(HitByHit):
    """A hit is correct if it has the path, the heading and any snippet of a support."""

    def __init__(self, supports: Sequence[Support]) -> None:
        self._anchors = [Anchor(support) for support in supports]
        self.count = len(supports)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The supports that the hit is; what they do not ask for is not looked up."""
        return [
            Match(number)
            for number, anchor in enumerate(self._anchors)
            if passages.is_at(hit, anchor.path)
            and (not anchor.heading or anchor.is_above(passages.heading_path(hit)))
            and (not anchor.snippets or anchor.is_in(passages.text(hit)))
        ]


@cache
def _nothing_found(targets: int) -> Ranking:
    return Ranking((None,) * targets, ())


# -- citations ---------------------------------------------------------------------------------------


class CitationCheck(Value, frozen=True):
    """What an answer's citations are of; all is false of an answer without any."""

    all_resolve: bool = False  # each to a chunk of the corpus, else to a hit
    only_hits: bool = False  # each is of a hit of this query
    a_correct_hit: bool = False
    a_target: bool = False  # also one that was not retrieved
    has_any: bool = False


NO_CITATIONS = CitationCheck()


def check_citations(
    answer: Answer, hits: Sequence[Hit], strategy: Strategy, ranking: Ranking, passages: Passages
) -> CitationCheck:
    """Look up every citation of the answer."""
    if not answer.citations:
        return NO_CITATIONS
    correct = ranking.correct
    all_resolve = only_hits = True
    a_correct_hit = a_target = False
    index = _CitedHits(hits, passages)
    for cited in answer.citations:
        found = index.of(cited)
        if not found:
            only_hits = False
        elif correct:
            for hit in found:
                if hit.rank in correct:
                    a_correct_hit = True
        all_resolve = all_resolve and _resolves(cited, found, passages)
        a_target = a_target or a_correct_hit or strategy.is_cited(cited, found, passages)
    return CitationCheck(all_resolve, only_hits, a_correct_hit, a_target, True)


def each_resolves(answer: Answer, hits: Sequence[Hit], passages: Passages) -> tuple[bool, ...]:
    """For each citation, whether it is of a chunk of the corpus, or else of a hit."""
    index = _CitedHits(hits, passages)
    return tuple(_resolves(cited, index.of(cited), passages) for cited in answer.citations)


class _CitedHits:
    """The hits of a query, to be found by what cites them; where each is, is looked up once."""

    def __init__(self, hits: Sequence[Hit], passages: Passages) -> None:
        self._hits = hits
        self._passages = passages
        self._by_chunk: dict[str | None, list[Hit]] = {}
        self._extents: dict[int, tuple[Box, ...]] = {}

    def of(self, cited: Cited) -> Sequence[Hit]:
        """The hits that a citation is of: by chunk id, else by path and overlapping span."""
        if cited.chunk_id:
            if not self._by_chunk:
                for hit in self._hits:
                    self._by_chunk.setdefault(hit.chunk_id, []).append(hit)
            return self._by_chunk.get(cited.chunk_id, ())
        citation = cited.citation
        path = citation.path if citation else None
        if citation is None or not path:
            return ()
        found = []
        for is_at in (str.__eq__, is_same_path):
            for hit in self._hits:
                own = hit.citation
                if (
                    is_at(path, hit.doc_path or "") or (own is not None and is_at(path, own.path or ""))
                ) and (own == citation or self._touches(hit, citation)):
                    found.append(hit)
            if found:
                break
        return found

    def _touches(self, hit: Hit, citation: Span) -> bool:
        """Whether a hit at a citation's path is of its span, else of its section."""
        box = extent(citation)
        if box is None and citation.section and not _in_section(hit, citation.section):
            return False
        if hit.rank not in self._extents:
            self._extents[hit.rank] = self._passages.extents(hit)
        return touches(box, self._extents[hit.rank])


def _in_section(hit: Hit, section: str) -> bool:
    """Whether a hit is of a section, as far as it says where it is."""
    wanted = fold_heading(section)
    headings = [fold_heading(heading) for heading in hit.heading_path or ()]
    own = fold_heading(hit.citation.section) if hit.citation and hit.citation.section else None
    if not headings and own is None:
        return True
    path = " > ".join(headings)
    return (
        wanted in (*headings, own)
        or path.startswith(f"{wanted} >")
        or path.endswith(f"> {wanted}")
        or path == wanted
    )


def _resolves(cited: Cited, found: Sequence[Hit], passages: Passages) -> bool:
    if cited.citation is not None and cited.citation.path:
        known = passages.resolves(cited.citation)
        return bool(found) if known is None else known
    return bool(found) or (cited.chunk_id is not None and passages.has_chunk(cited.chunk_id))
