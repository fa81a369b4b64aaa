"""An answer's citations + the query's hits -> `CitationCheck`: what is cited, and whether it is right."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.strategies import Ranking, normal_heading
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import Answer, Cited, Hit, Span, Value
from pytest_kebab_eval.spans import Box, extent, touches


class CitationCheck(Value, frozen=True):
    """What an answer's citations are of; all is false of an answer without any."""

    all_resolve: bool = False  # each to a chunk of the corpus, else to a hit
    only_hits: bool = False  # each is of a hit of this query
    a_correct_hit: bool = False
    a_target: bool = False  # also one that was not retrieved
    has_any: bool = False


NO_CITATIONS = CitationCheck()


def check_citations(
    answer: Answer, hits: Sequence[Hit], targets: Targets, ranking: Ranking, passages: Passages
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
        a_target = a_target or a_correct_hit or targets.strategy.is_cited(cited, found, passages)
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
        for hit in self._hits:
            own = hit.citation
            if (hit.doc_path == path or (own is not None and own.path == path)) and (
                own == citation or self._touches(hit, citation)
            ):
                found.append(hit)
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
    wanted = normal_heading(section)
    headings = [normal_heading(heading) for heading in hit.heading_path or ()]
    own = normal_heading(hit.citation.section) if hit.citation and hit.citation.section else None
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
