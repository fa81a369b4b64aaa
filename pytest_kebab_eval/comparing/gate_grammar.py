"""`delta hit@5{difficulty=hard} >= -3% unless p > 0.05` -> a `Gate`; `ship` -> four.

[delta] METRIC[{slice=value}] OP NUMBER[%] [unless p > NUMBER]
OP: >= > <= < ==    value: * for each
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from typing import NamedTuple, NoReturn

from pytest_kebab_eval.comparing.significance import LEAST_P
from pytest_kebab_eval.comparing.slices import SLICES
from pytest_kebab_eval.errors import GateError
from pytest_kebab_eval.metrics import Metric
from pytest_kebab_eval.metrics.registry import LARGEST_CUTOFF, Family, ResultDomain
from pytest_kebab_eval.text import printable, similar

OPERATORS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    ">": operator.gt,
    "<": operator.lt,
}


# -- what two runs are compared by, beside the metrics of each ---------------------------------------

COUNTS = ("regressions", "losses", "wins", "failed", "partial_losses", "wrong", "absent", "new", "removed")
OF_ONE_RUN = ("wrong", "absent")  # counted whatever A had, and where B is judged alone
_BETTER = {"wins": 1, "new": 0}  # whether more or less of a count is better; of any other, less is
_PAIRED = ResultDomain("Golden queries that both runs have, but those that errored in both", lambda _: True)
_OVERLAP = Family(
    "overlap@{k}", _PAIRED, "ids that both top k share, over those that either has", neutral=True
)


def overlap_metric(name: str) -> Metric:
    """`overlap` at any cutoff; `KeyError` if it is none."""
    prefix, _, cutoff = name.partition("@")
    if prefix == "overlap" and cutoff.isascii() and cutoff.isdecimal() and 1 <= int(cutoff) <= LARGEST_CUTOFF:
        return Metric(name, _OVERLAP, lambda judged: None, int(cutoff))
    raise KeyError(name)


def is_comparison_metric(name: str) -> bool:
    """Whether a name is of the comparison, rather than of one run."""
    if name in COUNTS:
        return True
    try:
        overlap_metric(name)
    except KeyError:
        return False
    return True


# -- what a number can be ----------------------------------------------------------------------------

_ANY = Decimal("Infinity")
Range = tuple[Decimal, Decimal]


def range_of(metric: str) -> Range:
    """The least and the most that a metric can be; of the user's own, nothing is known."""
    if metric in COUNTS:
        return Decimal(0), _ANY
    known = known_metric(metric)
    if known is None:
        return -_ANY, _ANY
    most = known.family.max_value if known.family.is_bounded else None
    return Decimal(0), Decimal(str(most)) if most else _ANY


def _better(metric: str) -> int:
    """1 where more of a metric is better, -1 where less is, 0 where neither is or nobody knows."""
    if metric in COUNTS:
        return _BETTER.get(metric, -1)
    known = known_metric(metric)
    if known is None or known.family.neutral:
        return 0
    return -1 if known.lower_is_better else 1


def some_value_fails(op: str, limit: Decimal, ends: Range) -> bool:
    """Whether a value in a range could miss a limit."""
    return not all(OPERATORS[op](end, limit) for end in ends)


# -- gates -------------------------------------------------------------------------------------------

# What a release asks of answers, as one word.
SHIP = (
    "precision_answered >= 0.80",
    "citation_hit_rate >= 0.75",
    "under_refusal_rate <= 0.05",
    "over_refusal_rate <= 0.10",
)


def spelled_out(texts: Iterable[str]) -> Iterator[str]:
    """The gates, each once, with those that `ship` is short for in its place."""
    each = ((SHIP if text == "ship" else (text,)) for text in texts)
    yield from dict.fromkeys(chain.from_iterable(each))


class Gate(NamedTuple):
    """A condition on a metric; `str` gives it back as it was written, spaces folded."""

    text: str
    metric: str
    op: str
    number: Decimal
    delta: bool
    part: str | None  # the slice; every value of it, if that is `*`
    percent: bool
    unless_p_above: Decimal | None

    def __str__(self) -> str:
        return self.text

    @property
    def needs_baseline(self) -> bool:
        """Whether it takes a run A: it is on a delta, or on the comparison itself."""
        return self.delta or (is_comparison_metric(self.metric) and self.metric not in OF_ONE_RUN)

    @property
    def what(self) -> str:
        """What is judged: a metric, or the change of one."""
        return f"delta {self.metric}" if self.delta else self.metric

    def got_worse(self, change: Decimal) -> bool:
        """Whether a change is in the direction that the gate is against."""
        return self.delta and (
            change < 0 if ">" in self.op else change > 0 if "<" in self.op else change != 0
        )

    def is_against_fall(self, change: float | None) -> bool:
        """Whether it is a fall that fails it, and not a rise; where both do, whether it fell."""
        return ">" in self.op or (self.op == "==" and (change or 0) < 0)

    @property
    def every(self) -> str | None:
        """The slice whose values are all judged, if they are."""
        key, _, value = (self.part or "").partition("=")
        return key if value == "*" else None


