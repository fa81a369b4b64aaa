"""The pages of `kebab-eval site` as their readers meet them: wide and narrow, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.reports.site.building import SiteBuilder
from pytest_kebab_eval.settings import Settings
from tests.browser.conftest import Open
from tests.builders import Json, make_database, result, write_golden

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u2028\u202eleft"
LONG = "a-name-without-any-space-" * 6
RUNS = 12
SUITE_PAGES = ("index.html", "trends.html")
PAGES = ("index.html", *(f"suites/suite/{name}" for name in SUITE_PAGES))
AT = [(width, scheme) for width in (390, 1280) for scheme in ("light", "dark")]

# Each query's rank in the runs r0, r1, …; 0 is a miss.
RANKS = {
    "calm": [1] * RUNS,
    "lost-in-r9": [2] * 9 + [0] * 3,
    "flips": [1, 0] * 6,
    HOSTILE: [1, 2, 3] * 4,
    LONG: [4] * 11 + [0],
}


def run_of(number: int) -> dict[str, Json]:
    def hits(rank: int) -> list[str]:
        return [f"c{at}" if at == rank else f"x{at}" for at in range(1, 6)]

    return {
        query_id: result(*(hit.replace("c", f"{n}-c") for hit in hits(ranks[number])))
        for n, (query_id, ranks) in enumerate(RANKS.items())
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of twelve runs with two failing queries."""
    directory = tmp_path_factory.mktemp("site")
    names = [*(f"r{number}" for number in range(RUNS - 2)), LONG, HOSTILE]
    runs: dict[str, Any] = {name: run_of(number) for number, name in enumerate(names)}
    database = make_database(directory / "runs.sqlite", **runs)
    golden = write_golden(
        directory / "golden.yaml",
        [
            {"id": query_id, "query": query_id, "expected_chunk_ids": [f"{n}-c{at}" for at in range(1, 6)]}
            for n, query_id in enumerate(RANKS)
        ],
    )
    settings = Settings(None, "latest", database, database, golden)
    built = SiteBuilder(directory / "site", settings).build()
    assert built.errors == []
    return directory / "site"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "scheme"), AT)
def test_a_page_opens_without_complaint_and_fits_the_window(
    site: Path, open_file: Open, page: str, width: int, scheme: str
) -> None:
    opened = open_file(site / page, width=width, scheme=scheme)
    assert opened.complaints == []
    assert opened.requests == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width
    outside = opened.page.evaluate(
        """width => [...document.querySelectorAll("body *")]
            .filter((node) => !node.closest(".scroll, svg"))
            .filter((node) => node.getBoundingClientRect().right > width + 1)
            .map((node) => node.outerHTML.slice(0, 80))""",
        width,
    )
    assert outside == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_failing_queries_are_seen_without_scrolling(site: Path, open_file: Open, width: int) -> None:
    page = open_file(site / PAGES[1], width=width).page
    box = page.locator("#failing tbody tr >> nth=1 >> a >> nth=0").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900
    assert box["x"] + box["width"] < width


def test_a_failing_query_leads_to_what_failed_in_the_report_of_its_first_bad_run(
    site: Path, open_file: Open
) -> None:
    opened = open_file(site / PAGES[1])
    page = opened.page
    group = page.locator("#failing tbody", has_text="lost-in-r9")
    assert group.locator("a").all_inner_texts() == ["r9", "lost-in-r9", "r8"]
    group.get_by_role("link", name="lost-in-r9").click()
    page.locator(".q[open] .body").wait_for()
    assert page.locator("header .run .id").all_inner_texts() == ["r8", "r9"]
    assert page.locator(".q[open] .name").all_inner_texts() == ["lost-in-r9"]
    assert opened.complaints == []


def test_a_failing_query_is_linked_to_whatever_is_in_its_id(site: Path, open_file: Open) -> None:
    page = open_file(site / PAGES[1]).page
    page.locator("#failing th.query a", has_text=LONG[:60]).click()
    page.locator(".q[open] .body").wait_for()
    assert page.locator(".q[open] .name").all_inner_texts() == [LONG]


def test_the_way_from_all_suites_to_a_suite_to_its_metrics_and_back(site: Path, open_file: Open) -> None:
    page = open_file(site / PAGES[0]).page
    page.get_by_role("link", name="suite").click()
    page.get_by_role("link", name="All metrics", exact=True).click()
    assert page.locator("h1").inner_text() == "All metrics"
    assert page.locator("figure").count() > 20
    page.get_by_role("link", name="All runs").click()
    assert page.locator("h1").inner_text() == "All runs"


def test_a_point_of_a_trend_says_what_it_is_and_leads_to_its_report(site: Path, open_file: Open) -> None:
    page = open_file(site / PAGES[1]).page
    point = page.locator("#trends figure >> nth=0 >> a >> nth=1")
    assert point.locator("title").text_content() == "r1 · 2026-01-02 00:00: 0.8000"
    point.locator("circle").click()
    page.locator("header .run").first.wait_for()
    assert page.locator("header .run .id").all_inner_texts() == ["r0", "r1"]


def test_the_query_that_flips_is_the_one_that_changed_most_often(site: Path, open_file: Open) -> None:
    page = open_file(site / PAGES[1]).page
    rows = page.locator("#changed tbody tr")
    assert rows.first.locator("code").inner_text() == "flips"
    # lost in r1, r3, …, r11: six times; found again in r2, r4, …, r10: five times
    assert rows.first.locator("td.num").all_inner_texts() == ["11", "6", "5", "0", "0", "0"]


def test_a_phone_shows_all_that_changed_in_a_first_bad_run(site: Path, open_file: Open) -> None:
    group = open_file(site / PAGES[1], width=390).page.locator("#failing .group div").first.bounding_box()
    assert group is not None
    assert group["x"] + group["width"] <= 390


def test_hostile_text_is_shown_and_does_nothing(site: Path, open_file: Open) -> None:
    for page in PAGES[:2]:
        opened = open_file(site / page)
        assert "<script>alert(1)</script>" in opened.page.locator("main").inner_text()
        assert opened.page.locator("img, script").count() == 0
        assert opened.complaints == []


def test_every_link_and_every_picture_has_a_name(site: Path, open_file: Open) -> None:
    for page in PAGES:
        nameless = open_file(site / page).page.evaluate(
            """() => [...document.querySelectorAll("a, svg[role=img]")]
                .filter((node) => !(node.ariaLabel ?? node.textContent).trim())
                .map((node) => node.outerHTML.slice(0, 80))"""
        )
        assert nameless == []
