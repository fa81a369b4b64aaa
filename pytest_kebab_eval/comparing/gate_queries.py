"""The queries that count against a gate: those that pull its metric the wrong way, the worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from pytest_kebab_eval.comparing.gate_grammar import COUNTS, Gate, is_comparison_metric
from pytest_kebab_eval.comparing.samples import Pairs, Sides
from pytest_kebab_eval.metrics.registry import total

Counted = Callable[[str], Sequence[str]]  # the name of a count -> the queries that it counts


def queries_against(
    gate: Gate, part: str | None, value: Decimal, sides: Sides, counted: Counted
) -> list[str]:
    """What fails a gate that has this value over the queries of a part."""
    slices = sides.b.seen.slices
    if gate.metric in COUNTS:
        return [name for name in counted(gate.metric) if part is None or part in slices[name]]
    number = gate.number / 100 if gate.percent else gate.number
    is_too_low = ">" in gate.op or (gate.op == "==" and value < number)
    sign = 1 if is_too_low else -1
    found = ((sign * off, name) for name, off in _off(gate, part, float(number), sides))
    return [name for off, name in sorted(found) if off < 0]


def _off(gate: Gate, part: str | None, number: float, sides: Sides) -> Iterator[tuple[str, float]]:
    """How far each query is above what the gate asks of all; of a change, how far it rose."""
    seen = sides.b.seen
    if is_comparison_metric(gate.metric):
        cutoff = int(gate.metric.partition("@")[2])
        for name, slices in seen.slices.items():
            overlap = seen.overlaps.of(name, cutoff) if part is None or part in slices else None
            if overlap is not None:
                yield name, overlap - number
        return
    metric = seen.metrics[seen.positions[gate.metric]]
    if gate.delta:
        yield from ((name, after - before) for name, before, after in Pairs(sides, part).by_query(metric))
    else:
        limit = 0.0 if metric.family.reduce is total else number  # all of a sum adds to it
        yield from ((name, value - limit) for name, value in sides.b.sample().by_query(metric, part))
