"""A `Gate`, held against two sides -> its `GateResult`: whether it holds, and a sentence with the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple

from pytest_kebab_eval.comparing.aggregates import rounded
from pytest_kebab_eval.comparing.gate_grammar import (
    COUNTS,
    OF_ONE_RUN,
    OPERATORS,
    Gate,
    is_comparison_metric,
    known_metric,
    range_of,
    some_value_fails,
)
from pytest_kebab_eval.comparing.gate_queries import Counted, queries_against
from pytest_kebab_eval.comparing.one_pass import OnePass
from pytest_kebab_eval.comparing.samples import Pairs, Side, Sides
from pytest_kebab_eval.comparing.significance import ALPHA, PairedTest, least_p
from pytest_kebab_eval.comparing.totals import Totals
from pytest_kebab_eval.metrics import Metric, is_metric
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.text import first_of, printable

_VALUES_SHOWN = 8  # of a slice
_QUERIES_SHOWN, _NAME_WIDTH = 10, 40
_ANY = Decimal("Infinity")


class GateResult(Value, frozen=True):
    """Whether a gate holds, with the value it judged and a sentence."""

    gate: str
    metric: str
    passed: bool
    value: float | None  # of several, the worst
    reason: str
    skipped: bool = False  # it could not be judged, and need not be


class Compared(NamedTuple):
    """Two sides as gates see them."""

    totals: Totals
    sides: Sides
    counted: Counted  # the queries that counts count


def judge_gates(
    gates: Iterable[Gate], totals: Totals, sides: Sides, counted: Counted
) -> tuple[GateResult, ...]:
    """Hold each gate against the stored, rounded values of B and A."""
    compared = Compared(totals, sides, counted)
    return tuple(_judge(gate, compared) for gate in gates)


def _judge(gate: Gate, compared: Compared) -> GateResult:
    totals, sides, counted = compared
    if gate.needs_baseline and sides.a is None:
        reason = "there is no baseline yet"
        return GateResult(str(gate), gate.metric, True, None, reason, skipped=True)
    if gate.delta and totals.deltas and gate.metric in totals.not_comparable:
        value, reason = totals.deltas.value(gate.metric, gate.part), totals.not_comparable[gate.metric]
        return GateResult(str(gate), gate.metric, False, value, reason)
    if gate.every:
        slices = {part for of_query in sides.b.seen.slices.values() for part in of_query}
        parts = sorted(part for part in slices if part.startswith(f"{gate.every}="))
        judged = _worst(gate, compared, [_judge_part(gate, compared, part) for part in parts])
    else:
        judged = _judge_part(gate, compared, gate.part)
    reason = judged.reason
    if judged.value is None:
        reason += f"{_values_there(gate, totals)}{_document_hint(gate, totals)}"
    elif not judged.passed:
        names = queries_against(gate, judged.part, Decimal(str(judged.value)), sides, counted)
        reason += f"; against it: {first_of(names, _QUERIES_SHOWN, _NAME_WIDTH)}" if names else ""
    return GateResult(str(gate), gate.metric, judged.passed, judged.value, reason)


# -- one value -----------------------------------------------------------------------------------


class _Judged(NamedTuple):
    """A gate over all queries, or those of one part."""

    part: str | None
    value: float | None  # None: nothing was measured
    passed: bool
    reason: str
    margin: Decimal = Decimal(0)  # how far the value is on the right side of the limit
    can_fail: bool = True
    has_enough: bool = True  # queries for `unless p > …`


def _judge_part(gate: Gate, compared: Compared, part: str | None) -> _Judged:
    """A gate on one part; a change must hold over the queries that both runs measured, too."""
    if is_comparison_metric(gate.metric):
        return _hold(gate, compared, part, _comparison(gate, compared, part))
    judged = _hold(gate, compared, part, _measured(gate, compared, part))
    in_both = _changed_in_both(gate, compared, part) if judged.passed else None
    again = judged if in_both is None else _hold(gate, compared, part, in_both)
    return judged if again.passed else again


def _hold(gate: Gate, compared: Compared, part: str | None, found: _Value) -> _Judged:
    """A value held against its limit."""
    if found.value is None:
        return _Judged(part, None, False, f"{_nothing(gate)} {_name(gate, compared, part)}")
    value = Decimal(str(found.value))
    passed = OPERATORS[gate.op](value, found.limit)
    above = value - found.limit
    margin = -abs(above) if gate.op == "==" else above if ">" in gate.op else -above
    wanted = "" if passed else f", not {gate.op} {gate.number}{'%' if gate.percent else ''}"
    judged = _Judged(part, found.value, passed, f"{found.said}{wanted}", margin)
    if not some_value_fails(gate.op, found.limit, found.range):
        end = f"below {plain(found.range[0])}" if ">" in gate.op else f"above {plain(found.range[1])}"
        reason = f"{judged.reason}; nothing could fail this gate, as {gate.what} is never {end}"
        return judged._replace(passed=False, reason=reason, can_fail=False)
    if gate.got_worse(value) and not some_value_fails(gate.op, found.limit, found.range_from_a):
        return judged._replace(
            passed=False, reason=f"{judged.reason}; nothing could fail this gate, {found.from_a}"
        )
    if gate.unless_p_above is not None:
        return _unless(gate, gate.unless_p_above, compared, judged)
    return judged._replace(reason=f"{judged.reason}{_chance(gate, compared, judged, found.limit)}")


def _unless(gate: Gate, limit: Decimal, compared: Compared, judged: _Judged) -> _Judged:
    """What is judged, excused where its p is above the limit; if it always would be, it fails."""
    found = _tested(gate, compared, judged.part)
    if found is None or found.p is None:
        no_test = "" if judged.passed else "; there is no test of its significance"
        return judged._replace(reason=f"{judged.reason}{no_test}")
    too_few = _too_few(gate, limit, compared, judged) or _too_noisy(gate, limit, compared, judged)
    if too_few:
        return judged._replace(passed=False, reason=f"{judged.reason}; {too_few}", has_enough=False)
    if judged.passed:
        return judged
    excused = Decimal(str(found.p)) > limit
    reason = f"{judged.reason}; p = {found.p:g} {'>' if excused else '<='} {limit}"
    return judged._replace(passed=excused, reason=reason)


def _chance(gate: Gate, compared: Compared, judged: _Judged, limit: Decimal) -> str:
    """That the change which fails a gate may be chance; nothing where its p is small, or there is no test."""
    aggregate_a = compared.totals.aggregate_a
    in_a = aggregate_a.value(gate.metric, judged.part) if aggregate_a else None
    if judged.passed or in_a is None:
        return ""
    met_in_a = gate.delta or OPERATORS[gate.op](Decimal(str(in_a)), limit)
    if not met_in_a or (gate.delta and not gate.got_worse(Decimal(str(judged.value)))):
        return ""
    found = _tested(gate, compared, judged.part)
    if found is None or found.p is None or found.p <= ALPHA:
        return ""
    if _measured_others(gate, compared, judged.part, found.n):
        return ""  # the test is not of these
    return f"; chance alone may explain the change (p = {found.p:g})"


def _too_few(gate: Gate, limit: Decimal, compared: Compared, judged: _Judged) -> str:
    """Why no result could have a p as small, if none could: too few queries, or too few that can fall."""
    metric = _metric(gate, compared)
    pairs = Pairs(compared.sides, judged.part)
    changes, (fall, rise) = pairs.changes(metric), pairs.room(metric)
    needed = next(n for n in range(100) if Decimal(str(least_p(n, yes_no=changes.is_yes_no))) <= limit)
    can, verb = (fall, "fall") if gate.is_against_fall(judged.value) else (rise, "rise")
    if changes.n >= needed and (can >= needed or not gate.got_worse(Decimal(str(judged.value)))):
        return ""
    only = f"only {can} of them can {verb}, and " if changes.n >= needed else ""
    return f"{only}with so few no result has p <= {limit}: at least {needed} are needed, or drop 'unless'"


def _too_noisy(gate: Gate, limit: Decimal, compared: Compared, judged: _Judged) -> str:
    """The same of runs, which differ too much among themselves; where it did get worse."""
    metric, most = _metric(gate, compared), range_of(gate.metric)[1]
    falls = gate.is_against_fall(judged.value)
    if not gate.got_worse(Decimal(str(judged.value))) or (most == _ANY and not falls):
        return ""
    end = 0.0 if falls else float(most)
    least = Pairs(compared.sides, judged.part).least_p_in_runs(metric, end)
    if Decimal(str(least)) <= limit:
        return ""
    runs = " and ".join(str(len(side.runs)) for side in compared.sides if side) + " runs"
    return f"with {runs} that differ so much no result has p <= {limit}: record more, or drop 'unless'"


class _Value(Value, frozen=True):
    """A value to judge, the limit that it is held against, and the words for it."""

    value: float | None
    limit: Decimal = Decimal(0)
    said: str = ""
    range: tuple[Decimal, Decimal] = (-_ANY, _ANY)  # what it can be
    range_from_a: tuple[Decimal, Decimal] = (-_ANY, _ANY)  # and what it can be with this A
    from_a: str = ""


def _measured(gate: Gate, compared: Compared, part: str | None) -> _Value:
    """A metric of B; or the change of one, of which `%` is relative to A."""
    totals, number = compared.totals, gate.number / 100 if gate.percent else gate.number
    least, most = range_of(gate.metric)
    if not gate.delta or totals.deltas is None or totals.paired_a is None:
        value = totals.aggregate_b.value(gate.metric, part)
        n = 0 if value is None else _measured_in(compared.sides.b, gate, part)
        said = f"{_name(gate, compared, part)} is {plain(value)} over {_counted(gate, n)}"
        return _Value(value, number, said, (least, most))
    value, in_a = (values.value(gate.metric, part) for values in (totals.deltas, totals.paired_a))
    if value is None or in_a is None:
        return _Value(None)
    n = Pairs(compared.sides, part).changes(_metric(gate, compared)).n
    others = _measured_others(gate, compared, part, n)
    over = f"{_counted(gate, others[0])} of A and {others[1]} of B" if others else count_queries(n)
    return _change(gate, compared, part, value, in_a, over)


def _measured_others(gate: Gate, compared: Compared, part: str | None, n: int) -> tuple[int, int] | None:
    """How many queries each run measured, if the same were asked, and more than n measured in one."""
    deltas = compared.totals.deltas
    a, b = compared.sides
    if a is None or deltas is None or deltas.paired.unpaired is not None:
        return None
    counts = (_measured_in(a, gate, part), _measured_in(b, gate, part))
    return counts if n < max(counts) else None


def _changed_in_both(gate: Gate, compared: Compared, part: str | None) -> _Value | None:
    """The change over the queries that both measured, which what B answers besides may hide; else None."""
    a, b = compared.sides
    metric = _metric(gate, compared)
    if not gate.delta or a is None or not metric.family.is_mean:
        return None
    pairs = Pairs(compared.sides, part)
    n = pairs.changes(metric).n
    if not n or n == max(_measured_in(a, gate, part), _measured_in(b, gate, part)):
        return None  # that is what the runs have in total
    before, after = map(rounded, pairs.means(metric))
    over = f"the {count_queries(n)} that both runs measured"
    return _change(gate, compared, part, rounded(after - before), before, over)


def _change(gate: Gate, compared: Compared, part: str | None, value: float, in_a: float, over: str) -> _Value:
    """How much a metric changed from what it is in A."""
    number = gate.number / 100 if gate.percent else gate.number
    least, most = range_of(gate.metric)
    before = Decimal(str(in_a))
    said = plain(value)
    if gate.percent and in_a:  # what is judged comes first
        said = f"{100 * value / abs(in_a):+.2f}% ({said} of A's {plain(in_a)})"
    return _Value(
        value,
        number * abs(before) if gate.percent else number,
        f"{_name(gate, compared, part)} is {said} over {over}",
        (least - most, most - least),
        (least - before, most - before),
        f"A's being {plain(in_a)}",
    )


def _tested(gate: Gate, compared: Compared, part: str | None) -> PairedTest | None:
    """The test of a metric's change; None if there is none."""
    if compared.sides.a is None or is_comparison_metric(gate.metric):
        return None
    metric = _metric(gate, compared)
    pairs = Pairs(compared.sides, part)
    return pairs.tested(metric) if metric.family.is_tested and pairs else None


