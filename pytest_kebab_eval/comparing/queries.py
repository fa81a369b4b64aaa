"""Two scorecards -> what became of each query between run A and run B."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from pytest_kebab_eval.comparing.config_changes import ConfigChange, change_notes
from pytest_kebab_eval.comparing.movement import Movement
from pytest_kebab_eval.matching.strategies import MATCHED_BY
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import ComparisonKind, QueryComparison, QueryResult, Unreadable
from pytest_kebab_eval.scoring.scorecard import Alike, QueryScore, Scorecard

COMPARE_K = 10
MATCH_NOTES = {"document": "matched by document alone", "text": "matched by text"}

Stored = Callable[[str], "QueryResult | Unreadable | None"]


class Sides(NamedTuple):
    """The two scorecards, and how to read a stored result again by its query; A may be missing."""

    a: Scorecard | None
    b: Scorecard
    stored_a: Stored
    stored_b: Stored
    groups: Sequence[Alike]  # the golden queries that either has, by how they did
    movement: Movement | None = None  # None: run B is judged alone

    @property
    def both(self) -> tuple[tuple[str, Scorecard], ...]:
        """The sides that are there, by their letters."""
        return (("a", self.a), ("b", self.b)) if self.a else (("b", self.b),)

    def scores(self, side: str) -> Iterator[tuple[QueryScore, list[str]]]:
        """How golden queries did on a side, each score with the queries that have it, perhaps in parts."""
        for group in self.groups:
            score = group.a if side == "a" else group.b
            if score is not None:
                yield score, group.query_ids


class PairOutcome(NamedTuple):
    """What one score in A and one in B make of every query that has both."""

    kind: ComparisonKind | None
    a_rank: int | None
    b_rank: int | None
    note: str | None
    cause: str | None  # `gone` may yet turn out to be `wrong_chunk`
    checks: tuple[str, ...]
    matched_by: str | None
    is_missed: bool
    finds_the_same: bool
    is_fine: bool  # nothing happened that could fail a query


class ComparedQueries(NamedTuple):
    """What became of the queries, sorted by id, and what follows from it."""

    per_query: tuple[QueryComparison, ...]
    matched_by: dict[str, int]
    missed: tuple[str, ...]  # queries whose targets no run found
    doubtful: set[str]  # queries to which something happened that could fail them


def compare_queries(comparer: Comparer) -> ComparedQueries:
    """Compare query by query; how two scores compare is found out once for all queries that have them."""
    per_query: list[QueryComparison] = []
    matched_by = dict.fromkeys(MATCHED_BY, 0)
    missed: list[str] = []
    doubtful: set[str] = set()
    for a, b, query_ids in comparer.sides.groups:
        outcome = comparer.outcome(a, b)
        per_query += [comparer.compare(query_id, a, b, outcome) for query_id in query_ids]
        if outcome.matched_by is not None:
            matched_by[outcome.matched_by] += len(query_ids)
        if outcome.is_missed:
            missed += query_ids
        if not outcome.is_fine:
            doubtful.update(query_ids)
    per_query.sort(key=attrgetter("query_id"))
    return ComparedQueries(tuple(per_query), matched_by, tuple(sorted(missed)), doubtful)


class Comparer:
    """Compares scores; asks the stored results only for what the scores do not tell."""

    def __init__(
        self,
        sides: Sides,
        targets_of: Callable[[str], Targets],
        changes: tuple[ConfigChange, ...] = (),
        compare_k: int = COMPARE_K,
    ) -> None:
        self.sides = sides
        self._change_notes = change_notes(changes)
        self._targets_of = targets_of
        self._k = compare_k

    def compare(
        self, query_id: str, a: QueryScore | None, b: QueryScore | None, outcome: PairOutcome
    ) -> QueryComparison:
        """One query that has these scores."""
        cause = outcome.cause
        lost: tuple[str, ...] = ()
        gained: tuple[str, ...] = ()
        if not outcome.finds_the_same:
            targets = self._targets_of(query_id)
            if cause == "gone" and self._right_document(query_id, targets):
                cause = "wrong_chunk"
            in_a, in_b = self._found(targets, a), self._found(targets, b)
            lost, gained = tuple(sorted(in_a - in_b)), tuple(sorted(in_b - in_a))
        movement = self.sides.movement
        return QueryComparison(
            query_id,
            outcome.kind,
            outcome.a_rank,
            outcome.b_rank,
            outcome.note,
            cause,
            outcome.checks,
            lost,
            gained,
            *(movement.of(query_id) if movement else ()),
        )

    def outcome(self, a: QueryScore | None, b: QueryScore | None) -> PairOutcome:
        """What becomes of a query that has these scores; None is a result that is not there."""
        return self._pair(a, b) if self.sides.a else self._alone(b)

    def _pair(self, a: QueryScore | None, b: QueryScore | None) -> PairOutcome:
        a_rank, b_rank = rank_within(a, self._k), rank_within(b, self._k)
        kind = kind_of(a_rank, b_rank)
        matched_by = _matched_by(a, b)
        checks = tuple(lost_checks(kind, a, b, self._k))
        cause = cause_of(checks, a, b)
        has_targets = _has_targets(a or b)
        notes = (
            [] if kind is ComparisonKind.DRAW else [*rank_notes(a, b, self._k, cause), *self._change_notes]
        )
        return PairOutcome(
            kind=kind,
            a_rank=a_rank,
            b_rank=b_rank,
            note="; ".join([*notes, MATCH_NOTES[matched_by]] if matched_by in MATCH_NOTES else notes) or None,
            cause=cause,
            checks=checks,
            matched_by=matched_by if has_targets else None,
            is_missed=has_targets and a_rank is None and b_rank is None,
            finds_the_same=a is not None and b is not None and a.facts.ranking.found == b.facts.ranking.found,
            is_fine=kind is not ComparisonKind.LOSS and cause is None and not has_errored(a, b),
        )

    def _alone(self, b: QueryScore | None) -> PairOutcome:
        errored = b is not None and b.facts.errored
        b_rank = rank_within(b, self._k)
        return PairOutcome(
            kind=None,
            a_rank=None,
            b_rank=b_rank,
            note=MATCH_NOTES.get(_matched_by(b) or ""),
            cause="errored" if errored else None,
            checks=("error",) if errored else (),
            matched_by=None,
            is_missed=_has_targets(b) and b_rank is None,
            finds_the_same=True,
            is_fine=b is not None and not errored,
        )

    def _found(self, targets: Targets, score: QueryScore | None) -> set[str]:
        ranks = score.facts.ranking.found if score else ()
        return {
            target
            for target, rank in zip(targets.ids, ranks, strict=False)
            if rank is not None and rank <= self._k
        }

    def _right_document(self, query_id: str, targets: Targets) -> bool:
        """Whether B found another part of a document that has a target, or that was right in A."""
        a, b = self.sides.stored_a(query_id), self.sides.stored_b(query_id)
        if not isinstance(a, QueryResult) or not isinstance(b, QueryResult):
            return False
        score_a = self.sides.a.score(query_id) if self.sides.a else None
        ranks = score_a.facts.ranking.correct if score_a else ()
        right = [hit for hit in a.hits if hit.rank in ranks and hit.rank <= self._k]
        docs = {*targets.doc_ids, *(hit.doc_id for hit in right)} - {None, ""}
        paths = {*targets.paths, *(hit.doc_path for hit in right)} - {None, ""}
        return any(hit.doc_id in docs or hit.doc_path in paths for hit in b.hits)


# -- what two scores tell ------------------------------------------------------------------------


def rank_within(score: QueryScore | None, k: int) -> int | None:
    """The rank of the first correct hit, if it is within the top k."""
    rank = score.first if score else None
    return rank if rank is not None and rank <= k else None


def kind_of(a_rank: int | None, b_rank: int | None) -> ComparisonKind:
    """The kind of change between two ranks, None being a miss."""
    if a_rank is None:
        return ComparisonKind.DRAW if b_rank is None else ComparisonKind.WIN
    if b_rank is None:
        return ComparisonKind.REGRESSION
    if a_rank == b_rank:
        return ComparisonKind.DRAW
    return ComparisonKind.WIN if b_rank < a_rank else ComparisonKind.LOSS


def passed_checks(a: QueryScore, compare_k: int) -> set[str]:
    """What a query could lose: the checks, other than having no error, that it passes in A."""
    facts = a.facts
    passed = set()
    if rank_within(a, compare_k) is not None:
        passed.add("retrieval")
    if facts.keeps_rules or facts.has_claim or (facts.answered and facts.keeps_rules is None):
        passed.add("answer")
    if facts.answered is not None and facts.answered is facts.answerable:
        passed.add("refusal")
    if a.value("citation_coverage") == 1:
        passed.add("citation")
    if a.value("attribution_hit_rate") == 1:
        passed.add("attribution")
    return passed


def lost_checks(
    kind: ComparisonKind, a: QueryScore | None, b: QueryScore | None, compare_k: int
) -> Iterator[str]:
    """What passed in A and fails in B."""
    if kind is ComparisonKind.REGRESSION:
        yield "retrieval"
    if a is None or b is None or a.facts.errored:
        return
    if b.facts.errored:
        yield "error"
        return
    passed = passed_checks(a, compare_k)
    answered = b.facts.answered
    if "answer" in passed and (answered is None or _breaks_rule(a, b) or _lost_claim(a, b)):
        yield "answer"
    if "refusal" in passed and answered is (not b.facts.answerable):
        yield "refusal"
    if "citation" in passed and b.value("citation_coverage") == 0:
        yield "citation"
    if "attribution" in passed and b.value("attribution_hit_rate") == 0:
        yield "attribution"


def _breaks_rule(a: QueryScore, b: QueryScore) -> bool:
    return b.facts.keeps_rules is False and a.facts.keeps_rules is not False


def _lost_claim(a: QueryScore, b: QueryScore) -> bool:
    return a.facts.has_claim and not b.facts.has_claim


def cause_of(checks: tuple[str, ...], a: QueryScore | None, b: QueryScore | None) -> str | None:
    """The nearest true reason why B fails, as far as its score tells."""
    if b is None:
        return "absent"
    if not checks:
        return None
    if "error" in checks or b.facts.errored:
        return "errored"
    if "retrieval" in checks:
        if not b.facts.depth:
            return "empty"
        return "below_cutoff" if b.first is not None else "gone"
    return _answer_cause(checks, a, b)


def _answer_cause(checks: tuple[str, ...], a: QueryScore | None, b: QueryScore) -> str:
    """The same where what was found is as good as before: what happened to the answer."""
    if "answer" not in checks and "refusal" not in checks:
        return "not_cited"
    if b.facts.answered is None:
        return "no_answer"
    if b.facts.answered is False and (a is None or a.facts.answered):
        return "refused"
    if "refusal" in checks:
        return "not_refused"
    return "answer_rule" if a is None or _breaks_rule(a, b) else "claim_missing"


def rank_notes(a: QueryScore | None, b: QueryScore | None, k: int, cause: str | None) -> Iterator[str]:
    """How the rank changed, such as `rank 1→2` or `hit→miss`."""
    a_rank, b_rank = rank_within(a, k), rank_within(b, k)
    if a_rank is not None and b_rank is not None:
        yield f"rank {a_rank}→{b_rank}"
    else:
        yield f"{_word(a, a_rank)}→{_word(b, b_rank)}"
    if cause == "below_cutoff" and b:
        yield f"found at rank {b.first}"


def _word(score: QueryScore | None, rank: int | None) -> str:
    if score is None:
        return "absent"
    if score.facts.errored:
        return "error"
    return "miss" if rank is None else "hit"


def has_errored(*scores: QueryScore | None) -> bool:
    """Also true of results that cannot be read."""
    return any(score is not None and score.facts.errored for score in scores)


def _has_targets(score: QueryScore | None) -> bool:
    return score is not None and bool(score.facts.targets.gains)


def _matched_by(*scores: QueryScore | None) -> str | None:
    """How a query was matched: the least certain way, of both runs."""
    facts = [score.facts for score in scores if score is not None]
    if any(known.by_document for known in facts):
        return "document"
    if any(known.by_text for known in facts):
        return "text"
    return facts[0].targets.matched_by if facts else None
