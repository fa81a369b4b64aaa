"""The charts of `report.html`: what is drawn, and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_kebab_eval.history import HistoryPoint
from tests.builders import result
from tests.unit.reports.html.pages import FINDS_C1, regression, rendered

# -- the charts ----------------------------------------------------------------------------------


def test_a_lower_error_rate_is_better_and_a_lower_mrr_is_worse(tmp_path: Path) -> None:
    queries = [FINDS_C1, FINDS_C1 | {"id": "q2"}]
    page = rendered(
        tmp_path,
        queries,
        a={"q1": result("c1"), "q2": result(error="boom")},  # error_rate 0.5, mrr 0.5
        b={"q1": result("c9"), "q2": result("c9")},  # error_rate 0, mrr 0
    )
    found = re.findall(r'<tr class="(\w+)">\s*<th scope="row"[^>]*>([^\s<]+)', page.section("metrics"))
    rows = {name: mood for mood, name in found}
    assert rows["error_rate"] == "better"
    assert rows["mrr"] == "worse"


def test_a_delta_stands_at_its_place_between_the_ends_of_the_scale(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 5)]
    page = rendered(
        tmp_path,
        queries,
        a={f"q{n}": result("c1") for n in range(1, 5)},
        b={"q1": result("c9"), "q2": result("x", "c1"), "q3": result("c1"), "q4": result("c1")},
    )
    row = page.section("metrics").split(">hit@1<")[1].split("</tr>")[0]
    # hit@1 went from 1 to 0.5. The widest interval is Student's, of mrr: -0.375 - 3.182 · 0.479 / 2 < -1, so
    # the scale is the largest there is, ±1, and -0.5 is at 50 - 48 · 0.5 = 26 % of the width.
    assert "-0.5000" in row
    assert 'cx="26.00%"' in row


def test_each_move_between_ranks_is_one_line_and_the_lost_ones_are_drawn_on_top(tmp_path: Path) -> None:
    queries = [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 6)]
    page = rendered(
        tmp_path,
        queries,
        a={"q1": result("c1"), "q2": result("c1"), "q3": result("c1"), "q4": result("x"), "q5": result("c1")},
        b={
            "q1": result("x"),
            "q2": result("x"),
            "q3": result("x", "c1"),
            "q4": result("c1"),
            "q5": result("c1"),
        },
    )
    flows = re.findall(r'class="flow (\w+)".*?<title>(.*?)</title>', page.section("ranks"))
    assert flows == [
        ("same", "1 → 1: 1 query"),
        ("better", "miss → 1: 1 query"),
        ("worse", "1 → 2: 1 query"),
        ("lost", "1 → miss: 2 queries"),
    ]


def test_a_query_with_nothing_to_find_is_no_miss_in_the_picture(tmp_path: Path) -> None:
    queries = [FINDS_C1, {"id": "q2", "query": "parking?", "expected_doc_ids": []}]
    both = {"q1": result("c1"), "q2": result("c1")}
    page = rendered(tmp_path, queries, a=both, b=both)
    assert re.findall(r"<title>(.*?)</title>", page.section("ranks")) == ["1 → 1: 1 query"]
    assert "Not here: 1 query with nothing to find" in page.section("ranks")


def test_a_slice_has_a_mark_for_each_run(tmp_path: Path) -> None:
    page = rendered(
        tmp_path, [FINDS_C1 | {"difficulty": "hard"}], a={"q1": result("c1")}, b={"q1": result("c9")}
    )
    hit_at_5 = page.section("slices").split("</table>")[0]
    assert ">hard</span>" in hit_at_5
    assert 'aria-label="A 1.0000, B 0.0000"' in hit_at_5
    assert "▼&nbsp;-1.00" in hit_at_5


def test_the_percentiles_of_both_runs_are_beside_the_histogram(tmp_path: Path) -> None:
    page = rendered(
        tmp_path, [FINDS_C1], a={"q1": result("c1", elapsed_ms=20)}, b={"q1": result("c1", elapsed_ms=2500)}
    )
    latency = page.section("latency")
    assert "p95 20 ms" in latency
    assert "p95 2.5 s" in latency
    assert "logarithmic" in latency  # 2500 is more than ten times 20


@pytest.mark.parametrize("times", [(0, 0), (0, 5), (0.2, 0.2), (1, 1e12)])
def test_any_time_can_be_drawn(tmp_path: Path, times: tuple[float, float]) -> None:
    a, b = ({"q1": result("c1", elapsed_ms=time)} for time in times)
    assert "nan" not in rendered(tmp_path, [FINDS_C1], a=a, b=b).text


def test_the_trend_marks_a_and_b_among_the_runs(tmp_path: Path) -> None:
    values = {"old": 0.5, "a": 1.0, "b": 0.0}
    history = tuple(
        HistoryPoint(run, "2026-01-01T00:00:00Z", {"mrr": value}) for run, value in values.items()
    )
    trend = regression(tmp_path, history=history).section("trend")
    assert re.findall(r'class="[ab]">([AB])</text>', trend) == ["A", "B"]
    assert "old (2026-01-01): 0.5000" in trend


def test_a_history_of_one_run_is_no_trend(tmp_path: Path) -> None:
    page = regression(tmp_path, history=(HistoryPoint("a", "2026-01-01T00:00:00Z", {"mrr": 0.5}),))
    assert '<section id="trend"' not in page.text
