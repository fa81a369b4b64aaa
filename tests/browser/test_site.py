"""The page of `kebab-eval site` as its readers meet it: wide and narrow, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.golden import load_golden_set
from pytest_kebab_eval.reports.site import write_site
from tests.browser.conftest import Open
from tests.builders import make_database, result, write_golden

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'\u2028\u202eleft"
LONG = "a-name-without-any-space-" * 6


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of twelve runs, one of which has a report."""
    directory = tmp_path_factory.mktemp("site")
    names = [*(f"r{number}" for number in range(10)), LONG, HOSTILE]
    runs: dict[str, Any] = {
        name: {"q1": result(*["x"] * (number % 3), "c1")} for number, name in enumerate(names)
    }
    database = make_database(directory / "runs.sqlite", **runs)
    golden = write_golden(
        directory / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    (directory / "site" / "r1").mkdir(parents=True)
    (directory / "site" / "r1" / "report.html").write_text("<h1>the report of r1</h1>", "utf-8")
    write_site(directory / "site", database, load_golden_set(golden))
    return directory / "site" / "index.html"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_without_complaint_and_fits_the_window(
    page: Path, open_file: Open, width: int, scheme: str
) -> None:
    opened = open_file(page, width=width, scheme=scheme)
    assert opened.complaints == []
    assert opened.requests == []
    assert opened.page.evaluate("document.documentElement.scrollWidth") == width


def test_a_point_of_a_trend_says_what_it_is_and_leads_to_its_report(page: Path, open_file: Open) -> None:
    opened = open_file(page).page
    point = opened.locator("figure >> nth=0 >> a >> nth=0")
    assert (point.locator("title").text_content() or "").startswith("r1 · 2026-01-02 00:00: ")
    point.locator("circle").click()
    assert opened.locator("h1").inner_text() == "the report of r1"


def test_hostile_text_is_shown_and_does_nothing(page: Path, open_file: Open) -> None:
    opened = open_file(page)
    assert "<script>alert(1)</script>" in opened.page.locator("main").inner_text()
    assert opened.page.locator("img, script").count() == 0
    assert opened.complaints == []
