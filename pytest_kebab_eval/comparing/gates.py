"""`delta hit@5{difficulty=hard} >= -3% unless p > 0.05` -> a `Gate` -> its `GateResult`.

[delta] METRIC[{slice=value}] OP NUMBER[%] [unless p > NUMBER]        OP: >= > <= < ==
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection, Iterable
from decimal import Decimal
from typing import NamedTuple, NoReturn

from pytest_kebab_eval.comparing.deltas import COUNTS, ComparisonCounts, Totals, is_comparison_metric
from pytest_kebab_eval.comparing.movement import movement_metric
from pytest_kebab_eval.comparing.significance import Significance
from pytest_kebab_eval.errors import GateError
from pytest_kebab_eval.metrics import Family, Metric
from pytest_kebab_eval.metrics.registry import LARGEST_CUTOFF
from pytest_kebab_eval.model import Value
from pytest_kebab_eval.scoring.scorecard import SLICES
from pytest_kebab_eval.text import printable

_OPERATORS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


class Gate(NamedTuple):
    """A condition on a metric; `str` gives it back as it was written, spaces folded."""

    text: str
    metric: str
    op: str
    number: Decimal
    delta: bool = False
    part: str | None = None  # the slice
    percent: bool = False
    unless_p_above: Decimal | None = None

    def __str__(self) -> str:
        return self.text

    @property
    def needs_baseline(self) -> bool:
        """Whether it takes a run A: it is on a delta, or on the comparison itself."""
        return self.delta or is_comparison_metric(self.metric)


class GateResult(Value, frozen=True):
    """Whether a gate holds, with the value it judged and a sentence."""

    gate: str
    metric: str
    passed: bool
    value: float | None
    reason: str
    skipped: bool = False  # it could not be judged, and need not be


# -- parsing -------------------------------------------------------------------------------------


def parse_gate(text: str, known: Collection[str]) -> Gate:
    """A gate on one of the known metrics; a `GateError` points at the character that is wrong."""
    try:
        text.encode()
    except UnicodeEncodeError:  # bytes of a command line that are not UTF-8
        raise GateError(f"bad gate: '{printable(text)}' has a character that is not Unicode text") from None
    return _Parser(text, known).gate()


class _Parser:
    def __init__(self, text: str, known: Collection[str]) -> None:
        self._text = text
        self._known = known
        self._at = 0

    def gate(self) -> Gate:
        delta = self._take(r"delta(?=\s)") is not None
        metric = self._metric(delta)
        part = self._slice()
        op = self._expect("|".join(_OPERATORS), "one of >=, >, <=, <, ==")
        start = self._skip_space()
        number = Decimal(self._expect(r"[+-]?(\d+(\.\d*)?|\.\d+)", "a number"))
        percent = self._take("%") is not None
        if not percent:
            self._check_size(metric, number, delta, start)
        unless = self._unless(delta)
        if self._skip_space() < len(self._text):
            self._fail("the gate to end here" if unless or not delta else "'unless p > …' or the gate's end")
        return Gate(" ".join(self._text.split()), metric, op, number, delta, part, percent, unless)

    def _metric(self, delta: bool) -> str:
        start = self._skip_space()
        name = self._expect(r"[^\s{}<>=%]+", "the name of a metric")
        if is_comparison_metric(name):
            if delta:
                self._at = start
                self._fail(f"a metric of a run; {name} compares the two runs already, so drop 'delta'")
            return name
        try:
            return Metric.parse(name).name
        except KeyError:
            pass
        if name not in self._known:
            self._at = start
            self._fail(f"the name of a metric, and there is no '{printable(name)}'{self._hint(name)}")
        return name

    def _hint(self, name: str) -> str:
        if re.sub(r"@\d+", "@k", name) in (*self._known, "overlap@k"):
            return f"; k is from 1 to {LARGEST_CUTOFF:,}, or the letter k for the query's own"
        endings = [f"'{known}'" for known in self._known if known.startswith(f"{name}_")]
        if endings:
            return f"; did you mean {' or '.join(sorted(endings))}?"
        near = difflib.get_close_matches(name.lower(), [*self._known, *COUNTS, "overlap@5", "rbo"], n=1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def _check_size(self, metric: str, number: Decimal, delta: bool, start: int) -> None:
        """A share is between 0 and 1; who writes 5 means 5 %."""
        family = _family(metric)
        if family is not None and family.is_mean and family.max_value == 1 and abs(number) > 1:
            self._at = start
            what = f"a change of {metric}" if delta else metric
            self._fail(f"a number up to 1, which is the most that {what} can be; did you mean {number}%?")

    def _slice(self) -> str | None:
        if self._take(r"\{") is None:
            return None
        start = self._skip_space()
        key = self._expect(r"[A-Za-z_]+", f"a slice: {', '.join(SLICES)}")
        key = "tags" if key == "tag" else key
        if key not in SLICES:
            self._at = start
            self._fail(f"a slice: {', '.join(SLICES)}")
        self._expect("=", "'=' and a value")
        value = self._expect(r"[^{}]+", "a value").strip()
        self._expect(r"\}", "'}'")
        return f"{key}={value}"

    def _unless(self, delta: bool) -> Decimal | None:
        start = self._skip_space()
        if self._take("unless") is None:
            return None
        if not delta:
            self._at = start
            self._fail("the gate to end here, since only a delta has a p value")
        self._expect("p", "'p >' and a number")
        self._expect(">", "'>' and a number")
        return Decimal(self._expect(r"\d+(\.\d*)?|\.\d+", "a number"))

    def _skip_space(self) -> int:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at

    def _take(self, pattern: str) -> str | None:
        match = re.compile(pattern).match(self._text, self._skip_space())
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _expect(self, pattern: str, what: str) -> str:
        found = self._take(pattern)
        return self._fail(what) if found is None else found

    def _fail(self, expected: str) -> NoReturn:
        shown = "".join(printable(char) if char != "\t" else " " for char in self._text)
        pointer = sum(len(printable(char)) if char != "\t" else 1 for char in self._text[: self._at])
        raise GateError(f"bad gate: at the mark, expected {expected}\n  {shown}\n  {' ' * pointer}^")


def _family(metric: str) -> Family | None:
    """What is known of a metric, unless it is a count or the user's own."""
    for parse in (Metric.parse, movement_metric):
        try:
            return parse(metric).family
        except KeyError:
            continue
    return None


