"""The pages of a site: the words by which its numbers are told apart."""

from __future__ import annotations

import re

from msgspec.structs import replace

from pytest_kebab_eval.reports.leaderboard import Board, BoardRow
from pytest_kebab_eval.reports.site.pages import render_board, render_overview, render_suite, render_trends
from pytest_kebab_eval.reports.site.suites import Suite
from tests.builders import golden
from tests.unit.reports.conftest import suite


def words(page: str) -> str:
    """What is shown of a page."""
    return " ".join(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL).split())


def with_newest(**changes: object) -> Suite:
    """Two runs; the comparison of the second has these values."""
    made = suite({"q": [1, 1]})
    first, newest = made.runs
    assert newest.comparison is not None
    changed = replace(newest, comparison=replace(newest.comparison, **changes))
    return Suite("suite", (first, changed), golden({"id": "q"}))


def row(run_id: str, metric: str, *failed: str) -> BoardRow:
    """A run with 1 where the baseline has 0.5."""
    return BoardRow(
        run_id=run_id,
        values={metric: 1.0},
        values_a={metric: 0.5},
        deltas={metric: 0.5},
        significance={},
        queries=1,
        has_gaps=False,
        wins=(),
        failed=failed,
        partial_losses=(),
    )


def test_a_comparison_that_cannot_be_relied_on_says_why_and_leads_to_its_report() -> None:
    said = {"headline": "This comparison cannot be relied on.", "problems": ("B <is> empty", "and more")}
    made = with_newest(**said)
    why = "Against r1 , the run before it: This comparison cannot be relied on. B &lt;is&gt; empty All in its"
    for page, link in (
        (render_suite(made), "runs/r2/report.html"),
        (render_overview([made]), "suites/suite/runs/r2/report.html"),
    ):
        assert why in words(page)
        assert f'<a href="{link}">All in its report</a>' in page


def test_an_xfail_that_is_no_longer_needed_is_named() -> None:
    page = words(render_suite(with_newest(unneeded=("q",))))
    assert page.count("Accepted (xfail), but no longer fails: q .") == 2  # at the top, and among the runs


def test_the_site_calls_groundedness_answer_rules() -> None:
    made = suite({}, values=[{"groundedness": 0.5}, {"groundedness": 1.0}])
    board = Board("r1", (row("r2", "groundedness"),))
    for page in (render_suite(made), render_trends(made), render_board(made, board)):
        assert "answer rules" in words(page)
        assert "groundedness" not in page


def test_a_leaderboard_has_words_for_the_baseline_and_for_what_passed() -> None:
    made = suite({"q": [1, 1, None]})
    page = render_board(made, Board("r1", (row("r2", "mrr"), row("r3", "mrr", "q"))))
    assert '<header class="page neutral">' in page
    shown = words(page)
    assert "By mrr, against r1 run verdict failed partial losses won mrr" in shown
    assert "r1 baseline 0.5000" in shown
    assert shown.endswith("query r2 r3 q ? passed failed")
