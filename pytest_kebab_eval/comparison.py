"""Two scorecards -> a `CompareReport` (section 3.3 of the contract)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inert import brief
from pytest_kebab_eval.matching import Targets
from pytest_kebab_eval.model import (
    ComparisonKind,
    GoldenQuery,
    MatchMode,
    QueryComparison,
    QueryResult,
    Unreadable,
    Value,
)
from pytest_kebab_eval.scoring import (
    AggregateMetrics,
    MetricValues,
    QueryScore,
    Scorecard,
    aggregate,
    in_shape,
    rounded,
)

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


class ConfigChange(Value, frozen=True):
    """A setting that differs between the runs; None where a run does not say."""

    key: str
    a: Any
    b: Any


class BrokenResult(Value, frozen=True):
    """A stored result that cannot be read."""

    side: str  # a | b
    query_id: str
    reason: str


class CompareReport(Value, frozen=True, kw_only=True):
    """All that is known of B against A."""

    run_a: str
    run_b: str
    aggregate_a: AggregateMetrics
    aggregate_b: AggregateMetrics
    deltas: Deltas
    per_query: tuple[QueryComparison, ...]
    config_changes: tuple[ConfigChange, ...]
    not_in_golden: tuple[str, ...] = ()
    unreadable: tuple[BrokenResult, ...] = ()

    def count(self, kind: ComparisonKind) -> int:
        """How many queries are of that kind."""
        return sum(one.kind is kind for one in self.per_query)


Stored = Callable[[str], "QueryResult | Unreadable | None"]


class Sides(NamedTuple):
    """The two scorecards, and how to read a stored result again by its query."""

    a: Scorecard
    b: Scorecard
    stored_a: Stored
    stored_b: Stored


def compare(
    golden: GoldenSet,
    sides: Sides,
    targets_of: Callable[[GoldenQuery], Targets],
    mode: MatchMode,
    compare_k: int = COMPARE_K,
) -> CompareReport:
    """Compare two runs query by query and in total."""
    a, b = sides.a, sides.b
    changes = tuple(config_changes(a.run.config, b.run.config))
    comparer = _Comparer(sides, targets_of, compare_k, change_notes(changes))
    per_query = [
        comparer.compare(query) for query in golden.queries if query.id in a.scores or query.id in b.scores
    ]
    aggregates = [aggregate(card, mode.value) for card in (a, b)]
    return CompareReport(
        run_a=a.run.run_id,
        run_b=b.run.run_id,
        aggregate_a=aggregates[0],
        aggregate_b=aggregates[1],
        deltas=_deltas(golden, sides, aggregates[0], aggregates[1], mode, comparer.matched_by),
        per_query=tuple(sorted(per_query, key=lambda one: one.query_id)),
        config_changes=changes,
        not_in_golden=tuple(sorted({*a.strays, *b.strays})),
        unreadable=tuple(
            BrokenResult(side, score.query_id, score.unreadable or "")
            for side, card in (("a", a), ("b", b))
            for score in sorted(card.unreadable)
        ),
    )


# -- one query -----------------------------------------------------------------------------------


class _Comparer:
    def __init__(
        self,
        sides: Sides,
        targets_of: Callable[[GoldenQuery], Targets],
        compare_k: int,
        changed: list[str],
    ) -> None:
        self._sides = sides
        self._targets_of = targets_of
        self._k = compare_k
        self._changed = changed
        self._answer_rules = sides.a.column("groundedness")
        self._citations = sides.a.column("citation_coverage")
        self.matched_by = Counter(dict.fromkeys(("chunk", "anchor", "span", "document"), 0))

    def compare(self, query: GoldenQuery) -> QueryComparison:
        a, b = self._sides.a.scores.get(query.id), self._sides.b.scores.get(query.id)
        targets = self._targets_of(query)
        a_rank, b_rank = self._rank(a), self._rank(b)
        kind = kind_of(a_rank, b_rank)
        by_document = any(side is not None and side.by_document for side in (a, b))
        if targets.ids:
            self.matched_by["document" if by_document else targets.by] += 1
        checks = tuple(self._failed_checks(query, kind, a, b))
        cause = self._cause(query, targets, checks, b)
        a_found, b_found = self._found(targets, a), self._found(targets, b)
        return QueryComparison(
            query_id=query.id,
            kind=kind,
            a_hit_rank=a_rank,
            b_hit_rank=b_rank,
            note="; ".join(self._notes(kind, a, b, a_rank, b_rank, by_document, cause)) or None,
            cause=cause,
            checks=checks,
            lost=tuple(sorted(a_found - b_found)),
            gained=tuple(sorted(b_found - a_found)),
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
        if a.values[self._answer_rules] == 1 and self._answer_fails(b):
            yield "answer"
        wanted = query.can_be_answered
        if wanted is not None and a.answered is wanted and b.answered is (not wanted):
            yield "refusal"
        if a.values[self._citations] == 1 and b.values[self._citations] == 0:
            yield "citation"

    def _answer_fails(self, b: QueryScore) -> bool:
        """An answer that breaks its rules; or none at all, in a run that does answer."""
        if b.answered is None:
            return self._b_answers
        return b.values[self._answer_rules] == 0

    @cached_property
    def _b_answers(self) -> bool:
        return any(score.answered is not None for score in self._sides.b.scores.values())

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
        a, b = self._sides.stored_a(query.id), self._sides.stored_b(query.id)
        if not isinstance(a, QueryResult) or not isinstance(b, QueryResult):
            return False
        right = self._sides.a.scores[query.id].first
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
    sides: Sides,
    a: AggregateMetrics,
    b: AggregateMetrics,
    mode: MatchMode,
    matched_by: Counter[str],
) -> Deltas:
    in_a, in_b = sides.a.scores.keys(), sides.b.scores.keys()
    both = in_a & in_b
    wanted = {query.id for query in golden.queries}
    paired_deltas = None
    if in_a != in_b:
        paired_deltas = differences(
            aggregate(sides.a, mode.value, only=both).by_name(),
            aggregate(sides.b, mode.value, only=both).by_name(),
        )
    return Deltas(
        **in_shape(differences(a.by_name(), b.by_name())),  # type: ignore[arg-type]
        counts={name: b.counts[name] - n for name, n in a.counts.items()},
        total_queries=b.total_queries - a.total_queries,
        failed_queries=b.failed_queries - a.failed_queries,
        chunker_version_match=mode.value,
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
    return {name: difference(value, b[name]) for name, value in a.items()}


def difference(a: float | None, b: float | None) -> float | None:
    """B - A, rounded; None if either is."""
    return None if a is None or b is None else rounded(b - a)


# -- the configuration ---------------------------------------------------------------------------

_NOTED = (
    ("chunker", ("chunker_version",)),
    (
        "embedding",
        ("embedding.model", "embedding.version", "embedding.dimensions", "embedding.provider"),
    ),
    ("model", ("llm.model_id", "llm.provider")),
    ("prompt", ("prompt_template_version",)),
    ("index", ("index_version",)),
)
_DEEPEST_SETTING = 8


def config_changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[ConfigChange]:
    """The settings that differ, nested ones by their dotted path, in order of their names."""
    flat_a, flat_b = dict(_flat(a)), dict(_flat(b))
    for key in sorted(flat_a.keys() | flat_b.keys()):
        if flat_a.get(key) != flat_b.get(key):
            yield ConfigChange(key, flat_a.get(key), flat_b.get(key))


def change_notes(changes: tuple[ConfigChange, ...]) -> list[str]:
    """What changed in chunker, embedding, model, prompt and index, such as `chunker v1→v2`."""
    by_key = {change.key: change for change in changes}
    notes = []
    for label, keys in _NOTED:
        change = next((by_key[key] for key in keys if key in by_key), None)
        if change:
            notes.append(f"{label} {_shown(change.a)}→{_shown(change.b)}")
    return notes


def _flat(config: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, dict) and value and depth < _DEEPEST_SETTING:
            yield from _flat(value, f"{prefix}{key}.", depth + 1)
        else:
            yield f"{prefix}{key}", value


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return brief(value if isinstance(value, str) else msgspec.json.encode(value).decode(), 40)
