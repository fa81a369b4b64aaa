"""What becomes of the gates (section 3.4), and the values of the comparison that they may ask for."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .case import Case
from .checks import OPEN
from .coverage import ids_of_a, ids_of_b
from .model import Judge
from .pairing import Measured, in_slice
from .verdicts import FAILED, PASSED, SKIPPED, Judgment, Outcomes, Value

EITHER = PASSED | FAILED
UNFAILABLE: Outcomes = frozenset({"unfailable"})  # by no outcome, which fails a gate on its own
SNAPSHOT = "snapshot[compare-report]"
COMPARISON_METRICS = frozenset(
    {"regressions", "losses", "wins", "failed", "partial_losses", "new", "removed"}
)
ROUNDING = 1.5e-4  # whether means over replicates are of rounded values is open
KINDS = {"regressions": "regression", "losses": "loss", "wins": "win"}
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}
GATE = re.compile(
    r"(?P<delta>delta )?(?P<metric>\S+?)(?:\{(?P<slice>[^}]+)\})?"
    r" (?P<op>>=|>|<=|<|==) (?P<number>\S+)(?: unless p > (?P<p>\S+))?"
)
YES_NO = re.compile(r"hit@\w+|recall_all@\w+")


@dataclass(frozen=True)
class Gate:
    """A parsed gate."""

    delta: bool
    metric: str
    slice: str | None
    op: str
    number: float
    percent: bool
    unless_p: float | None = None

    @property
    def needs_comparison(self) -> bool:
        """Whether it makes no sense for one run."""
        return self.delta or self.metric in COMPARISON_METRICS


def parse(text: str) -> Gate:
    """A gate from its text."""
    match = GATE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    number, percent = match["number"].rstrip("%"), match["number"].endswith("%")
    unless_p = float(match["p"]) if match["p"] else None
    where, op = match["slice"], match["op"]
    return Gate(bool(match["delta"]), match["metric"], where, op, float(number), percent, unless_p)


class Gates:
    """The gates of one comparison."""

    def __init__(self, case: Case, judge: Judge, judgment: Judgment) -> None:
        self.case, self.judge, self.judgment = case, judge, judgment
        self.measured = Measured(case, judge.matching)
        self.gates = {text: parse(text) for text in case.options.gates}

    def is_wrong_use(self) -> bool:
        """'With only `--kebab-run-b` … a `delta` gate is wrong use'."""
        return self.case.options.alone and any(gate.needs_comparison for gate in self.gates.values())

    def outcomes(self) -> dict[str, Outcomes]:
        """What the item of each gate may be."""
        return {text: self.outcome(gate) for text, gate in self.gates.items()}

    def outcome(self, gate: Gate) -> Outcomes:
        if gate.needs_comparison and not self.case.is_comparison:
            return SKIPPED
        key, _, value = (gate.slice or "").partition("=")
        if value != "*":
            return failing_if_nothing_could(self._outcome_in_slice(gate) or FAILED)
        values = {entry[key] for entry in self.case.golden if key in entry}
        parts = [replace(gate, slice=f"{key}={value}") for value in values]
        found = [self._outcome_in_slice(part) or FAILED for part in parts]
        return every_outcome(found)

    def _outcome_in_slice(self, gate: Gate) -> Outcomes | None:
        """None where nothing was measured, which fails a gate."""
        if gate.metric in COMPARISON_METRICS:
            return self._comparison_outcome(gate)
        if self.case.has_replicates:
            return EITHER
        if not gate.delta:
            value = self.measured.aggregates(gate.slice)["b"].get(gate.metric, OPEN)
            number = gate.number / 100**gate.percent
            if value is not None and value != OPEN and holds_always(gate.op, number, 0, 1):
                return UNFAILABLE
            return None if value is None else held(value, gate.op, number)
        values = self.measured.compared(gate.slice)
        a, b = (values[side].get(gate.metric, OPEN) for side in ("a", "b"))
        if OPEN not in {a, b} and None in {a, b}:
            return None
        outcome = delta_outcome(gate, a, b)
        if outcome in (UNFAILABLE, EITHER):
            return outcome
        in_both = self.measured.in_both(gate.metric, gate.slice) if outcome == PASSED else None
        if in_both is not None and delta_outcome(gate, *in_both) != PASSED:
            if OPEN in in_both:
                return EITHER
            a, b = in_both
            outcome = FAILED
        before, after = float(a or 0), float(b or 0)
        is_worse = got_worse(gate, before, after)
        limit = gate.number / 100 * before if gate.percent else gate.number
        if is_worse and holds_always(gate.op, limit, -before, 1 - before):
            return FAILED
        return self._unless(gate, outcome, before, is_worse=is_worse)

    def _unless(self, gate: Gate, outcome: Outcomes, a: float, *, is_worse: bool) -> Outcomes:
        """'… fails … where so few queries were compared that no result could fail it'."""
        changes = self.measured.changes(gate.slice).get(gate.metric)
        if gate.unless_p is None:
            return outcome
        if changes is None or outcome == EITHER:
            return EITHER
        n, up, down = changes
        is_yes_no = YES_NO.fullmatch(gate.metric) or not self.measured.has_graded_mrr(gate.slice)
        if round((1 if is_yes_no else 2) * 0.5**n, 4) > gate.unless_p:
            return FAILED
        if not is_yes_no:  # whose p is by the sizes of its changes
            return outcome if outcome == PASSED and not is_worse else EITHER
        can = round(n * a) if ">" in gate.op else n - round(n * a)
        if is_worse and round(0.5**can, 4) > gate.unless_p:
            return FAILED
        return PASSED if outcome == PASSED or mid_p(up, down) > gate.unless_p else FAILED

    def _comparison_outcome(self, gate: Gate) -> Outcomes | None:
        """Counts of the comparison; where nothing was compared, there is nothing to count."""
        ids = {entry["id"] for entry in self.case.golden if in_slice(entry, gate.slice)}
        if not ids & self._compared():
            return EITHER if gate.metric in {"new", "removed"} else None
        whole = (
            [math.inf]
            if gate.metric in {"new", "removed"}
            else [len(ids & found) for found in self._wholes()]
        )
        always = {holds_always(gate.op, gate.number, 0, most) for most in whole}
        counts = self._counts(gate)
        if gate.percent or len(always) > 1:
            return EITHER
        if always == {True}:
            return UNFAILABLE
        if counts is None:
            return EITHER
        return frozenset().union(*(held(float(count), gate.op, gate.number) for count in counts))

    def _counts(self, gate: Gate) -> set[int] | None:
        entries = [entry for entry in self.case.golden if in_slice(entry, gate.slice)]
        if gate.metric == "removed":
            return {len(self.removed_ids())}
        if gate.metric == "new":
            return {len(self.new_ids() & {entry["id"] for entry in entries})}
        if self.case.has_replicates:
            return None
        verdicts = [self.judgment.verdicts[entry["id"]] for entry in entries]
        if gate.metric == "partial_losses":
            return {sum("coverage" in verdict.checks for verdict in verdicts)}
        if gate.metric != "failed":
            return {sum(verdict.kind == KINDS[gate.metric] for verdict in verdicts)}
        return self._failed_counts({entry["id"] for entry in entries})

    def _wholes(self) -> list[set[str]]:
        """What may count as compared: whether one absent from B does is open."""
        return [self._compared(), self._compared() & ids_of_b(self.case)]

    def _compared(self) -> set[str]:
        """The queries that count as compared: a new one is 'never counted as compared'."""
        return set(self.judgment.compared) & ids_of_a(self.case)

    def new_ids(self) -> set[str]:
        """'no result in A'; golden queries of B."""
        return (ids_of_b(self.case) - ids_of_a(self.case)) & {entry["id"] for entry in self.case.golden}

    def removed_ids(self) -> set[str]:
        """'results of A whose query is not in the golden file'."""
        return ids_of_a(self.case) - {entry["id"] for entry in self.case.golden}

    def counts(self) -> dict[str, frozenset[int]]:
        """The numbers of the comparison in report.json; whether one absent from B is compared is open."""
        if not self.case.is_comparison:
            return {}
        golden = self._compared()
        numbers = {"queries": {len(golden), len(golden & ids_of_b(self.case))}}
        numbers |= {"new": {len(self.new_ids())}, "removed": {len(self.removed_ids())}}
        return {name: frozenset(found) for name, found in numbers.items()}

    def _failed_counts(self, ids: set[str]) -> set[int] | None:
        """Queries that 'fail a check (some only if chosen), or are absent from B'."""
        ignored = frozenset({"attribution", "miss", "coverage"}) - self.case.options.checks
        count = 0
        for sides in self.judge.sides:
            verdict = self.judgment.verdicts[sides.entry["id"]]
            if sides.entry["id"] not in ids:
                continue
            if "xfail" in sides.entry or verdict.open_checks - ignored or "loss" in self.case.options.checks:
                return None
            if "coverage" in ignored & verdict.checks:
                return None
            count += bool(verdict.checks - ignored) or (sides.a is not None and sides.b is None)
        return {count}


def every_outcome(found: list[Outcomes]) -> Outcomes:
    """'every value of the slice': one that fails is enough, and none is measured where there is no value."""
    found = [one for one in found if one != UNFAILABLE]
    if not found or FAILED in found:
        return FAILED
    return PASSED if all(outcomes == PASSED for outcomes in found) else EITHER


def mid_p(up: int, down: int) -> float:
    """McNemar's test, mid-p, as it is shown."""
    m, k = up + down, min(up, down)
    ways = [math.comb(m, rarer) for rarer in range(k + 1)]
    return round((2 * sum(ways) - ways[-1]) * 0.5**m, 4)


