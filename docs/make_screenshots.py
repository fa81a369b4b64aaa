"""Makes the pictures of report.html in the docs: the top of it, of the bundled example.

python docs/make_screenshots.py     # writes docs/report-light.png and docs/report-dark.png

Needs the package playwright and a Chromium: that of the system, or `playwright install chromium`.
"""

from __future__ import annotations

import runpy
import shutil
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import sync_playwright

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.publishing import ReportSource, render
from pytest_kebab_eval.settings import Settings

HERE = Path(__file__).parent
GATES = ("hit@5 >= 0.80", "delta mrr >= -5%", "delta hit@1 >= 0 unless p > 0.1", "error_rate <= 0")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def write_report(directory: Path) -> Path:
    """The report of the quickstart's candidate against its baseline."""
    database = runpy.run_path(str(HERE.parent / "examples/quickstart/build.py"))["build"](directory)
    golden = directory / "fixtures/golden_queries.yaml"
    settings = Settings("baseline", "candidate", database, database, golden, gates=GATES)
    inputs = find_inputs(settings)
    briefs = Briefs()
    report = evaluate(settings, inputs, observer=briefs).report
    pieces = render("html", ReportSource(settings, inputs, report, report_context(report), briefs), [])
    page = directory / "report.html"
    with page.open("w", encoding="utf-8") as file:
        file.writelines(pieces)
    return page


def main() -> None:
    """Both pictures."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as directory, sync_playwright() as playwright:
        report = write_report(Path(directory))
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        for scheme in SCHEMES:
            page = browser.new_page(viewport={"width": 1180, "height": 1305}, color_scheme=scheme)
            page.goto(report.as_uri())
            page.screenshot(path=HERE / f"report-{scheme}.png")
        browser.close()


if __name__ == "__main__":
    main()
