"""Ways to decide which hits are correct: by chunk id, document or anchor; `by_location` has another.

To add one: a subclass of `Strategy`, its word in `MATCHED_BY`, a branch in `targets.Matcher`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.model import Cited, Hit, Support, Value
from pytest_kebab_eval.text.folding import contains, fold_heading, fold_path

MATCHED_BY = ("chunk", "anchor", "span", "text", "answer", "document")
_FEW = 8  # up to here, looking through a tuple is faster than hashing


class Match(NamedTuple):
    """A target that a hit satisfies, and whether only by being in the right document, or by its text."""

    target: int
    by_document: bool = False
    by_text: bool = False
    coarser: str | None = None  # text | document: the hit lacks what a finer way would have compared
    is_correct: bool = True  # false: no match; only its text or document could be compared


JudgedHits = Sequence[tuple[Hit, Sequence[Match]]]
Coarser = tuple[tuple[int, str], ...]
"""Targets, by their number, that a hit could be compared with only by their `text` or `document`."""


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


class Strategy:
    """One way to tell which hits are correct, for the targets of one query; by default hit by hit."""

    __slots__ = ()
    count: int  # of the targets

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The targets that a hit satisfies."""
        raise NotImplementedError

    def doubtful(self, judged: JudgedHits, passages: Passages) -> Collection[int]:  # noqa: ARG002
        """The targets whose matches by text do not count, when all hits are seen together."""
        return ()

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:
        """Which hits are correct, and where each target was found first."""
        judged = [(hit, self.matches(hit, passages)) for hit in hits]
        doubtful = self.doubtful(judged, passages)
        found: list[int | None] = [None] * self.count
        correct = []
        by_document = by_text = False
        coarser: set[tuple[int, str]] = set()
        for hit, matches in judged:
            is_correct = False
            for match in matches:
                if match.coarser:
                    coarser.add((match.target, match.coarser))
                if match.is_correct and not (match.by_text and match.target in doubtful):
                    is_correct = True
                    by_document = by_document or match.by_document
                    by_text = by_text or match.by_text
                    if found[match.target] is None:
                        found[match.target] = hit.rank
            if is_correct:
                correct.append(hit.rank)
        return Ranking(tuple(found), tuple(correct), by_document, by_text, tuple(sorted(coarser)))

    def cited_targets(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> Iterator[int]:
        """The targets that a citation, which is of these hits, is of; a citation has no text."""
        for hit in (*hits, as_hit(cited, passages)):
            yield from (match.target for match in self.matches(hit, passages.without_texts))


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


class ByChunk(Strategy):
    """A hit is correct if its chunk id is expected; as most queries are, so that each step is a short one."""

    __slots__ = ("ids",)

    def __init__(self, ids: tuple[str, ...]) -> None:
        self.ids = ids

    def judge(self, hits: Sequence[Hit], passages: Passages) -> Ranking:  # noqa: ARG002
        """The ranks of the expected chunks."""
        ids = self.ids
        if len(ids) <= _FEW:
            hits = [hit for hit in hits if hit.chunk_id in ids]
            if not hits:
                return _nothing_found(len(ids))
            if len(hits) == 1:  # as most often
                rank, chunk_id = hits[0].rank, hits[0].chunk_id
                return Ranking(tuple([rank if target == chunk_id else None for target in ids]), (rank,))
        ranks = {hit.chunk_id: hit.rank for hit in reversed(hits)}
        found = tuple([ranks.get(target) for target in ids])
        return Ranking(found, tuple(sorted([rank for rank in found if rank is not None])))

    def cited_targets(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> Iterator[int]:  # noqa: ARG002
        """The targets whose ids are cited; whether hits are of them is known."""
        yield from (number for number, target in enumerate(self.ids) if target == cited.chunk_id)


@cache
def _nothing_found(targets: int) -> Ranking:
    return Ranking((None,) * targets, ())


class ByDocument(Strategy):
    """A hit is correct if it is in an expected document."""

    def __init__(self, doc_ids: Sequence[str]) -> None:
        self._targets = {doc_id: (Match(number),) for number, doc_id in enumerate(doc_ids)}
        self.count = len(self._targets)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:  # noqa: ARG002
        """The document of the hit, if it is expected."""
        return self._targets.get(hit.doc_id or "", ())


class ByAnchor(Strategy):
    """A hit is correct if it has the path, the heading and any snippet of a support."""

    def __init__(self, supports: Sequence[Support]) -> None:
        self._anchors = [Anchor(support) for support in supports]
        self.count = len(supports)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The supports that the hit is; what they do not ask for is not looked up."""
        found = []
        for number, anchor in enumerate(self._anchors):
            if passages.is_at(hit, anchor.path) and (
                not anchor.heading or anchor.is_above(passages.heading_path(hit))
            ):
                text = passages.text(hit) if anchor.snippets else ""
                if not anchor.snippets or text is None or anchor.is_in(text):
                    found.append(Match(number, by_document=text is None))
        return found


class Anchor:
    """A support as it is compared with passages of its document."""

    def __init__(self, support: Support) -> None:
        self.path = fold_path(support.path)
        self.heading = fold_heading(support.heading)
        self.snippets = support.snippets

    def is_above(self, heading_path: Sequence[str]) -> bool:
        """Whether a passage with these headings is under the support's."""
        return fold_heading(" > ".join(heading_path)).startswith(self.heading)

    def is_in(self, text: str) -> bool:
        """Whether any snippet is in the text."""
        if any(contains(text, snippet, any_case=True) for snippet in self.snippets):
            return True
        from pytest_kebab_eval.matching.text import words_of

        words = words_of(text)  # the same without markup
        return any(len(found := words_of(snippet)) > 2 and found in words for snippet in self.snippets)


class ByAnswer(Strategy):
    """A hit is correct if it has the expected answer, case aside; one without text, if its document is."""

    count = 1

    def __init__(self, expected: str, doc_ids: Sequence[str]) -> None:
        self._expected, self._doc_ids = expected, frozenset(doc_ids)

    def matches(self, hit: Hit, passages: Passages) -> Sequence[Match]:
        """The one target, if the hit is it."""
        text = text_for_answer(hit, passages)
        if text is None:
            return _BY_DOCUMENT if hit.doc_id in self._doc_ids else ()
        return _BY_ANSWER if contains(text, self._expected, any_case=True) else ()

    def cited_targets(self, cited: Cited, hits: Sequence[Hit], passages: Passages) -> Iterator[int]:
        """The one target, if what is cited has the answer, as far as its text is known."""
        for hit in (*hits, as_hit(cited, passages)):
            yield from (match.target for match in self.matches(hit, passages))


_BY_ANSWER, _BY_DOCUMENT = (Match(0),), (Match(0, by_document=True),)


def text_for_answer(hit: Hit, passages: Passages) -> str | None:
    """Where an expected answer is looked for: in a hit's text, else in its snippet."""
    text = passages.text(hit)
    return hit.snippet if text is None else text


def first_of_each(ranks: Sequence[int | None], members: Sequence[Sequence[int]]) -> tuple[int | None, ...]:
    """For each target, the best rank of its alternatives."""
    return tuple(
        min((rank for number in numbers if (rank := ranks[number]) is not None), default=None)
        for numbers in members
    )
