"""Which test a metric's change is put to."""

from __future__ import annotations

from pathlib import Path

from pytest_kebab_eval import compare_runs
from tests.builders import make_database, result, write_golden


def test_values_that_are_all_yes_or_no_have_the_same_p_whatever_the_metric_is_called(tmp_path: Path) -> None:
    found = {f"q{n}": result("c1") for n in range(30)}
    lost = {f"q{n}": result("x" if n < 7 else "c1") for n in range(30)}
    entries = [{"id": name, "query": "?", "expected_chunk_ids": ["c1"]} for name in found]
    golden = write_golden(tmp_path / "golden.yaml", entries)
    db = make_database(tmp_path / "kebab.sqlite", a=found, b=lost)
    significance = compare_runs("a", "b", db=db, golden=golden).significance
    hit, precision, recall = (significance[name] for name in ("hit@1", "precision@1_chunk", "recall@5"))
    assert hit.p == precision.p == recall.p == 0.0078  # mid-p of seven changes, all one way: 2^-7
    assert (hit.low, hit.high) == (precision.low, precision.high)
