"""A rendered `report.html`, and what is in it."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.context import report_context
from pytest_kebab_eval.reports.html.page import render_report_html
from pytest_kebab_eval.reports.html.query_index import PageQueries
from pytest_kebab_eval.reports.publishing import ShownEvidence
from pytest_kebab_eval.scoring.briefs import Briefs
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, make_database, result, write_golden

FINDS_C1 = {"id": "q1", "query": "where?", "expected_chunk_ids": ["c1"]}


class Page:
    """A rendered report, and the data in its script blocks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks = {
            name: json.loads(content)
            for name, content in re.findall(
                r'<script type="application/json" id="([^"]+)">(.*?)</script>', text, flags=re.DOTALL
            )
        }

        for name, content in re.findall(r'<script type="text/plain" id="([^"]+)">(.*?)</script>', text):
            self.blocks[name] = unpacked(content)
        self.rows = [*self.blocks["index"]["rows"], *self.blocks["rows-packed"]]

    def row(self, query_id: str = "q1") -> Any:
        """The query in the list."""
        return next(row for row in self.rows if row["id"] == query_id)

    def details(self, query_id: str = "q1") -> Any:
        """What the query shows when it is opened; None if the page has nothing."""
        block, place = divmod(self.rows.index(self.row(query_id)), self.blocks["index"]["block"])
        details = self.blocks.get(f"details-{block}")
        return details and details[place]

    def section(self, name: str) -> str:
        """The markup of a section."""
        return re.split(r"<section id=", self.text.split(f'<section id="{name}"', 1)[1])[0]


def unpacked(packed: str) -> list[Any]:
    """What the page's script makes of a packed block."""
    text = zlib.decompress(base64.b64decode(packed)).decode() if packed else ""
    return [value for line in text.splitlines() for value in json.loads(line)]


def rendered(
    tmp_path: Path,
    queries: list[Json],
    b: dict[str, Any],
    a: dict[str, Any] | None = None,
    *,
    gates: tuple[str, ...] = (),
    history: tuple[HistoryPoint, ...] = (),
    configs: dict[str, Json | str] | None = None,
    section: tuple[str, str] | None = None,
) -> Page:
    """The report of B against A, or of B alone."""
    tmp_path.mkdir(exist_ok=True)
    runs: dict[str, Any] = {"b": b} if a is None else {"a": a, "b": b}
    path = tmp_path / "runs.sqlite"
    database = path if path.exists() else make_database(path, configs=configs, **runs)
    golden = write_golden(tmp_path / "golden.yaml", queries)
    settings = Settings("a" if a is not None else None, "b", database, database, golden, gates=gates)
    inputs = find_inputs(settings)
    briefs = Briefs()
    report = evaluate(settings, inputs, observer=briefs).report
    context = report_context(report)
    if section:
        context["sections"].append(section)
    shown = ShownEvidence(settings, inputs, report, briefs.matcher)
    page_queries = PageQueries(inputs.golden.queries, briefs, shown.read)
    return Page("".join(render_report_html(report, page_queries, history, context)))


def regression(tmp_path: Path, **more: Any) -> Page:
    """The first query lost its only target."""
    return rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": result("c9")}, **more)
