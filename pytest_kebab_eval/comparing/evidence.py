"""What is shown of a query's stored results, so that a verdict can be traced."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from pytest_kebab_eval.model import Answer, GoldenQuery, Hit, QueryComparison, QueryResult, Value, gains_of
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.excerpts import contains, excerpt, shared_text

HITS_SHOWN = 5  # in a message
_LONGEST_SHOWN = 200  # characters of a passage's text


class KnownPassage(Value, frozen=True):
    """An expected passage or a hit, with what any store, lock file or result knows of it."""

    id: str = ""
    document: str = ""  # its path, else its id
    heading: str = ""
    text: str = ""

    @property
    def where(self) -> str:
        """`docs/hours.md > Opening hours`, without what is the id itself."""
        places = [self.document, self.heading]
        return " > ".join(place for place in places if place and place != self.id)

    @property
    def under_heading(self) -> str:
        """`'Opening hours' (hours-1)`: the last of its headings, unless the id has it, and the id."""
        heading = self.heading.rpartition(" > ")[2]
        return f"'{brief(heading, 40)}' ({self.id})" if heading and heading not in self.id else self.id


def passage_of(hit: Hit, focus: Sequence[str] = ()) -> KnownPassage:
    """A hit as a passage, with its snippet as the text, unless only the whole text has what is looked for."""
    text = hit.snippet or hit.text or ""
    if hit.text and hit.text != text and not _has_any(text, focus) and _has_any(hit.text, focus):
        text = hit.text
    heading = " > ".join(hit.heading_path or ())
    document = hit.doc_path or hit.doc_id or ""
    return KnownPassage(hit.chunk_id or hit.doc_id or "", document, heading, text)


def _has_any(text: str, parts: Iterable[str]) -> bool:
    return any(contains(text, part) for part in parts)


class QueryEvidence(Value, frozen=True):
    """A query's stored results in both runs, judged hit by hit and citation by citation."""

    a: QueryResult | None
    b: QueryResult | None
    correct_a: tuple[int, ...]
    correct_b: tuple[int, ...]
    expected: tuple[str, ...]
    readable_a: bool = True
    readable_b: bool = True
    cited_a: tuple[bool, ...] = ()  # for each citation of the answer, whether it resolves to a chunk
    cited_b: tuple[bool, ...] = ()
    passages: tuple[KnownPassage, ...] = ()  # the targets and their alternatives, as far as known
    stored_b: int | None = None  # how many hits B has, where those above are not all

    @property
    def hits_of_b(self) -> str:
        """`10 hits`: how many run B stored."""
        stored = self.stored_b if self.stored_b is not None else len(self.b.hits) if self.b else 0
        return f"{stored} {'hit' if stored == 1 else 'hits'}"

    def expected_passage(self, target: str) -> KnownPassage:
        """What is known of a target; perhaps only its id."""
        return next((passage for passage in self.passages if passage.id == target), KnownPassage(target))

    def focus(self, query: GoldenQuery) -> tuple[str, ...]:
        """What matters in the passages of a query: the first that a text contains is what is shown of it."""
        snippets = [snippet for support in query.gold_supports for snippet in support.snippets]
        return tuple(
            filter(None, [query.expected_answer or "", *snippets, *query.must_contain, *query.claims])
        )

    def without_targets(self) -> QueryEvidence:
        """The same where nothing is said of what hits share with a target."""
        return msgspec.structs.replace(self, passages=())

    def show_hit(self, query: GoldenQuery, hit: Hit, width: int) -> KnownPassage:
        """A hit with its text cut around what matters: else around what it shares with a target."""
        focus = self.focus(query)
        passage = passage_of(hit, focus)
        shared = (shared_text(passage.text, target.text) for target in self.passages)
        return _cut(passage, chain(focus, shared), width)

    def show_target(self, query: GoldenQuery, target: str, width: int) -> KnownPassage:
        """A target with its text cut around what matters."""
        return _cut(self.expected_passage(target), self.focus(query), width)

    def for_message(self, query: GoldenQuery, comparison: QueryComparison | None) -> QueryEvidence:
        """Only what the message of a failure shows: where all queries fail, thousands have to be kept."""
        a, b, rank_in_a = self.a, self.b, comparison.a_hit_rank if comparison else None
        stored_b = len(b.hits) if b else None
        if a is not None:
            a = msgspec.structs.replace(a, hits=(), answer=_for_message(a.answer))
        if b is not None:
            near = [
                self._hit_for_message(query, hit)
                for position, hit in enumerate(b.hits)
                if position < HITS_SHOWN or hit.rank == rank_in_a
            ]
            b = msgspec.structs.replace(b, hits=tuple(near), answer=_for_message(b.answer))
        passages = tuple(self.show_target(query, passage.id, _LONGEST_SHOWN) for passage in self.passages)
        return msgspec.structs.replace(self, a=a, b=b, passages=passages, stored_b=stored_b)

    def _hit_for_message(self, query: GoldenQuery, hit: Hit) -> Hit:
        text = self.show_hit(query, hit, _LONGEST_SHOWN).text
        return msgspec.structs.replace(
            hit, text=text or None, snippet=None, citation=None, score=None, retrieval=None
        )


def _cut(passage: KnownPassage, around: Iterable[str], width: int) -> KnownPassage:
    return msgspec.structs.replace(passage, text=excerpt(passage.text, around, width))


def _for_message(answer: Answer | None) -> Answer | None:
    """The answer without what may be any JSON: xdist's workers are sent what is left."""
    if answer is None:
        return None
    citations = tuple(msgspec.structs.replace(cited, marker=None) for cited in answer.citations)
    return msgspec.structs.replace(answer, citations=citations, refusal_reason=None)


def unread_evidence(query: GoldenQuery) -> QueryEvidence:
    """A query whose stored results can no longer be read."""
    expected = tuple(gains_of(query)) or query.expected_doc_ids or ()
    return QueryEvidence(None, None, (), (), expected, readable_a=False, readable_b=False)