def known_metric(name: str) -> Metric | None:
    """The metric of that name, of one run or of two; None for a count or one of the user's own."""
    for parse in (Metric.parse, overlap_metric):
        with suppress(KeyError):
            return parse(name)
    return None


def _can_fail(gate: Gate) -> bool:
    """Whether some value of the metric could miss the number."""
    least, most = range_of(gate.metric)
    hundredth = gate.number / 100 if gate.percent else gate.number
    if gate.delta and gate.percent:  # of A, which can be lost whole and no more
        return some_value_fails(gate.op, hundredth, (-_ANY if least else Decimal(-1), _ANY))
    if gate.delta:
        return some_value_fails(gate.op, hundredth, (least - most, most - least))
    if gate.percent and gate.metric in COUNTS and gate.metric not in ("new", "removed"):
        most = Decimal(1)
    return some_value_fails(gate.op, hundredth, (least, most))


def _strict(gate: Gate) -> Gate:
    """The nearest gate that some value misses; of a change, that nothing was lost."""
    if gate.delta:
        return gate._replace(op=f"{gate.op[0]}=", number=Decimal(0))
    end = range_of(gate.metric)["<" in gate.op].to_integral_value()
    if gate.percent:
        end = Decimal(100) if "<" in gate.op else Decimal(0)
    return gate._replace(op=gate.op[0], number=end)


def _as_text(gate: Gate) -> str:
    """A gate as one would write it."""
    part = f"{{{gate.part}}}" if gate.part else ""
    unless = "" if gate.unless_p_above is None else f" unless p > {gate.unless_p_above}"
    number = f"{gate.number:f}{'%' if gate.percent else ''}"
    return printable(f"{gate.what}{part} {gate.op} {number}{unless}")


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
        at_op = self._skip_space()
        op = self._expect("|".join(OPERATORS), "one of >=, >, <=, <, ==")
        start = self._skip_space()
        number = Decimal(self._expect(r"[+-]?(\d+(\.\d*)?|\.\d+)", "a number"))
        percent = self._take("%") is not None
        if not percent:
            self._check_size(metric, number, delta, start)
        unless = self._unless(delta)
        if self._skip_space() < len(self._text):
            self._fail("the gate to end here" if unless or not delta else "'unless p > …' or the gate's end")
        gate = Gate(" ".join(self._text.split()), metric, op, number, delta, part, percent, unless)
        self._check_direction(gate, at_op)
        self._check_limit(gate, start)
        return gate

    def _check_direction(self, gate: Gate, at: int) -> None:
        """One that holds the more easily the worse the metric is was meant the other way round."""
        better = _better(gate.metric)
        if (better > 0 and "<" in gate.op) or (better < 0 and ">" in gate.op):
            op = gate.op.translate(str.maketrans("<>", "><"))
            number = 0 - better * abs(gate.number) if gate.delta else gate.number
            meant = gate._replace(op=op, number=number)
            self._at = at
            what = f"{'less' if better < 0 else 'more'} of {gate.metric} is better"
            self._fail(
                f"{op}, as {what}; did you mean '{_as_text(meant if _can_fail(meant) else _strict(meant))}'?"
            )

    def _check_limit(self, gate: Gate, at: int) -> None:
        if not _can_fail(gate):
            self._at = at
            least = (
                f"{'at least' if '>' in gate.op else 'at most'} {gate.number:f}{'%' if gate.percent else ''}"
            )
            self._fail(
                f"a number that some value misses: {gate.what} is always {least};"
                f" did you mean '{_as_text(_strict(gate))}'?"
            )

    def _metric(self, delta: bool) -> str:
        start = self._skip_space()
        name = self._expect(r"[^\s{}<>=%]+", "the name of a metric")
        if is_comparison_metric(name):
            if delta:
                self._at = start
                self._fail(f"a metric of a run; {name} compares the two runs already, so drop 'delta'")
            return name
        with suppress(KeyError):
            return Metric.parse(name).name
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
        near = similar(name.lower(), [*self._known, *COUNTS, "overlap@5"])
        return f"; did you mean '{near}'?" if near else ""

    def _check_size(self, metric: str, number: Decimal, delta: bool, start: int) -> None:
        """A share is between 0 and 1; who writes 5 means 5 %."""
        known = known_metric(metric)
        if known and known.family.is_bounded and known.family.max_value == 1 and abs(number) > 1:
            self._at = start
            what = f"a change of {metric}" if delta else metric
            self._fail(f"a number up to 1, which is the most that {what} can be; did you mean {number}%?")

    def _slice(self) -> str | None:
        if self._take(r"\{") is None:
            return None
        start = self._skip_space()
        wanted = f"a slice: {', '.join(SLICES)}, metadata.NAME"
        key = self._expect(r"metadata\.[^{}=]+|[A-Za-z_]+", wanted).strip()
        key = "tags" if key == "tag" else key
        if key not in SLICES and not key.startswith("metadata."):
            self._at = start
            self._fail(wanted)
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
        start = self._skip_space()
        number = Decimal(self._expect(r"\d+(\.\d*)?|\.\d+", "a number"))
        if number < Decimal(str(LEAST_P)):
            self._at = start
            self._fail(f"a number from {LEAST_P} on: no p is smaller, so that nothing could fail the gate")
        return number

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
