"""The pages of a site: the words by which its numbers are told apart."""

from __future__ import annotations

import re

from msgspec.structs import replace

from pytest_kebab_eval.reports.site.pages import render_overview, render_suite, render_trends
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
    for page in (render_suite(made), render_trends(made)):
        assert "answer rules" in words(page)
        assert "groundedness" not in page
