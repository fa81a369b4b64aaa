"""Chromium, driven by Playwright; the tests are skipped where either is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._refuse)
        page.on("request", lambda request: self.requests.append(request.url))
        page.set_default_timeout(20_000)
        page.goto(file.as_uri())
        self.requests.remove(file.as_uri())

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
        for query in self.page.locator(".q").all():
            query.locator(".body").wait_for()

    def listed(self) -> list[str]:
        """The ids of the queries in the list."""
        return self.page.locator("#rows code.name").all_inner_texts()


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


@pytest.fixture
def open_file(browser: Browser) -> Iterator[Open]:
    """Opens an HTML file in a fresh profile."""
    contexts = []

    def open_it(file: Path, width: int = 1280, scheme: str = "light") -> Opened:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        contexts.append(context)
        return Opened(context.new_page(), file)

    yield open_it
    for context in contexts:
        context.close()
