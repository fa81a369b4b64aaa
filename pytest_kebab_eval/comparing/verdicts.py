"""A comparison -> what a build should make of each query: pass, fail, skip, or fail as expected."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Iterator

from pytest_kebab_eval.comparing.asked import OTHER
from pytest_kebab_eval.comparing.checks import (
    ABSENT,
    DEFAULT_CHECKS,
    FORBIDDEN,
    LOSS,
    SENTENCES,
    LostCheck,
    losable,
)
from pytest_kebab_eval.comparing.decide import Decision, Rules, lost_rates
from pytest_kebab_eval.comparing.one_pass import OnePass
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, Value, Xfail
from pytest_kebab_eval.text import brief, printable


class Outcome(enum.Enum):
    """What a query's test item does."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"


class Verdict(Value, frozen=True):
    """An outcome and its reason; one that passed has a reason if it lost what fails other builds."""

    outcome: Outcome
    reason: str = ""


PASSED = Verdict(Outcome.PASSED)


Failures = dict[str, str]  # what B must not lose and lost, by check or `absent`, in words


class QueryVerdicts:
    """Gives the verdict on one golden query at a time."""

    def __init__(
        self,
        seen: OnePass,
        decisions: Iterable[Decision],
        rules: Rules,
        today: datetime.date | None,
    ) -> None:
        self._seen, self._rules = seen, rules
        self._today = today or datetime.date.today()
        self._decisions = {
            query_id: decision for decision in decisions for query_id in decision.group.query_ids
        }
        self._unreadable = dict(_unreadable(seen))

    def judge(self, query_id: str, comparison: QueryComparison | None, xfail: Xfail | None) -> Verdict:
        """The verdict on a query; if there is no run A, only what needs none can fail it."""
        if query_id in self._unreadable:
            return Verdict(Outcome.FAILED, f"the stored result in {self._unreadable[query_id]}")
        if comparison is None:
            return Verdict(Outcome.SKIPPED, "run B was recorded from a selection without it")
        decision = self._decisions[query_id]
        if decision.a and decision.a.errored and decision.b and decision.b.errored:
            error = self._error(decision, query_id)
            return Verdict(Outcome.SKIPPED, f"errored in both runs; in B: {error}")
        failures = self._failures(comparison, self._rules.fail_on)
        if decision.is_reworded and not failures:
            before = decision.stored_a.asked if decision.stored_a else None
            said = f"reworded: run A was asked '{brief(before or '', 60)}'"
            return Verdict(Outcome.SKIPPED, f"{said}, so that there is nothing to compare")
        if comparison.kind is ComparisonKind.NEW and not failures:
            return Verdict(Outcome.SKIPPED, "no baseline: run A has no result for it")
        if xfail is not None:
            verdict = _expected_to_fail(xfail, failures, self._could_fail(query_id, xfail), self._today)
        elif failures:
            verdict = Verdict(Outcome.FAILED, _said(failures))
        else:
            tolerated = self._failures(comparison, frozenset(DEFAULT_CHECKS))
            return Verdict(Outcome.PASSED, "; ".join(tolerated.values())) if tolerated else PASSED
        return self._with_rates(comparison, verdict)

    def _failures(self, comparison: QueryComparison, fail_on: frozenset[str]) -> Failures:
        is_loss = comparison.kind is ComparisonKind.LOSS
        if not comparison.checks and not is_loss:
            return {}
        decision = self._decisions[comparison.query_id]
        if decision.b is None:
            return {ABSENT.name: _absent(comparison, is_in_a=decision.group.in_a)}
        alone = comparison.kind in (None, ComparisonKind.NEW)
        required = comparison.required or ()
        checks = [check for check in comparison.checks if check in fail_on or check in required or alone]
        if checks and decision.b.errored and "error" not in fail_on and not alone:
            checks.append("error")
        if LOSS.name in fail_on and comparison.fell_by > self._rules.loss_over:
            checks.append(LOSS.name)
        lost = LostCheck(comparison, decision.b, self._error(decision, comparison.query_id))
        return {check: SENTENCES[check](lost) for check in checks}

    def _error(self, decision: Decision, query_id: str) -> str:
        """What went wrong in the run of B that is shown."""
        run = self._seen.side("b")[decision.shown[1]]
        return brief(run.errors.get(query_id, ""))

    def _could_fail(self, query_id: str, xfail: Xfail) -> bool:
        """Whether B could have lost anything accepted; if not, an xfail may still be needed."""
        decision, rules = self._decisions[query_id], self._rules
        in_a = decision.a
        if in_a is None or decision.may_be_noise:
            return False
        return any(
            check.name in xfail.checks
            and (check.name in rules.fail_on or check.is_required(in_a, rules.require_all))
            for check in losable(in_a, rules.compare_k)
        )

    def _with_rates(self, comparison: QueryComparison, verdict: Verdict) -> Verdict:
        """The verdict with how often the query passed, on each side, what it lost."""
        decision = self._decisions[comparison.query_id]
        fail_on = self._rules.fail_on.union(comparison.required or ())
        lost = lost_rates(decision.rates, fail_on)
        told = lost and verdict.outcome in (Outcome.FAILED, Outcome.XFAILED)
        return Verdict(verdict.outcome, f"{verdict.reason}; {lost}") if told else verdict


