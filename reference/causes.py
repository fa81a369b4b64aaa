"""The cause of a failure, 'the nearest true one' (section 3.3), where only one reading is left."""

from __future__ import annotations

from .case import Entry
from .checks import answerable, has_claim, keeps_rules
from .matching import Matching, expected_chunks, target_names
from .results import Result

Causes = frozenset[str]

COMPARED_RANKS = 10


def causes_of(
    matching: Matching, entry: Entry, results: tuple[Result, Result | None], checks: Causes
) -> Causes:
    """What the cause may be; nothing where several checks were lost, since their order is not said."""
    a, b = results
    if b is None:
        return frozenset({"absent"})
    if b.errored:
        return frozenset({"errored"})
    if "retrieval" in checks:
        return retrieval_causes(matching, entry, a, b)
    if checks == {"refusal"}:
        return frozenset({"refused" if answerable(entry) else "not_refused"})
    if checks == {"citation"}:
        return frozenset({"not_cited"})
    return answer_causes(entry, a, b) if checks == {"answer"} else frozenset()


def retrieval_causes(matching: Matching, entry: Entry, a: Result, b: Result) -> Causes:
    """Nothing found, found too low, another part of the document, or gone."""
    if not b.hits:
        return frozenset({"empty"})
    if matching.correct_ranks(entry, b):
        return frozenset({"below_cutoff"})
    targets = matching.compared_targets(entry)
    k = matching.case.options.compare_k or COMPARED_RANKS
    top_a = [hit for hit in a.hits if hit["rank"] <= k]
    found = {hit["doc_id"] for hit in top_a if any(matching.is_target(hit, target) for target in targets)}
    right = [hit for hit in top_a if any(matching.is_target(hit, target) for target in targets)]
    others = [
        hit for hit in b.hits if hit["rank"] <= k and entry.get("relevance", {}).get(hit["chunk_id"]) != 0
    ]
    expected, there = ({matching.text_of(hit) for hit in hits} - {None} for hits in (right, others))
    if expected & there:
        return frozenset({"same_text"})
    causes = causes_by_first_hit(matching, entry, found, b)
    return causes | {"same_text"} if expected and there else causes  # what shares most of it is open


def causes_by_first_hit(matching: Matching, entry: Entry, found: set[str], b: Result) -> Causes:
    """'the first hit is the right document, another part of it'; or 'no longer in `chunks`'."""
    first = b.hits[0]["doc_id"]
    docs = {doc for target in matching.compared_targets(entry) for doc in target.docs}
    if first in found:
        causes = {"wrong_chunk"}
    else:
        known = docs | set(target_names(entry, "expected_doc_ids"))
        causes = (
            {"gone", "wrong_chunk"}
            if first in known or len(found) > 1 or entry.get("gold_supports")
            else {"gone"}
        )
    indexed = {row.chunk_id for row in matching.rows.values() if b.version in {None, row.version}}
    missing = matching.rows and not set(expected_chunks(entry)) <= indexed
    return frozenset(causes | {"not_in_index"} if missing else causes)


def answer_causes(entry: Entry, a: Result, b: Result) -> Causes:
    """No answer, a broken rule, or no claim."""
    if b.usable_answer is None:
        return frozenset({"no_answer"})
    causes = {"refused"} if b.refused else set()
    if keeps_rules(entry, a) and keeps_rules(entry, b) is False:
        causes.add("answer_rule")
    if has_claim(entry, a) and has_claim(entry, b) is False:
        causes.add("claim_missing")
    return frozenset(causes)
