"""`report.html` of many queries in a browser: its size, and how fast it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser.conftest import Open

if TYPE_CHECKING:
    from playwright.sync_api import Page


@contextmanager
def work_of(tab: Page) -> Iterator[Callable[[], float]]:
    """Counts the seconds that the tab was at work; how busy the machine is does not matter."""
    session = tab.context.new_cdp_session(tab)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))

    yield seconds
    session.detach()


def work_of_loading(tab: Page, open_file: Open, path: Path) -> float:
    with work_of(tab) as seconds:
        open_file(path)
        return seconds()


def test_10000_queries_load_within_two_seconds_of_an_empty_page_of_that_size(
    many: Path, tmp_path: Path, open_file: Open, tab: Page
) -> None:
    empty = tmp_path / "empty.html"
    filling = "x" * many.stat().st_size
    empty.write_text(f"<!doctype html><script type='application/json'>{filling}</script>", encoding="utf-8")
    assert work_of_loading(tab, open_file, many) - work_of_loading(tab, open_file, empty) < 2


def test_10000_queries_are_listed_found_filtered_and_opened_without_a_freeze(
    many: Path, open_file: Open
) -> None:
    page = open_file(many).page
    said = "the browser's search finds those that are shown, the field Text finds all"
    page.get_by_text(f"10,000 queries, the worst first; {said}", exact=True).wait_for()
    last = page.locator("#rows .name").nth(999).text_content()
    assert page.evaluate("name => window.find(name)", last)
    # By key: rows that come into view are laid out anew, and move what a pointer is over.
    page.get_by_role("button", name="Show 1,000 more of 8,950").press("Enter")
    page.get_by_role("button", name="Show 1,000 more of 7,950").wait_for()
    assert page.locator("#rows .q").count() == 2050
    click = "name => { document.querySelector(name).click(); document.body.getBoundingClientRect(); }"
    with work_of(page) as seconds:
        for name in ("input[name=outcome][value=passed]", "#rows .q summary"):
            before = seconds()
            page.evaluate(click, name)
            assert seconds() - before < 1
    page.locator("input[name=text]").fill("number 9999")
    page.get_by_text("1 of 10,000 queries", exact=True).wait_for()
    page.locator("#rows .q summary").click()
    page.locator(".side").nth(1).wait_for()
    # It is without texts: there are ids, ranks and how to see more.
    body = page.locator("#rows .body")
    assert body.locator(".side").first.locator("li").count() == 10
    assert body.locator(".side .right .head b").all_inner_texts() == ["c1", "c1"]
    assert "Texts of hits and answers are left out" in body.inner_text()
    assert "pytest -vv" in body.inner_text()


def test_the_last_of_10000_queries_is_linked_to(many: Path, open_file: Open) -> None:
    page = open_file(many, fragment="#query-q-09999").page
    page.locator("#rows .body").wait_for()
    assert page.locator(".q[open] .name").all_inner_texts() == ["q-09999"]
    box = page.locator(".q[open] summary").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900


def test_the_first_queries_are_there_where_the_browser_cannot_unpack(many: Path, open_file: Open) -> None:
    opened = open_file(many, before="delete window.DecompressionStream")
    page = opened.page
    assert page.locator("#rows .q").count() == 50
    said = page.locator("#status").inner_text()
    assert said.startswith("50 queries, the worst first; 9,950 more are not shown, since this browser")
    page.locator("#rows .q summary").nth(49).click()
    page.locator("#rows .q").nth(49).locator(".snippet").first.wait_for()
    assert opened.complaints == []


def test_a_query_that_was_opened_stays_open_when_the_others_are_unpacked(many: Path, open_file: Open) -> None:
    slow = (
        "const own = Response.prototype.text; Response.prototype.text = async function () {"
        "await new Promise((done) => { window.go = done; }); return own.call(this); };"
    )
    page = open_file(many, before=slow).page
    assert "9,950 more are being unpacked" in page.locator("#status").inner_text()
    page.locator("#rows .q summary").nth(3).click()
    page.locator("#rows .body").wait_for()
    page.evaluate("window.go()")
    page.get_by_text("10,000 queries, the worst first; the browser's search finds").wait_for()
    assert page.locator("#rows .body").count() == 1
