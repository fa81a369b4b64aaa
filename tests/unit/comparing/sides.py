"""Several runs a side that differ in few queries, and what became of them."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.rates import QueryRates
from pytest_kebab_eval.comparing.verdicts import Outcome
from pytest_kebab_eval.evaluate import Evaluation, evaluate, failure_evidence
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, make_database, result, write_golden

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
