"""The checks of an answer: rules, claims, refusal, citations, attribution (sections 2.3, 3.2 and 3.3).

Each function says whether a check passes: True, False, None where it does not apply, or OPEN where the
contract does not settle it.
"""

from __future__ import annotations

from typing import Final, Literal

from .case import Chunk, Entry
from .matching import EXACT, Matching, Units, comparable, units_of
from .results import Result

Open = Literal["open"]
OPEN: Final = "open"
Passes = bool | Open | None

SHORTEST_CLAIM = 5


def answerable(entry: Entry) -> Passes:
    """'Left out: false if it should refuse, true if anything else is expected of it, otherwise unknown'."""
    if "answerable" in entry:
        return bool(entry["answerable"])
    if entry.get("expected_doc_ids") == []:
        return False
    fields = (
        "expected_chunk_ids",
        "expected_doc_ids",
        "must_contain",
        "claims",
        "relevance",
        "gold_supports",
    )
    if any(entry.get(field) for field in (*fields, "expected_spans", "expected_answer")):
        return True
    return OPEN if entry.get("forbidden") else None


def keeps_rules(entry: Entry, result: Result) -> Passes:
    """'`must_contain` (all, case-sensitive), `forbidden` (none)'."""
    needed, forbidden = entry.get("must_contain", []), entry.get("forbidden", [])
    if result.usable_answer is None or not (needed or forbidden):
        return None
    text = result.usable_answer["answer"]
    return all(rule in text for rule in needed) and not any(rule in text for rule in forbidden)


def has_claim(entry: Entry, result: Result) -> Passes:
    """'any one of them contained in the answer, case-insensitive; one shorter than 5 … is ignored'."""
    claims = [claim.lower() for claim in entry.get("claims", []) if len(claim) >= SHORTEST_CLAIM]
    if result.usable_answer is None or not claims:
        return None
    text = result.usable_answer["answer"].lower()
    return any(claim in text for claim in claims)


def refuses_rightly(entry: Entry, result: Result) -> Passes:
    """'a should-refuse query is answered, or an answerable one refused' fails."""
    wanted = answerable(entry)
    if result.usable_answer is None or wanted is None:
        return None
    return OPEN if wanted == OPEN else result.shipped == wanted


def citations_resolve(matching: Matching, result: Result) -> Passes:
    """'at least one citation, and every one resolves to a chunk', over grounded answers."""
    if result.usable_answer is None or not result.shipped:
        return None
    citations = result.usable_answer["citations"]
    found = [resolves(matching, result, citation) for citation in citations]
    if not citations or False in found:
        return False
    return OPEN if OPEN in found else True


def resolves(matching: Matching, result: Result, citation: Entry) -> Passes:
    """To a chunk of the tables; whether one of another chunker than the run's is such a chunk is open."""
    rows = list(matching.rows.values())
    own = [row for row in rows if result.version in {None, row.version}]
    found = {resolves_among(rows, result, citation), resolves_among(own, result, citation)}
    return found.pop() if len(found) == 1 else OPEN


def resolves_among(rows: list[Chunk], result: Result, citation: Entry) -> Passes:
    """To one of these chunks, or where there are none to one of the query's own hits."""
    chunk_id, place = citation.get("chunk_id"), citation.get("citation")
    own = {hit["chunk_id"] for hit in result.hits}
    if chunk_id is not None:
        in_rows = chunk_id in {row.chunk_id for row in rows}
        known = [in_rows, chunk_id in own] if rows else [chunk_id in own]
        by_id: Passes = known[0] if len(set(known)) == 1 else OPEN
        return by_id if place is None or by_id is resolves_place(rows, result, place) else OPEN
    return resolves_place(rows, result, place or {})


def resolves_place(rows: list[Chunk], result: Result, place: Entry) -> Passes:
    """'a document with that path and a chunk of it overlapping the cited span'."""
    if rows:
        chunks = [chunk for chunk in rows if chunk.path == place["path"]]
        return overlaps_any(place, [units_of(list(chunk.spans)) for chunk in chunks])
    hits = [hit for hit in result.hits if hit.get("doc_path", place["path"]) == place["path"]]
    if any(not hit.get("citation") or not hit.get("doc_path") for hit in hits):
        return OPEN
    return overlaps_any(place, [units_of([hit["citation"]]) for hit in hits])


def overlaps_any(place: Entry, others: list[Units]) -> Passes:
    """Whether a cited span overlaps any of these; spans of other kinds are open."""
    cited = units_of([place])
    if any(cited & units for units in others):
        return True
    return False if all(comparable(cited, units) for units in others) else OPEN


def attributes(matching: Matching, entry: Entry, result: Result) -> Passes:
    """'a citation matches a target', over 'answerable queries with an answer and targets'."""
    wanted = answerable(entry)
    if result.usable_answer is None or not matching.compared_targets(entry) or wanted is False:
        return None
    if not matching.targets(entry):
        return OPEN
    cited = [cites_target(matching, entry, result, one) for one in result.usable_answer["citations"]]
    if wanted == OPEN:
        return OPEN
    return True if True in cited else OPEN if OPEN in cited else False


def cites_target(matching: Matching, entry: Entry, result: Result, citation: Entry) -> Passes:
    """Whether one citation leads to a target: by its chunk, or else by its path and span."""
    chunk_id, place = citation.get("chunk_id"), citation.get("citation")
    if chunk_id is not None and place is not None:
        return OPEN
    if chunk_id is not None:
        return cites_by_id(matching, entry, result, chunk_id)
    return cites_by_place(matching, entry, result, place or {})


def cites_by_id(matching: Matching, entry: Entry, result: Result, chunk_id: str) -> Passes:
    """A cited chunk is a target as a hit of that id would be."""
    targets = matching.targets(entry)
    if matching.mode == EXACT and all(target.chunk_id for target in targets):
        return chunk_id in {target.chunk_id for target in targets}
    hits = [hit for hit in result.hits if hit["chunk_id"] == chunk_id]
    if not hits:
        known = {row.chunk_id for row in matching.rows.values()} | set(matching.hits)
        known |= {target.chunk_id for target in targets if target.chunk_id is not None}
        return OPEN if chunk_id in known else False
    supports = [target.support for target in targets if target.support is not None]
    if supports:
        return any(matching.is_support(hits[0], support, by_text=False) for support in supports)
    return any(matching.is_target(hits[0], target) for target in targets)


def cites_by_place(matching: Matching, entry: Entry, result: Result, place: Entry) -> Passes:
    """A place of an unknown document is no target; how much overlap another one needs is open."""
    docs = {hit["doc_id"] for hit in result.hits if matching.path_of(hit) in {None, place["path"]}}
    docs |= {chunk.doc_id for chunk in matching.rows.values() if chunk.path == place["path"]}
    docs |= {
        hit["doc_id"]
        for hits in matching.hits.values()
        for hit in hits
        if matching.path_of(hit) in {None, place["path"]}
    }
    return OPEN if docs else False
