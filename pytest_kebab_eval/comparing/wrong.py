"""What a run gets wrong, whatever another had: a fact of one run, a row of a table for each reason."""

from __future__ import annotations

from collections.abc import Callable

from pytest_kebab_eval.comparing.checks import CHECKS_OF_B, expected_ranks, rank_within
from pytest_kebab_eval.metrics import Facts

NO_RESULT = "no result"
ERRORED, TIMED_OUT = "errored", "timed out"
IsWrong = Callable[[Facts, int], bool]  # looking at the top k


def what_is_wrong(facts: Facts | None, k: int, *, require_all: bool) -> tuple[str, ...]:
    """The reasons why a run gets a query wrong; None where it has no result for it.

    `require_all` goes for queries whose golden entry does not say whether all targets are required.
    """
    if facts is None:
        return (NO_RESULT,)
    if facts.errored:
        return (TIMED_OUT if facts.timed_out else ERRORED,)
    found = [words for words, is_wrong in _REASONS if is_wrong(facts, k)]
    required = facts.targets.require
    if _lacks_a_group(facts, k) or (
        (require_all if required is None else required == "all") and _lacks_a_target(facts, k)
    ):
        found.append("a required target is missing")
    found += [_OF_B[check.name] for check in CHECKS_OF_B if check.passes(facts, k) is False]
    return tuple(found)


def _lacks_a_target(facts: Facts, k: int) -> bool:
    """Whether some target is found and another is not; that none is found is said otherwise."""
    is_found = rank_within(facts, k) is not None
    return is_found and any(rank is None or rank > k for rank in expected_ranks(facts))


def _lacks_a_group(facts: Facts, k: int) -> bool:
    groups, ranks = facts.targets.groups_that_apply, facts.ranking.found
    found = {support for support, rank in enumerate(ranks) if rank is not None and rank <= k}
    return bool(groups) and rank_within(facts, k) is not None and not any(map(found.issuperset, groups))


def _is_judged_answer(facts: Facts) -> bool:
    """Whether an answer is there that rules and claims are for: not one that should not be there."""
    return facts.answered is True and facts.answerable is not False


def _lacks_a_claim(facts: Facts, k: int) -> bool:
    return _is_judged_answer(facts) and facts.answer is not None and facts.answer.has_claim is False


def _cites_nothing_there(facts: Facts, k: int) -> bool:
    citations = facts.answer.citations if facts.answer and facts.answered else None
    return citations is not None and citations.has_any and not citations.all_resolve


_REASONS: tuple[tuple[str, IsWrong], ...] = (
    ("breaks a rule", lambda facts, k: _is_judged_answer(facts) and facts.keeps_rules is False),
    ("contains no claim", _lacks_a_claim),
    ("refused", lambda facts, k: facts.answered is False and facts.answerable is True),
    ("not refused", lambda facts, k: facts.answered is True and facts.answerable is False),
    ("a citation leads nowhere", _cites_nothing_there),
)
_OF_B = {
    "forbidden": "a forbidden hit",
    "rank_limit": "ranks too low",
    "must_cite": "lacks a required citation",
    "miss": "nothing expected was found",
}