def held(value: Value, op: str, number: float) -> Outcomes:
    """'A gate on a metric that is `null` fails'."""
    if value == OPEN:
        return EITHER
    if value is None:
        return FAILED
    return PASSED if OPERATORS[op](float(value), number) else FAILED


def holds_always(op: str, number: float, least: float, most: float) -> bool:
    """'A gate that no outcome could fail says so and fails'."""
    return all(OPERATORS[op](round(end, 4), number) for end in (least, most))


def failing_if_nothing_could(outcome: Outcomes) -> Outcomes:
    """A gate on its own."""
    return FAILED if outcome == UNFAILABLE else outcome


def got_worse(gate: Gate, a: float, b: float) -> bool:
    """Whether the change is in the direction that the gate is against."""
    return round(b - a, 4) < 0 if ">" in gate.op else round(b - a, 4) > 0


def delta_outcome(gate: Gate, a: Value, b: Value) -> Outcomes:
    """B − A of the rounded values, rounded; '`%` on a delta is relative to A'."""
    if OPEN in {a, b}:
        return EITHER
    if a is None or b is None:
        return FAILED
    delta = round(float(b) - float(a), 4)
    if not gate.percent:
        return UNFAILABLE if holds_always(gate.op, gate.number, -1, 1) else held(delta, gate.op, gate.number)
    return EITHER if a == 0 else held(delta, gate.op, gate.number / 100 * float(a))


