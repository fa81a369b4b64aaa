"""The list of queries in `report.html`, the worst first, and the counts that the charts show."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from markupsafe import Markup

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.comparing.slices import slices_of
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, QueryComparison
from pytest_kebab_eval.reports.briefs import Briefs, RunBriefs
from pytest_kebab_eval.reports.html import TEXT_SHOWN, packed, script_json, short
from pytest_kebab_eval.reports.wording import (
    CAUSES,
    checks_failed,
    counted_checks,
    failed_queries,
    has_same_ids,
    review_command,
)

QUERIES_A_BLOCK = 50
ROWS_PACKED = 200  # at a time
FAILED_SHOWN = 10  # above the metrics; the list below has all
SLICE_SHOWN = 80  # characters of its name
UNNEEDED_XFAIL = "accepted (xfail), but no longer fails"
_MISS = 1 << 53  # below any rank
S = TypeVar("S")


class ShownKind(NamedTuple):
    """A kind of query: in words, its sign, and its effect (lost, worse, better or same)."""

    words: str
    glyph: str
    effect: str


# What a query comes to.
_OUTCOMES = {
    "failed": ShownKind("failed", "✗", "lost"),
    "accepted": ShownKind("failed as accepted (xfail)", "▼", "worse"),
    "new": ShownKind("new, without a baseline", "+", "same"),
    "none": ShownKind("not run", "–", "same"),
    "passed": ShownKind("passed", "✓", "better"),
}
# What became of the rank of its first correct hit.
_KINDS = {
    "regression": ShownKind("no longer found", "✗", "lost"),
    "loss": ShownKind("ranked worse", "▼", "worse"),
    "win": ShownKind("found or ranked better", "▲", "better"),
    "draw": ShownKind("unchanged", "=", "same"),
    # A run that is judged alone:
    "missed": ShownKind("not found", "○", "worse"),
    "found": ShownKind("found", "✓", "better"),
    # Either way:
    "unjudged": ShownKind("with nothing to find", "·", "same"),
}
_FIRST = {"failed": 0, "accepted": 1}
_UNCHANGED = {"draw", "new", "found", "unjudged", "none"}
_ORDER = {kind: number for number, kind in enumerate(_KINDS)}

Evidence = Generator[tuple[GoldenQuery, QueryEvidence], None, None]


class PageQueries(NamedTuple):
    """The golden queries, what was kept of their results, and how to read the results of some again."""

    golden: Sequence[GoldenQuery]
    briefs: Briefs
    read: Callable[[Sequence[GoldenQuery]], Evidence]


class QueryRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A query in the list, as the script is given it."""

    id: str
    query: str
    kind: str  # a key of `_KINDS`; of a query that is new or was not run, of `_OUTCOMES`
    slices: list[int]  # numbers
    a: str  # the first correct rank, or why there is none
    b: str
    lost: int = 0  # 1: failed; 2: failed as accepted
    cause: str | None = None
    checks: tuple[str, ...] = ()  # that fail it
    other_checks: tuple[str, ...] = ()  # that it lost without failing
    note: str | None = None
    flow: tuple[int, int] | None = None  # levels in A and B


class _Entry(NamedTuple):
    """A query of the list, while it is made."""

    query: GoldenQuery
    comparison: QueryComparison | None
    kind: str
    outcome: str  # a key of `_OUTCOMES`


def _worst_first(entry: _Entry) -> tuple[int, int, int]:
    """What sorts the list; within a kind, those that moved furthest come first, a miss below any rank."""
    _, comparison, kind, outcome = entry
    moved = 0
    if comparison is not None:
        moved = abs((comparison.a_hit_rank or _MISS) - (comparison.b_hit_rank or _MISS))
        moved = moved or int(comparison.is_partial_loss)
    return _FIRST.get(outcome, len(_FIRST)), _ORDER.get(kind, len(_ORDER)), -moved


class Level(NamedTuple):
    """A rank or a range of ranks, up to `last`; the last level is for queries without a correct hit."""

    label: str
    last: float


