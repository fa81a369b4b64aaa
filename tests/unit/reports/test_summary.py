"""The table of metrics in the terminal's summary."""

from __future__ import annotations

from pathlib import Path

from pytest_kebab_eval.reports.as_text import summary
from tests.unit.reports.conftest import C1, HIT, MISS, compared


def test_the_summary_adds_the_metrics_that_changed_significantly(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(10)]
    report = compared(tmp_path, dict.fromkeys(ids, C1), dict.fromkeys(ids, HIT), dict.fromkeys(ids, MISS))
    (line,) = (line for line in summary(report) if line.text.startswith("ndcg@5 "))
    assert line.text.split(maxsplit=4)[1:] == [
        "1.0000",
        "0.0000",
        "-1.0000",
        "worse (p = 0.001)",
    ]  # 0.5 ** 10
    assert line.direction == -1


def test_a_change_in_the_summary_that_may_be_noise_is_not_red(tmp_path: Path) -> None:
    lines = list(summary(compared(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": MISS})))
    assert not any(line.text.startswith("ndcg@5 ") for line in lines)
    (line,) = (line for line in lines if line.text.startswith("mrr "))
    assert line.text.endswith("-1.0000  too few queries to tell (p = 0.5)")
    assert line.direction == 0


def test_the_summary_has_n_where_it_differs(tmp_path: Path) -> None:
    entries = {"q1": C1, "q2": C1}
    lines = list(summary(compared(tmp_path, entries, {"q1": HIT, "q2": HIT}, {"q1": HIT})))
    assert next(line for line in lines if line.text.startswith("mrr ")).text.endswith("  n 2→1")
    (tmp_path / "same").mkdir()
    same = list(summary(compared(tmp_path / "same", {"q1": C1}, {"q1": HIT}, {"q1": HIT})))
    assert not any("  n " in line.text for line in same)