def _measured_in(side: Side, gate: Gate, part: str | None) -> int:
    """How many queries a metric is over; documents or chunks, of one of the index."""
    metric = side.seen.metrics[side.seen.positions[gate.metric]]
    if metric.family.unit:
        index = side.seen.runs[side.runs[0]].index
        return index.rates[gate.metric][1] if index and gate.metric in index.rates else 0
    return side.sample().part(part).reduce(metric).n


def _ranked(seen: OnePass, part: str | None) -> int:
    """How many queries have rankings that were compared."""
    rows = seen.overlaps.rows
    return sum(part is None or part in seen.slices[seen.ids[row]] for row in rows)


def _metric(gate: Gate, compared: Compared) -> Metric:
    seen = compared.sides.b.seen
    return seen.metrics[seen.positions[gate.metric]]


def _comparison(gate: Gate, compared: Compared, part: str | None) -> _Value:
    """A count of queries, `%` being a share of those compared; or how much the rankings moved."""
    counts = compared.totals.comparison
    value = counts.value(gate.metric, part) if counts else None
    if counts is None or value is None:
        return _Value(None)
    number = gate.number / 100 if gate.percent else gate.number
    said = f"{_name(gate, compared, part)} is {plain(value)}"
    if gate.metric not in COUNTS:
        said = f"{said} over {count_queries(_ranked(compared.sides.b.seen, part))}"
        return _Value(value, number, said, range_of(gate.metric))
    whole = counts.compared(part)
    if gate.metric in OF_ONE_RUN:
        whole += round(counts.value("new", part) or 0)
    is_beside = gate.metric in ("new", "removed")
    of = f"beside {count_queries(whole)} compared" if is_beside else f"of {count_queries(whole)}"
    share = f" ({100 * value / whole:.2f}%)" if gate.percent and whole else ""
    limit = number * whole if gate.percent else number
    return _Value(value, limit, f"{said} {of}{share}", (Decimal(0), _ANY if is_beside else Decimal(whole)))


