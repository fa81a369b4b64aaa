"""Two scorecards -> a `CompareReport` (section 3.3 of the contract)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.comparing.config_changes import ConfigChange, change_notes, config_changes
from pytest_kebab_eval.comparing.deltas import Deltas, deltas_between, judge_drift, significances
from pytest_kebab_eval.comparing.paraphrases import ParaphraseGroup, paraphrase_groups
from pytest_kebab_eval.comparing.significance import Significance
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.matching.targets import Targets
from pytest_kebab_eval.model import (
    ComparisonKind,
    GoldenQuery,
    QueryComparison,
    QueryResult,
    Unreadable,
    Value,
)
from pytest_kebab_eval.scoring.aggregates import AggregateMetrics, aggregate
from pytest_kebab_eval.scoring.scorecard import QueryScore, Scorecard
from pytest_kebab_eval.store import IndexCoverage

COMPARE_K = 10
BY_DOCUMENT_NOTE = "matched by document alone"


class BrokenResult(Value, frozen=True):
    """A stored result that cannot be read."""

    side: str  # a | b
    query_id: str
    reason: str


class GateResult(Value, frozen=True):
    """Whether a gate holds, with the value it judged and a sentence."""

    gate: str
    metric: str
    passed: bool
    value: float | None
    reason: str
    skipped: bool = False  # it could not be judged, and need not be


class CompareReport(Value, frozen=True, kw_only=True):
    """All that is known of B against A."""

    run_a: str | None  # None, as all of A's side, where run B is judged alone
    run_b: str
    aggregate_a: AggregateMetrics | None
    aggregate_b: AggregateMetrics
    deltas: Deltas | None
    per_query: tuple[QueryComparison, ...]
    config_changes: tuple[ConfigChange, ...] = ()
    significance: dict[str, Significance] = msgspec.field(default_factory=dict)
    gates: tuple[GateResult, ...] = ()
    not_comparable: dict[str, str] = msgspec.field(default_factory=dict)  # metrics, and why not
    paraphrases_a: tuple[ParaphraseGroup, ...] = ()
    paraphrases_b: tuple[ParaphraseGroup, ...] = ()
    index_a: IndexCoverage | None = None
    index_b: IndexCoverage | None = None
    missed: tuple[str, ...] = ()  # queries whose targets no run found
    accepted: tuple[str, ...] = ()  # queries that fail as their xfail says
    not_in_golden: tuple[str, ...] = ()
    unreadable: tuple[BrokenResult, ...] = ()
    problems: tuple[str, ...] = ()  # why the comparison is not to be relied on, which fails it
    warnings: tuple[str, ...] = ()

    def count(self, kind: ComparisonKind) -> int:
        """How many queries are of that kind."""
        return sum(one.kind is kind for one in self.per_query)


Stored = Callable[[str], "QueryResult | Unreadable | None"]


class Sides(NamedTuple):
    """The two scorecards, and how to read a stored result again by its query; A may be missing."""

    a: Scorecard | None
    b: Scorecard
    stored_a: Stored
    stored_b: Stored

    @property
    def both(self) -> tuple[tuple[str, Scorecard], ...]:
        """The sides that are there, by their letters."""
        return (("a", self.a), ("b", self.b)) if self.a else (("b", self.b),)


def compare(golden: GoldenSet, comparer: Comparer) -> CompareReport:
    """Compare two runs query by query and in total; or describe run B, if it is alone."""
    sides = comparer.sides
    a, b = sides.a, sides.b
    per_query = [one for query in golden.queries if (one := comparer.compare(query)) is not None]
    per_query.sort(key=attrgetter("query_id"))
    aggregate_a, aggregate_b = aggregate(a) if a else None, aggregate(b)
    return CompareReport(
        run_a=a.run.run_id if a else None,
        run_b=b.run.run_id,
        aggregate_a=aggregate_a,
        aggregate_b=aggregate_b,
        deltas=deltas_between(golden.queries, a, b, aggregate_a, aggregate_b, comparer.matched_by)
        if a and aggregate_a
        else None,
        per_query=tuple(per_query),
        config_changes=comparer.changes,
        significance=significances(a, b, aggregate_a, aggregate_b) if a and aggregate_a else {},
        not_comparable=judge_drift(a, b) if a else {},
        paraphrases_a=paraphrase_groups(golden.queries, a) if a else (),
        paraphrases_b=paraphrase_groups(golden.queries, b),
        missed=tuple(sorted(comparer.missed)),
        not_in_golden=tuple(sorted({stray for _, card in sides.both for stray in card.strays})),
        unreadable=tuple(
            BrokenResult(side, query_id, reason)
            for side, card in sides.both
            for query_id, reason in sorted(card.unreadable.items())
        ),
    )


# -- one query -----------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What becomes of every query that has one score in A and another in B."""

    kind: ComparisonKind | None
    a_rank: int | None
    b_rank: int | None
    note: str | None
    cause: str | None  # `gone` may yet turn out to be `wrong_chunk`
    checks: tuple[str, ...]
    matched_by: str | None
    is_missed: bool
    finds_the_same: bool


