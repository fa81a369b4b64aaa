"""The queries of `report.html`, read once: their list, their details, and what the charts count."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.model import GoldenQuery, QueryComparison
from pytest_kebab_eval.reports.html.details import query_details
from pytest_kebab_eval.reports.html.text import TEXT_SHOWN, inert_json, short
from pytest_kebab_eval.reports.wording import CAUSES, lost_queries
from pytest_kebab_eval.scoring.slices import slices_of

QUERIES_A_BLOCK = 50


class Kind(NamedTuple):
    """What became of a query: how it is called, marked and coloured."""

    one: str
    many: str
    glyph: str
    mood: str


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
    """A rank, or several, or none (the last level)."""

    label: str
    last: float


class Digest:
    """Reads the queries once: writes their details out, and keeps what the rest of the page needs."""

    def __init__(self, report: CompareReport) -> None:
        self._comparisons = {one.query_id: one for one in report.per_query}
        self._lost = {one.query_id for one in lost_queries(report)}
        self._alone = report.run_a is None
        self.levels = _levels(report.per_query)
        self.rows: list[dict[str, Any]] = []
        self.latencies: tuple[list[float], list[float]] = ([], [])
        self.slices: Counter[str] = Counter()
        self.causes: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.flows: Counter[tuple[int, int]] = Counter()
        self._slice_numbers: dict[str, int] = {}

    def blocks(self, queries: Iterable[tuple[GoldenQuery, QueryEvidence]]) -> Iterator[str]:
        """The details of the queries, a few in each block."""
        remaining = iter(queries)
        for number in itertools.count():
            some = [self._add(*one) for one in itertools.islice(remaining, QUERIES_A_BLOCK)]
            if not some:
                return
            yield f'<script type="application/json" id="details-{number}">[{",".join(some)}]</script>\n'

    def _add(self, query: GoldenQuery, shown: QueryEvidence) -> str:
        comparison = self._comparisons.get(query.id)
        for latencies, result in zip(self.latencies, (shown.a, shown.b), strict=True):
            if result is not None and result.elapsed_ms is not None:
                latencies.append(result.elapsed_ms)
        parts = [short(part, 80) for part in slices_of(query)]
        self.slices.update(parts)
        row: dict[str, Any] = {
            "n": len(self.rows),
            "id": short(query.id),
            "query": short(query.query, TEXT_SHOWN),
            "kind": self._kind(comparison, shown),
            "slices": [self._slice_numbers.setdefault(part, len(self._slice_numbers)) for part in parts],
            "a": "" if self._alone else _rank_word(comparison.a_hit_rank if comparison else None, shown, "a"),
            "b": _rank_word(comparison.b_hit_rank if comparison else None, shown, "b"),
        }
        self.kinds[row["kind"]] += 1
        if query.id in self._lost:
            row["lost"] = 1
        if comparison is not None:
            row |= self._compared(comparison, bool(shown.expected))
        self.rows.append(row)
        return inert_json(query_details(query, shown, comparison, alone=self._alone))

    def _compared(self, comparison: QueryComparison, has_targets: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if comparison.cause:
            self.causes[comparison.cause] += 1
            found["cause"] = comparison.cause
        if comparison.checks:
            found["checks"] = comparison.checks
        if comparison.note:
            found["note"] = short(comparison.note, TEXT_SHOWN)
        if has_targets and not self._alone:
            flow = _level(self.levels, comparison.a_hit_rank), _level(self.levels, comparison.b_hit_rank)
            self.flows[flow] += 1
            found["flow"] = flow
        return found

    def _kind(self, comparison: QueryComparison | None, shown: QueryEvidence) -> str:
        if comparison is None or (self._alone and shown.b is None and shown.readable_b):
            return "none"
        if comparison.kind is not None:
            return comparison.kind.value
        if comparison.checks:
            return "errored"
        if comparison.b_hit_rank is not None:
            return "found"
        return "missed" if shown.expected else "unjudged"

    def index(self) -> Markup:
        """What the list of queries is made from: the worst first."""
        order = {kind: number for number, kind in enumerate(_KINDS)}
        rows = sorted(self.rows, key=lambda row: ("lost" not in row, order[row["kind"]], row["n"]))
        return Markup(  # noqa: S704  inert by `inert_json`
            inert_json(
                {
                    "rows": rows,
                    "kinds": {key: _KINDS[key] for key in self.kinds},
                    "causes": CAUSES,
                    "slices": list(self._slice_numbers),
                    "levels": [level.label for level in self.levels],
                    "block": QUERIES_A_BLOCK,
                    "alone": self._alone,
                }
            )
        )

    def kinds_shown(self) -> list[tuple[str, Kind, int]]:
        """The kinds that occur, with their numbers."""
        return [(key, kind, self.kinds[key]) for key, kind in _KINDS.items() if self.kinds[key]]

    def slices_by_name(self) -> list[tuple[str, list[tuple[int, str, int]]]]:
        """The slices by what they slice: number, value and how many queries."""
        groups: dict[str, list[tuple[int, str, int]]] = {}
        for part in sorted(self._slice_numbers):
            name, _, value = part.partition("=")
            groups.setdefault(name, []).append((self._slice_numbers[part], value, self.slices[part]))
        return list(groups.items())


def _rank_word(rank: int | None, shown: QueryEvidence, side: str) -> str:
    result, readable = (shown.a, shown.readable_a) if side == "a" else (shown.b, shown.readable_b)
    if not readable:
        return "unreadable"
    if result is None:
        return "absent"
    if result.error is not None:
        return "error"
    if rank is not None:
        return str(rank)
    return "miss" if shown.expected else "–"


def _levels(per_query: Iterable[QueryComparison]) -> tuple[Level, ...]:
    """The ranks to 10 one by one, deeper ones together, and a level for what was not found."""
    deepest = max((rank for one in per_query for rank in (one.a_hit_rank, one.b_hit_rank) if rank), default=1)
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
