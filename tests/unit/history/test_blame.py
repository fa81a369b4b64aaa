"""Which comparisons a first bad run can be looked for in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from pytest_kebab_eval import InputError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.history.blame import losses_between
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.first_bad import find_first_bad
from pytest_kebab_eval.settings import Settings
from tests.builders import make_database, result, write_golden


def test_of_several_runs_a_side_none_is_the_first_bad_one(tmp_path: Path) -> None:
    found, lost = {"q1": result("c1")}, {"q1": result("x")}
    db = make_database(tmp_path / "kebab.sqlite", A=found, X=lost, B=lost)
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    settings = Settings(run_a="A", run_b="B", db_a=db, db_b=db, golden=golden)
    inputs = find_inputs(settings)
    report = evaluate(settings, inputs).report
    assert [watch.query_id for watch in losses_between(inputs, report)] == ["q1"]
    assert find_first_bad(settings, inputs, report) is not None
    several = msgspec.structs.replace(report, run_a="A,A2")
    assert find_first_bad(settings, inputs, several) is None
    with pytest.raises(InputError, match="name one run for A and one for B"):
        losses_between(inputs, several)