class Comparer:
    """Compares query by query; two scores are compared once, for all queries that have them."""

    def __init__(
        self,
        sides: Sides,
        targets_of: Callable[[GoldenQuery], Targets],
        compare_k: int = COMPARE_K,
    ) -> None:
        self.sides = sides
        self.changes = tuple(config_changes(sides.a.run.config, sides.b.run.config)) if sides.a else ()
        self._changed = change_notes(self.changes)
        self._targets_of = targets_of
        self._k = compare_k
        self._citations = sides.b.place_of("citation_coverage")
        self._known: dict[tuple[QueryScore | None, QueryScore | None], Outcome] = {}
        self.missed: list[str] = []
        self.matched_by = Counter(dict.fromkeys(("chunk", "anchor", "span", "document"), 0))

    def compare(self, query: GoldenQuery) -> QueryComparison | None:
        """One query of both runs; None if it is in neither."""
        query_id = query.id
        a = self.sides.a.scores.get(query_id) if self.sides.a else None
        b = self.sides.b.scores.get(query_id)
        if a is None and b is None:
            return None
        outcome = self._known.get((a, b)) or self._new(a, b)
        kind, a_rank, b_rank, note, cause, checks, matched_by, is_missed, finds_the_same = outcome
        if is_missed:
            self.missed.append(query_id)
        if matched_by is not None:
            self.matched_by[matched_by] += 1
        if finds_the_same:
            return QueryComparison(query_id, kind, a_rank, b_rank, note, cause, checks)
        targets = self._targets_of(query)
        if cause == "gone" and self._right_document(query, targets):
            cause = "wrong_chunk"
        in_a, in_b = self._found(targets, a), self._found(targets, b)
        lost, gained = tuple(sorted(in_a - in_b)), tuple(sorted(in_b - in_a))
        return QueryComparison(query_id, kind, a_rank, b_rank, note, cause, checks, lost, gained)

    def _new(self, a: QueryScore | None, b: QueryScore | None) -> Outcome:
        outcome = self._known[a, b] = self._outcome(a, b) if self.sides.a else self._alone(b)
        return outcome

    def _outcome(self, a: QueryScore | None, b: QueryScore | None) -> Outcome:
        a_rank, b_rank = self._rank(a), self._rank(b)
        kind = kind_of(a_rank, b_rank)
        by_document = any(one is not None and one.by_document for one in (a, b))
        checks = tuple(self._failed_checks(kind, a, b))
        cause = _cause(checks, b)
        note = None
        if kind is not ComparisonKind.DRAW or by_document:
            note = "; ".join(self._notes(kind, a, b, a_rank, b_rank, by_document, cause)) or None
        has_targets = _has_targets(a or b)
        return Outcome(
            kind=kind,
            a_rank=a_rank,
            b_rank=b_rank,
            note=note,
            cause=cause,
            checks=checks,
            matched_by=("document" if by_document else _matched_by(a or b)) if has_targets else None,
            is_missed=has_targets and a_rank is None and b_rank is None,
            finds_the_same=a is not None and b is not None and a.facts.ranking.found == b.facts.ranking.found,
        )

    def _alone(self, b: QueryScore | None) -> Outcome:
        errored = b is not None and b.facts.errored
        b_rank = self._rank(b)
        return Outcome(
            kind=None,
            a_rank=None,
            b_rank=b_rank,
            note=BY_DOCUMENT_NOTE if b and b.by_document else None,
            cause="errored" if errored else None,
            checks=("error",) if errored else (),
            matched_by=None,
            is_missed=_has_targets(b) and b_rank is None,
            finds_the_same=True,
        )

    def _rank(self, score: QueryScore | None) -> int | None:
        rank = score.first if score else None
        return rank if rank is not None and rank <= self._k else None

    def _found(self, targets: Targets, score: QueryScore | None) -> set[str]:
        ranks = score.facts.ranking.found if score else ()
        return {
            target
            for target, rank in zip(targets.ids, ranks, strict=False)
            if rank is not None and rank <= self._k
        }

    def _failed_checks(
        self, kind: ComparisonKind, a: QueryScore | None, b: QueryScore | None
    ) -> Iterator[str]:
        """What passed in A and fails in B."""
        if kind is ComparisonKind.REGRESSION:
            yield "retrieval"
        if a is None or b is None or a.facts.errored:
            return
        if b.facts.errored:
            yield "error"
            return
        passed = self.passed_checks(a)
        answered = b.facts.answered
        if "answer" in passed and (answered is None or b.facts.keeps_rules is False):
            yield "answer"
        if "refusal" in passed and answered is (not b.facts.answerable):
            yield "refusal"
        if "citation" in passed and b.values[self._citations] == 0:
            yield "citation"

    def passed_checks(self, a: QueryScore) -> set[str]:
        """What a query could lose: the checks, other than having no error, that it passes in A."""
        facts = a.facts
        passed = set()
        if self._rank(a) is not None:
            passed.add("retrieval")
        if facts.keeps_rules or (facts.answered and facts.keeps_rules is None):
            passed.add("answer")
        if facts.answered is not None and facts.answered is facts.answerable:
            passed.add("refusal")
        if a.values[self._citations] == 1:
            passed.add("citation")
        return passed

    def _right_document(self, query: GoldenQuery, targets: Targets) -> bool:
        """Whether B found another part of a document that has a target, or that was right in A."""
        a, b = self.sides.stored_a(query.id), self.sides.stored_b(query.id)
        if not isinstance(a, QueryResult) or not isinstance(b, QueryResult):
            return False
        right = self.sides.a.scores[query.id].first if self.sides.a else None
        docs = {*targets.doc_ids, *(hit.doc_id for hit in a.hits if hit.rank == right)} - {None, ""}
        paths = {*targets.paths, *(hit.doc_path for hit in a.hits if hit.rank == right)} - {None, ""}
        return any(hit.doc_id in docs or hit.doc_path in paths for hit in b.hits)

    def _notes(
        self,
        kind: ComparisonKind,
        a: QueryScore | None,
        b: QueryScore | None,
        a_rank: int | None,
        b_rank: int | None,
        by_document: bool,
        cause: str | None,
    ) -> Iterator[str]:
        if kind is not ComparisonKind.DRAW:
            if a_rank is not None and b_rank is not None:
                yield f"rank {a_rank}→{b_rank}"
            else:
                yield f"{_word(a, a_rank)}→{_word(b, b_rank)}"
            if cause == "below_cutoff" and b:
                yield f"found at rank {b.first}"
            yield from self._changed
        if by_document:
            yield BY_DOCUMENT_NOTE


def _has_targets(score: QueryScore | None) -> bool:
    return score is not None and bool(score.facts.gains)


def _matched_by(score: QueryScore | None) -> str | None:
    return score.facts.by if score else None


def _cause(checks: tuple[str, ...], b: QueryScore | None) -> str | None:
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
    return "not_cited" if checks == ("citation",) else "answer_rule"


def kind_of(a_rank: int | None, b_rank: int | None) -> ComparisonKind:
    """The kind of change between two ranks, None being a miss."""
    if a_rank is None:
        return ComparisonKind.DRAW if b_rank is None else ComparisonKind.WIN
    if b_rank is None:
        return ComparisonKind.REGRESSION
    if a_rank == b_rank:
        return ComparisonKind.DRAW
    return ComparisonKind.WIN if b_rank < a_rank else ComparisonKind.LOSS


def _word(score: QueryScore | None, rank: int | None) -> str:
    if score is None:
        return "absent"
    if score.facts.errored:
        return "error"
    return "miss" if rank is None else "hit"
