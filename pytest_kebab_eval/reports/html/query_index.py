"""The list of queries in `report.html`, built in one pass that also counts what the charts show."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import GoldenQuery, QueryComparison, QueryResult
from pytest_kebab_eval.reports.html.details import query_details
from pytest_kebab_eval.reports.html.markup import TEXT_SHOWN, script_json, short
from pytest_kebab_eval.reports.wording import CAUSES, lost_queries
from pytest_kebab_eval.scoring.slices import slices_of

QUERIES_A_BLOCK = 50
FAILED_SHOWN = 10  # above the metrics; the list below has all
SLICE_SHOWN = 80  # characters of its name
_MISS = 1 << 53  # below any rank


class Kind(NamedTuple):
    """What became of a query: its names, its sign, and its effect (lost, worse, better or same)."""

    singular: str
    plural: str
    glyph: str
    effect: str


_KINDS = {
    "regression": Kind("regression", "regressions", "✗", "lost"),
    "loss": Kind("loss", "losses", "▼", "worse"),
    "win": Kind("win", "wins", "▲", "better"),
    "draw": Kind("draw", "draws", "=", "same"),
    # A run that is judged alone:
    "errored": Kind("errored", "errored", "✗", "lost"),
    "missed": Kind("missed", "missed", "○", "worse"),
    "found": Kind("found", "found", "✓", "better"),
    "unjudged": Kind("nothing to find", "with nothing to find", "·", "same"),
    # Either way:
    "none": Kind("not run", "not run", "–", "same"),
}


class Level(NamedTuple):
    """A rank or a range of ranks, up to `last`; the last level is for queries without a correct hit."""

    label: str
    last: float


class QueryIndex:
    """Writes the queries' details out as it reads them, and keeps their rows and counts."""

    def __init__(self, report: CompareReport) -> None:
        self._comparisons = {comparison.query_id: comparison for comparison in report.per_query}
        self._lost = {comparison.query_id for comparison in lost_queries(report)}
        self._alone = report.run_a is None
        self._slice_numbers: dict[str, int] = {}
        self.levels = _levels(report.per_query)
        self.rows: list[dict[str, Any]] = []
        self._moves: list[int] = []  # how many ranks each of the rows moved
        self.latencies: tuple[list[float], list[float]] = ([], [])
        self.slice_sizes: Counter[str] = Counter()
        self.cause_counts: Counter[str] = Counter()
        self.kind_counts: Counter[str] = Counter()
        self.flows: Counter[tuple[int, int]] = Counter()  # (level in A, level in B) -> queries

    # -- reading ---------------------------------------------------------------------------------

    def detail_blocks(self, queries: Iterable[tuple[GoldenQuery, QueryEvidence]]) -> Iterator[str]:
        """Add the queries; yields their details as script blocks of a few queries each."""
        remaining = iter(queries)
        for number in itertools.count():
            details = [self._add(*query) for query in itertools.islice(remaining, QUERIES_A_BLOCK)]
            if not details:
                return
            yield f'<script type="application/json" id="details-{number}">[{",".join(details)}]</script>\n'

    def _add(self, query: GoldenQuery, evidence: QueryEvidence) -> str:
        """Add a query; its details as JSON."""
        comparison = self._comparisons.get(query.id)
        for latencies, result in zip(self.latencies, (evidence.a, evidence.b), strict=True):
            if result is not None and result.elapsed_ms is not None:
                latencies.append(result.elapsed_ms)
        row = self._row(query, evidence, comparison)
        self.kind_counts[row["kind"]] += 1
        self.rows.append(row)
        self._moves.append(_ranks_moved(comparison))
        return script_json(query_details(query, evidence, comparison, alone=self._alone))

    def _row(
        self, query: GoldenQuery, evidence: QueryEvidence, comparison: QueryComparison | None
    ) -> dict[str, Any]:
        row: dict[str, Any] = {
            "n": len(self.rows),
            "id": short(query.id),
            "query": short(query.query, TEXT_SHOWN),
            "kind": self._kind(comparison, evidence),
            "slices": self._count_slices(query),
            **self._ranks(comparison, evidence),
        }
        if query.id in self._lost:
            row["lost"] = 1
        if comparison is not None:
            row |= self._count_comparison(comparison, has_targets=bool(evidence.expected))
        return row

    def _count_slices(self, query: GoldenQuery) -> list[int]:
        """Count the query in its slices; the slices' numbers."""
        names = [short(name, SLICE_SHOWN) for name in slices_of(query)]
        self.slice_sizes.update(names)
        return [self._slice_numbers.setdefault(name, len(self._slice_numbers)) for name in names]

    def _ranks(self, comparison: QueryComparison | None, evidence: QueryEvidence) -> dict[str, str]:
        rank_a = comparison.a_hit_rank if comparison else None
        rank_b = comparison.b_hit_rank if comparison else None
        has_targets = bool(evidence.expected)
        return {
            "a": "" if self._alone else _rank(rank_a, evidence.a, evidence.readable_a, has_targets),
            "b": _rank(rank_b, evidence.b, evidence.readable_b, has_targets),
        }

    def _count_comparison(self, comparison: QueryComparison, *, has_targets: bool) -> dict[str, Any]:
        """Count the query's cause and its ranks; what a row has of a comparison."""
        fields: dict[str, Any] = {}
        if comparison.cause:
            self.cause_counts[comparison.cause] += 1
            fields["cause"] = comparison.cause
        if comparison.checks:
            fields["checks"] = comparison.checks
        if comparison.note:
            fields["note"] = short(comparison.note, TEXT_SHOWN)
        if has_targets and not self._alone:
            flow = _level(self.levels, comparison.a_hit_rank), _level(self.levels, comparison.b_hit_rank)
            self.flows[flow] += 1
            fields["flow"] = flow
        return fields

    def _kind(self, comparison: QueryComparison | None, evidence: QueryEvidence) -> str:
        if comparison is None or (self._alone and evidence.b is None and evidence.readable_b):
            return "none"
        if comparison.kind is not None:
            return comparison.kind.value
        if comparison.checks:
            return "errored"
        if comparison.b_hit_rank is not None:
            return "found"
        return "missed" if evidence.expected else "unjudged"

    # -- what was read ---------------------------------------------------------------------------

    def as_json(self) -> Markup:
        """The list of queries for the script, the worst first; within a kind, those that moved furthest."""
        order = {kind: number for number, kind in enumerate(_KINDS)}
        rows = sorted(
            self.rows,
            key=lambda row: ("lost" not in row, order[row["kind"]], -self._moves[row["n"]], row["n"]),
        )
        index = {
            "rows": rows,
            "kinds": {key: _KINDS[key] for key in self.kind_counts},
            "causes": CAUSES,
            "slices": list(self._slice_numbers),
            "levels": [level.label for level in self.levels],
            "block": QUERIES_A_BLOCK,
            "failed": FAILED_SHOWN,
            "alone": self._alone,
        }
        return Markup(script_json(index))  # noqa: S704  escaped by `script_json`

    def kinds(self) -> list[tuple[str, Kind, int]]:
        """The kinds that occur, and how many queries are of each."""
        return [(key, kind, self.kind_counts[key]) for key, kind in _KINDS.items() if self.kind_counts[key]]

    def causes(self) -> list[tuple[str, str, int]]:
        """The causes that occur, in words, and how many queries have each."""
        return [
            (cause, words, self.cause_counts[cause])
            for cause, words in CAUSES.items()
            if self.cause_counts[cause]
        ]

    def slices_by_field(self) -> list[tuple[str, list[tuple[int, str, int]]]]:
        """For each field, such as `difficulty`: the number, value and size of its slices."""
        groups: dict[str, list[tuple[int, str, int]]] = {}
        for name in sorted(self._slice_numbers):
            field, _, value = name.partition("=")
            groups.setdefault(field, []).append((self._slice_numbers[name], value, self.slice_sizes[name]))
        return list(groups.items())


def _ranks_moved(comparison: QueryComparison | None) -> int:
    """How far apart the two ranks are; a miss is below any rank."""
    if comparison is None:
        return 0
    return abs((comparison.a_hit_rank or _MISS) - (comparison.b_hit_rank or _MISS))


def _rank(rank: int | None, result: QueryResult | None, readable: bool, has_targets: bool) -> str:
    """The first correct rank, known even where the result can no longer be read, or why there is none."""
    if rank is not None:
        return str(rank)
    if not readable:
        return "unreadable"
    if result is None:
        return "absent"
    if result.error is not None:
        return "error"
    return "miss" if has_targets else "–"


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


def _level(levels: Sequence[Level], rank: int | None) -> int:
    if rank is None:
        return len(levels) - 1
    return next(number for number, level in enumerate(levels) if rank <= level.last)
