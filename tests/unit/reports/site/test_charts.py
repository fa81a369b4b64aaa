"""Charts of a site: a metric over the runs, a query's rank over the runs."""

from __future__ import annotations

from pytest_kebab_eval.limits import RUNS_DRAWN
from pytest_kebab_eval.reports.site.pages import strip, trends
from tests.unit.reports.conftest import suite


def test_a_metric_is_drawn_from_the_first_run_to_the_last_on_its_own_scale() -> None:
    (chart,) = trends(suite({}, values=[{"mrr": 0.5}, {"mrr": 1.0}, {"mrr": 0.75}])).charts
    # from 1 % to 99 % of the width; the most, 1.0, is at the top (8), the least, 0.5, 60 below it
    assert [(point.x, point.y) for point in chart.points] == [(1, 68), (50, 8), (99, 38)]
    assert chart.line == "M1.0 68.0L50.0 8.0L99.0 38.0"


def test_of_metrics_that_say_the_same_one_is_drawn_and_the_others_are_folded() -> None:
    names = ("hit@5", "hit@10", "hit@k", "map", "map@10", "mine")
    made = trends(suite({}, values=[dict.fromkeys(names, value) for value in (0.5, 1.0)]))
    assert [chart.name for chart in made.charts] == ["hit@5"]
    assert sorted(chart.name for chart in made.more) == sorted(set(names) - {"hit@5"})


def test_a_point_names_its_run_its_minute_and_its_commit() -> None:
    (chart,) = trends(suite({}, values=[{"mrr": 0.5}, {"mrr": 1.0}])).charts
    assert chart.points[1].words == "r2 · 2026-01-02 00:00 · 200000000000: 1.0000"


def test_the_worst_step_is_the_largest_drop() -> None:
    (chart,) = trends(suite({}, values=[{"mrr": value} for value in (0.5, 0.4, 0.75, 0.25)])).charts
    assert chart.worst is not None
    assert (chart.worst.run.run_id, chart.worst.change) == ("r4", -0.5)


def test_the_worst_step_of_an_error_rate_is_its_largest_rise() -> None:
    (chart,) = trends(suite({}, values=[{"error_rate": value} for value in (0.0, 0.5, 0.0)])).charts
    assert chart.worst is not None
    assert (chart.worst.run.run_id, chart.worst.change) == ("r2", 0.5)


def test_a_metric_that_only_rose_has_no_worst_step() -> None:
    (chart,) = trends(suite({}, values=[{"mrr": 0.5}, {"mrr": 1.0}])).charts
    assert chart.worst is None


def test_a_metric_that_never_changed_is_listed_and_not_drawn() -> None:
    made = trends(suite({}, values=[{"mrr": 0.5}, {"mrr": 0.5}]))
    assert (made.charts, made.unchanged) == ([], [("mrr", 0.5, 2)])


def test_every_metric_is_there_custom_ones_last() -> None:
    rows = [{"mine": 0.1, "mrr": 0.5, "hit@5": 1.0}, {"mine": 0.2, "mrr": 0.6, "hit@5": 0.9}]
    assert [chart.name for chart in trends(suite({}, values=rows)).charts] == ["hit@5", "mrr", "mine"]


def test_a_run_without_the_metric_leaves_a_gap_in_the_points() -> None:
    (chart,) = trends(suite({}, values=[{"mrr": 0.5}, {"hit@5": 1.0}, {"mrr": 1.0}]), ["mrr"]).charts
    assert [point.x for point in chart.points] == [1, 99]


def test_only_the_newest_runs_are_drawn() -> None:
    rows = [{"mrr": number / 1000} for number in range(RUNS_DRAWN + 5)]
    (chart,) = trends(suite({}, values=rows)).charts
    assert (len(chart.points), chart.points[0].value) == (RUNS_DRAWN, 0.005)


def test_a_strip_has_a_step_for_each_rank_and_misses_of_their_own() -> None:
    drawn = strip(suite({"q": [1, 1, None, 3]}), "q")
    # four runs, 25 wide each; rank 1 is 2 down, rank 3 is 4 down, a miss 14
    assert drawn.found == "M0.00 2H50.00M75.00 4H100.00"
    assert drawn.missed == "M50.00 14H75.00"
    assert drawn.words == "found in 3 of 4 runs"