# -- every value of a slice ----------------------------------------------------------------------


def _worst(gate: Gate, compared: Compared, judged: Sequence[_Judged]) -> _Judged:
    """The worst of the values of a slice, which fails if any of them does that can."""
    skipped = [found for found in judged if found.value is None]
    judged = [found for found in judged if found.value is not None]
    if not judged:
        return _Judged(gate.part, None, False, f"{_nothing(gate)} {_name(gate, compared, gate.part)}")
    able = [found for found in judged if found.can_fail] or judged
    worst = min(able, key=lambda found: (found.passed, found.margin))
    failing = sum(not found.passed for found in able)
    rank = "the only value" if len(judged) == 1 else f"the worst of {len(judged)} values"
    counted = f", {failing} of them failing" if failing and len(judged) > 1 else ""
    others = [found for found in judged if found is not worst]
    why = {
        f"skipped, as {_nothing(gate)}": skipped,
        "too few queries for 'unless' in": [found for found in others if not found.has_enough],
        "nothing could fail it in": [found for found in others if not found.can_fail],
    }
    said = [f"{reason} {_values(found)}" for reason, found in why.items() if found]
    return worst._replace(reason="; ".join([worst.reason, f"{rank} of {gate.every}{counted}", *said]))


def _values(judged: Iterable[_Judged]) -> str:
    return first_of([(found.part or "").partition("=")[2] for found in judged], _VALUES_SHOWN)


