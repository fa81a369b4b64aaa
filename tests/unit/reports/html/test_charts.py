"""The charts of `report.html`: what is drawn, and where."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_kebab_eval.history import HistoryPoint
from tests.builders import answer, result
from tests.unit.reports.conftest import FINDS_C1, Page, regression, rendered

# -- the charts ----------------------------------------------------------------------------------


def test_a_lower_error_rate_is_better_and_a_lower_mrr_is_worse(tmp_path: Path) -> None:
    ids = [f"q{n:02}" for n in range(20)]
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": query_id} for query_id in ids],
        # error_rate and mrr are 0.5 in A and 0 in B; ten changes one way have p = 0.001
        a=dict.fromkeys(ids[:10], result("c1")) | dict.fromkeys(ids[10:], result(error="boom")),
        b=dict.fromkeys(ids, result("c9")),
    )
    assert effects(page)["error_rate"] == "better sure"
    assert effects(page)["mrr"] == "worse sure"
    assert '<span class="word">worse</span>' in metric(page, "mrr")


def effects(page: Page) -> dict[str, str]:
    """The effect of each metric's change, as it is coloured."""
    rows = re.findall(r'<tr class="([\w ]+)">\s*<th scope="row"[^>]*>([^\s<]+)', page.section("metrics"))
    return {name: effect for effect, name in reversed(rows)}  # of those that are drawn, as drawn


def metric(page: Page, name: str) -> str:
    """The row of a metric that is drawn."""
    return page.section("metrics").split(f">{name}<")[1].split("</tr>")[0]


def test_a_change_that_may_be_noise_is_not_coloured_and_not_called_worse(tmp_path: Path) -> None:
    page = regression(tmp_path)
    assert set(effects(page).values()) == {"same"}
    assert ">worse<" not in page.section("metrics")
    assert "▼</span> -1.0000" in metric(page, "mrr")


def test_the_delta_that_is_drawn_is_over_the_queries_in_both_runs(tmp_path: Path) -> None:
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": f"q{n}"} for n in range(1, 5)],
        a={"q1": result("c1"), "q2": result("c1"), "q3": result("x"), "q4": result("x")},
        b={"q1": result("c1"), "q2": result("x"), "q3": result("x")},
    )
    row = metric(page, "hit@1")
    # 2 of 4 in A and 1 of 3 in B; of the three in both, 0.6667 in A and 0.3333 in B
    assert '0.5000</td>\n<td class="num vb">0.3333</td>' in row
    assert "▼</span> -0.3334</td>" in row
    assert ">Δ all</th>" in page.section("metrics")
    assert ">-0.1667</td>" in page.section("metrics")


def test_where_both_runs_have_the_same_queries_there_is_no_other_delta(tmp_path: Path) -> None:
    assert ">Δ all</th>" not in regression(tmp_path).section("metrics")


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


def test_what_changed_over_the_queries_that_both_answered_is_drawn_and_said(tmp_path: Path) -> None:
    # A answers ten queries, five of them right. B answers ten more, and these are right: 0.5 in both runs.
    ids = [f"q{n:02}" for n in range(20)]
    yes, no = result("c1", answer=answer("yes")), result("c1", answer=answer("no"))
    page = rendered(
        tmp_path,
        [FINDS_C1 | {"id": query_id, "must_contain": ["yes"]} for query_id in ids],
        a=dict.fromkeys(ids[:5], yes) | dict.fromkeys(ids[5:10], no) | dict.fromkeys(ids[10:], result("c1")),
        b=dict.fromkeys(ids[:10], no) | dict.fromkeys(ids[10:], yes),
    )
    row = metric(page, "answer rules")
    assert "-0.5000 over the 10 queries that both measured" in row
    (place,) = re.findall(r'cx="([\d.]+)%"', row)
    assert float(place) < 50  # where 0 is


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


@pytest.mark.parametrize(("runs", "shown"), [("a b newer", "0.2500"), ("a newer", "0.7500")])
def test_the_trend_shows_the_value_of_b_or_else_that_of_the_newest_run(
    tmp_path: Path, runs: str, shown: str
) -> None:
    values = {"a": 1.0, "b": 0.25, "newer": 0.75}
    history = tuple(HistoryPoint(run, "2026-01-01T00:00:00Z", {"mrr": values[run]}) for run in runs.split())
    trend = regression(tmp_path, history=history).section("trend")
    assert re.findall(r"<figcaption>mrr.*<b>(.*)</b>", trend) == [shown]


def test_a_history_of_one_run_is_no_trend(tmp_path: Path) -> None:
    page = regression(tmp_path, history=(HistoryPoint("a", "2026-01-01T00:00:00Z", {"mrr": 0.5}),))
    assert '<section id="trend"' not in page.text
