"""A `Gate`, held against two sides -> its `GateResult`: whether it holds, and a sentence with the numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from pytest_kebab_eval.comparing.deltas import (
    COUNTS,
    Totals,
    changes_in,
    is_comparison_metric,
    measured_in,
    significance_in,
)
from pytest_kebab_eval.comparing.significance import least_p
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.combining import Changes, Pairs
from pytest_kebab_eval.scoring.scorecard import Scorecard
from pytest_kebab_eval.text import brief, first_of, printable

OPERATORS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}
_VALUES_SHOWN = 8  # of a slice


class Gate(NamedTuple):
    """A condition on a metric; `str` gives it back as it was written, spaces folded."""

    text: str
    metric: str
    op: str
    number: Decimal
    delta: bool = False
    part: str | None = None  # the slice; every value of it, if that is `*`
    percent: bool = False
    unless_p_above: Decimal | None = None
    vs: str | None = None  # the run that a delta is held against, if it is not A

    def __str__(self) -> str:
        return self.text

    @property
    def needs_baseline(self) -> bool:
        """Whether it takes a run A: it is on a delta to A, or on the comparison itself."""
        return (self.delta and self.vs is None) or is_comparison_metric(self.metric)

    @property
    def every(self) -> str | None:
        """The slice whose values are all judged, if they are."""
        key, _, value = (self.part or "").partition("=")
        return key if value == "*" else None


class GateResult(Value, frozen=True):
    """Whether a gate holds, with the value it judged and a sentence."""

    gate: str
    metric: str
    passed: bool
    value: float | None  # of several, the worst
    reason: str
    skipped: bool = False  # it could not be judged, and need not be
    vs: str | msgspec.UnsetType = msgspec.UNSET  # where it is not held against A: the name that it has
    against: str | msgspec.UnsetType = msgspec.UNSET  # and the run, or several


class Compared(NamedTuple):
    """Two sides as gates see them: in total, and the mean of the runs of each."""

    totals: Totals
    a: Scorecard | None
    b: Scorecard
    problems: tuple[str, ...] = ()  # why a gate that names this A cannot be judged
    warnings: tuple[str, ...] = ()

    @property
    def name_a(self) -> str:
        """The runs of A."""
        return self.a.run.run_id if self.a else ""


class NoRun(NamedTuple):
    """A gate names a run that there need not be yet."""

    reason: str


def judge_gates(
    gates: Iterable[Gate], compared: Compared, others: Mapping[str, Compared | NoRun]
) -> tuple[GateResult, ...]:
    """Hold each gate against the stored, rounded values: of B and A, or of B and the run that it names."""
    return tuple(_judge(gate, others[gate.vs] if gate.vs else compared) for gate in gates)


def _judge(gate: Gate, compared: Compared | NoRun) -> GateResult:
    if isinstance(compared, NoRun):
        return _skipped(gate, compared.reason, vs=gate.vs)
    if gate.needs_baseline and compared.a is None:
        return _skipped(gate, "there is no baseline yet")
    named: dict[str, Any] = {"vs": gate.vs, "against": compared.name_a} if gate.vs else {}
    if gate.vs and compared.problems:
        reason = f"held against {_shown_a(gate, compared)}, it cannot be judged: {compared.problems[0]}"
        return GateResult(str(gate), gate.metric, False, None, reason, **named)
    totals = compared.totals
    if gate.delta and totals.deltas and gate.metric in totals.not_comparable:
        value, reason = totals.deltas.value(gate.metric, gate.part), totals.not_comparable[gate.metric]
        return GateResult(str(gate), gate.metric, False, value, reason, **named)
    if gate.every:
        keys = f"{gate.every}="
        parts = sorted(part for part in compared.b.golden_slices() if part.startswith(keys))
        judged = _worst(gate, compared, [_judge_part(gate, compared, part) for part in parts])
    else:
        judged = _judge_part(gate, compared, gate.part)
    reason = judged.reason
    if judged.value is None:
        reason += f"{_values_there(gate, totals)}{_document_hint(gate, totals)}"
    return GateResult(str(gate), gate.metric, judged.passed, judged.value, reason, **named)


def _skipped(gate: Gate, reason: str, **named: Any) -> GateResult:
    return GateResult(str(gate), gate.metric, True, None, reason, skipped=True, **named)


def warnings_of(others: Mapping[str, Compared | NoRun], known: Collection[str]) -> Iterator[str]:
    """What there is to say of the runs that gates name, but for what is said of A and B."""
    for name, compared in others.items():
        for warning in compared.warnings if isinstance(compared, Compared) else ():
            if warning not in known:
                yield f"held against '{brief(name)}': {warning}"


# -- one value -----------------------------------------------------------------------------------


class _Judged(NamedTuple):
    """A gate over all queries, or those of one part."""

    part: str | None
    value: float | None  # None: nothing was measured
    passed: bool
    reason: str
    margin: Decimal = Decimal(0)  # how far the value is on the right side of the limit
    has_enough: bool = True  # queries for `unless p > …`


def _judge_part(gate: Gate, compared: Compared, part: str | None) -> _Judged:
    found = (_comparison if is_comparison_metric(gate.metric) else _measured)(gate, compared, part)
    if found.value is None:
        return _Judged(part, None, False, f"{_nothing(gate)} {_name(gate, compared, part)}")
    value = Decimal(str(found.value))
    passed = OPERATORS[gate.op](value, found.limit)
    above = value - found.limit
    margin = -abs(above) if gate.op == "==" else above if ">" in gate.op else -above
    wanted = "" if passed else f", not {gate.op} {gate.number}{'%' if gate.percent else ''}"
    judged = _Judged(part, found.value, passed, f"{found.said}{wanted}", margin)
    return judged if gate.unless_p_above is None else _unless(gate, gate.unless_p_above, compared, judged)


def _unless(gate: Gate, limit: Decimal, compared: Compared, judged: _Judged) -> _Judged:
    """What is judged, excused where its p is above the limit; if it always would be, it fails."""
    found = significance_in(compared.a, compared.b, gate.metric, judged.part)
    if found is None or found.p is None:
        no_test = "" if judged.passed else "; there is no test of its significance"
        return judged._replace(reason=f"{judged.reason}{no_test}")
    changes = _changes(gate, compared, judged.part)
    if not _can_be(limit, changes.n, changes):
        needed = next(n for n in range(changes.n, 100) if _can_be(limit, n, changes))
        reason = (
            f"{judged.reason}; with so few no result has p <= {limit}: at least {needed} are needed,"
            " or drop 'unless'"
        )
        return judged._replace(passed=False, reason=reason, has_enough=False)
    if judged.passed:
        return judged
    excused = Decimal(str(found.p)) > limit
    reason = f"{judged.reason}; p = {found.p:g} {'>' if excused else '<='} {limit}"
    return judged._replace(passed=excused, reason=reason)


def _can_be(p: Decimal, n: int, changes: Changes) -> bool:
    """Whether so many queries could show a p as small by the test that was made of these changes."""
    return Decimal(str(least_p(n, yes_no=changes.is_yes_no))) <= p


class _Value(NamedTuple):
    """A value to judge, the limit that it is held against, and the words for it."""

    value: float | None
    limit: Decimal = Decimal(0)
    said: str = ""


def _measured(gate: Gate, compared: Compared, part: str | None) -> _Value:
    """A metric of B; or the change of one, of which `%` is relative to A."""
    totals, number = compared.totals, gate.number / 100 if gate.percent else gate.number
    if not gate.delta or totals.deltas is None or totals.paired_a is None:
        value = totals.aggregate_b.value(gate.metric, part)
        n = 0 if value is None else measured_in(compared.b, gate.metric, part)
        return _Value(value, number, f"{_name(gate, compared, part)} is {_plain(value)} over {_queries(n)}")
    value, in_a = (values.value(gate.metric, part) for values in (totals.deltas, totals.paired_a))
    n, share = 0 if value is None else _changes(gate, compared, part).n, ""
    if gate.percent and value is not None and in_a is not None:
        number *= abs(Decimal(str(in_a)))
        whose = f"{brief(compared.name_a, 40)}'s" if gate.vs else "A's"
        share = f" ({100 * value / abs(in_a):+.2f}% of {whose} {_plain(in_a)})" if in_a else ""
    return _Value(
        value, number, f"{_name(gate, compared, part)} is {_plain(value)}{share} over {_queries(n)}"
    )


def _changes(gate: Gate, compared: Compared, part: str | None) -> Changes:
    """The changes that a delta is made of."""
    return changes_in(compared.a, compared.b, gate.metric, part)


def _comparison(gate: Gate, compared: Compared, part: str | None) -> _Value:
    """A count of queries, `%` being a share of those compared; or how much the rankings moved."""
    counts = compared.totals.comparison
    value = counts.value(gate.metric, part) if counts else None
    if counts is None or value is None:
        return _Value(None)
    number = gate.number / 100 if gate.percent else gate.number
    said = f"{_name(gate, compared, part)} is {_plain(value)}"
    if gate.metric not in COUNTS:
        both = Pairs(compared.a, compared.b, part, golden_only=True) if compared.a else None
        return _Value(value, number, f"{said} over {_queries(both.count_ranked() if both else 0)}")
    whole = counts.compared(part)
    beside = f"beside {_queries(whole)} compared"
    of = beside if gate.metric in ("new", "removed") else f"of {_queries(whole)}"
    share = f" ({100 * value / whole:.2f}%)" if gate.percent and whole else ""
    return _Value(value, number * whole if gate.percent else number, f"{said} {of}{share}")


# -- every value of a slice ----------------------------------------------------------------------


def _worst(gate: Gate, compared: Compared, judged: Sequence[_Judged]) -> _Judged:
    """The worst of the values of a slice, which fails if any of them does."""
    if all(found.value is None for found in judged):
        return _Judged(gate.part, None, False, f"{_nothing(gate)} {_name(gate, compared, gate.part)}")
    worst = min(judged, key=lambda found: (found.passed, found.value is None, found.margin))
    failing = sum(not found.passed for found in judged)
    rank = "the only value" if len(judged) == 1 else f"the worst of {len(judged)} values"
    counted = f", {failing} of them failing" if failing and len(judged) > 1 else ""
    others = [found for found in judged if found is not worst]
    why = {
        _nothing(gate): [found for found in others if found.value is None],
        "too few queries for 'unless' in": [found for found in others if not found.has_enough],
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
    try:
        Metric.parse(name)
    except KeyError:
        return ""
    return f"; the golden file expects documents, not chunks: gate on '{name}'"


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
    vs = f" vs {_shown_a(gate, compared)}" if gate.vs else ""
    return delta + printable(f"{gate.metric}{{{part}}}" if part else gate.metric) + vs


def _shown_a(gate: Gate, compared: Compared) -> str:
    """The run that a gate is held against, as the gate names it and by its id."""
    name, run = brief(gate.vs or ""), brief(compared.name_a)
    return name if name == run else f"{name} ({run})"


def _queries(n: int) -> str:
    return f"{n} {'query' if n == 1 else 'queries'}"


def _plain(value: float | None) -> str:
    """The stored value as it is, without an exponent or needless zeros."""
    text = f"{value or 0:.4f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"
