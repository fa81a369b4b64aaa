"""What can be lost: every check, written once, and how often the runs of two sides pass it.

To add a check, add a row to `CHECKS`, or to `CHECKS_OF_B` if it looks at B alone; `decide` says whether it
was lost: from the tallies of both sides, or from the runs of B that break it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from pytest_kebab_eval.comparing.asked import OTHER
from pytest_kebab_eval.comparing.several_runs import Tally
from pytest_kebab_eval.text import brief, first_of

if TYPE_CHECKING:
    from pytest_kebab_eval.metrics import Facts
    from pytest_kebab_eval.model import ForbiddenHit, QueryComparison


class LostCheck(NamedTuple):
    """A check that a query lost, for the sentence that says so."""

    comparison: QueryComparison
    b: Facts  # in the run that is shown; where B has no result, there is no other check
    error: str


class Check(NamedTuple):
    """Something that a query passes or fails in a run; several rows may be parts of one check.

    `passes` gives None where it does not apply. A check is lost if runs of A pass it and runs of B fail it.
    One with `of_b` looks at B alone, whatever A had: it is given which runs of B break the check.
    """

    name: str  # as `--kebab-fail-on` and reports have it
    words: str  # that stand before "in 5 of 5 runs of A"
    passes: Callable[[Facts, int], bool | None]  # in a run, looking at its top k
    sentence: Callable[[LostCheck], str]  # why a query fails that lost it
    needs_a: bool = True  # False: it is also judged where there is no run A
    by_default: bool = True  # False: only where `--kebab-fail-on` has it, or the golden file requires it
    of_b: Callable[[Sequence[bool]], bool] | None = None
    # Whether the golden file requires it, so that it always fails; it may say `require: all` of every query.
    is_required: Callable[[Facts, bool], bool] = lambda facts, all_of_all: False

    def __hash__(self) -> int:
        return id(self)  # a fast key: a check is a row of the table below


def rank_within(facts: Facts | None, k: int) -> int | None:
    """The rank of the first correct hit, if it is within the top k."""
    rank = facts.ranking.first if facts else None
    return rank if rank is not None and rank <= k else None


def _is_found(facts: Facts, k: int) -> bool | None:
    return rank_within(facts, k) is not None if facts.targets.gains else None


def _has_hits(facts: Facts, k: int) -> bool | None:
    """Whether there is any hit, where none is labelled; an answer may be expected that no hit ever has."""
    by_label = facts.targets.gains and facts.targets.matched_by != "answer"
    is_other = by_label or facts.errored or facts.answerable is False
    return None if is_other else facts.depth > 0


def expected_ranks(facts: Facts) -> tuple[int | None, ...]:
    """The rank of each target, and of each document that is expected beside chunks."""
    return (*facts.ranking.found, *(facts.doc_ranks if facts.targets.has_chunk_targets else ()))


def targets_found(facts: Facts, k: int) -> list[bool] | None:
    """Whether each of several is found; None where no target is, which is not lost in part."""
    found = [rank is not None and rank <= k for rank in expected_ranks(facts)]
    return found if len(found) > 1 and rank_within(facts, k) is not None else None


def _finds_all(facts: Facts, k: int) -> bool | None:
    found = targets_found(facts, k)
    return None if found is None else all(found)


def _has_whole_group(facts: Facts, k: int) -> bool | None:
    """Whether the supports of a required group are all found; None where none is required."""
    groups, ranks = facts.targets.groups_that_apply, facts.ranking.found
    found = [rank is not None and rank <= k for rank in ranks]
    return any(all(found[support] for support in group) for group in groups) if groups else None


def _requires_all(facts: Facts, all_of_all: bool) -> bool:
    require = facts.targets.require
    return all_of_all if require is None else require == "all"


def _has_claim(facts: Facts, k: int) -> bool | None:
    return facts.answer.has_claim if facts.answer else None


def _is_answered(facts: Facts, k: int) -> bool | None:
    """Whether there is an answer that could be lost; one that is there and fails its rules is neither."""
    if facts.errored:
        return None
    if facts.answered is None:
        return False
    return (
        bool(facts.keeps_rules or facts.has_claim or (facts.answered and facts.keeps_rules is None)) or None
    )


def _refuses_as_it_should(facts: Facts, k: int) -> bool | None:
    return None if facts.answered is None or facts.answerable is None else facts.answered is facts.answerable


def _citations_resolve(facts: Facts, k: int) -> bool | None:
    """Whether a shipped answer cites, and only what is there."""
    return facts.answer.citations.all_resolve if facts.answer and facts.answered else None


def _cites_a_target(facts: Facts, k: int) -> bool | None:
    is_attributable = facts.answerable is True and facts.answer is not None and bool(facts.targets.gains)
    return facts.answer.citations.a_target if is_attributable and facts.answer else None


def _lost_targets(lost: LostCheck) -> str:
    if lost.comparison.a_hit_rank is None and not lost.b.depth:
        return "it had hits in A and has none in B"
    return f"lost {first_of(lost.comparison.lost, 2, 50)}, at rank {lost.comparison.a_hit_rank} in A"


def _lost_texts(lost: LostCheck) -> str:
    return f"the text of {first_of(lost.comparison.lost, 2, 50) or 'what it found'} is gone"


def _lost_in_part(lost: LostCheck) -> str:
    comparison, said = lost.comparison, []
    if comparison.b_hit_rank is not None:
        names = first_of(comparison.lost, 2, 50)
        another = f"while another target is at rank {comparison.b_hit_rank}"
        said.append(f"lost {names}, {another}" if names else "B finds a target less often")
    if COVERAGE.name in (comparison.required or ()) and lost.b.targets.groups_that_apply:
        said.append("no required group is whole any more")
    return "; ".join(said)


def _lost_answer(lost: LostCheck) -> str:
    if lost.b.answered is None:
        return "it was answered in A and has no answer in B"
    if lost.comparison.cause == "claim_missing":
        return "the answer contained a claim in A and contains none in B"
    if lost.b.answered is False:
        return "it was answered in A and refused in B"
    broken = (lost.b.answer and lost.b.answer.broken_rules) or ()
    if not broken:  # in the run that is shown
        return "the answer kept its rules in A and does not in B"
    said = [f"{rule.words} '{brief(rule.text, 40)}'" for rule in broken[:2]]
    more = len(broken) - len(said)
    said += [f"breaks {more} more {'rule' if more == 1 else 'rules'}"] if more else []
    listed = " and ".join(filter(None, [", ".join(said[:-1]), said[-1]]))
    return f"the answer {listed}; in A it broke no rule"


def _lost_refusal(lost: LostCheck) -> str:
    is_refused = lost.b.answered is False
    return "it was answered in A and refused in B" if is_refused else "it was refused in A and answered in B"


def _lost_citations(lost: LostCheck) -> str:
    answer = lost.b.answer
    if answer and answer.citations.has_any:
        return "a citation leads to no chunk; in A all led to one"
    return "the answer cites nothing; in A all citations led to a chunk"


def _forbidden_hits(lost: LostCheck) -> str:
    return f"found what is forbidden: {forbidden_words(lost.comparison.forbidden or ())}"


def forbidden_words(hits: Sequence[ForbiddenHit]) -> str:
    """`drafts/plan.md at rank 2`."""
    return first_of([f"{brief(hit.id, 50)} at rank {hit.rank}" for hit in hits], 3)


def _ranks_too_low(lost: LostCheck) -> str:
    first, limit = lost.b.ranking.first, lost.b.targets.rank_limit
    if first is None:
        return f"nothing expected was found in B, which must be at rank {limit} or better"
    return f"it is at rank {first} in B, and must be at rank {limit} or better"


def _lacks_citations(lost: LostCheck) -> str:
    if lost.b.answered is None:
        return "there is no answer in B, which must cite what is expected"
    if lost.b.answered is False:
        return "it was refused in B, and must cite what is expected"
    return f"the answer does not cite {first_of((lost.b.answer and lost.b.answer.uncited) or (), 2, 50)}"


def _errored(lost: LostCheck) -> str:
    what = "timed out" if lost.b.timed_out else "errored"
    return f"it {what}{' in B' if lost.comparison.kind else ''}: {lost.error}"


# A run without a result fails it; no other row says anything of such a run.
ABSENT = Check(
    "absent",
    "with a result",
    lambda facts, k: True,
    lambda lost: "runs of B have no result for it",
    needs_a=False,
    by_default=False,
    is_required=lambda facts, all_of_all: True,
)
RETRIEVAL = Check("retrieval", "found", _is_found, _lost_targets, is_required=_requires_all)
TEXT = Check("text", "kept its text", lambda facts, k: facts.keeps_texts(k), _lost_texts)
CHECKS = (
    RETRIEVAL,
    Check("retrieval", "had hits", _has_hits, _lost_targets),
    TEXT,
    Check("answer", "kept its rules", lambda facts, k: facts.keeps_rules, _lost_answer),
    Check("answer", "contained a claim", _has_claim, _lost_answer),
    Check("answer", "answered", _is_answered, _lost_answer),
    Check("refusal", "answered or refused as it should", _refuses_as_it_should, _lost_refusal),
    Check("citation", "citations resolved", _citations_resolve, _lost_citations),
    Check(
        "attribution",
        "cited a target",
        _cites_a_target,
        lambda lost: "the answer cited a target in A and cites none in B",
        by_default=False,
    ),
    Check(
        "coverage",
        "had a whole required group",
        _has_whole_group,
        _lost_in_part,
        by_default=False,
        is_required=lambda facts, all_of_all: bool(facts.targets.groups_that_apply),
    ),
    Check("error", "without an error", lambda facts, k: not facts.errored, _errored, needs_a=False),
    ABSENT,
)
# Of each target on its own: the one that fell furthest is that of the query.
COVERAGE = Check(
    "coverage", "found a target", _finds_all, _lost_in_part, by_default=False, is_required=_requires_all
)
# Ranks are not yes or no: they are compared where every run found something.
LOSS = Check(
    "loss",
    "ranked as high",
    lambda facts, k: None,
    lambda lost: f"it ranks worse, {lost.comparison.a_hit_rank}→{lost.comparison.b_hit_rank}",
    by_default=False,
)


# Of both sides, however they did: `asked` says how what they were asked compares.
OTHER_QUESTION = Check(
    OTHER,
    "asked the golden question",
    lambda facts, k: not facts.asked,
    lambda lost: (
        f"run B was asked '{brief(lost.b.asked or '', 60)}', which is not the question of the golden file;"
        " record it again"
    ),
    needs_a=False,
    by_default=False,
    is_required=lambda facts, all_of_all: True,
)


def _half_or_more(broken: Sequence[bool]) -> bool:
    return 2 * sum(broken) >= len(broken)


# What looks at B alone. One run that shows what is forbidden is one too many.
_check_of_b = partial(Check, needs_a=False, by_default=False)
FORBIDDEN = _check_of_b(
    "forbidden",
    "without a forbidden hit",
    lambda facts, k: None if facts.forbidden is None else not any(map(k.__ge__, facts.forbidden)),
    _forbidden_hits,
    of_b=any,
    is_required=lambda facts, all_of_all: True,
)
RANK_LIMIT = _check_of_b(
    "rank_limit",
    "ranked as high as it must",
    lambda facts, k: facts.targets.keeps_limit(facts.ranking.first),
    _ranks_too_low,
    of_b=_half_or_more,
    is_required=lambda facts, all_of_all: True,
)
MUST_CITE = _check_of_b(
    "must_cite",
    "cited all that it must",
    lambda facts, k: facts.cites_all,
    _lacks_citations,
    of_b=_half_or_more,
    is_required=lambda facts, all_of_all: True,
)
MISS = _check_of_b(
    "miss", "found", _is_found, lambda lost: "nothing expected was found in B", of_b=_half_or_more
)
CHECKS_OF_B = (FORBIDDEN, RANK_LIMIT, MUST_CITE, MISS)
ALL_CHECKS = (*CHECKS, COVERAGE, LOSS, *CHECKS_OF_B)
WORSE = "worse"  # of the whole: a metric of the summary is; no check of a query
ALWAYS = frozenset({ABSENT.name})  # what fails a query whatever `--kebab-fail-on` says
DEFAULT_CHECKS = tuple(dict.fromkeys(check.name for check in ALL_CHECKS if check.by_default))
ANSWER_CHECKS = tuple(name for name in DEFAULT_CHECKS if name not in (RETRIEVAL.name, TEXT.name, "error"))
OTHER_CHECKS = tuple(
    dict.fromkeys(
        check.name for check in (LOSS, *ALL_CHECKS) if not check.by_default and check.name not in ALWAYS
    )
)
SENTENCES = {check.name: check.sentence for check in (*ALL_CHECKS, OTHER_QUESTION)}


def checks_of(words: Iterable[str]) -> tuple[frozenset[str], int]:
    """The checks of `--kebab-fail-on`; and of `loss>3`, by how many ranks a query may fall.

    Where a target must not be lost, all must not; what fell out fell by more than any number of ranks.
    """
    limits = [int(word.partition(">")[2] or 0) for word in words if word.partition(">")[0] == LOSS.name]
    names = {word.partition(">")[0] for word in words} - {WORSE}
    more = {RETRIEVAL.name} if names & {COVERAGE.name, LOSS.name} else set()
    return frozenset(names | more), min(limits, default=0)


def losable(facts: Facts, k: int) -> list[Check]:
    """What a query could lose: what it passes in a run, other than having no error."""
    rows = (*CHECKS, *CHECKS_OF_B)
    found = [check for check in rows if (check.needs_a or check.of_b) and check.passes(facts, k)]
    found += [COVERAGE] if sum(targets_found(facts, k) or ()) > 1 else []
    return [*found, LOSS] if RETRIEVAL in found else found


def passed_checks(facts: Facts, k: int) -> set[str]:
    """The names of the checks that a query passes in a run, other than having no error."""
    return {check.name for check in losable(facts, k) if check is not LOSS}


def is_lost(check: str, a: Facts, b: Facts, k: int) -> bool | None:
    """Whether a query lost a check from one run of a history to another; None if that cannot be said."""
    rows = [row for row in (*CHECKS, *CHECKS_OF_B) if row.name == check]
    if any((row.of_b or row.passes(a, k)) and row.passes(b, k) is False for row in rows):
        return True
    in_a, in_b = targets_found(a, k), targets_found(b, k)
    if check == COVERAGE.name and in_a and in_b:
        return any(was and not found for was, found in zip(in_a, in_b, strict=True))
    return False if check in passed_checks(b, k) else None


# -- counting ------------------------------------------------------------------------------------


def rank_tally(a: Sequence[int], b: Sequence[int]) -> Tally:
    """A passes in all runs and B in none where every rank of A is better; the reverse; else both do."""
    jitters = len({*a}) > 1 or len({*b}) > 1
    passes_a = 0 if max(b) < min(a) else len(a)
    passes_b = 0 if max(a) < min(b) else len(b)
    return Tally(passes_a, len(a), passes_b, len(b), jitters)
