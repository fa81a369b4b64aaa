"""The numbers of report.json: metrics with deltas and tests, slices, gates, how much was compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.frozen.judging import judge

Numbers = dict[str, Any]

NESTED = {
    "hit_at_k": "hit@{}",
    "recall_at_k_doc": "recall@{}_doc",
    "precision_at_k_chunk": "precision@{}_chunk",
}
ALONE = (
    *("mrr", "citation_coverage", "groundedness", "empty_result_rate", "refusal_correctness"),
    *("total_queries", "failed_queries"),
)
SLICED = (
    "hit@1",
    "hit@5",
    "mrr",
    "ndcg@10",
    "recall@5",
    "recall@10_doc",
    "groundedness",
    "over_refusal_rate",
)


def run(case: Numbers, directory: Path) -> Numbers:
    """The numbers; what is null is left out."""
    session = judge(case, directory)
    report = session.report or {}
    sides = {name: report.get(key) or {} for name, key in SIDES.items()}
    deltas = sides["delta"]
    return {
        "exit_code": session.exit_code,
        "matched_by": {name: n for name, n in deltas.get("matched_by", {}).items() if n},
        "paired": without_nulls(deltas.get("paired") or {}),
        "metrics": metrics(sides, report.get("significance") or {}),
        "slices": slices(sides),
        "gates": {
            gate["gate"]: {name: gate[name] for name in ("passed", "value")}
            for gate in report.get("gates", [])
        },
    }


SIDES = {"a": "aggregate_a", "b": "aggregate_b", "delta": "deltas"}


def metrics(sides: dict[str, Numbers], tests: Numbers) -> Numbers:
    """Value and n of each metric on each side, the delta, and the test of it."""
    values = {side: metric_values(aggregate) for side, aggregate in sides.items()}
    found: Numbers = {}
    for name in sorted({name for of_side in values.values() for name in of_side}):
        numbers = {side: of_side[name] for side, of_side in values.items() if name in of_side}
        numbers |= {
            f"n_{side}": sides[side]["counts"][name]
            for side in "ab"
            if sides[side].get("counts", {}).get(name)
        }
        numbers |= {field: tests[name][field] for field in ("n", "up", "down", "p") if name in tests}
        found[name] = numbers
    return found


def metric_values(aggregate: Numbers) -> Numbers:
    """The metrics of an aggregate by their names, but for those that are null."""
    values = {name: aggregate.get(name) for name in ALONE} | aggregate.get("extra", {})
    for field, name in NESTED.items():
        values |= {name.format(k): value for k, value in aggregate.get(field, {}).items()}
    return without_nulls(values)


def slices(sides: dict[str, Numbers]) -> Numbers:
    """A few metrics of each slice, as [A, B, B - A]."""
    of_sides = [aggregate.get("slices", {}) for aggregate in sides.values()]
    found: Numbers = {}
    for name in sorted({name for of_side in of_sides for name in of_side}):
        values = {metric: [of_side.get(name, {}).get(metric) for of_side in of_sides] for metric in SLICED}
        found[name] = {metric: three for metric, three in values.items() if three != [None] * 3}
    return found


def without_nulls(values: Numbers) -> Numbers:
    return {name: value for name, value in values.items() if value is not None}
