"""An answer's citations + the query's hits -> what they lead to."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_kebab_eval.matching.locations import Passages
from pytest_kebab_eval.matching.targets import Ranking, Targets
from pytest_kebab_eval.model import Answer, Cited, Hit, Value
from pytest_kebab_eval.spans import extent, touches


class Leads(Value, frozen=True):
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
    correct = ranking.correct
    all_resolve = only_to_hits = True
    to_correct_hit = to_target = False
    for one in answer.citations:
        found = hits_cited(one, hits, passages)
        if not found:
            only_to_hits = False
        for hit in found:
            if hit.rank in correct:
                to_correct_hit = to_target = True
        all_resolve = all_resolve and _resolves(one, found, passages)
        to_target = to_target or _is_target(one, found, targets, passages)
    return Leads(all_resolve, only_to_hits, to_correct_hit, to_target)


def _is_target(cited: Cited, found: Sequence[Hit], targets: Targets, passages: Passages) -> bool:
    """Whether a target is cited that was not retrieved, or that only its place tells."""
    find = targets.find
    if find is None:  # the hits that are cited are known to be no targets
        return cited.chunk_id in targets.ids
    if not targets.ids:
        return False
    places = (*found, _as_hit(cited, passages))
    return any(find(place, passages.without_texts) for place in places)


def each_resolves(answer: Answer, hits: Sequence[Hit], passages: Passages) -> tuple[bool, ...]:
    """For each citation, whether it leads to a chunk of the corpus, or else to a hit."""
    return tuple(_resolves(one, hits_cited(one, hits, passages), passages) for one in answer.citations)


def hits_cited(cited: Cited, hits: Sequence[Hit], passages: Passages) -> Sequence[Hit]:
    """The hits that a citation is of: by chunk id, else by path and overlapping span."""
    if cited.chunk_id:
        return [hit for hit in hits if hit.chunk_id == cited.chunk_id]
    citation = cited.citation
    path = citation.path if citation else None
    if citation is None or not path:
        return ()
    found = []
    place = None
    for hit in hits:
        own = hit.citation
        if hit.doc_path != path and (own is None or own.path != path):
            continue
        if own != citation:  # else it is the hit's own citation, as usual
            place = place or extent(citation)
            if not touches(place, passages.extents(hit)):
                continue
        found.append(hit)
    return found


def _resolves(cited: Cited, found: Sequence[Hit], passages: Passages) -> bool:
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
