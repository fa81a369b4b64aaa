"""Two small runs, or several a side, and what became of their queries; how significant changes are."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import CompareReport, QueryComparison
from pytest_kebab_eval.comparing.checks import WORSE
from pytest_kebab_eval.comparing.decide import QueryRates
from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.gates import GateResult
from pytest_kebab_eval.comparing.significance import PairedTest, paired_test
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import DEFAULT_FAIL_ON, Settings
from tests.builders import Json, answer, hit, make_database, result, write_golden

Results = Mapping[str, Json]
C1: Json = {"expected_chunk_ids": ["c1"]}


def compared_all(
    directory: Path,
    entries: Mapping[str, Json],
    a: Results,
    b: Results,
    *,
    compare_k: int = 10,
    **database: Any,
) -> CompareReport:
    """Two runs: `{query id: golden fields}`, then `{query id: result}` for A and B."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a, b=b, **database)
    chosen = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden, compare_k=compare_k)
    return evaluate(chosen).report


def compared(tmp_path: Path, entry: Json, a: Json | None, b: Json | None, **more: Any) -> QueryComparison:
    """The comparison of q1; a side that is None has no result for it."""
    report = compared_all(tmp_path, {"q1": entry}, {"q1": a} if a else {}, {"q1": b} if b else {}, **more)
    (comparison,) = report.per_query
    return comparison


def gated(
    directory: Path,
    entries: Mapping[str, Json],
    a: Results | None,
    b: Results,
    *gates: str,
    **database: Any,
) -> CompareReport:
    """Two runs, or B alone, judged by these gates alone: whether a metric is worse is no matter."""
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    (directory / "kebab.sqlite").unlink(missing_ok=True)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b, **database)
    fail_on = frozenset(DEFAULT_FAIL_ON.split(",")) - {WORSE}
    chosen = Settings("a" if a else None, "b", db, db, golden, gates=gates, fail_on=fail_on)
    return evaluate(chosen, find_inputs(chosen)).report


def hits(found: int, of: int) -> dict[str, Json]:
    """So many queries, of which the first few find their chunk."""
    return {f"q{n:02}": result("c1" if n < found else "x") for n in range(of)}


def judged(directory: Path, a: Results | None, b: Results, gate: str, **more: Any) -> GateResult:
    """One gate on runs whose queries all expect c1."""
    (judged_gate,) = gated(directory, dict.fromkeys(b, C1), a, b, gate, **more).gates
    return judged_gate


def said(gate: GateResult) -> str:
    """What a gate says, without the queries that count against it."""
    return gate.reason.partition("; against it: ")[0]


def kind_of(comparison: QueryComparison) -> str | None:
    return comparison.kind.value if comparison.kind else None


def at(rank: int) -> Json:
    """A result with c1 at a rank, and something else before it."""
    hits = [hit("c1", rank)] if rank == 1 else [hit("x", 1), hit("c1", rank)]
    return result(*hits)


HIT, MISS, ERRORED = at(1), result("x"), result(error="timeout")
RULED: Json = {"must_contain": ["uv"]}
SHIPPED = result("c1", answer=answer("Use uv."))


FOUND, LOST = result("c1", "x"), result("x", "y")
STEADY = 40  # queries that are found in every run, so that few flip


class Sides:
    """Databases and golden files of runs that differ in few queries."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries: list[Json] = []

    def evaluate(
        self, a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]], **settings: Any
    ) -> Evaluation:
        """Compare runs a1, a2, … with b1, b2, …; each has, beside these, the steady queries."""
        steady = {f"s{number}": FOUND for number in range(STEADY)}
        runs: dict[str, Any] = {f"a{n}": {**steady, **run} for n, run in enumerate(a, 1)}
        runs |= {f"b{n}": {**steady, **run} for n, run in enumerate(b, 1)}
        database = make_database(self.path / "runs.sqlite", configs=settings.pop("configs", None), **runs)
        golden = [{"id": query, "query": "?", "expected_chunk_ids": ["c1"]} for query in steady]
        self.settings = Settings(
            run_a=",".join(name for name in runs if name[0] == "a"),
            run_b=",".join(name for name in runs if name[0] == "b"),
            db_a=database,
            db_b=database,
            golden=write_golden(self.path / "golden.yaml", [*golden, *self.entries]),
            **settings,
        )
        return evaluate(self.settings, today=datetime.date(2026, 1, 1))

    def evidence(self, evaluation: Evaluation) -> dict[str, QueryEvidence]:
        """What messages show of the queries that fail."""
        return failure_evidence(self.settings, find_inputs(self.settings), evaluation)

    def expect(self, *ids: str, **fields: Any) -> None:
        """More golden queries."""
        self.entries += [{"id": query, "query": "?", "expected_chunk_ids": ["c1"], **fields} for query in ids]


def runs(query: str, *results: Json) -> list[dict[str, Any]]:
    return [{query: stored} for stored in results]


def failing(evaluation: Evaluation) -> dict[str, str]:
    verdicts = evaluation.verdicts.items()
    return {query: verdict.reason for query, verdict in verdicts if verdict.outcome is Outcome.FAILED}


def rates_of(evaluation: Evaluation, query: str = "q1") -> list[QueryRates]:
    return [rates for rates in evaluation.report.rates or () if rates.query_id == query]


def comparison(evaluation: Evaluation, query: str = "q1") -> Any:
    return next(found for found in evaluation.report.per_query if found.query_id == query)


def yes_no(up: int, down: int, n: int) -> PairedTest:
    return paired_test([1.0] * up + [-1.0] * down, n, yes_no=True)


def graded(*changes: float, n: int | None = None) -> PairedTest:
    return paired_test(changes, len(changes) if n is None else n, yes_no=False)


def ranks(m: int, *, negative: int) -> list[float]:
    """1, 2, …, m, every `negative`-th with a minus: here the sign flips are Wilcoxon's signed-rank test."""
    return [float(-i if i % negative == 0 else i) for i in range(1, m + 1)]


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    found = Sides(tmp_path)
    found.expect("q1")
    return found
