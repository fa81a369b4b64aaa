"""Whether the passage under the same id or span still says what it said: a fact of each run.

Known before is the text of A's hit (or of A's index, where that is not B's), of the lock file, and of
`expected_texts`; B has that of its hit, else of its index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_kebab_eval.golden import Lock
from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import Matcher, Targets
from pytest_kebab_eval.metrics import CHANGED, GONE, KEPT, NOT_STORED, TextStates
from pytest_kebab_eval.model import GoldenQuery, Hit, MatchMode, QueryResult
from pytest_kebab_eval.spans import Box, overlap
from pytest_kebab_eval.text.folding import fold_text, is_blank

_LEAST_BY_ID = 0.5  # of the text before
_LEAST_BY_SPAN = 0.1  # of it, or of B's correct hits together, where these are shorter
_SAME_PLACE = 0.5  # of the shorter span: what A found may be another part of the target than what B found
_PIECES = 8  # of a text: any of them is more than the tenth
_HITS_ALONE = Passages()


class PassageTexts:
    """What all queries have in common: where the texts of passages are known from."""

    def __init__(self, matcher: Matcher, lock: Lock | None, version: str | None, *, own_index: bool) -> None:
        self._matcher, self._lock = matcher, lock
        self._version = version  # of A's chunker
        self.own_index = own_index  # A's index is not B's, which may have been written over it
        self._is_known_without_hits = own_index or lock is not None

    def of(
        self, query: GoldenQuery, targets: Targets, results: Sequence[QueryResult | None]
    ) -> QueryTexts | None:
        """To be shown what each run found, A's first; None where nothing is known before, by id or span."""
        if targets.matched_by not in ("chunk", "span"):
            return None
        if self._is_known_without_hits or query.expected_texts or any(map(_stores_texts, results)):
            return QueryTexts(self, query, targets)
        return None

    def written(self, query: GoldenQuery, chunk_id: str) -> list[str]:
        """What the golden file and the lock file say of a chunk; a blank text is none."""
        found = [query.expected_texts.get(chunk_id)]
        if self._lock is not None and (
            self._matcher.mode is MatchMode.FALLBACK
            or self._lock.version_of(chunk_id) in (self._version, None)
        ):
            locked = self._lock.chunks.get(chunk_id)
            found.append(locked.text if locked else None)
        return [text for text in found if text is not None and not is_blank(text)]

    def may_be_written(self, query: GoldenQuery) -> bool:
        """Whether `written` may say something of the query's chunks."""
        return self._lock is not None or query.expected_texts != {}


def _stores_texts(result: QueryResult | None) -> bool:
    """Whether a run stores the texts of hits, as far as the first and the last tell."""
    hits = result.hits if result else ()
    return hits != () and (hits[0].text is not None or hits[-1].text is not None)


class _Before(NamedTuple):
    """What the passages of a target said in A, and where they were."""

    text: str
    extents: Sequence[Box]


