"""A rendered `report.html`, and what is in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pytest_kebab_eval.evaluation import evaluate, read_evidence
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.context import report_context
from pytest_kebab_eval.reports.html.page import render_report_html
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

    def row(self, query_id: str = "q1") -> Any:
        """The query in the list."""
        return next(row for row in self.blocks["index"]["rows"] if row["id"] == query_id)

    def details(self, query_id: str = "q1") -> Any:
        """What the query shows when it is opened."""
        block, place = divmod(self.row(query_id)["n"], self.blocks["index"]["block"])
        return self.blocks[f"details-{block}"][place]

    def section(self, name: str) -> str:
        """The markup of a section."""
        return re.split(r"<section id=", self.text.split(f'<section id="{name}"', 1)[1])[0]


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
    report = evaluate(settings, inputs).report
    context = report_context(report)
    if section:
        context["sections"].append(section)
    return Page("".join(render_report_html(report, read_evidence(settings, inputs), history, context)))


def regression(tmp_path: Path, **more: Any) -> Page:
    """The first query lost its only target."""
    return rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": result("c9")}, **more)
