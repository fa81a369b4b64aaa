"""Looks for accessibility errors with axe-core, and takes pictures, of all pages that we make.

python -m tests.browser.accessibility AXE PAGE…      # `make accessibility`; a directory stands for its pages
    --pictures DIR     also write a picture of each page, 1280 and 390 pixels wide, light and dark

Exits with 1 if axe finds a violation, a page is wider than the window, or it asks the network for something.
Without axe-core nothing is looked for. What failed is opened first.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tests.browser.conftest import FLAGS, NAMES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (1280, 390)
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all pages; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("axe", type=Path, help="axe.min.js, of the npm package axe-core")
    parser.add_argument("pages", type=Path, nargs="+", help="pages, or directories of pages")
    parser.add_argument("--pictures", type=Path, help="where to write pictures of the pages")
    given = parser.parse_args(arguments)
    if not given.axe.exists():
        print(f"skipped: there is no {given.axe}")
        return 0
    pages = [page for path in given.pages for page in _pages(path)]
    found = list(_check(given.axe, pages, given.pictures))
    for error in dict.fromkeys(found):
        print(error)
    print(f"{len(pages)} pages, {len(WIDTHS)} widths, light and dark: {len(found)} errors")
    return 1 if found or not pages else 0


def _pages(path: Path) -> list[Path]:
    """The pages of a directory, but for 404.html, whose styles are only there on a server."""
    found = sorted(path.rglob("*.html")) if path.is_dir() else [path]
    return [page for page in found if page.name != "404.html"]


def _check(axe: Path, pages: Sequence[Path], pictures: Path | None) -> Iterator[str]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        browser = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        for scheme in SCHEMES:
            for width in WIDTHS:
                yield from _check_as(browser, axe, pages, scheme, width, pictures)
        browser.close()


def _check_as(
    browser: Browser,
    axe: Path,
    pages: Sequence[Path],
    scheme: Literal["light", "dark"],
    width: int,
    pictures: Path | None,
) -> Iterator[str]:
    # axe is no script of the page, whose policy allows no other.
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for path in pages:
        page.goto(path.absolute().as_uri())
        page.evaluate("document.fonts.ready")
        for summary in page.locator("#failed-rows > details > summary, details.all > summary").all():
            summary.click()
            summary.locator("xpath=following-sibling::*").first.wait_for()
        where = f"{path} ({scheme}, {width} px)"
        yield from (f"{where}: {error}" for error in _violations(page, axe))
        yield from (f"{where}: asks for {url}" for url in asked if not url.startswith(("file:", "data:")))
        asked.clear()
        if (wide := page.evaluate("document.documentElement.scrollWidth")) > width:
            yield f"{where}: is {wide} px wide"
        if pictures:
            page.evaluate("scrollTo(0, 0)")
            name = "-".join(path.with_suffix("").parts[-3:])  # most are called index.html
            page.screenshot(path=pictures / f"{name}-{width}-{scheme}.png", full_page=width < WIDTHS[0])
    page.close()


def _violations(page: Page, axe: Path) -> Iterator[str]:
    page.add_script_tag(path=axe)
    result: dict[str, Any] = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
    for violation in result["violations"]:
        nodes = violation["nodes"]
        yield f"{violation['id']}: {violation['help']} ({len(nodes)}, such as {nodes[0]['html'][:200]})"


if __name__ == "__main__":
    sys.exit(main())
