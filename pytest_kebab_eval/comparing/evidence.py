"""What is shown of a query's targets and hits, so that a verdict can be traced; long texts are cut.

What is known of them comes from golden and lock file, stores and results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

import msgspec

from pytest_kebab_eval.matching.citations import each_resolves
from pytest_kebab_eval.matching.locations import Locations, Passages
from pytest_kebab_eval.matching.strategies import Ranking
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import Answer, GoldenQuery, Hit, QueryComparison, QueryResult, Value, gains_of
from pytest_kebab_eval.text import brief, printable

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
            filter(None, [query.expected_answer or "", *snippets, *query.must_contain, *(query.claims or ())])
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


# -- what is known of targets and hits ---------------------------------------------------------------


class JudgedResult(Value, frozen=True):
    """A stored result of one side, and which of its hits are correct."""

    result: QueryResult | None
    ranking: Ranking
    passages: Passages

    def found(self, target: int) -> Hit | None:
        """The hit by which a target was found, with all that is known of it."""
        rank = self.ranking.found[target] if target < len(self.ranking.found) else None
        hits = self.result.hits if self.result else ()
        hit = next((hit for hit in hits if hit.rank == rank), None)
        return self.passages.with_all_known(hit) if hit else None

    def citations_resolve(self) -> tuple[bool, ...]:
        """For each citation of the answer, whether it leads to a chunk."""
        result = self.result
        if result is None or result.answer is None:
            return ()
        return each_resolves(result.answer, result.hits, self.passages)

    def with_all_known(self, most: int) -> QueryResult | None:
        """The result, its first hits and the correct ones with the path, headings and text of the index."""
        if self.result is None:
            return None
        hits = tuple(
            self.passages.with_all_known(hit) if place < most or hit.rank in self.ranking.correct else hit
            for place, hit in enumerate(self.result.hits)
        )
        return msgspec.structs.replace(self.result, hits=hits)


class TargetPassages:
    """Finds what is known of the targets of queries."""

    def __init__(self, locations: Locations) -> None:
        self._locations = locations

    def find(
        self, query: GoldenQuery, targets: Targets, sides: Sequence[JudgedResult]
    ) -> Iterator[KnownPassage]:
        """The targets in their order, then the alternatives of each."""
        for number, name in enumerate(targets.ids):
            hits = (side.found(number) for side in sides)
            hit = next((hit for hit in hits if hit), None)
            if targets.matched_by == "anchor":
                support = query.gold_supports[number]
                yield KnownPassage(name, support.path, support.heading, " … ".join(support.snippets))
            elif targets.matched_by == "answer":
                own = KnownPassage() if hit is None else passage_of(hit)
                yield KnownPassage(name, own.document, own.heading)
            elif targets.has_chunk_targets:
                yield self.chunk(query, name, hit)
            else:
                yield KnownPassage(name, self._path(name) or (hit and hit.doc_path) or name)
        for group in query.alternatives if targets.matched_by != "anchor" else ():
            yield from (self.chunk(query, name) for name in group if name not in targets.ids)

    def chunk(self, query: GoldenQuery, name: str, hit: Hit | None = None) -> KnownPassage:
        """A chunk that a query expects; the hit that found it is asked for what nothing else knows."""
        locations = self._locations
        doc_id, _, text = locations.find(query, name)
        headings = () if locations.is_left(name) else self._headings(name)
        own = KnownPassage() if hit is None else passage_of(hit)
        return KnownPassage(
            name,
            (self._path(doc_id) if doc_id else None) or own.document or doc_id or "",
            " > ".join(headings) or own.heading,
            text if isinstance(text, str) else own.text,
        )

    def _headings(self, name: str) -> Sequence[str]:
        found = (corpus.heading_path(name, self._locations.version) for corpus in self._locations.corpora)
        return next(filter(None, found), ())

    def _path(self, doc_id: str) -> str | None:
        return next(
            filter(None, (corpus.documents.path_of(doc_id) for corpus in self._locations.corpora)), None
        )


# -- a long text shortened around what matters in it ---------------------------------------------------

_MAX_SEARCHED = 20_000  # characters of a text; what comes after them is not looked at
_RUN = 20  # characters in a row that two texts share not by chance
_TOLD = 40  # characters that tell a place in a text from others
_FAR = 200  # characters: no more is shown anywhere


def excerpt(text: str, around: Iterable[str], width: int) -> str:
    """The text on one line, cut to a width: around the first of these that it has, else its beginning."""
    line = _one_line(text)
    if len(line) <= width:
        return line
    found = next(filter(None, (_find(line, wanted) for wanted in around)), (0, 0))
    return _window(line, *found, width)


def contains(text: str, wanted: str) -> bool:
    """Whether a text contains another, case and spacing aside."""
    return _find(_one_line(text), wanted) is not None


def differing_text(text: str, other: str) -> str:
    """A text from the first word on that another has not at that place, as far as it tells where that is."""
    ours, theirs = _one_line(text), _one_line(other)
    start = ours.rfind(" ", 0, _alike(ours, theirs)) + 1
    return ours[start : start + _TOLD]


def shared_text(text: str, other: str) -> str:
    """A run of a text, of four words or more, that another has, too, the first that is seen; else empty."""
    line = _one_line(text)
    ours = line.lower()
    pieces = _pieces(ours)
    # Of four words in a row, three begin at an even place: half as many are asked for, mostly in vain.
    is_new = _threes(other).isdisjoint(zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False))
    if is_new or len(ours) != len(line):  # a few letters have a lower case of two
        return ""
    runs = _runs(other)
    theirs, between = _one_line(other).lower(), "" if len(pieces) == len(ours) else " "
    for at, run in enumerate(_in_a_row(pieces)):
        there = theirs.find(between.join(run)) if run in runs else -1
        if there >= 0:
            start = len(ours) - len(between.join(pieces[at:]))
            # Those before the start are looked at from it backwards.
            before = _alike(ours[:start][: -_FAR - 1 : -1], theirs[:there][: -_FAR - 1 : -1])
            after = _alike(ours[start : start + _FAR], theirs[there : there + _FAR])
            if before + after >= _RUN:
                return line[start - before : start + after]
    return ""


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (ours, theirs) in enumerate(pairs) if ours != theirs), min(len(one), len(other)))


@lru_cache(maxsize=16)  # what is shown of a query is asked for several times in a row
def _one_line(text: str) -> str:
    line = text[:_MAX_SEARCHED]
    if "  " not in line and "##" not in line and line.isprintable():  # as most are: a third of the time
        return line.strip(" ")
    return printable(" ".join(line.split()))


@lru_cache(maxsize=4)
def _threes(text: str) -> frozenset[tuple[str, ...]]:
    pieces = _pieces(_one_line(text).lower())
    return frozenset(zip(pieces, pieces[1:], pieces[2:], strict=False))


@lru_cache(maxsize=4)
def _runs(text: str) -> frozenset[tuple[str, ...]]:
    return frozenset(_in_a_row(_pieces(_one_line(text).lower())))


def _pieces(line: str) -> Sequence[str]:
    """The words of a line; its characters where a script has no spaces."""
    words = line.split(" ")
    return words if len(words) > len(line) // _RUN else [*line]


def _in_a_row(pieces: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return zip(pieces, pieces[1:], pieces[2:], pieces[3:], strict=False)


def _find(line: str, wanted: str) -> tuple[int, int] | None:
    """Where the text is in the line."""
    folded, lowered = _one_line(wanted).lower(), line.lower()
    start = lowered.find(folded) if folded and len(lowered) == len(line) else -1
    return None if start < 0 else (start, start + len(folded))


def _window(line: str, start: int, end: int, width: int) -> str:
    """As much of the line as the width takes, with what is found in its middle, from word to word."""
    room = width - 2  # for the dots
    left = max(0, min(start - max(0, room - (end - start)) // 2, len(line) - room))
    if left:
        space = line.find(" ", left - 1, start)
        left = space + 1 if space >= 0 else left
    right = min(len(line), left + (room if left else width - 1))
    if right < len(line):
        space = line.rfind(" ", max(left, end), right + 1)
        right = space if space > left + width // 2 else right
    return f"{'…' if left else ''}{line[left:right].strip()}{'…' if right < len(line) else ''}"