# -- words ---------------------------------------------------------------------------------------


def _nothing(gate: Gate) -> str:
    return f"nothing was {'compared' if is_comparison_metric(gate.metric) else 'measured'} for"


def _document_hint(gate: Gate, totals: Totals) -> str:
    """The metric over documents, where the golden file has no chunk-level targets but documents."""
    if totals.aggregate_b.counts.get("mrr") or not totals.aggregate_b.counts.get("mrr_doc"):
        return ""
    name = f"{gate.metric.removesuffix('_chunk')}_doc"
    return f"; the golden file expects documents, not chunks: gate on '{name}'" if is_metric(name) else ""


def _values_there(gate: Gate, totals: Totals) -> str:
    """The values that the gate's slice does have, if its own is none of them."""
    if gate.part is None or gate.part in totals.aggregate_b.slices:
        return ""
    key = gate.part.partition("=")[0]
    there = [part.partition("=")[2] for part in totals.aggregate_b.slices if part.startswith(f"{key}=")]
    if gate.every and there:
        return ""
    return f"; {key} is {', '.join(map(printable, there[:_VALUES_SHOWN])) or 'not given by any query'}"


def _name(gate: Gate, compared: Compared, part: str | None) -> str:
    """What a gate is on, in one part, and what it is held against."""
    delta = "delta " if gate.delta else ""
    return delta + printable(f"{gate.metric}{{{part}}}" if part else gate.metric)


def _counted(gate: Gate, n: int) -> str:
    """What a metric was measured over."""
    known = known_metric(gate.metric)
    return f"{n} {known.family.unit}" if known and known.family.unit else count_queries(n)


def count_queries(n: int) -> str:
    """`1 query`, `2 queries`."""
    return f"{n} {'query' if n == 1 else 'queries'}"


def plain(value: float | Decimal | None) -> str:
    """The stored value as it is, without an exponent or needless zeros."""
    text = f"{value or 0:.4f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"
