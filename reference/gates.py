"""What becomes of the gates (section 3.4), and the values of the comparison that they may ask for."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from .case import Case
from .checks import OPEN
from .matching import Matching
from .metrics import aggregate
from .model import FAILED, PASSED, SKIPPED, Judge, Judgment, Outcomes, Value, result_of
from .results import read_row

EITHER = PASSED | FAILED
SNAPSHOT = "snapshot[compare-report]"
COMPARISON_METRICS = frozenset({"regressions", "losses", "wins", "failed"})
KINDS = {"regressions": "regression", "losses": "loss", "wins": "win"}
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}
GATE = re.compile(
    r"(?P<delta>delta )?(?P<metric>\S+?)(?:\{(?P<slice>[^}]+)\})? (?P<op>>=|>|<=|<|==) (?P<number>\S+)"
)


@dataclass(frozen=True)
class Gate:
    """A parsed gate."""

    delta: bool
    metric: str
    slice: str | None
    op: str
    number: float
    percent: bool

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
    return Gate(bool(match["delta"]), match["metric"], match["slice"], match["op"], float(number), percent)


class Gates:
    """The gates of one comparison."""

    def __init__(self, case: Case, judge: Judge, judgment: Judgment) -> None:
        self.case, self.judge, self.judgment = case, judge, judgment
        self.gates = {text: parse(text) for text in case.options.gates}

    def is_wrong_use(self) -> bool:
        """'With only `--kebab-run-b` … a `delta` gate is wrong use'."""
        return self.case.options.alone and any(gate.needs_comparison for gate in self.gates.values())

    def outcomes(self) -> dict[str, Outcomes]:
        """What the item of each gate may be."""
        return {text: self._outcome(gate) for text, gate in self.gates.items()}

    def aggregates(self, slice_name: str | None = None) -> dict[str, dict[str, Value]]:
        """The metrics of each side, over all queries or over a slice; nothing where a row cannot be read."""
        sides = {"b": self.case.run_b}
        if self.case.is_comparison and self.case.run_a is not None:
            sides["a"] = self.case.run_a
        return {side: self._aggregate(run.run_id, slice_name) for side, run in sides.items()}

    def _aggregate(self, run_id: str, slice_name: str | None) -> dict[str, Value]:
        run = next(run for run in self.case.runs if run.run_id == run_id)
        everything = [read_row(text) for text in run.rows.values()]
        if not all(result.readable for result in everything):
            return {}
        found = [
            (entry, result_of(run, entry["id"])) for entry in self.case.golden if in_slice(entry, slice_name)
        ]
        rows = [(entry, result) for entry, result in found if result is not None]
        return aggregate(self.matching, rows, [result for _, result in rows] if slice_name else everything)

    @property
    def matching(self) -> Matching:
        """How both runs are matched."""
        return self.judge.matching

    def _outcome(self, gate: Gate) -> Outcomes:
        if gate.needs_comparison and not self.case.is_comparison:
            return SKIPPED
        if gate.metric in COMPARISON_METRICS:
            return self._comparison_outcome(gate)
        values = self.aggregates(gate.slice)
        b = values["b"].get(gate.metric, OPEN)
        if not gate.delta:
            return held(b, gate.op, gate.number / 100 if gate.percent else gate.number)
        return delta_outcome(gate, values["a"].get(gate.metric, OPEN), b)

    def _comparison_outcome(self, gate: Gate) -> Outcomes:
        """Counts of the comparison; where nothing was compared, there is nothing to count."""
        ids = {entry["id"] for entry in self.case.golden if in_slice(entry, gate.slice)}
        if not ids & self.judgment.compared:
            return FAILED
        counts = self._counts(gate)
        if counts is None or gate.percent:
            return EITHER
        return frozenset().union(*(held(float(count), gate.op, gate.number) for count in counts))

    def _counts(self, gate: Gate) -> set[int] | None:
        entries = [entry for entry in self.case.golden if in_slice(entry, gate.slice)]
        verdicts = [self.judgment.verdicts[entry["id"]] for entry in entries]
        if gate.metric != "failed":
            return {sum(verdict.kind == KINDS[gate.metric] for verdict in verdicts)}
        return self._failed_counts({entry["id"] for entry in entries})

    def _failed_counts(self, ids: set[str]) -> set[int] | None:
        """Queries that 'fail a check (`attribution` only if chosen), or are absent from B'."""
        ignored = frozenset({"attribution"}) - self.case.options.checks
        count = 0
        for sides in self.judge.sides:
            verdict = self.judgment.verdicts[sides.entry["id"]]
            if sides.entry["id"] not in ids:
                continue
            if "xfail" in sides.entry or verdict.open_checks - ignored or "loss" in self.case.options.checks:
                return None
            count += bool(verdict.checks - ignored) or (sides.a is not None and sides.b is None)
        return {count}


def in_slice(entry: dict[str, object], slice_name: str | None) -> bool:
    """Whether a query is of a slice such as `difficulty=hard`."""
    if slice_name is None:
        return True
    name, _, value = slice_name.partition("=")
    return entry.get(name) == value


def held(value: Value, op: str, number: float) -> Outcomes:
    """'A gate on a metric that is `null` fails'."""
    if value == OPEN:
        return EITHER
    if value is None:
        return FAILED
    return PASSED if OPERATORS[op](float(value), number) else FAILED


def delta_outcome(gate: Gate, a: Value, b: Value) -> Outcomes:
    """B − A of the rounded values, rounded; '`%` on a delta is relative to A'."""
    if OPEN in {a, b}:
        return EITHER
    if a is None or b is None:
        return FAILED
    delta = round(float(b) - float(a), 4)
    if not gate.percent:
        return held(delta, gate.op, gate.number)
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
    slices = {name: gates.aggregates(name) for name in sorted(slice_names(case))}
    return replace(judgment, other_items=items, aggregates=gates.aggregates(), slices=slices)


def has_snapshot_item(case: Case) -> bool:
    """A snapshot is of a comparison; where there is none yet, only `require` asks for one."""
    return case.options.snapshot == "require" and case.is_comparison


def slice_names(case: Case) -> set[str]:
    """The slices of the golden set."""
    return {f"difficulty={entry['difficulty']}" for entry in case.golden if "difficulty" in entry}
