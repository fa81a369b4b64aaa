"""Strategies for chunks of another chunker: by where a passage is, else by its text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.letters import comparable_letters
from pytest_kebab_eval.matching.locations import Location, Passages, has_document
from pytest_kebab_eval.matching.shingles import SHINGLE, is_short, length_of, shared_part
from pytest_kebab_eval.matching.strategies import HitByHit, JudgedHits, Match, as_hit
from pytest_kebab_eval.model import Cited, Hit
from pytest_kebab_eval.spans import Box, overlap, relative_length

LEAST_ALONE = 2 * SHINGLE  # letters of a text that alone tells a passage; shorter ones are everywhere
FAIR_PART = 0.01  # of a hit's length that a target has, or else the hit is not taken for it
_LEAST_OF_SHORT = 8  # short hits are evidence where they have an eighth of a longer target's letters
_ROUNDING = 1e-9  # half of 0.6 is half, whatever floats make of it


class ExpectedLocation(NamedTuple):
    """What is known of a target: it is in one of these documents, at these extents, and has this text."""

    doc_ids: frozenset[str]
    location: Location
    chunk_id: str | None = None
    text: str | None = None

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


class ByLocation(HitByHit):
    """A hit is correct if its span overlaps that of an expected chunk in the same document.

    Spans that cannot be compared count as overlapping: the hit is then matched by its document.
    """

    def __init__(self, targets: Sequence[ExpectedLocation], least_overlap: float) -> None:
        self._targets = targets
        self.count = len(targets)
        self._least_overlap = least_overlap - _ROUNDING

    def matches(self, hit: Hit, passages: Passages) -> list[Match]:
        """The expected chunks and spans that the hit overlaps enough."""
        extents = None
        found = []
        for number, target in enumerate(self._targets):
            if extents is None and hit.doc_id in target.doc_ids:
                extents = passages.extents(hit)
            by_document = self.match(hit, target, extents or ())
            if by_document is not None and not (by_document and passages.is_blank(hit)):
                found.append(target.match_at(number, by_document=by_document))
        return found

    def match(self, hit: Hit, target: ExpectedLocation, extents: Sequence[Box]) -> bool | None:
        """Whether the hit matches by its document alone; None if it does not match."""
        if hit.doc_id in target.doc_ids:
            share = overlap(extents, target.location.extents)
            if share is None:
                return True
            return False if share >= self._least_overlap and _is_fair_part(target, extents) else None
        # The location is not known, but the chunk id is the expected one.
        is_unknown = not target.doc_ids and not target.location.extents
        return False if is_unknown and hit.chunk_id == target.chunk_id else None


def _is_fair_part(target: ExpectedLocation, extents: Sequence[Box]) -> bool:
    length = relative_length(target.location.extents, extents)
    return length is None or length >= FAIR_PART


class ByText(HitByHit):
    """A hit is correct if it shares enough of an expected chunk's text, where a span is not known.

    Where spans are known they decide, and where a text is not known either, the hit is matched by its
    document. If no document is known, text alone decides, at a higher share.
    """

    def __init__(self, targets: Sequence[ExpectedLocation], least_overlap: float) -> None:
        self._targets = targets
        self.count = len(targets)
        self._by_location = ByLocation(targets, least_overlap)
        self._least_part = least_overlap - _ROUNDING
        self._least_alone = (1 + least_overlap) / 2 - _ROUNDING
        doc_ids = frozenset[str]().union(*(target.doc_ids for target in targets))
        self._doc_ids = doc_ids if all(target.has_document for target in targets) else None

    def matches(self, hit: Hit, passages: Passages) -> list[Match]:
        """The expected chunks that the hit shares enough of."""
        if self._doc_ids is not None and hit.doc_id not in self._doc_ids and has_document(hit):
            return []
        compared = _Compared(hit, passages)
        if compared.text is not None and comparable_letters(compared.text) == "" and not compared.extents:
            return []
        matches = (self._match(number, target, compared) for number, target in enumerate(self._targets))
        return [match for match in matches if match is not None]

    def is_cited(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> bool:
        """Whether a target is cited; what has a text is not told by its document alone."""
        cited_passages = (*hits, as_hit(cited, passages))
        return any(
            not match.by_document or self._targets[match.target].text is None
            for hit in cited_passages
            for match in self.matches(hit, passages.without_texts)
        )

    def _match(self, number: int, target: ExpectedLocation, compared: _Compared) -> Match | None:
        hit = compared.hit
        alone = not has_document(hit) or not target.has_document
        if not alone and (hit.doc_id not in target.doc_ids or (target.location.extents and compared.extents)):
            return self._match_location(number, target, compared)
        part = self._shared_part(target, compared, alone=alone)
        if part is None:
            return self._match_location(number, target, compared)
        coarser = "text" if target.location.extents and not alone else None
        is_correct = part >= (self._least_alone if alone else self._least_part)
        if not is_correct and not coarser:
            return None
        return Match(number, False, True, coarser, is_correct)

    def _match_location(self, number: int, target: ExpectedLocation, compared: _Compared) -> Match | None:
        by_document = self._by_location.match(compared.hit, target, compared.extents)
        return None if by_document is None else target.match_at(number, by_document=by_document)

    def _shared_part(self, target: ExpectedLocation, compared: _Compared, *, alone: bool) -> float | None:
        """How much both texts share; None if one is not known."""
        if target.text is None or compared.text is None:
            return None
        is_other = alone and compared.hit.chunk_id != target.chunk_id
        if is_other and any(is_short(text, LEAST_ALONE) for text in (target.text, compared.text)):
            return 0.0
        if len(compared.text) > TEXT_COMPARED and length_of(target.text) < FAIR_PART * TEXT_COMPARED:
            return 0.0  # too long to be compared, and for the target to be a fair part of it
        part = shared_part(target.text, compared.text)
        return part if not part or length_of(target.text) >= FAIR_PART * length_of(compared.text) else 0.0

    def first(self, hits: Sequence[Hit], passages: Passages) -> int | None:
        """The rank of the first correct hit; the others may say that it is none."""
        return self.judge(hits, passages).first

    def review(self, judged: JudgedHits, passages: Passages) -> JudgedHits:
        """Without short hits that are all that speaks for a longer target."""
        by_text = {
            match.target for _, matches in judged for match in matches if match.by_text and match.is_correct
        }
        wrong = {number for number in by_text if self._has_only_short(number, judged, passages)}
        if not wrong:
            return judged
        return [
            (
                hit,
                [
                    match._replace(is_correct=False) if match.by_text and match.target in wrong else match
                    for match in matches
                ],
            )
            for hit, matches in judged
        ]

    def _has_only_short(self, number: int, judged: JudgedHits, passages: Passages) -> bool:
        """Whether a target's hits are all short, and there are longer ones, or they say little."""
        target = self._targets[number].text
        found = [
            passages.text(hit) or ""
            for hit, matches in judged
            if any(match.target == number and match.by_text and match.is_correct for match in matches)
        ]
        if target is None or is_short(target) or not all(map(is_short, found)):
            return False
        texts = (passages.text(hit) for hit, _ in judged)
        has_longer = any(text is not None and not is_short(text) for text in texts)
        return has_longer or _LEAST_OF_SHORT * sum(map(length_of, found)) < length_of(target)


class _Compared:
    """A hit that is compared with several targets: where it is and what it says are looked up once."""

    def __init__(self, hit: Hit, passages: Passages) -> None:
        self.hit = hit
        self._passages = passages
        self._extents: tuple[Box, ...] | None = None  # no cached_property, whose lock takes 4 % of a match
        self.text = passages.text(hit)

    @property
    def extents(self) -> tuple[Box, ...]:
        if self._extents is None:
            self._extents = self._passages.extents(self.hit)
        return self._extents


class ByChunkOrLocation(HitByHit):
    """Expected chunks by their ids, and spans that are targets of their own by where they are."""

    def __init__(self, ids: Sequence[str], spans: ByLocation) -> None:
        self._targets = {chunk_id: Match(number) for number, chunk_id in enumerate(ids)}
        self._spans = spans
        self.count = len(self._targets) + spans.count

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The expected chunk that the hit is, and the expected spans that it overlaps enough."""
        first = len(self._targets)
        found = self._spans.matches(hit, passages)
        spans = [match._replace(target=first + match.target, coarser=None) for match in found]
        chunk = self._targets.get(hit.chunk_id or "")
        return spans if chunk is None else [chunk, *spans]
