"""What has to become of each query and of the session (sections 3.3, 4 and 8)."""

from __future__ import annotations

import datetime
from collections.abc import Callable

from .case import Case, Entry, Run
from .causes import COMPARED_RANKS, causes_of
from .checks import (
    OPEN,
    Open,
    Passes,
    attributes,
    citations_resolve,
    has_claim,
    keeps_rules,
    refuses_rightly,
)
from .coverage import has_coverage_problem, in_any_way
from .matching import EXACT, FALLBACK, Matching, target_names
from .replicates import Replicates, has_broken_replicate
from .results import Result, result_of, results_of
from .rules import (
    ALWAYS,
    RULES,
    Found,
    broken_by_runs,
    broken_rules,
    lost_coverage,
    names_lost,
    requires_coverage,
)
from .verdicts import (
    FAILED,
    NOTHING,
    PASSED,
    SKIPPED,
    XFAILED,
    Judgment,
    Outcomes,
    Sides,
    Verdict,
)

FEWEST_MEASURED = 5


class Judge:
    """Judges one comparison."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.fail_on = case.options.checks
        self.compare_k = case.options.compare_k or COMPARED_RANKS
        self.matching = Matching(case)
        self.replicates = Replicates(case)
        self.sides = [self._sides(entry) for entry in case.golden]

    def _sides(self, entry: Entry) -> Sides:
        a = first_result(self.case.side_a, entry["id"]) if self.case.is_comparison else None
        return Sides(entry, a, first_result(self.case.side_b, entry["id"]))

    def judge(self) -> Judgment:
        """The judgment of the whole comparison."""
        if self._is_wrong_use():
            return Judgment({}, usage_error=True)
        verdicts = {sides.entry["id"]: self._verdict(sides) for sides in self.sides}
        compared = frozenset(sides.entry["id"] for sides in self.sides if sides.a or sides.b)
        return Judgment(
            verdicts,
            compared,
            session_fails=self._session_fails(),
            mode=self.matching.mode,
        )

    def _is_wrong_use(self) -> bool:
        if self.case.options.wrong:
            return True
        if self.case.options.same_run:  # 'wrong use'; where it is the only run, there is no baseline
            return self.case.run_a is not None or self.case.options.if_no_baseline != "pass"
        lacks_a = self.case.run_a is None and not self.case.options.alone
        if lacks_a and self.case.options.if_no_baseline != "pass":
            return True
        return self.case.options.strict and self.matching.mode == FALLBACK

    def _verdict(self, sides: Sides) -> Verdict:
        if not self.case.is_comparison:
            return self._verdict_alone(sides)
        if sides.a is None and sides.b is not None:
            return self._verdict_new(sides)
        if not self.replicates.agree:
            return Verdict(None, None, None, NOTHING, NOTHING, self.replicates.outcomes(sides.entry))
        verdict = self._verdict_compared(sides)
        return self.replicates.relaxed(verdict, sides.entry) if self.case.has_replicates else verdict

    def _verdict_compared(self, sides: Sides) -> Verdict:
        ranks_a, ranks_b = self._ranks(sides.entry, sides.a), self._ranks(sides.entry, sides.b)
        rank_a, rank_b = min(ranks_a.values(), default=None), min(ranks_b.values(), default=None)
        kind = kind_of(rank_a, rank_b)
        checks = self._lost_checks(sides, kind) | self._broken_rules(sides)
        found = [(set(ranks_a), set(ranks_b))]
        if ranks_a and ranks_b:  # documents beside chunks may be lost in part (docs/golden-file.md)
            found.append((self._documents(sides.entry, sides.a), self._documents(sides.entry, sides.b)))
        checks["coverage"] = lost_coverage(found)
        lost, open_checks = certain(checks), unsettled(checks)
        failing = lost | self._failing_loss(rank_a, rank_b)
        failing |= {"coverage"} if names_lost(found) else set()
        outcomes = frozenset().union(
            *(
                self._outcomes(sides, failing, open_checks - failing, required)
                for required in self._required(sides.entry, ranks_a, ranks_b)
            )
        )
        targets = self._named_targets(sides.entry, found)
        causes = self._causes(sides, lost) if lost and not open_checks else frozenset()
        overlap = overlap_of(sides.a, sides.b, self._top)
        return Verdict(kind, rank_a, rank_b, lost, open_checks, outcomes, *targets, causes, overlap)

    def _failing_loss(self, rank_a: int | None, rank_b: int | None) -> frozenset[str]:
        """'`loss>3` (by more than three ranks)'."""
        fell = rank_a is not None and rank_b is not None and rank_b - rank_a > self.case.options.loss_over
        return frozenset({"loss"} if fell else ())

    def _broken_rules(self, sides: Sides) -> dict[str, Passes]:
        """What B breaks whatever A had; whether `miss` is listed where it is not asked for is open."""
        if sides.b is None:
            return {}
        results = self.replicates.of_b(sides.entry["id"])
        broken = broken_by_runs(
            [broken_rules(self.matching, sides.entry, result, self.compare_k) for result in results]
        )
        if "miss" not in self.fail_on and broken["miss"]:
            broken["miss"] = OPEN
        return broken

    def _required(
        self, entry: Entry, ranks_a: dict[str, int], ranks_b: dict[str, int]
    ) -> list[frozenset[str]]:
        """The checks that the golden file requires, in each way to settle what is open."""
        option = self.case.options.require
        coverage = requires_coverage(self.matching, entry, option, (set(ranks_a), set(ranks_b)))
        ways = [True, False] if coverage == OPEN else [bool(coverage)]
        return [ALWAYS | ({"coverage"} if way else set()) for way in ways]

    def _fails_on(self, checks: frozenset[str], required: frozenset[str] = ALWAYS) -> frozenset[str]:
        """Those of the checks that fail a query."""
        return checks & (self.fail_on | required)

    def _with_rules(self, sides: Sides, outcomes: Outcomes) -> Outcomes:
        """The outcomes of a query without a baseline, which fails if it breaks a rule."""
        broken = self._broken_rules(sides)
        if self._fails_on(certain(broken)):
            return FAILED | (XFAILED if "xfail" in sides.entry else NOTHING)
        return outcomes | FAILED if self._fails_on(unsettled(broken)) else outcomes

    def _verdict_new(self, sides: Sides) -> Verdict:
        """'*new*: skipped, "no baseline", unless it errors'; whether always, or by fail-on, is open."""
        results = self.replicates.of_b(sides.entry["id"])
        ranks = {min(self._ranks(sides.entry, result).values(), default=None) for result in results}
        rank: int | Open | None = (
            ranks.pop() if len(ranks) == 1 else OPEN
        )  # 'of one run a side that is like what is said'
        errored = [result.errored for result in results]
        outcomes = FAILED if any(errored) else SKIPPED
        if any(not result.readable for result in results):
            return Verdict("new", None, rank, NOTHING, frozenset({"error"} | RULES), FAILED)
        if any(errored) and not (all(errored) and "error" in self.fail_on):
            outcomes |= SKIPPED
        if is_past(sides.entry.get("xfail", {})):
            outcomes |= FAILED
        open_checks = frozenset({"error"} | RULES) if any(errored) else RULES
        return Verdict("new", None, rank, NOTHING, open_checks, self._with_rules(sides, outcomes))

    def _top(self, result: Result) -> set[str]:
        """The ids of the top 10 (`--kebab-compare-k`)."""
        return {hit["chunk_id"] for hit in result.hits if hit["rank"] <= self.compare_k}

    def _causes(self, sides: Sides, lost: frozenset[str]) -> frozenset[str]:
        return causes_of(self.matching, sides.entry, (sides.a or Result(), sides.b), lost)

    def _ranks(self, entry: Entry, result: Result | None) -> dict[str, int]:
        """By target, its first rank 'within the top 10 (`--kebab-compare-k`)'."""
        ranks = {} if result is None else self.matching.correct_ranks(entry, result)
        return {name: rank for name, rank in ranks.items() if rank <= self.compare_k}

    def _documents(self, entry: Entry, result: Result | None) -> set[str]:
        """The expected documents in the top 10, where chunks are expected, too."""
        if result is None or result.errored or not self.matching.targets(entry):
            return set()
        names = target_names(entry, "expected_doc_ids")
        top = (hit["doc_id"] for hit in result.hits if hit["rank"] <= self.compare_k)
        return {names[doc_id] for doc_id in top if doc_id in names}

    def _named_targets(
        self, entry: Entry, found: Found
    ) -> tuple[frozenset[str] | None, frozenset[str] | None]:
        """'the lost and gained targets by id', where the targets are ids."""
        targets = self.matching.targets(entry)
        if self.matching.mode != EXACT or not targets or not all(target.chunk_id for target in targets):
            return None, None
        return names_lost(found), names_lost([(in_b, in_a) for in_a, in_b in found])

    def _verdict_alone(self, sides: Sides) -> Verdict:
        """'a query item fails if its query errored'."""
        rank = min(self._ranks(sides.entry, sides.b).values(), default=None)
        if sides.b is None:
            outcomes = SKIPPED
        else:
            outcomes = FAILED if sides.b.errored else self._with_rules(sides, PASSED)
            if sides.b.readable and "xfail" in sides.entry:
                outcomes = self._xfail_alone(sides.entry, outcomes)
        return Verdict(None, None, rank, frozenset(), frozenset(), outcomes)

    def _xfail_alone(self, entry: Entry, outcomes: Outcomes) -> Outcomes:
        """An xfail covers no error; whether one past its date fails where nothing is compared is open."""
        if is_past(entry["xfail"]):
            return outcomes | FAILED
        return outcomes

    def _lost_checks(self, sides: Sides, kind: str) -> dict[str, Passes]:
        """The checks 'that passed in A and fail in B': True, or OPEN."""
        a, b, entry, matching = sides.a or Result(), sides.b or Result(), sides.entry, self.matching
        return {
            "retrieval": kind == "regression",
            "answer": self._lost_answer(sides),
            "refusal": lost(refuses_rightly(entry, a), refuses_rightly(entry, b)),
            "citation": lost(citations_resolve(matching, a), citations_resolve(matching, b)),
            "attribution": lost(attributes(matching, entry, a), attributes(matching, entry, b)),
            "error": lost(sides.a is not None and not a.errored, not b.errored if b.readable else OPEN),
        }

    def _lost_answer(self, sides: Sides) -> Passes:
        """'its rules, its claims, or the answer is gone'."""
        if sides.a is None or sides.a.usable_answer is None:
            return False
        rules_a, claim_a = keeps_rules(sides.entry, sides.a), has_claim(sides.entry, sides.a)
        if sides.b is None or sides.b.errored:
            return OPEN
        if sides.b.usable_answer is None:
            return OPEN if sides.a.refused or False in {rules_a, claim_a} else True
        rules = lost(rules_a, keeps_rules(sides.entry, sides.b))
        return rules or lost(claim_a, has_claim(sides.entry, sides.b))

    def _outcomes(
        self, sides: Sides, known: frozenset[str], open_checks: frozenset[str], required: frozenset[str]
    ) -> Outcomes:
        failing = [self._fails_on(known, required)]
        if self._fails_on(open_checks, required):
            failing.append(self._fails_on(known | open_checks, required))
        return frozenset().union(*(self._outcome(sides, checks, known | open_checks) for checks in failing))

    def _outcome(self, sides: Sides, failing: frozenset[str], lost: frozenset[str]) -> Outcomes:
        results = [result for result in (sides.a, sides.b) if result is not None]
        if any(not result.readable for result in results):
            return FAILED
        if not results or (len(results) == 2 and all(result.errored for result in results)):
            return SKIPPED
        absent = sides.b is None
        if "xfail" in sides.entry:
            return self._xfail_outcome(sides, failing, lost)
        return FAILED if failing or absent else PASSED

    def _xfail_outcome(self, sides: Sides, failing: frozenset[str], lost: frozenset[str]) -> Outcomes:
        """'it covers lost checks, not an error or a missing result'."""
        if is_past(sides.entry["xfail"]):
            return FAILED
        if "error" in failing or sides.b is None:
            return FAILED
        if failing:  # whether it covers what an error cost, or a rule of B alone, is open
            return XFAILED | FAILED if sides.b.errored or failing & RULES else XFAILED
        return self._unneeded_outcome(sides, lost)

    def _unneeded_outcome(self, sides: Sides, lost: frozenset[str]) -> Outcomes:
        """An xfail that is 'no longer needed (in a comparison that would have failed on it), fails'."""
        if not self.fail_on or sides.a is None or sides.a.errored:
            rules = ("must_rank_at_most", "require", "required_support_groups")
            has_rules = self.case.options.require or any(name in sides.entry for name in rules)
            return PASSED | FAILED if has_rules else PASSED
        could_fail = bool(self._ranks(sides.entry, sides.a)) and "retrieval" in self.fail_on
        return FAILED if could_fail and not lost else PASSED | FAILED

    def _session_fails(self) -> frozenset[bool]:
        """'A comparison that measures nothing … fails', a row that cannot be read, and other problems."""
        fails = [self._measures_nothing(), has_broken_replicate(self.case)]
        if self.case.is_comparison:
            fails.append(has_coverage_problem(self.case, self.matching))
        return in_any_way(fails)

    def _measures_nothing(self) -> frozenset[bool]:
        if not self.replicates.agree:
            unreadable = any(not row.readable for run in self.matching.runs for row in results_of(run))
            return frozenset({True} if unreadable else {True, False})
        results = [result for sides in self.sides for result in (sides.a, sides.b) if result]
        rows = [result for run in self.matching.runs for result in results_of(run)]
        if not results or any(not row.readable for row in rows):
            return frozenset({True})
        baseline = [sides.a for sides in self.sides if sides.a]
        if any(found and all(result.errored for result in found) for found in (results, baseline)):
            return frozenset({True})
        golden = {sides.entry["id"] for sides in self.sides}
        one_is_empty = any(not golden & set(run.rows) for run in self.matching.runs)
        return self._nothing_found() | ({True} if one_is_empty else set())

    def _nothing_found(self) -> frozenset[bool]:
        """No expected id at any rank; a warning 'with fewer than five such queries'."""
        expecting = [sides for sides in self.sides if self.matching.compared_targets(sides.entry)]
        judged = [sides for sides in expecting if is_judged(sides.a) or is_judged(sides.b)]
        for sides in judged:
            if any(
                result and self.matching.correct_ranks(sides.entry, result) for result in (sides.a, sides.b)
            ):
                return frozenset({False})
        # Whether a query without any hit is such a query is open.
        with_hits = [
            sides for sides in judged if any(result and result.hits for result in (sides.a, sides.b))
        ]
        return frozenset(len(found) >= FEWEST_MEASURED for found in (with_hits, judged, expecting))


def first_result(runs: list[Run], query_id: str) -> Result | None:
    """What the first run that has it has stored for a query."""
    return next((result_of(run, query_id) for run in runs if query_id in run.rows), None)


def is_judged(result: Result | None) -> bool:
    """Whether there is something to look into."""
    return result is not None and not result.errored


def overlap_of(a: Result | None, b: Result | None, top: Callable[[Result], set[str]]) -> float | None:
    """'ids shared by both top k over their union'; None where a side has nothing to compare."""
    if a is None or b is None or a.errored or b.errored:
        return None
    shared, either = top(a) & top(b), top(a) | top(b)
    return round(len(shared) / len(either), 4) if either else None


def kind_of(rank_a: int | None, rank_b: int | None) -> str:
    """The table of section 3.3."""
    if rank_a == rank_b:
        return "draw"
    if rank_a is None:
        return "win"
    if rank_b is None:
        return "regression"
    return "win" if rank_b < rank_a else "loss"


def lost(in_a: Passes, in_b: Passes) -> Passes:
    """Whether a check passed in A and fails in B."""
    if in_a is None or in_b is None or in_a is False or in_b is True:
        return False
    return OPEN if OPEN in {in_a, in_b} else True


def certain(checks: dict[str, Passes]) -> frozenset[str]:
    """The checks that are lost."""
    return frozenset(name for name, is_lost in checks.items() if is_lost is True)


def unsettled(checks: dict[str, Passes]) -> frozenset[str]:
    """The checks that may be lost, by the reading."""
    return frozenset(name for name, is_lost in checks.items() if is_lost == OPEN)


def is_past(xfail: Entry) -> bool:
    """Whether the date of an xfail has passed."""
    return "until" in xfail and str(xfail["until"]) < datetime.date.today().isoformat()
