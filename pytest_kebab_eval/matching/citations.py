"""What the citations of an answer are of: chunks of the index, hits of the query, targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.strategies import Ranking, Strategy
from pytest_kebab_eval.matching.targets import ToCite
from pytest_kebab_eval.model import Answer, Cited, Hit, Span, Value
from pytest_kebab_eval.spans import extent, touches_any
from pytest_kebab_eval.text.folding import fold_heading, is_same_path


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
        found = index.find(cited)
        if not found:
            only_hits = False
        elif correct and not a_correct_hit:
            for hit in found:
                if hit.rank in correct:
                    a_correct_hit = a_target = True
        all_resolve = all_resolve and _resolves(cited, found, passages)
        a_target = a_target or any(True for _ in strategy.cited_targets(cited, found, passages))
    return CitationCheck(all_resolve, only_hits, a_correct_hit, a_target, True)


def uncited(
    answer: Answer, hits: Sequence[Hit], to_cite: Iterable[ToCite], passages: Passages
) -> tuple[str, ...]:
    """The names of the targets that an answer must cite and does not."""
    index = _CitedHits(hits, passages)
    cited_hits = [(cited, index.find(cited)) for cited in answer.citations]
    retrieved = [hit for hit in hits if any(hit in found for _, found in cited_hits)]
    names: list[str] = []
    for targets, places in to_cite:
        ranks = targets.judge(retrieved, passages).found
        numbers = {
            number
            for cited, found in cited_hits
            for number in targets.strategy.cited_targets(cited, found, passages)
        }
        for place in places:
            members = targets.members[place] if targets.members else (place,)
            if ranks[place] is None and numbers.isdisjoint(members):
                names.append(targets.ids[place])
    return tuple(names)


def each_resolves(answer: Answer, hits: Sequence[Hit], passages: Passages) -> tuple[bool, ...]:
    """For each citation, whether it is of a chunk of the corpus, or else of a hit."""
    index = _CitedHits(hits, passages)
    return tuple(_resolves(cited, index.find(cited), passages) for cited in answer.citations)


def _resolves(cited: Cited, found: Sequence[Hit], passages: Passages) -> bool:
    if cited.citation is not None and cited.citation.path:
        known = passages.resolves(cited.citation)
        return bool(found) if known is None else known
    return bool(found) or (cited.chunk_id is not None and passages.has_chunk(cited.chunk_id))


class _CitedHits:
    """The hits of a query, to be found by what cites them."""

    def __init__(self, hits: Sequence[Hit], passages: Passages) -> None:
        self._hits = hits
        self._passages = passages

    def find(self, cited: Cited) -> Sequence[Hit]:
        """The hits that a citation is of: by chunk id, else by path and overlapping span."""
        if cited.chunk_id:
            return self._by_chunk.get(cited.chunk_id, ())
        citation = cited.citation
        path = citation.path if citation else None
        if citation is None or not path:
            return ()
        found = []
        for hit in self._hits:
            own = hit.citation
            if (hit.doc_path == path or (own is not None and own.path == path)) and (
                own == citation or self._touches(hit, citation)
            ):
                found.append(hit)
        return found or [
            hit
            for hit in self._hits
            if _is_at(hit, path) and (hit.citation == citation or self._touches(hit, citation))
        ]

    @cached_property
    def _by_chunk(self) -> dict[str | None, list[Hit]]:
        found: dict[str | None, list[Hit]] = {}
        for hit in self._hits:
            found.setdefault(hit.chunk_id, []).append(hit)
        return found

    def _touches(self, hit: Hit, citation: Span) -> bool:
        """Whether a hit at a citation's path is of its span, else of its section."""
        box = extent(citation)
        if box is None:
            return not citation.section or _in_section(hit, citation.section)
        return touches_any(box, (self._passages.extents(hit),))


def _is_at(hit: Hit, path: str) -> bool:
    """Whether a hit is in that file, or its citation is, however the path is written."""
    cited = hit.citation.path if hit.citation else None
    return is_same_path(path, hit.doc_path or "") or is_same_path(path, cited or "")


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