class QueryTexts:
    """Compares what each run has of the passages of one query with what was known of them before."""

    __slots__ = ("_before", "_found", "_known_by_id", "_query", "_spans_before", "_targets", "_texts")

    def __init__(self, texts: PassageTexts, query: GoldenQuery, targets: Targets) -> None:
        self._texts, self._query, self._targets = texts, query, targets
        self._known_by_id = 0  # so many targets, the first ones, are chunks that are known by their ids
        if targets.matched_by == "chunk":
            own_spans = [expected for expected in query.expected_spans if expected.chunk_id is None]
            self._known_by_id = len(targets.ids) - len(own_spans)
        # What is known before is that of the first run of A that knows it.
        self._before: dict[str | None, str] = {}  # by chunk
        self._spans_before: dict[int, _Before] = {}  # by target
        self._found: set[int] = set()  # targets that a run of A found

    def in_a(self, hits: Sequence[Hit], ranking: Ranking, passages: Passages) -> TextStates:
        """Of each target, what became of its text in a run of A; the first of them says what is known."""
        own = passages if self._texts.own_index else _HITS_ALONE
        self._found.update([number for number, rank in enumerate(ranking.found) if rank is not None])
        return self._states(hits, ranking, (passages, own), is_a=True)

    def in_b(self, hits: Sequence[Hit], ranking: Ranking, passages: Passages) -> TextStates:
        """The same in a run of B, of the targets that A found."""
        return self._states(hits, ranking, (passages, passages), is_a=False)

    def _states(
        self, hits: Sequence[Hit], ranking: Ranking, passages: tuple[Passages, Passages], *, is_a: bool
    ) -> TextStates:
        """None of a target that is not found on both sides, or of which no text is known before."""
        if ranking.by_document:
            return ()
        states: list[str | None] = []
        for number, rank in enumerate(ranking.found):
            state = None
            if rank is not None and number in self._found:
                hit = hits[rank - 1] if rank <= len(hits) else None
                if hit is None or hit.rank != rank:  # where ranks have gaps
                    hit = next(hit for hit in hits if hit.rank == rank)
                if number < self._known_by_id:
                    text = passages[1].text(hit)
                    before = self._before.get(hit.chunk_id)
                    if before is None and is_a and text is not None:
                        before = self._before[hit.chunk_id] = text
                    state = KEPT if before is not None and text == before else self._by_id(hit, before, text)
                else:
                    state = self._in_place(number, hits, ranking, passages, is_a=is_a)
                if is_a and state in (None, NOT_STORED) and self._is_written(number, hit):
                    state = KEPT  # nothing is known against it
            states.append(state)
        return tuple(states) if any(states) else ()

    def _in_place(
        self,
        number: int,
        hits: Sequence[Hit],
        ranking: Ranking,
        passages: tuple[Passages, Passages],
        *,
        is_a: bool,
    ) -> str | None:
        """What became of the text of a target that is known by where it is."""
        located, own = passages
        if is_a and number not in self._spans_before:
            hit = next(hit for hit in hits if hit.rank == ranking.found[number])
            text = own.text(hit)
            if text is not None:
                self._spans_before[number] = _Before(text, located.extents(hit))
        right = [hit for hit in hits if hit.rank in ranking.correct]
        return self._by_span(number, right, self._spans_before.get(number), passages)

    def _is_written(self, number: int, hit: Hit) -> bool:
        chunk_id = hit.chunk_id if number < self._known_by_id else self._targets.ids[number]
        return bool(self._texts.written(self._query, chunk_id or ""))

    def _by_id(self, hit: Hit, before: str | None, text: str | None) -> str | None:
        if before is not None and is_blank(before):
            return KEPT
        if text is None:
            return None if before is None else NOT_STORED
        known = self._texts.written(self._query, hit.chunk_id or "")
        known += [before] if before is not None else []
        return _state(known, text, _LEAST_BY_ID, of_shorter=False) if known else None

    def _by_span(
        self,
        number: int,
        right: Sequence[Hit],
        before: _Before | None,
        passages: tuple[Passages, Passages],
    ) -> str | None:
        """Another chunker cuts otherwise, so that a text that changed is none that is worth a word."""
        located, own = passages
        texts = [own.text(hit) for hit in right]
        stored = [text for text in texts if text is not None]
        if len(stored) < len(texts):
            return NOT_STORED if before is not None and not stored else None
        text = "\n".join(stored)
        if before is not None and (is_blank(before.text) or _share_a_piece(before.text, text)):
            return KEPT
        known = self._texts.written(self._query, self._targets.ids[number])
        if before is not None:
            there = [box for hit in right for box in located.extents(hit)]
            if is_blank(text) or (overlap(there, before.extents) or 0.0) >= _SAME_PLACE:
                known.append(before.text)
        if not known:
            return None
        return GONE if _state(known, text, _LEAST_BY_SPAN, of_shorter=True) == GONE else KEPT


def _share_a_piece(one: str, other: str) -> bool:
    """A first look at the raw texts, which most that share anything pass."""
    shorter, longer = sorted((one, other), key=len)
    size = len(shorter) // _PIECES + 1
    pieces = (shorter[at : at + size] for at in range(0, len(shorter), size))
    return any(piece in longer for piece in pieces if len(piece) == size and not piece.isspace())


def _state(known: Sequence[str], text: str, least: float, *, of_shorter: bool) -> str:
    """What became of a text, held against all that it may be."""
    if text in known:
        return KEPT
    if is_blank(text):
        return GONE
    if fold_text(text) in map(fold_text, known):
        return KEPT
    from pytest_kebab_eval.matching.kept import kept_part
    from pytest_kebab_eval.matching.text import comparable_letters

    parts = [kept_part(before, text, of_shorter=of_shorter) for before in known]
    if all(part is not None and part < least for part in parts):
        return GONE
    letters = comparable_letters(text)
    return KEPT if letters is not None and letters in map(comparable_letters, known) else CHANGED
