"""Ways to decide whether a hit is an expected passage: by chunk id, anchor, location, text, document.

To add one: a class here, its word in `MATCHED_BY`, a branch in `targets.Matcher`; CONTRIBUTING has the rest.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Protocol

from pytest_kebab_eval.golden.lock import HashedText
from pytest_kebab_eval.matching.locations import Location, Passages
from pytest_kebab_eval.matching.shingles import SHINGLE, length_of, shared_part
from pytest_kebab_eval.model import Cited, Hit, Support, Value
from pytest_kebab_eval.spans import Box, overlap

MATCHED_BY = ("chunk", "anchor", "span", "text", "document")
_ROUNDING = 1e-9  # half of 0.6 is half, whatever floats make of it
LEAST_ALONE = 2 * SHINGLE  # letters of a text that alone tells a passage; shorter ones are everywhere
_FEW = 8  # up to here, looking through a tuple is faster than hashing


class Match(NamedTuple):
    """A target that a hit satisfies, and whether only by being in the right document, or by its text."""

    target: int
    by_document: bool = False
    by_text: bool = False
    coarser: str | None = None  # text | document: the hit lacks what a finer way would have compared
    is_correct: bool = True  # false: it is not satisfied, which is known in a coarser way


Coarser = tuple[tuple[int, str], ...]
"""Targets, by their number, that a hit could be held against only by their `text` or `document`."""


class Ranking(Value, frozen=True):
    """A list of hits, judged."""

    found: tuple[int | None, ...]  # for each target, the rank of its first matching hit
    correct: tuple[int, ...]  # the ranks of the correct hits, ascending
    by_document: bool = False  # a hit counted only for being in the right document
    by_text: bool = False  # a hit counted for its text
    coarser: Coarser = ()  # what hits of the right documents lack, though the targets have it

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
        """Which hits are correct, and where each target was found first."""
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
        """The rank of the first correct hit."""
        ids = self.ids
        for hit in hits:
            if hit.chunk_id in ids:
                return hit.rank
        return None

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:  # noqa: ARG002
        """Whether a target is cited; by its id, so the hits need not be asked."""
        return cited.chunk_id in self.ids


class _HitByHit(ABC):
    """What strategies share that look at one hit at a time."""

    @abstractmethod
    def count(self) -> int:
        """How many targets there are."""

    @abstractmethod
    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The targets that a hit satisfies."""

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:
        """Which hits are correct, and where each target was found first."""
        found: list[int | None] = [None] * self.count()
        correct = []
        by_document = by_text = False
        coarser: set[tuple[int, str]] = set()
        for hit in hits:
            matches = self.matches(hit, passages)
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
        return Ranking(tuple(found), tuple(correct), by_document, by_text, tuple(sorted(coarser)))

    def first(self, hits: Sequence[Hit], passages: Passages) -> int | None:
        """The rank of the first correct hit."""
        return next((hit.rank for hit in hits if self.matches(hit, passages)), None)

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:
        """Whether the cited passage, or a hit that it is of, is a target; a citation has no text."""
        cited_passages = (*hits, _as_hit(cited, passages))
        return any(self.matches(hit, passages.without_texts) for hit in cited_passages)


def _as_hit(cited: Cited, passages: Passages) -> Hit:
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


class ByDocument(_HitByHit):
    """A hit is correct if it is in an expected document."""

    def __init__(self, doc_ids: Sequence[str]) -> None:
        self._targets = {doc_id: (Match(number),) for number, doc_id in enumerate(doc_ids)}

    def count(self) -> int:
        """How many documents are expected."""
        return len(self._targets)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:  # noqa: ARG002
        """The document of the hit, if it is expected."""
        return self._targets.get(hit.doc_id or "", ())


