"""Comparisons that cover too little to be relied on (sections 3.1 and 3.2)."""

from __future__ import annotations

import itertools

from .case import Case, Entry
from .matching import Matching, Target
from .results import result_of

FEWEST_BY_DOCUMENT = 5
MOST_BY_DOCUMENT = 1 / 5

Ways = frozenset[bool]


def in_any_way(conditions: list[Ways]) -> Ways:
    """Whether any of these holds, for each way in which the open ones may be settled."""
    return frozenset(any(way) for way in itertools.product(*conditions))


def has_coverage_problem(case: Case, matching: Matching) -> Ways:
    """Whether the comparison is a problem although no query got worse."""
    return in_any_way([compares_too_few(case), is_by_document(case, matching)])


def ids_of_a(case: Case) -> set[str]:
    """The queries that any run of A has a result for."""
    return {query_id for run in case.side_a for query_id in run.rows}


def ids_of_b(case: Case) -> set[str]:
    """The queries that any run of B has a result for."""
    return {query_id for run in case.side_b for query_id in run.rows}


def compares_too_few(case: Case) -> Ways:
    """'less than half of the golden queries that B has can be compared'; with an error in A, open."""
    if case.options.if_no_baseline == "pass":
        return frozenset({False})
    of_b = ids_of_b(case) & {entry["id"] for entry in case.golden}
    fine = {
        query_id
        for run in case.side_a
        for query_id in run.rows
        if (result := result_of(run, query_id)) is not None and not result.errored
    }
    return frozenset(2 * len(of_b & ids) < len(of_b) for ids in (ids_of_a(case), fine))


def is_by_document(case: Case, matching: Matching) -> Ways:
    """'more than a fifth of the queries with chunk-level targets (and at least five) are matched so'.

    Open: whether queries that not both sides have count, a query of which one target is known better, and one
    whose document is not known either.
    """
    if case.options.allow_documents:
        return frozenset({False})
    of_a, of_b = ids_of_a(case), ids_of_b(case)
    populations = [{entry["id"] for entry in case.golden}, of_a | of_b, of_a & of_b]
    ways = set()
    for ids in populations:
        entries = [entry for entry in case.golden if entry["id"] in ids and matching.targets(entry)]
        for every, unknown in itertools.product((all, any), (True, False)):
            by_document = [
                entry for entry in entries if every(document_flags(matching, entry, unknown=unknown))
            ]
            share_is_high = len(by_document) > MOST_BY_DOCUMENT * len(entries)
            ways.add(share_is_high and len(by_document) >= FEWEST_BY_DOCUMENT)
    return frozenset(ways)


def document_flags(matching: Matching, entry: Entry, *, unknown: bool) -> list[bool]:
    """For each target, whether its document alone decides; `unknown` counts those of unknown documents."""
    return [
        is_document_target(matching, target) and (unknown or bool(target.docs))
        for target in matching.targets(entry)
    ]


def is_document_target(matching: Matching, target: Target) -> bool:
    """In the fallback, a target that is no anchor, of which neither span nor text is known and compares."""
    is_known = target.support is not None or target.units is not None or target.text is not None
    return matching.is_fallback and not is_known
