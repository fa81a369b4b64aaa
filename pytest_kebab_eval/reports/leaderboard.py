"""Many runs against one baseline: each compared as by `compare`, and what is significant among so many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pytest_kebab_eval.comparing.significance import (
    IMPROVED,
    NO_EVIDENCE,
    WORSE,
    Significance,
    corrected,
    sure_of_many,
)
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.golden import GoldenSet
from pytest_kebab_eval.inputs import Inputs, find_inputs
from pytest_kebab_eval.metrics import all_metrics
from pytest_kebab_eval.model import ComparisonKind, Value
from pytest_kebab_eval.reports.wording import failed_queries
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.text import brief
from pytest_kebab_eval.text.progress import Advancing, Progress

# What a leaderboard is sorted by, the first that is measured; the others are columns.
MAIN_METRICS = ("mrr", "hit@1", "hit@5", "ndcg@10", "groundedness")


class BoardRow(Value, frozen=True, kw_only=True):
    """A run against A; the numbers are those of `compare`."""

    run_id: str
    values: dict[str, float | None]
    values_a: dict[str, float | None]  # of A, matched as with this run
    deltas: dict[str, float | None]  # over the queries that both have
    significance: dict[str, Significance]  # of each comparison by itself
    queries: int  # that both have
    has_gaps: bool  # whether one has queries that the other lacks
    wins: tuple[str, ...]
    failed: tuple[str, ...]  # without those whose loss is accepted
    partial_losses: tuple[str, ...]  # also of queries that failed
    failed_gates: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()  # why the comparison is not to be relied on
    warnings: tuple[str, ...] = ()


class Board(NamedTuple):
    """The runs, each against A."""

    run_a: str
    rows: tuple[BoardRow, ...]

    @property
    def values_a(self) -> dict[str, float | None]:
        """Those of A, matched as with the first run."""
        return self.rows[0].values_a if self.rows else {}

    def metrics(self) -> list[str]:
        """The metrics that any run has a value for."""
        found = (name for row in self.rows for name, value in row.values.items() if value is not None)
        return [*dict.fromkeys(found)]

    def main_metric(self) -> str:
        measured = self.metrics()
        return next((name for name in MAIN_METRICS if name in measured), MAIN_METRICS[0])

    def sorted_by(self, metric: str) -> list[BoardRow]:
        """The best first, by how far each is from A: runs need not have the same queries."""
        lower = {known.name for known in all_metrics() if known.lower_is_better}
        sign = 1 if metric in lower else -1

        def key(row: BoardRow) -> tuple[bool, float, str]:
            delta = row.deltas.get(metric)
            return delta is None, sign * (delta or 0.0), row.run_id

        return sorted(self.rows, key=key)

    def corrected(self, metric: str) -> dict[str, float]:
        """The p of a metric in each run, by Holm's procedure over the runs."""
        return corrected(self._p_values(metric))

    def verdict(self, row: BoardRow, metric: str) -> str:
        """What can be said of a run, given how many there are."""
        test = row.significance.get(metric)
        if row.problems:
            return "not to be relied on"
        if test is None or test.verdict not in {IMPROVED, WORSE}:
            return test.verdict if test else "–"
        return test.verdict if row.run_id in sure_of_many(self._p_values(metric)) else NO_EVIDENCE

    def _p_values(self, metric: str) -> dict[str, float]:
        tests = {row.run_id: row.significance.get(metric) for row in self.rows}
        return {run_id: test.p for run_id, test in tests.items() if test is not None and test.p is not None}


def find_board(settings: Settings, names: Sequence[str], golden: GoldenSet) -> list[Inputs]:
    """The runs of those names, each with A, once; all that is wrong with them is found before any work."""
    found: dict[str, Inputs] = {}
    for name in names:
        try:
            inputs = find_inputs(settings._replace(run_b=name), golden=golden)
        except InputError as error:
            raise type(error)(f"{brief(name, 60)}: {error}") from None
        found.setdefault(inputs.name_b, inputs)
    baselines = sorted({inputs.name_a or "" for inputs in found.values()})
    if len(baselines) > 1:
        found_as = f"'{brief(settings.run_a or '')}' is not one run ({brief(', '.join(baselines), 200)})"
        raise InputError(f"{found_as}, since the runs are of several suites; name A by its id")
    return [*found.values()]


def make_board(settings: Settings, pairs: Sequence[Inputs]) -> Board:
    """Compare each run with A."""
    compare = BoardComparison(settings)
    with Progress("comparing", len(pairs)) as progress:
        rows = tuple(compare.row(inputs) for inputs in Advancing(pairs, progress))
    return Board(pairs[0].name_a or "", rows)


class BoardComparison:
    """Compares runs with A."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def row(self, inputs: Inputs) -> BoardRow:
        """A run against A."""
        report = evaluate(self._settings, inputs).report
        deltas, a = report.deltas, report.aggregate_a
        if deltas is None or a is None:
            raise InputError("there is no run A to compare with")
        unreadable = [
            f"the result of query '{brief(broken.query_id, 60)}' in {broken.side.upper()} cannot be read"
            for broken in report.unreadable[:1]
        ]
        return BoardRow(
            run_id=inputs.name_b,
            values=report.aggregate_b.values,
            values_a=a.values,
            deltas=deltas.values,
            significance={
                name: test for name, test in report.significance.items() if name not in report.not_comparable
            },
            queries=deltas.paired.queries,
            has_gaps=deltas.paired.unpaired is not None,
            wins=tuple(q.query_id for q in report.per_query if q.kind is ComparisonKind.WIN),
            failed=tuple(query.query_id for query in failed_queries(report)),
            partial_losses=tuple(query.query_id for query in report.per_query if query.is_partial_loss),
            failed_gates=tuple(gate.gate for gate in report.gates if not gate.passed),
            problems=(*report.problems, *unreadable),
            warnings=report.warnings,
        )
