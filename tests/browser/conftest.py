"""Chromium, driven by Playwright; the tests are skipped where either is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from pytest_kebab_eval.comparing.evidence import QueryEvidence
from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.matching.targets import Matcher
from pytest_kebab_eval.model import ComparisonKind, GoldenQuery, MatchMode, QueryComparison
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.html.page import render_report_html
from pytest_kebab_eval.reports.html.query_index import Evidence, PageQueries
from tests.builders import Json, hit, keep_brief, query, result, stored

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

Open = Callable[..., "Opened"]


class Opened:
    """A page, and what it did that it should not have."""

    def __init__(self, page: Page, file: Path, fragment: str = "") -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._listeners: dict[Any, Callable[[Any], None]] = {
            "console": lambda message: self.complaints.append(message.text),
            "pageerror": lambda error: self.complaints.append(str(error)),
            "dialog": self._refuse,
            "request": lambda request: self.requests.append(request.url),
        }
        for event, listener in self._listeners.items():
            page.on(event, listener)
        page.set_default_timeout(20_000)
        page.goto(f"{file.as_uri()}{fragment}")
        self.requests.remove(file.as_uri())  # what comes after a # is not asked for

    def leave(self) -> None:
        """Listen no more."""
        for event, listener in self._listeners.items():
            self.page.remove_listener(event, listener)

    def _refuse(self, dialog: Dialog) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def choose(self, name: str, value: str) -> None:
        """Set a filter."""
        self.page.locator(f"select[name={name}]").select_option(value)

    def open_all(self) -> None:
        """Open everything that can be opened."""
        for summary in self.page.locator("summary").all():
            summary.click()
        for details in self.page.locator(".q").all():
            details.locator(".body").wait_for()

    def listed(self) -> list[str]:
        """The ids of the queries in the list, also of those that are out of sight."""
        return self.page.locator("#rows code.name").all_text_contents()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests of a process."""
    api = pytest.importorskip("playwright.sync_api", reason="the package playwright is not installed")
    with api.sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        path = next(filter(None, map(shutil.which, NAMES)), own if Path(own).exists() else None)
        if path is None:
            pytest.skip("no Chromium is installed")
        running = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Page:
    """One tab for all tests of a process: the files keep nothing in the browser, and a tab takes 0.5 s."""
    return browser.new_page()


@pytest.fixture
def open_file(browser: Browser, tab: Page) -> Iterator[Open]:
    """Opens an HTML file."""
    opened: list[Opened] = []

    def open_it(
        file: Path, width: int = 1280, scheme: str = "light", before: str = "", fragment: str = ""
    ) -> Opened:
        page = tab
        if before:  # the page's own scripts
            page = browser.new_page()
            page.add_init_script(before)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="screen", color_scheme="dark" if scheme == "dark" else "light")
        leave()
        if fragment:  # of the page that is there already, it would not be loaded again
            page.goto("about:blank")
        opened.append(Opened(page, file, fragment))
        return opened[-1]

    def leave() -> None:
        for last in opened:
            last.leave()
            if last.page is not tab:
                last.page.close()
        opened.clear()

    yield open_it
    leave()


def write_page(path: Path, pieces: Iterator[str]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
    return path


MANY = 10_000


def many_queries() -> tuple[CompareReport, PageQueries]:
    """A comparison of many queries with ten hits a side, every seventh one lost."""
    text = "some words of a passage that was found for this query, and a few more of them " * 2
    a = stored(result(*(hit(f"c{rank}", rank, snippet=text) for rank in range(1, 11)), elapsed_ms=120))
    b = stored(result(*(hit(f"d{rank}", rank, snippet=text) for rank in range(1, 11)), elapsed_ms=150))
    golden = [
        query(f"q-{n:05}", query=f"question number {n}", tags=[f"t{n % 9}"], expected_chunk_ids=["c1"])
        for n in range(MANY)
    ]
    lost = {golden_query.id for golden_query in golden[::7]}
    briefs = Briefs()
    briefs.finish(Matcher(MatchMode.EXACT), 1, 2, {})
    for golden_query in golden:
        is_lost = golden_query.id in lost
        keep_brief(briefs.a, golden_query.id, a, (1,))
        keep_brief(briefs.b, golden_query.id, b if is_lost else a, () if is_lost else (1,))
    per_query = tuple(
        QueryComparison(
            golden_query.id, ComparisonKind.REGRESSION, 1, None, "hit→miss", "gone", ("retrieval",)
        )
        if golden_query.id in lost
        else QueryComparison(golden_query.id, ComparisonKind.DRAW, 1, 1)
        for golden_query in golden
    )

    def read(queries: Sequence[GoldenQuery]) -> Evidence:
        for shown in queries:
            is_lost = shown.id in lost
            yield shown, QueryEvidence(a, b if is_lost else a, (1,), () if is_lost else (1,), ("c1",))

    return per_query_report(per_query), PageQueries(golden, briefs, read)


def per_query_report(per_query: tuple[QueryComparison, ...]) -> CompareReport:
    empty: Json = {
        "values": {"hit@5": 0.5},
        "total_queries": MANY,
        "failed_queries": 0,
        "counts": {"hit@5": MANY},
        "slices": {},
    }
    paired = {"queries": MANY, "errored_a": 0, "errored_b": 0, "absent_a": 0, "absent_b": 0, "unpaired": None}
    aggregate = empty | {"match": "exact", "golden_sha256": ""}
    deltas = empty | {"chunker_version_match": "exact", "matched_by": {}, "paired": paired}
    report = {"run_a": "a", "run_b": "b", "aggregate_a": aggregate, "aggregate_b": aggregate}
    converted = msgspec.convert(report | {"deltas": deltas, "per_query": ()}, CompareReport)
    return msgspec.structs.replace(converted, per_query=per_query)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with many queries."""
    report, queries = many_queries()
    page = render_report_html(report, queries, (), report_context(report))
    return write_page(tmp_path_factory.mktemp("many") / "report.html", page)
