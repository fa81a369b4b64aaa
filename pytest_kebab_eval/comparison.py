"""Two scorecards -> a `CompareReport` (section 3.3 of the contract)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pytest_kebab_eval.configuration import ConfigChange, change_notes, config_changes
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inert import brief
from pytest_kebab_eval.matching import Targets
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import (
    ComparisonKind,
    GoldenQuery,
    QueryComparison,
    QueryResult,
    Unreadable,
    Value,
)
from pytest_kebab_eval.paraphrases import ParaphraseGroup, paraphrase_groups
from pytest_kebab_eval.scoring import (
    AggregateMetrics,
    JudgeIdentity,
    MetricValues,
    QueryScore,
    Scorecard,
    aggregate,
    in_shape,
    rounded,
)
from pytest_kebab_eval.significance import Significance, paired_significance
from pytest_kebab_eval.store import IndexCoverage

COMPARE_K = 10
BY_DOCUMENT_NOTE = "matched by document alone"


class Paired(Value, frozen=True):
    """How many queries the two runs have in common, and the deltas over those alone."""

    queries: int
    errored_a: int
    errored_b: int
    absent_a: int
    absent_b: int
    deltas: dict[str, float | None] | None  # None where both runs cover the same queries


class Deltas(MetricValues, frozen=True, kw_only=True):
    """B - A for every metric, and how the two were matched."""

    chunker_version_match: str
    matched_by: dict[str, int]
    paired: Paired


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
    per_query = [
        comparer.compare(query)
        for query in golden.queries
        if any(query.id in card.scores for _, card in sides.both)
    ]
    aggregate_a, aggregate_b = aggregate(a) if a else None, aggregate(b)
    return CompareReport(
        run_a=a.run.run_id if a else None,
        run_b=b.run.run_id,
        aggregate_a=aggregate_a,
        aggregate_b=aggregate_b,
        deltas=_deltas(golden, a, b, aggregate_a, aggregate_b, comparer.matched_by)
        if a and aggregate_a
        else None,
        per_query=tuple(sorted(per_query, key=lambda one: one.query_id)),
        config_changes=comparer.changes,
        significance=significances(a, b, aggregate_a, aggregate_b) if a and aggregate_a else {},
        not_comparable=_judge_drift(a, b) if a else {},
        paraphrases_a=paraphrase_groups(golden.queries, a) if a else (),
        paraphrases_b=paraphrase_groups(golden.queries, b),
        missed=tuple(sorted(comparer.missed)),
        not_in_golden=tuple(sorted({stray for _, card in sides.both for stray in card.strays})),
        unreadable=tuple(
            BrokenResult(side, score.query_id, score.unreadable or "")
            for side, card in sides.both
            for score in sorted(card.unreadable, key=lambda score: score.query_id)
        ),
    )


# -- one query -----------------------------------------------------------------------------------


class Comparer:
    """Compares query by query."""

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
        self._answer_rules = sides.b.column("groundedness")
        self._citations = sides.b.column("citation_coverage")
        self.missed: list[str] = []
        self.matched_by = Counter(dict.fromkeys(("chunk", "anchor", "span", "document"), 0))

    def compare(self, query: GoldenQuery) -> QueryComparison:
        """One query of both runs."""
        b = self.sides.b.scores.get(query.id)
        if self.sides.a is None:
            return self._alone(query, b)
        a = self.sides.a.scores.get(query.id)
        targets = self._targets_of(query)
        a_rank, b_rank = self._rank(a), self._rank(b)
        kind = kind_of(a_rank, b_rank)
        if targets.ids and a_rank is None and b_rank is None:
            self.missed.append(query.id)
        by_document = (a is not None and a.by_document) or (b is not None and b.by_document)
        if targets.ids:
            self.matched_by["document" if by_document else targets.by] += 1
        checks = tuple(self._failed_checks(query, kind, a, b))
        cause = self._cause(query, targets, checks, b)
        note = None
        if kind is not ComparisonKind.DRAW or by_document:
            note = "; ".join(self._notes(kind, a, b, a_rank, b_rank, by_document, cause)) or None
        lost: tuple[str, ...] = ()
        gained: tuple[str, ...] = ()
        if a is None or b is None or a.found != b.found:
            in_a, in_b = self._found(targets, a), self._found(targets, b)
            lost, gained = tuple(sorted(in_a - in_b)), tuple(sorted(in_b - in_a))
        return QueryComparison(query.id, kind, a_rank, b_rank, note, cause, checks, lost, gained)

    def _alone(self, query: GoldenQuery, b: QueryScore | None) -> QueryComparison:
        errored = b is not None and b.failed
        if self._targets_of(query).ids and self._rank(b) is None:
            self.missed.append(query.id)
        return QueryComparison(
            query_id=query.id,
            kind=None,
            a_hit_rank=None,
            b_hit_rank=self._rank(b),
            note=BY_DOCUMENT_NOTE if b and b.by_document else None,
            cause="errored" if errored else None,
            checks=("error",) if errored else (),
        )

    def _rank(self, score: QueryScore | None) -> int | None:
        rank = score.first if score else None
        return rank if rank is not None and rank <= self._k else None

    def _found(self, targets: Targets, score: QueryScore | None) -> set[str]:
        ranks = score.found if score else ()
        return {
            target
            for target, rank in zip(targets.ids, ranks, strict=False)
            if rank is not None and rank <= self._k
        }

    def _failed_checks(
        self, query: GoldenQuery, kind: ComparisonKind, a: QueryScore | None, b: QueryScore | None
    ) -> Iterator[str]:
        """What passed in A and fails in B."""
        if kind is ComparisonKind.REGRESSION:
            yield "retrieval"
        if a is None or b is None or a.failed:
            return
        if b.failed:
            yield "error"
            return
        passed = self.passed_checks(query, a)
        if "answer" in passed and (b.answered is None or b.values[self._answer_rules] == 0):
            yield "answer"
        if "refusal" in passed and b.answered is (not query.can_be_answered):
            yield "refusal"
        if "citation" in passed and b.values[self._citations] == 0:
            yield "citation"

    def passed_checks(self, query: GoldenQuery, a: QueryScore) -> set[str]:
        """What a query could lose: the checks, other than having no error, that it passes in A."""
        passed = set()
        if self._rank(a) is not None:
            passed.add("retrieval")
        if a.values[self._answer_rules] == 1 or (a.answered and a.values[self._answer_rules] is None):
            passed.add("answer")
        if a.answered is not None and a.answered is query.can_be_answered:
            passed.add("refusal")
        if a.values[self._citations] == 1:
            passed.add("citation")
        return passed

    def _cause(
        self,
        query: GoldenQuery,
        targets: Targets,
        checks: tuple[str, ...],
        b: QueryScore | None,
    ) -> str | None:
        """The nearest true reason why B fails."""
        if b is None:
            return "absent"
        if not checks:
            return None
        if "error" in checks or b.failed:
            return "errored"
        if "retrieval" in checks:
            if b.hits == 0:
                return "empty"
            if b.first is not None:
                return "below_cutoff"
            return "wrong_chunk" if self._right_document(query, targets) else "gone"
        return "not_cited" if checks == ("citation",) else "answer_rule"

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
    if score.failed:
        return "error"
    return "miss" if rank is None else "hit"


# -- the totals ----------------------------------------------------------------------------------


def _deltas(
    golden: GoldenSet,
    card_a: Scorecard,
    card_b: Scorecard,
    a: AggregateMetrics,
    b: AggregateMetrics,
    matched_by: Counter[str],
) -> Deltas:
    in_a, in_b = card_a.scores.keys(), card_b.scores.keys()
    both = in_a & in_b
    wanted = {query.id for query in golden.queries}
    paired_deltas = None
    if in_a != in_b:
        paired_deltas = differences(
            aggregate(card_a, only=both).by_name(), aggregate(card_b, only=both).by_name()
        )
    return Deltas(
        **in_shape(differences(a.by_name(), b.by_name())),  # type: ignore[arg-type]
        counts={name: b.counts[name] - n for name, n in a.counts.items()},
        slices={part: differences(a.slices[part], b.slices[part]) for part in a.slices if part in b.slices},
        total_queries=b.total_queries - a.total_queries,
        failed_queries=b.failed_queries - a.failed_queries,
        chunker_version_match=a.match,
        matched_by=dict(matched_by),
        paired=Paired(
            queries=len(both),
            errored_a=a.failed_queries,
            errored_b=b.failed_queries,
            absent_a=len(wanted - in_a),
            absent_b=len(wanted - in_b),
            deltas=paired_deltas,
        ),
    )


def differences(a: Mapping[str, float | None], b: Mapping[str, float | None]) -> dict[str, float | None]:
    """B - A of the rounded values, None if either is."""
    return {name: difference(value, b.get(name)) for name, value in a.items()}


def difference(a: float | None, b: float | None) -> float | None:
    """B - A, rounded; None if either is."""
    return None if a is None or b is None else rounded(b - a)


def significances(
    a: Scorecard, b: Scorecard, aggregate_a: AggregateMetrics, aggregate_b: AggregateMetrics
) -> dict[str, Significance]:
    """Of every metric that is averaged and was measured on a query in both runs."""
    values_a, values_b = aggregate_a.by_name(), aggregate_b.by_name()
    found = {}
    for metric, before, after in _paired_columns(a, b, None):
        measured = values_a.get(metric.name) is not None and values_b.get(metric.name) is not None
        if metric.family.is_mean and measured:
            one = _tested(metric, before, after)
            if one.n:
                found[metric.name] = one
    return found


def significance_in(sides: Sides, metric: str, part: str | None) -> Significance | None:
    """Of one metric, over all queries or one slice; None if there is no test of it."""
    if sides.a is None:
        return None
    for one, before, after in _paired_columns(sides.a, sides.b, part):
        if one.name == metric and one.family.is_mean:
            return _tested(one, before, after)
    return None


_Column = Sequence["float | None"]


def _paired_columns(
    a: Scorecard, b: Scorecard, part: str | None
) -> Iterator[tuple[Metric, _Column, _Column]]:
    """Each metric's values in A and in B, over the queries that both have."""
    pairs = [
        (a.scores[query_id].values, score.values)
        for query_id, score in b.scores.items()
        if query_id in a.scores and (part is None or part in score.slices)
    ]
    if pairs:
        before, after = (
            zip(*(one for one, _ in pairs), strict=True),
            zip(*(one for _, one in pairs), strict=True),
        )
        yield from zip(b.metrics, before, after, strict=True)


