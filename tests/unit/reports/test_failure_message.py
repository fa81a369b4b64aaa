"""The message of a failing query: what took the place of what was lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reading import read_evidence
from pytest_kebab_eval.reports.as_text import explain
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, make_database, result, write_golden

ENTRY: Json = {"id": "q1", "query": "?", "expected_chunk_ids": ["c1", "c2"], "must_contain": ["yes"]}


def message(directory: Path, b: Json) -> str:
    a = result("c1", "c2", answer=answer("yes"))
    db = make_database(directory / "kebab.sqlite", a={"q1": a}, b={"q1": b})
    settings = Settings("a", "b", db, db, write_golden(directory / "golden.yaml", [ENTRY]))
    inputs = find_inputs(settings)
    evaluation = evaluate(settings, inputs)
    ((query, evidence),) = read_evidence(settings, inputs, inputs.golden.queries)
    comparison = evaluation.report.per_query[0]
    shown = evidence.for_message(query, comparison)
    return explain(query, evaluation.verdicts[query.id], comparison, shown, "golden.yaml:1")


def instead(text: str) -> list[str]:
    return [
        line.split()[1].removesuffix(".md") for line in text.splitlines() if line.startswith("  instead ")
    ]


@pytest.mark.parametrize(
    ("hits", "named"),
    [
        (["x", "y"], ["x"]),
        (["c1", "x"], ["x"]),  # c2 was lost; c1 is still where it was
        (["c2", "x", "y"], ["x"]),
        (["c1"], []),
    ],
)
def test_what_took_the_place_of_an_expected_chunk_is_never_an_expected_one(
    tmp_path: Path, hits: list[str], named: list[str]
) -> None:
    assert instead(message(tmp_path, result(*hits, answer=answer("no")))) == named