class ByAnchor(_HitByHit):
    """A hit is correct if it has the path, the heading and any snippet of a support."""

    def __init__(self, supports: Sequence[Support]) -> None:
        self._anchors = [
            (support.path, normal_heading(support.heading), [text.casefold() for text in support.snippets])
            for support in supports
        ]

    def count(self) -> int:
        """How many supports there are."""
        return len(self._anchors)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The supports that the hit is."""
        own = normal_heading(" > ".join(hit.heading_path or ()))
        return [
            Match(number)
            for number, (path, heading, snippets) in enumerate(self._anchors)
            if hit.doc_path == path
            and own.startswith(heading)
            and (not snippets or _has_snippet(passages.text(hit), snippets))
        ]


class ByLocation(_HitByHit):
    """A hit is correct if its span overlaps that of an expected chunk in the same document.

    Spans that cannot be compared count as overlapping: the hit is then matched by its document.
    """

    def __init__(self, targets: Sequence[ExpectedLocation], least_overlap: float) -> None:
        self._targets = targets
        self._least_overlap = least_overlap - _ROUNDING

    def count(self) -> int:
        """How many chunks and spans are expected."""
        return len(self._targets)

    def matches(self, hit: Hit, passages: Passages) -> list[Match]:
        """The expected chunks and spans that the hit overlaps enough."""
        extents = None
        found = []
        for number, target in enumerate(self._targets):
            if extents is None and hit.doc_id in target.doc_ids:
                extents = passages.extents(hit)
            by_document = self.match(hit, target, extents or ())
            if by_document is not None:
                found.append(target.match_at(number, by_document=by_document))
        return found

    def match(self, hit: Hit, target: ExpectedLocation, extents: Sequence[Box]) -> bool | None:
        """Whether the hit matches by its document alone; None if it does not match."""
        if hit.doc_id in target.doc_ids:
            share = overlap(extents, target.location.extents)
            if share is None:
                return True
            return False if share >= self._least_overlap else None
        # The location is not known, but the chunk id is the expected one.
        return False if target.is_unknown and hit.chunk_id == target.chunk_id else None


class ByText(_HitByHit):
    """A hit is correct if it shares enough of an expected chunk's text, where a span is not known.

    Where spans are known they decide, and where a text is not known either, the hit is matched by its
    document. If no document is known, text alone decides, at a higher share.
    """

    def __init__(self, targets: Sequence[ExpectedLocation], least_overlap: float) -> None:
        self._targets = targets
        self._by_location = ByLocation(targets, least_overlap)
        self._least_part = least_overlap - _ROUNDING
        self._least_alone = (1 + least_overlap) / 2 - _ROUNDING
        doc_ids = frozenset[str]().union(*(target.doc_ids for target in targets))
        self._doc_ids = doc_ids if all(target.has_document for target in targets) else None

    def count(self) -> int:
        """How many chunks and spans are expected."""
        return len(self._targets)

    def matches(self, hit: Hit, passages: Passages) -> list[Match]:
        """The expected chunks that the hit shares enough of."""
        if self._doc_ids is not None and hit.doc_id not in self._doc_ids and _has_document(hit):
            return []
        compared = _Compared(hit, passages)
        found = []
        for number, target in enumerate(self._targets):
            match = self._match(number, target, compared)
            if match is not None:
                found.append(match)
        return found

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:
        """Whether a target is cited; what has a text is not told by its document alone."""
        cited_passages = (*hits, _as_hit(cited, passages))
        return any(
            not match.by_document or self._targets[match.target].text is None
            for hit in cited_passages
            for match in self.matches(hit, passages.without_texts)
        )

    def _match(self, number: int, target: ExpectedLocation, compared: _Compared) -> Match | None:
        hit = compared.hit
        alone = not _has_document(hit) or not target.has_document
        if not alone and (hit.doc_id not in target.doc_ids or (target.location.extents and compared.extents)):
            return self._match_location(number, target, compared)
        part = self._shared_part(target, compared, alone=alone)
        if part is None:
            return self._match_location(number, target, compared)
        coarser = "text" if target.location.extents and not alone else None
        is_correct = part >= (self._least_alone if alone else self._least_part)
        return Match(number, False, True, coarser, is_correct) if is_correct or coarser else None

    def _match_location(self, number: int, target: ExpectedLocation, compared: _Compared) -> Match | None:
        by_document = self._by_location.match(compared.hit, target, compared.extents)
        return None if by_document is None else target.match_at(number, by_document=by_document)

    def _shared_part(self, target: ExpectedLocation, compared: _Compared, *, alone: bool) -> float | None:
        """How much of the shorter text is shared; None if a text is not known."""
        text = compared.text if target.text is not None else None
        if target.text is None or not text:
            return None
        if alone and compared.hit.chunk_id != target.chunk_id:
            is_short = 0 < min(length_of(target.text), length_of(text)) < LEAST_ALONE
            return 0.0 if is_short else shared_part(target.text, text)
        return shared_part(target.text, text)


class _Compared:
    """A hit that is held against several targets: where it is and what it says are looked up once."""

    def __init__(self, hit: Hit, passages: Passages) -> None:
        self.hit = hit
        self._passages = passages
        self._extents: tuple[Box, ...] | None = None
        self._text: str | None = None

    @property
    def extents(self) -> tuple[Box, ...]:
        """Where it is."""
        if self._extents is None:
            self._extents = self._passages.extents(self.hit)
        return self._extents

    @property
    def text(self) -> str:
        """What it says; empty where that is not known."""
        if self._text is None:
            self._text = self._passages.text(self.hit) or ""
        return self._text


def _has_document(hit: Hit) -> bool:
    """Whether a hit says what document it is from; where that is not known, its own id is stored."""
    return bool(hit.doc_id) and hit.doc_id != hit.chunk_id


class ExpectedLocation(NamedTuple):
    """What is known of a target: it is in one of these documents, at these extents, and has this text."""

    doc_ids: frozenset[str]
    location: Location
    chunk_id: str | None = None
    text: str | HashedText | None = None

    @property
    def has_document(self) -> bool:
        """Whether its document is known."""
        return bool(self.doc_ids) and self.doc_ids != {self.chunk_id}

    def match_at(self, number: int, *, by_document: bool) -> Match:
        """A hit that is this target, by its document alone or by its span or id."""
        is_coarser = by_document and (bool(self.location.extents) or self.text is not None)
        return Match(number, by_document, coarser="document" if is_coarser else None)

    def without(self, way: str) -> ExpectedLocation:
        """The same, to be known by its text, or by its document alone."""
        location = self.location._replace(extents=())
        return self._replace(location=location, text=self.text if way == "text" else None)

    @property
    def is_unknown(self) -> bool:
        """Whether neither its document nor its extents are known."""
        return not self.doc_ids and not self.location.extents


class ByChunkOrLocation(_HitByHit):
    """Expected chunks by their ids, and spans that are targets of their own by where they are."""

    def __init__(self, ids: Sequence[str], spans: ByLocation) -> None:
        self._targets = {chunk_id: Match(number) for number, chunk_id in enumerate(ids)}
        self._spans = spans

    def count(self) -> int:
        """How many chunks and spans are expected."""
        return len(self._targets) + self._spans.count()

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The expected chunk that the hit is, and the expected spans that it overlaps enough."""
        first = len(self._targets)
        found = self._spans.matches(hit, passages)
        spans = [match._replace(target=first + match.target, coarser=None) for match in found]
        chunk = self._targets.get(hit.chunk_id or "")
        return spans if chunk is None else [chunk, *spans]


class Nothing:
    """Nothing is expected, so nothing is correct."""

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:  # noqa: ARG002
        """No hit is correct."""
        return _NOTHING_FOUND

    def first(self, hits: Sequence[Hit], passages: Passages) -> None:
        """No hit is correct."""

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:  # noqa: ARG002
        """No citation is of a target."""
        return False


_NOTHING_FOUND = Ranking((), ())


@cache
def _nothing_found(targets: int) -> Ranking:
    return Ranking((None,) * targets, ())


def _has_snippet(text: str | None, snippets: Sequence[str]) -> bool:
    """Whether any snippet is in the text; where the text is not at hand, no snippet is asked for."""
    if text is None:
        return True
    folded = text.casefold()
    return any(snippet in folded for snippet in snippets)


_DELIMITER = re.compile(r"\s*>\s*")
_MARKS = re.compile(r"(?:^|(?<= > ))#+\s*")


def normal_heading(heading: str) -> str:
    """A heading path as text that compares: single spaces, ` > ` between levels, no `#` marks."""
    spaced = " ".join(heading.split())
    return _MARKS.sub("", _DELIMITER.sub(" > ", spaced)).strip()