def _tested(metric: Metric, before: _Column, after: _Column) -> Significance:
    changes = []
    n = len(before)
    for one, other in zip(before, after, strict=True):
        if one is None or other is None:
            n -= 1
        elif one != other:
            changes.append(other - one)
    found = paired_significance(
        changes, n, yes_no=metric.family.is_yes_no, lower_is_better=metric.lower_is_better
    )
    most = metric.family.most
    if most is None or found.low is None or found.high is None:
        return found
    return msgspec.structs.replace(found, low=max(-most, found.low), high=min(most, found.high))


_JUDGED = ("judge_groundedness", "judge_correctness")


def _judge_drift(a: Scorecard, b: Scorecard) -> dict[str, str]:
    """The metrics that cannot be compared because the judge changed."""
    if not a.judges or not b.judges or a.judges == b.judges:
        return {}
    reason = f"not comparable, since the judge changed: A {_named(a.judges)}, B {_named(b.judges)}"
    return dict.fromkeys(_JUDGED, reason)


def _named(judges: frozenset[JudgeIdentity]) -> str:
    return " and ".join(
        brief(
            f"{model or 'unknown'} (prompt {prompt or 'unknown'}, temperature {_or_unknown(temperature)})", 90
        )
        for model, prompt, temperature in sorted(judges, key=str)
    )


def _or_unknown(temperature: float | str | None) -> str:
    if isinstance(temperature, float):
        return f"{temperature:g}"
    return temperature or "unknown"
