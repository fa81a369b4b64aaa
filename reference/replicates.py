"""Sides of several runs (section 3.6): only what does not depend on how noise is estimated."""

from __future__ import annotations

from dataclasses import replace

from .case import Case, Entry, Run
from .results import Result, result_of
from .verdicts import FAILED, PASSED, SKIPPED, XFAILED, Outcomes, Verdict

ANY_OUTCOME = PASSED | FAILED | XFAILED


class Replicates:
    """The runs of both sides."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.agree = agree(case.side_a) and agree(case.side_b)

    def of_a(self, query_id: str) -> list[Result]:
        """The results of A's runs that have the query."""
        return results_for(self.case.side_a, query_id)

    def of_b(self, query_id: str) -> list[Result]:
        """The results of B's runs that have the query."""
        return results_for(self.case.side_b, query_id)

    def outcomes(self, entry: Entry) -> Outcomes:
        """What an item may be where replicates differ: settled only where no rate is needed."""
        a, b = self.of_a(entry["id"]), self.of_b(entry["id"])
        if any(not result.readable for result in a + b) or (a and not b):
            return FAILED
        if all(result.errored for result in a + b):
            return SKIPPED
        if any(result.errored for result in a) and any(result.errored for result in b):
            return ANY_OUTCOME | SKIPPED  # whether that is 'errored in both' is open
        return ANY_OUTCOME

    def relaxed(self, verdict: Verdict, entry: Entry) -> Verdict:
        """'Where replicates never disagree, a loss fails as with one run a side'; a worse rank is open."""
        outcomes = verdict.outcomes
        if "xfail" in entry or (verdict.kind == "loss" and "loss" in self.case.options.checks):
            outcomes |= ANY_OUTCOME
        kind = None if verdict.kind in {"win", "loss"} else verdict.kind
        return replace(verdict, kind=kind, outcomes=outcomes)


def agree(runs: list[Run]) -> bool:
    """Whether runs that have a query have the same for it."""
    ids = {query_id for run in runs for query_id in run.rows}
    return all(len({run.rows[query_id] for run in runs if query_id in run.rows}) == 1 for query_id in ids)


def results_for(runs: list[Run], query_id: str) -> list[Result]:
    """What the runs that have a query have for it."""
    found = [result_of(run, query_id) for run in runs]
    return [result for result in found if result is not None]


def has_broken_replicate(case: Case) -> frozenset[bool]:
    """'A replicate in which every query errored, or found nothing, is a problem and fails'."""
    golden = {entry["id"] for entry in case.golden}
    sides = [side for side in (case.side_a, case.side_b) if len(side) > 1]
    runs = [run for side in sides for run in side]
    ways = [is_broken(run, golden & set(run.rows)) | is_broken(run, set(run.rows)) for run in runs]
    return frozenset({True}) if frozenset({True}) in ways else frozenset({False}).union(*ways)


def is_broken(run: Run, ids: set[str]) -> frozenset[bool]:
    """Whether all errored, or all found no hits; a mixture of both, and a run without results, are open."""
    results = [result for query_id in sorted(ids) for result in results_for([run], query_id)]
    if all(result.errored for result in results) or all(not result.hits for result in results):
        return frozenset({True} if results else {True, False})
    mixed = all(result.errored or not result.hits for result in results)
    return frozenset({True, False} if mixed else {False})