# -- judging -------------------------------------------------------------------------------------

SignificanceOf = Callable[[str, "str | None"], "Significance | None"]


def judge_gates(
    gates: Iterable[Gate],
    totals: Totals,
    significance_of: SignificanceOf,
) -> tuple[GateResult, ...]:
    """Hold each gate against the stored, rounded values of a totals."""
    return tuple(_judge(gate, totals, significance_of) for gate in gates)


def _judge(gate: Gate, totals: Totals, significance_of: SignificanceOf) -> GateResult:
    name = printable(f"{gate.metric}{{{gate.part}}}" if gate.part else gate.metric)
    if is_comparison_metric(gate.metric):
        return _judge_comparison(gate, name, totals.comparison)
    value = totals.aggregate_b.value(gate.metric, gate.part)
    in_a = totals.paired_a.value(gate.metric, gate.part) if totals.paired_a else None
    if gate.delta:
        name = f"delta {name}"
        if totals.deltas is None:
            return _no_baseline(gate)
        value = totals.deltas.value(gate.metric, gate.part)
        if gate.metric in totals.not_comparable:
            return GateResult(str(gate), gate.metric, False, value, totals.not_comparable[gate.metric])
    if value is None:
        reason = f"nothing was measured for {name}{_parts_there(gate, totals)}{_document_hint(gate, totals)}"
        return GateResult(str(gate), gate.metric, False, None, reason)
    said = f"{name} is {_plain(value)}{_as_share(gate, value, in_a)}"
    result = _held(gate, value, _limit(gate, in_a), said)
    if result.passed or gate.unless_p_above is None:
        return result
    found = significance_of(gate.metric, gate.part)
    if found is None or found.p is None:
        reason = f"{result.reason}; there is no test of its significance"
        return GateResult(str(gate), gate.metric, False, value, reason)
    excused = Decimal(str(found.p)) > gate.unless_p_above
    reason = f"{result.reason}; p = {found.p:g} {'>' if excused else '<='} {gate.unless_p_above}"
    return GateResult(str(gate), gate.metric, excused, value, reason)


def _judge_comparison(gate: Gate, name: str, found: ComparisonCounts | None) -> GateResult:
    """A count of queries, `%` being a share of those compared; or how much the rankings moved."""
    if found is None:
        return _no_baseline(gate)
    value = found.value(gate.metric, gate.part)
    if value is None:
        return GateResult(str(gate), gate.metric, False, None, f"nothing was compared for {name}")
    whole = found.compared(gate.part)
    is_share = gate.percent and gate.metric in COUNTS
    limit = gate.number / 100 * (whole if is_share else 1) if gate.percent else gate.number
    share = f" of {whole} ({100 * value / whole:.2f}%)" if is_share else ""
    return _held(gate, value, limit, f"{name} is {_plain(value)}{share}")


def _held(gate: Gate, value: float, limit: Decimal, said: str) -> GateResult:
    """The value held against the limit."""
    passed = _OPERATORS[gate.op](Decimal(str(value)), limit)
    wanted = "" if passed else f", not {gate.op} {gate.number}{'%' if gate.percent else ''}"
    return GateResult(str(gate), gate.metric, passed, value, f"{said}{wanted}")


def _no_baseline(gate: Gate) -> GateResult:
    return GateResult(str(gate), gate.metric, True, None, "there is no baseline yet", skipped=True)


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


def _parts_there(gate: Gate, totals: Totals) -> str:
    """The values that the gate's slice does have, if its own is none of them."""
    if gate.part is None or gate.part in totals.aggregate_b.slices:
        return ""
    key = gate.part.partition("=")[0]
    there = [part.partition("=")[2] for part in totals.aggregate_b.slices if part.startswith(f"{key}=")]
    return f"; {key} is {', '.join(map(printable, there[:8])) or 'not given by any query'}"


def _limit(gate: Gate, a: float | None) -> Decimal:
    """The number to compare with: `%` on a delta is relative to A, elsewhere a hundredth."""
    if not gate.percent:
        return gate.number
    whole = abs(Decimal(str(a))) if gate.delta and a is not None else Decimal(1)
    return gate.number / 100 * whole


def _plain(value: float) -> str:
    """The stored value as it is, without an exponent or needless zeros."""
    text = f"{value:.4f}".rstrip("0").rstrip(".")
    return text if text not in ("", "-0") else "0"


def _as_share(gate: Gate, delta: float, a: float | None) -> str:
    if not (gate.delta and gate.percent and a):
        return ""
    return f" ({100 * delta / abs(a):+.2f}% of A's {_plain(a)})"