class QueryIndex:
    """The queries in the order of the list, as rows for the script, and counted for the page."""

    def __init__(self, report: CompareReport, queries: PageQueries) -> None:
        self.comparisons = {comparison.query_id: comparison for comparison in report.per_query}
        self._unreadable = {(result.side, result.query_id) for result in report.unreadable}
        self.failed = {comparison.query_id for comparison in failed_queries(report)}
        self.failed |= {query_id for _, query_id in self._unreadable}
        self._accepted = {*report.accepted}
        self._briefs = queries.briefs
        self._report = report
        self.alone = report.run_a is None
        self.levels = _levels(report.per_query)
        self._level_of: dict[int | None, int] = {None: len(self.levels) - 1}
        self._slices: dict[tuple[str, ...], tuple[tuple[str, ...], list[int]]] = {}  # names and numbers
        self._slice_tally: Counter[tuple[str, ...]] = Counter()
        self._slice_numbers: dict[str, int] = {}
        self.cause_counts: Counter[str] = Counter()
        self.kind_counts: Counter[str] = Counter()
        self.outcome_counts: Counter[str] = Counter()
        self.flows: Counter[tuple[int, int]] = Counter()  # (level in A, level in B) -> queries
        entries = []
        for query in sorted(queries.golden, key=lambda query: query.id):
            found = self.comparisons.get(query.id)
            kind = self._kind(query, found)
            entries.append(_Entry(query, found, kind, self._outcome(query, kind)))
        entries.sort(key=_worst_first)  # those that are alike stay in the order of their ids
        self.listed = [entry.query for entry in entries]
        # The first queries of the list: those that failed, changed, or were missed.
        changed = (
            entry.outcome in _FIRST
            or entry.kind not in _UNCHANGED
            or (entry.comparison is not None and entry.comparison.is_partial_loss)
            for entry in entries
        )
        self.changed = sum(itertools.takewhile(bool, changed))
        self.first_rows, self.packed_rows = self._pack_rows(entries)
        self.slice_sizes: Counter[str] = Counter()
        for names, count in self._slice_tally.items():
            self.slice_sizes.update(dict.fromkeys(names, count))

    def reason(self, query_id: str) -> str | None:
        """Why a query failed, in words."""
        return self._report.failed.get(query_id)

    def review(self, query_id: str) -> str | None:
        """The command that reviews a query that failed."""
        return review_command(self._report, query_id) if query_id in self.failed else None

    def _outcome(self, query: GoldenQuery, kind: str) -> str:
        if query.id in self.failed:
            return "failed"
        if query.id in self._accepted:
            return "accepted"
        return kind if kind in _OUTCOMES else "passed"

    def _kind(self, query: GoldenQuery, comparison: QueryComparison | None) -> str:
        if comparison is None or (query.id not in self._briefs.b and query.id not in self._briefs.a):
            return "none"
        has_targets = bool(self._briefs.expected(query))
        if comparison.kind is not None:
            is_judged = comparison.kind is not ComparisonKind.DRAW or has_targets
            return comparison.kind.value if is_judged else "unjudged"
        if comparison.b_hit_rank is not None:
            return "found"
        return "missed" if has_targets else "unjudged"

    # -- rows --------------------------------------------------------------------------------------

    def _pack_rows(self, entries: list[_Entry]) -> tuple[list[QueryRow], str]:
        """The rows that are seen first, and the others, packed."""
        rows = itertools.starmap(self._row, entries)
        first = list(itertools.islice(rows, QUERIES_A_BLOCK))
        some = iter(lambda: list(itertools.islice(rows, ROWS_PACKED)), [])
        return first, packed(map(msgspec.json.encode, some))

    def _row(
        self, query: GoldenQuery, comparison: QueryComparison | None, kind: str, outcome: str
    ) -> QueryRow:
        """The query in the list; counts it, its cause and its ranks."""
        rank_a, rank_b = (comparison.a_hit_rank, comparison.b_hit_rank) if comparison else (None, None)
        has_targets = rank_b is not None or bool(self._briefs.expected(query))
        self.kind_counts[kind] += 1
        self.outcome_counts[outcome] += 1
        failing = counted_checks(self._report, comparison) if comparison else ()
        cause = comparison.cause if comparison else None
        if cause:
            self.cause_counts[cause] += 1
        flow = None
        if comparison and has_targets and not self.alone:
            flow = self._level(rank_a), self._level(rank_b)
            self.flows[flow] += 1
        return QueryRow(
            short(query.id),
            short(query.query, TEXT_SHOWN),
            kind,
            self._count_slices(query),
            "" if self.alone else self._rank(query.id, rank_a, "a", self._briefs.a, has_targets),
            self._rank(query.id, rank_b, "b", self._briefs.b, has_targets),
            {"failed": 1, "accepted": 2}.get(outcome, 0),
            cause,
            failing,
            tuple(check for check in comparison.checks if check not in failing) if comparison else (),
            self._note(comparison, outcome),
            flow,
        )

    def _note(self, comparison: QueryComparison | None, outcome: str) -> str | None:
        if comparison is None:
            return None
        if outcome == "failed" and checks_failed(self._report, comparison) == ("xfail",):
            return UNNEEDED_XFAIL
        return short(comparison.note, TEXT_SHOWN) if comparison.note else None

    def _rank(self, query_id: str, rank: int | None, side: str, briefs: RunBriefs, has_targets: bool) -> str:
        """The first correct rank, or why there is none."""
        if rank is not None:
            return str(rank)
        if (side, query_id) in self._unreadable:
            return "unreadable"
        if query_id not in briefs:
            return "absent"
        if query_id in briefs.errored:
            return "error"
        return "miss" if has_targets else "–"

    def _count_slices(self, query: GoldenQuery) -> list[int]:
        """Count the query in its slices; the slices' numbers, found once for queries with the same labels."""
        slices = slices_of(query)
        found = self._slices.get(slices)
        if found is None:
            numbers = self._slice_numbers
            names = tuple(short(name, SLICE_SHOWN) for name in slices)
            found = names, [numbers.setdefault(name, len(numbers)) for name in names]
            self._slices[slices] = found
        self._slice_tally[found[0]] += 1
        return found[1]

    def _level(self, rank: int | None) -> int:
        known = self._level_of.get(rank)
        if known is None and rank is not None:
            known = next(number for number, level in enumerate(self.levels) if rank <= level.last)
            self._level_of[rank] = known
        return known or 0

    # -- for the page ------------------------------------------------------------------------------

    def as_json(self) -> Markup:
        """The beginning of the list, and what its rows refer to."""
        index = {
            "rows": self.first_rows,
            "total": len(self.listed),
            "kinds": {key: _KINDS[key] for key in self.kind_counts if key in _KINDS},
            "outcomes": {key: _OUTCOMES[key] for key in self.outcome_counts},
            "causes": CAUSES,
            "slices": list(self._slice_numbers),
            "levels": [level.label for level in self.levels],
            "block": QUERIES_A_BLOCK,
            "failed": FAILED_SHOWN,
            "alone": self.alone,
            "same_ids": has_same_ids(self._report),
        }
        return Markup(script_json(index))  # noqa: S704  escaped by `script_json`

    def without_targets(self) -> int:
        """How many queries that were run have nothing to find."""
        return len(self.listed) - self.flows.total() - self.kind_counts["none"]

    def outcomes(self) -> list[tuple[str, ShownKind, int]]:
        return _counted(_OUTCOMES, self.outcome_counts)

    def kinds(self) -> list[tuple[str, ShownKind, int]]:
        return _counted(_KINDS, self.kind_counts)

    def causes(self) -> list[tuple[str, str, int]]:
        return _counted(CAUSES, self.cause_counts)

    def slices_by_field(self) -> list[tuple[str, list[tuple[int, str, int]]]]:
        """For each field, such as `difficulty`: the number, value and size of its slices."""
        groups: dict[str, list[tuple[int, str, int]]] = {}
        for name in sorted(self._slice_numbers):
            field, _, value = name.partition("=")
            groups.setdefault(field, []).append((self._slice_numbers[name], value, self.slice_sizes[name]))
        return list(groups.items())


def _counted(shown: Mapping[str, S], counts: Mapping[str, int]) -> list[tuple[str, S, int]]:
    """What any query is, with the number of those that are."""
    return [(key, kind, counts[key]) for key, kind in shown.items() if counts[key]]


def _levels(per_query: Iterable[QueryComparison]) -> tuple[Level, ...]:
    """Ranks 1 to 10, then ranges as far as any query needs them, then a level for misses."""
    ranks = (rank for query in per_query for rank in (query.a_hit_rank, query.b_hit_rank) if rank)
    deepest = max(ranks, default=1)
    levels = [Level(str(rank), rank) for rank in range(1, 11)]
    for first, last in ((11, 20), (21, 50), (51, 100)):
        if deepest >= first:
            levels.append(Level(f"{first}–{last}", last))
    if deepest > 100:
        levels.append(Level("101+", math.inf))
    return (*levels, Level("miss", math.inf))
