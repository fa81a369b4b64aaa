"""A comparison -> what a build should make of each query: pass, fail, skip, or fail as expected."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pytest_kebab_eval.comparing.queries import COMPARE_K, passed_checks
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, QueryComparison, Value, Xfail
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard
from pytest_kebab_eval.text import brief, printable


class Outcome(enum.Enum):
    """What a query's test item does."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    XFAILED = "xfailed"


class Verdict(Value, frozen=True):
    """An outcome and the sentence that gives its reason."""

    outcome: Outcome
    reason: str = ""


PASSED = Verdict(Outcome.PASSED)


class _Failure(NamedTuple):
    """What B must not lose and lost, in words."""

    check: str  # or `absent`
    text: str


class Rules(NamedTuple):
    """What a query fails on, and by which day an xfail is judged."""

    fail_on: frozenset[str]
    today: datetime.date
    compare_k: int = COMPARE_K
    unsteady: frozenset[str] = frozenset()  # queries whose loss may have been noise


def judge_query(
    query: GoldenQuery, comparison: QueryComparison | None, a: Scorecard | None, b: Scorecard, rules: Rules
) -> Verdict:
    """The verdict on one golden query; if there is no run A, only an error or an unreadable result fails."""
    query_id = query.id
    for name, card in (("A", a), ("B", b)):
        if card and query_id in card.notes.unreadable:
            run = f"run {name} ({printable(card.run.run_id)})"
            text = f"the stored result in {run} cannot be read: {card.notes.unreadable[query_id]}"
            return Verdict(Outcome.FAILED, text)
    if comparison is None:
        return Verdict(Outcome.SKIPPED, "in neither run" if a else "not in the run")
    if a and query_id in a.notes.errors and query_id in b.notes.errors:
        return Verdict(Outcome.SKIPPED, f"errored in both runs; in B: {brief(b.notes.errors[query_id])}")
    failures = _failures(comparison, b, rules.fail_on)
    if query.xfail is None:
        return Verdict(Outcome.FAILED, _joined(failures)) if failures else PASSED
    could_fail = query_id not in rules.unsteady and _could_fail(
        a.score(query_id) if a else None, query.xfail, rules
    )
    return _expected_to_fail(query.xfail, failures, could_fail, rules.today)


def _could_fail(score_a: QueryScore | None, xfail: Xfail, rules: Rules) -> bool:
    """Whether there was anything accepted that B could have lost; if not, an xfail may still be needed."""
    passed = passed_checks(score_a, rules.compare_k) if score_a else set()
    if "retrieval" in passed:
        passed.add("loss")
    return not rules.fail_on.isdisjoint(passed.intersection(xfail.checks))


def _joined(failures: Iterable[_Failure]) -> str:
    return "; ".join(failure.text for failure in failures)


def _failures(comparison: QueryComparison, b: Scorecard, fail_on: frozenset[str]) -> list[_Failure]:
    """What B lost and must not lose."""
    score = b.score(comparison.query_id)
    if score is None:
        return [_Failure("absent", "run B has no result for it (lost coverage)")]
    if not comparison.checks and comparison.kind is not ComparisonKind.LOSS:
        return []
    error = brief(b.notes.errors.get(comparison.query_id, ""))
    refused = score.facts.answered is False
    words = {
        "retrieval": f"lost {_named(comparison.lost)}, at rank {comparison.a_hit_rank} in A",
        "answer": _lost_answer(comparison, score),
        "refusal": "it was refused in B" if refused else "it was not refused in B",
        "citation": "the citations resolved in A and do not in B",
        "attribution": "the answer cited a target in A and cites none in B",
        "error": f"it errored{' in B' if comparison.kind else ''}: {error}",
    }
    alone = comparison.kind is None
    found = [_Failure(check, words[check]) for check in comparison.checks if check in fail_on or alone]
    if found and score.facts.errored and "error" not in fail_on and not alone:
        found.append(_Failure("error", words["error"]))
    if comparison.kind is ComparisonKind.LOSS and "loss" in fail_on:
        found.append(_Failure("loss", f"it ranks worse, {comparison.a_hit_rank}→{comparison.b_hit_rank}"))
    return found


def _lost_answer(comparison: QueryComparison, b: QueryScore) -> str:
    if b.facts.answered is None:
        return "it was answered in A and has no answer in B"
    if comparison.cause == "claim_missing":
        return "the answer contained a claim in A and contains none in B"
    if b.facts.answered is False:
        return "it was answered in A and refused in B"
    return "the answer kept its rules in A and does not in B"


def _named(targets: tuple[str, ...]) -> str:
    more = f" and {len(targets) - 2} more" if len(targets) > 2 else ""
    return ", ".join(brief(target, 50) for target in targets[:2]) + more


def _expected_to_fail(
    xfail: Xfail, failures: list[_Failure], could_fail: bool, today: datetime.date
) -> Verdict:
    """An accepted regression: fine while it lasts, until its date, and no longer than it is needed."""
    reason, until, text = printable(xfail.reason), xfail.until, _joined(failures)
    if until is not None and today > until:
        ended = f"its xfail ({reason}) ended on {until}; fix it or set a new date"
        return Verdict(Outcome.FAILED, f"{ended}; {text}" if failures else ended)
    not_covered = [failure.check for failure in failures if failure.check not in xfail.checks]
    if not_covered:
        return Verdict(Outcome.FAILED, f"{text}; its xfail ({reason}) {_limits(xfail, not_covered)}")
    if failures:
        return Verdict(Outcome.XFAILED, f"{reason} ({text})")
    if could_fail:
        return Verdict(Outcome.FAILED, f"its xfail ({reason}) is no longer needed; remove it")
    return PASSED


def _limits(xfail: Xfail, not_covered: list[str]) -> str:
    """What an xfail does not cover: `does not cover an error`, `covers retrieval alone`."""
    if "absent" in not_covered:
        return "does not cover a missing result"
    if "error" in not_covered:
        return "does not cover an error"
    return f"covers {' and '.join(xfail.checks)} alone"


def accepted(verdicts: Mapping[str, Verdict]) -> tuple[str, ...]:
    """The queries that fail as their xfail says, sorted."""
    return tuple(
        sorted(query_id for query_id, verdict in verdicts.items() if verdict.outcome is Outcome.XFAILED)
    )