def judge_with_gates(case: Case) -> Judgment:
    """The judgment of the queries, of the gates and of the metrics of both runs."""
    judge = Judge(case)
    judgment = judge.judge()
    gates = Gates(case, judge, judgment)
    if judgment.usage_error or gates.is_wrong_use():
        return Judgment({}, usage_error=True)
    snapshot = {SNAPSHOT: FAILED} if has_snapshot_item(case) else {}
    items = {f"gate[{text}]": outcomes for text, outcomes in gates.outcomes().items()} | snapshot
    measured = gates.measured
    return replace(
        judgment,
        other_items=items,
        aggregates=measured.aggregates(),
        slices={name: measured.aggregates(name) for name in sorted(slice_names(case))},
        deltas=measured.deltas(),
        changes=measured.changes(),
        counts=gates.counts(),
        tolerance=ROUNDING if case.has_replicates else 0.0,
    )


def has_snapshot_item(case: Case) -> bool:
    """A snapshot is of a comparison; where there is none yet, only `require` asks for one."""
    return case.options.snapshot == "require" and case.is_comparison


def slice_names(case: Case) -> set[str]:
    """The slices of the golden set."""
    teams = {f"metadata.team={entry['metadata']['team']}" for entry in case.golden if "metadata" in entry}
    return teams | {f"difficulty={entry['difficulty']}" for entry in case.golden if "difficulty" in entry}
