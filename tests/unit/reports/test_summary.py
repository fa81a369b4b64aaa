"""The table of metrics in the terminal's summary."""

from __future__ import annotations

from pathlib import Path

from pytest_kebab_eval.reports.as_text import summary
from tests.builders import result
from tests.unit.reports.conftest import C1, HIT, MISS, compared


def test_the_summary_adds_what_changed_significantly_each_thing_once(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(20)]
    second = result("x", "c1")
    report = compared(tmp_path, dict.fromkeys(ids, C1), dict.fromkeys(ids, HIT), dict.fromkeys(ids, second))
    lines = list(summary(report))
    (line,) = (line for line in lines if line.text.startswith("ndcg@"))  # one of five cutoffs
    assert line.text.split(maxsplit=4) == ["ndcg@10", "1.0000", "0.6309", "-0.3691", "worse (p <= 0.0001)"]
    assert line.direction == -1
    assert not any(line.text.startswith("map") for line in lines)  # changes as mrr does


def test_a_metric_that_falls_is_worse_only_if_it_is_given_how_many_are_listed(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(40)]
    b = {query_id: MISS if number < 5 else HIT for number, query_id in enumerate(ids)}
    report = compared(tmp_path, dict.fromkeys(ids, C1), dict.fromkeys(ids, HIT), b)
    assert report.significance["hit@5"].verdict == "worse"  # 0.5 ** 5 = 0.0312
    (line,) = (line for line in summary(report) if line.text.startswith("hit@5 "))
    assert "no evidence of change among " in line.text
    assert "tests (p = 0.0312)" in line.text
    assert line.direction == 0


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
