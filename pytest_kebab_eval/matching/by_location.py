"""Passages of any chunker: by where they are, else by what they say, else by their document."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

from pytest_kebab_eval.limits import TEXT_COMPARED
from pytest_kebab_eval.matching.locations import ExpectedLocation, Passages, has_document
from pytest_kebab_eval.matching.strategies import JudgedHits, Match, Strategy, as_hit
from pytest_kebab_eval.matching.text import SHINGLE, has_no_letters, is_short, length_of, shared_part
from pytest_kebab_eval.model import Cited, Hit
from pytest_kebab_eval.spans import Box, overlap, relative_length

LEAST_ALONE = 2 * SHINGLE  # letters of a text that alone tells a passage; shorter ones are everywhere
FAIR_PART = 0.01  # of a hit's length that a target has, or else the hit is not taken for it
_LEAST_OF_SHORT = 8  # short hits are evidence where they have an eighth of a longer target's letters
_ROUNDING = 1e-9  # half of 0.6 is half, whatever floats make of it


class ByLocation(Strategy):
    """A hit is correct if it shares enough of an expected passage.

    In the passage's document, spans decide; where one is not known, texts; where one of those is not known
    either, being in the document is enough. Where no document is known, text alone decides, at a higher
    share, and then the chunk id.
    """

    def __init__(
        self, targets: Sequence[ExpectedLocation], least_overlap: float, *, asks_coarser: bool = True
    ) -> None:
        self._targets = targets
        self.count = len(targets)
        self._least_part = least_overlap - _ROUNDING
        self._least_alone = (1 + least_overlap) / 2 - _ROUNDING
        self._asks_coarser = asks_coarser
        doc_ids = frozenset[str]().union(*(target.doc_ids for target in targets))
        self._doc_ids = doc_ids if all(target.has_document for target in targets) else None

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The expected passages that the hit shares enough of."""
        if self._doc_ids is not None and hit.doc_id not in self._doc_ids and has_document(hit):
            return ()
        found = _Found(hit, passages)
        matches = [self._match(number, target, found) for number, target in enumerate(self._targets)]
        return [match for match in matches if match is not None]

    def _match(self, number: int, target: ExpectedLocation, found: _Found) -> Match | None:
        hit, is_in_document = found.hit, found.hit.doc_id in target.doc_ids
        alone = not target.has_document or not has_document(hit)
        if not alone and not is_in_document:
            return None
        if alone or not target.extents or not found.extents:
            part = self._shared_part(target, found, alone=alone)
            if part is not None:
                is_correct = part >= (self._least_alone if alone else self._least_part)
                coarser = self._coarser("text", target.extents and not alone and not found.has_no_letters)
                return Match(number, False, True, coarser, is_correct) if is_correct or coarser else None
        if is_in_document:
            return self._match_span(number, target, found)
        is_unknown = not target.doc_ids and not target.extents
        return Match(number) if is_unknown and hit.chunk_id == target.chunk_id else None

    def _match_span(self, number: int, target: ExpectedLocation, found: _Found) -> Match | None:
        """A hit in the target's document; spans that cannot be compared count as overlapping."""
        share = overlap(found.extents, target.extents)
        if share is not None:
            return Match(number) if share >= self._least_part and _is_fair_part(target, found) else None
        if found.has_no_letters:
            return None
        return Match(
            number, True, coarser=self._coarser("document", target.extents or target.text is not None)
        )

    def _coarser(self, way: str, is_coarser: object) -> str | None:
        return way if is_coarser and self._asks_coarser else None

    def _shared_part(self, target: ExpectedLocation, found: _Found, *, alone: bool) -> float | None:
        """How much both texts share; None if one is not known."""
        if target.text is None or (text := found.text) is None:
            return None
        is_other = alone and found.hit.chunk_id != target.chunk_id
        if is_other and (is_short(target.text, LEAST_ALONE) or is_short(text, LEAST_ALONE)):
            return 0.0
        if len(text) > TEXT_COMPARED and length_of(target.text) < FAIR_PART * TEXT_COMPARED:
            return 0.0  # too long to be compared, and for the target to be a fair part of it
        part = shared_part(target.text, text)
        return part if not part or length_of(target.text) >= FAIR_PART * length_of(text) else 0.0

    def cited_targets(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> Iterator[int]:
        """The targets that are cited; what has a text is not told by its document alone."""
        for hit in (*hits, as_hit(cited, passages)):
            for match in self.matches(hit, passages.without_texts):
                if not match.by_document or self._targets[match.target].text is None:
                    yield match.target

    def doubtful(self, judged: JudgedHits, passages: Passages) -> Collection[int]:
        """The targets for which only short hits speak, although there are longer ones, or they say little."""
        by_text: dict[int, list[str]] = {}
        for hit, matches in judged:
            for match in matches:
                if match.by_text and match.is_correct:
                    by_text.setdefault(match.target, []).append(passages.text(hit) or "")
        expected = {number: self._targets[number].text or "" for number in by_text}
        only_short = {
            number
            for number, texts in by_text.items()
            if not is_short(expected[number]) and all(map(is_short, texts))
        }
        if not only_short or any(not is_short(passages.text(hit) or "") for hit, _ in judged):
            return only_short
        return {
            number
            for number in only_short
            if _LEAST_OF_SHORT * sum(map(length_of, by_text[number])) < length_of(expected[number])
        }


def _is_fair_part(target: ExpectedLocation, found: _Found) -> bool:
    length = relative_length(target.extents, found.extents)
    return length is None or length >= FAIR_PART


class _Found:
    """A hit that is compared with several targets: where it is and what it says are looked up once."""

    def __init__(self, hit: Hit, passages: Passages) -> None:
        self.hit = hit
        self._passages = passages

    @cached_property
    def extents(self) -> tuple[Box, ...]:
        """Where it is."""
        return self._passages.extents(self.hit)

    @cached_property
    def text(self) -> str | None:
        """What it says."""
        return self._passages.text(self.hit)

    @property
    def has_no_letters(self) -> bool:
        """Whether its text is known, and has no letters."""
        return self.text is not None and has_no_letters(self.text)
