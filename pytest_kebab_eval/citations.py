"""An answer's citations + the query's hits -> what they lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_kebab_eval.matching import Passages, Ranking, Targets
from pytest_kebab_eval.model import Answer, Cited, Hit
from pytest_kebab_eval.spans import extent, touches


class Leads(NamedTuple):
    """Where an answer's citations lead; an answer without any leads nowhere."""

    all_resolve: bool = False  # each to a chunk of the corpus, else to a hit
    only_to_hits: bool = False
    to_correct_hit: bool = False
    to_target: bool = False  # also one that was not retrieved


NOWHERE = Leads()


def follow(
    answer: Answer, hits: Sequence[Hit], targets: Targets, ranking: Ranking, passages: Passages
) -> Leads:
    """Follow every citation of the answer."""
    if not answer.citations:
        return NOWHERE
    cited = [(one, hits_cited(one, hits, passages)) for one in answer.citations]
    correct = ranking.correct
    to_correct_hit = any(hit.rank in correct for _, found in cited for hit in found)
    return Leads(
        all_resolve=all(_resolves(one, found, passages) for one, found in cited),
        only_to_hits=all(found for _, found in cited),
        to_correct_hit=to_correct_hit,
        to_target=bool(targets.ids) and (to_correct_hit or _to_target(cited, targets, passages)),
    )


def _to_target(cited: list[tuple[Cited, list[Hit]]], targets: Targets, passages: Passages) -> bool:
    return any(
        targets.find(place, passages.without_texts)
        for one, found in cited
        for place in (*found, _as_hit(one, passages))
    )


def each_resolves(answer: Answer, hits: Sequence[Hit], passages: Passages) -> tuple[bool, ...]:
    """For each citation, whether it leads to a chunk of the corpus, or else to a hit."""
    return tuple(_resolves(one, hits_cited(one, hits, passages), passages) for one in answer.citations)


def hits_cited(cited: Cited, hits: Sequence[Hit], passages: Passages) -> list[Hit]:
    """The hits that a citation is of: by chunk id, else by path and overlapping span."""
    if cited.chunk_id:
        return [hit for hit in hits if hit.chunk_id == cited.chunk_id]
    citation = cited.citation
    path = citation.path if citation else None
    if citation is None or not path:
        return []
    there = [hit for hit in hits if hit.doc_path == path or (hit.citation and hit.citation.path == path)]
    if not there:
        return there
    if all(hit.citation == citation for hit in there):  # the usual case: a hit's own citation
        return there
    place = extent(citation)
    return [hit for hit in there if hit.citation == citation or touches(place, passages.extents(hit))]


def _resolves(cited: Cited, found: list[Hit], passages: Passages) -> bool:
    if cited.citation is not None and cited.citation.path:
        known = passages.resolves(cited.citation)
        return bool(found) if known is None else known
    return bool(found) or (cited.chunk_id is not None and passages.has_chunk(cited.chunk_id))


def _as_hit(cited: Cited, passages: Passages) -> Hit:
    """The cited place as though it had been retrieved, so that targets can be asked about it."""
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