def _absent(comparison: QueryComparison, *, is_in_a: bool) -> str:
    if comparison.kind is None:
        return "the run has no result for it"
    return "run B has no result for it (lost coverage)" if is_in_a else "neither run has a result for it"


def _unreadable(seen: OnePass) -> Iterator[tuple[str, str]]:
    """The queries whose result cannot be read, and where and why; where neither can be, A is named."""
    for letter in "ba":
        runs = seen.side(letter)
        names = ",".join(run.name for run in runs)
        for run in reversed(runs):
            where = f"in {run.name}: " if len(runs) > 1 else ""
            for query_id, reason in run.unreadable.items():
                yield query_id, f"run {letter.upper()} ({names}) cannot be read: {where}{reason}"


def _said(failures: Failures) -> str:
    """Why a query fails; what another sentence says in full is left out."""
    sentences = [*dict.fromkeys(failures.values())]
    return "; ".join(
        said for said in sentences if not any(other.startswith(f"{said},") for other in sentences)
    )


def judge_queries(
    golden: GoldenSet, per_query: Iterable[QueryComparison], judge: QueryVerdicts
) -> dict[str, Verdict]:
    """The verdict on every golden query."""
    xfails = {query.id: query.xfail for query in golden.unusual() if query.xfail}
    compared = {comparison.query_id: comparison for comparison in per_query}
    return {
        query_id: judge.judge(query_id, compared.get(query_id), xfails.get(query_id))
        for query_id in golden.by_id()
    }


def _expected_to_fail(xfail: Xfail, failures: Failures, could_fail: bool, today: datetime.date) -> Verdict:
    """An accepted regression: fine while it lasts, until its date, and no longer than it is needed."""
    reason, until, text = printable(xfail.reason), xfail.until, _said(failures)
    if until is not None and today > until:
        ended = f"its xfail ({reason}) ended on {until}; fix it or set a new date"
        return Verdict(Outcome.FAILED, f"{ended}; {text}" if failures else ended)
    not_covered = [check for check in failures if check not in xfail.checks]
    if not_covered:
        return Verdict(Outcome.FAILED, f"{text}; its xfail ({reason}) {_limits(xfail, not_covered)}")
    if failures:
        return Verdict(Outcome.XFAILED, f"{reason} ({text})")
    if could_fail:
        return Verdict(Outcome.FAILED, f"its xfail ({reason}) is no longer needed; remove it")
    return PASSED


def _limits(xfail: Xfail, not_covered: list[str]) -> str:
    """What an xfail does not cover: `does not cover an error`, `covers retrieval alone`."""
    if ABSENT.name in not_covered:
        return "does not cover a missing result"
    if "error" in not_covered:
        return "does not cover an error"
    if OTHER in not_covered:
        return "does not cover another question"
    if FORBIDDEN.name in not_covered:
        return "does not cover a forbidden hit"
    return f"covers {' and '.join(xfail.checks)} alone"
