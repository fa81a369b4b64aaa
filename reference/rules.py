"""What B must keep whatever A had (`forbidden`, `rank_limit`, `miss`), and targets lost in part (`coverage`).

Sections 2.3 and 3.3.
"""

from __future__ import annotations

from .case import Entry
from .checks import OPEN, Passes
from .matching import Matching
from .results import Result

ALWAYS = frozenset({"forbidden", "rank_limit"})  # 'always count where the golden file has them'
RULES = ALWAYS | {"miss"}


def broken_rules(matching: Matching, entry: Entry, result: Result, compare_k: int) -> dict[str, Passes]:
    """The checks of B alone that a result breaks: True, False, or OPEN."""
    return {
        "forbidden": finds_forbidden(matching, entry, result, compare_k),
        "rank_limit": ranks_too_low(matching, entry, result),
        "miss": misses(matching, entry, result, compare_k),
    }


def broken_by_runs(runs: list[dict[str, Passes]]) -> dict[str, Passes]:
    """What the runs of B break together (docs/noise.md, since the contract does not say of how many).

    '`forbidden` fails if one run of B has a forbidden hit; `rank_limit` and `miss` if half of B's runs, or
    more, break them'.
    """
    found: dict[str, Passes] = {}
    for name in runs[0] if runs else ():
        ways = [run[name] for run in runs]
        enough = 1 if name == "forbidden" else (len(runs) + 1) // 2
        sure, may_be = ways.count(True), ways.count(True) + ways.count(OPEN)
        found[name] = sure >= enough or (OPEN if may_be >= enough else False)
    return found


def finds_forbidden(matching: Matching, entry: Entry, result: Result, compare_k: int) -> Passes:
    """'must not be among the top hits'; hits beside an error, and ids of another chunker, are open."""
    top = [hit for hit in result.hits if hit["rank"] <= compare_k]
    by_doc = any(hit["doc_id"] in entry.get("forbidden_doc_ids", []) for hit in top)
    chunks = entry.get("forbidden_chunk_ids", [])
    by_chunk = any(hit["chunk_id"] in chunks for hit in top)
    if result.errored:
        return OPEN if by_doc or by_chunk else False
    if matching.is_fallback and chunks and not by_doc:
        return OPEN
    return by_doc or by_chunk


def ranks_too_low(matching: Matching, entry: Entry, result: Result) -> Passes:
    """'the first correct hit must be at this rank or better'; whether an error breaks that is open."""
    limit: int | None = entry.get("must_rank_at_most")
    if limit is None:
        return False
    if result.errored:
        return OPEN
    return min(matching.correct_ranks(entry, result).values(), default=limit + 1) > limit


def misses(matching: Matching, entry: Entry, result: Result, compare_k: int) -> Passes:
    """'nothing expected was found'; 'A query that errored counts as a miss'."""
    if not matching.compared_targets(entry):
        return False
    return not any(rank <= compare_k for rank in matching.correct_ranks(entry, result).values())


Found = list[tuple[set[str], set[str]]]


def lost_coverage(found: Found) -> Passes:
    """'a target found in A is not in B'; whether the loss of all is one beside `retrieval` is open."""
    if not names_lost(found):
        return False
    return True if found[0][1] else OPEN


def names_lost(found: Found) -> frozenset[str]:
    """What is found in A and not in B."""
    return frozenset(name for in_a, in_b in found for name in in_a - in_b)


def requires_coverage(
    matching: Matching, entry: Entry, require: str | None, found: tuple[set[str], set[str]]
) -> Passes:
    """'fails where the golden file says `require: all` or has groups'."""
    if entry.get("require", require) == "all":
        return True
    supports = [target.name for target in matching.compared_targets(entry) if target.support is not None]
    groups = [
        {supports[number] for number in group}
        for group in entry.get("required_support_groups", [])
        if supports
    ]
    was, still = ([group for group in groups if group <= names] for names in found)
    if not was:
        return False
    # Whether a group that is no longer whole fails beside another that is, is open.
    return True if not still else OPEN if any(group not in still for group in was) else False
