"""Reports of two small runs, the tables of their Markdown, a rendered `report.html`."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kebab_eval import CompareReport, render_report_md
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.history import HistoryPoint
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.reports.as_markdown import report_context
from pytest_kebab_eval.reports.briefs import Briefs
from pytest_kebab_eval.reports.html.page import ComparedRuns, render_report_html
from pytest_kebab_eval.reports.html.query_index import PageQueries
from pytest_kebab_eval.reports.publishing import ShownEvidence
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store.working_tree import WebRepository
from tests.builders import Json, answer, make_database, result, write_golden

Results = Mapping[str, Json]
C1: Json = {"expected_chunk_ids": ["c1"]}
HIT, MISS = result("c1"), result("x")
RICH: dict[str, Json] = {
    "lost": C1 | {"difficulty": "hard", "tags": ["a|b", "`c`"]},
    "won": C1 | {"difficulty": "easy"},
    "worse": C1 | {"lang": "ko"},
    "said": {"must_contain": ["yes"], "expected_doc_ids": ["d1"], "group": "g|"},
    "said too": {"expected_doc_ids": ["d1"], "group": "g|"},
}
BEFORE = {
    "lost": HIT,
    "won": MISS,
    "worse": HIT,
    "said": result("d1#1", answer=answer("yes"), judge={"groundedness": 5, "model": "m|1"}),
    "said too": result("d1#1"),
}
AFTER = {
    "lost": MISS,
    "won": HIT,
    "worse": result("x", "c1"),
    "said": result("d1#1", answer=answer("no"), judge={"groundedness": 1, "model": "m|2"}),
    "stray|": result(),
}


def compared(
    directory: Path,
    entries: Mapping[str, Json],
    a: Results | None,
    b: Results,
    *gates: str,
    fail_on: frozenset[str] | None = None,
    **database: Any,
) -> CompareReport:
    """Two runs, or B alone."""
    directory.mkdir(exist_ok=True)
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b, **database)
    chosen = Settings("a" if a else None, "b", db, db, golden, gates=gates)
    if fail_on is not None:
        chosen = chosen._replace(fail_on=fail_on)
    return evaluate(chosen, find_inputs(chosen)).report


def tables(markdown: str) -> list[list[list[str]]]:
    """The tables, row by row, cell by cell; a pipe after a backslash is text."""
    found: list[list[list[str]]] = []
    inside = False
    for text in markdown.split("\n"):
        if text.startswith("|"):
            if not inside:
                found.append([])
            assert text.endswith("|"), text
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", text)[1:-1]])
        inside = text.startswith("|")
    return found


def assert_well_formed(markdown: str) -> None:
    """Every table has a header, a delimiter row, and as many cells in every row; what folds also ends."""
    for rows in tables(markdown):
        assert len(rows) >= 3
        assert all(re.fullmatch("-+:?", cell) for cell in rows[1]), rows[1]
        assert {len(row) for row in rows} == {len(rows[0])}
    outside = re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", markdown)
    assert outside.count("<details>") == outside.count("</details>")


def metric_row(report: CompareReport, name: str) -> dict[str, str]:
    """What the metrics' tables show of one metric, by the names of their columns."""
    for header, _, *rows in tables(folded(render_report_md(report), "All")):
        for row in rows:
            if f"`{name}`" in row[0].split():
                return dict(zip(header, row, strict=True))
    raise AssertionError(name)


def section(markdown: str, title: str) -> str:
    return markdown.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]


def folded(markdown: str, title: str) -> str:
    """What is folded under a title."""
    return re.split(f"<summary>{title}[^<]*</summary>\n", markdown)[1].split("\n</details>", maxsplit=1)[0]


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
        blocks = self.blocks.get(f"details-{block}")
        details = blocks and blocks[place]
        return self._with_names(details) if details and "brief" in details else details

    def _with_names(self, details: Json) -> Json:
        """Brief details with ids in the place of their numbers, and B's hits also where they are A's."""
        names = self.blocks["names"]
        a, b = details["brief"]
        first, second = [None if side is None else side[0] for side in (a, b)]
        second = first if b is not None and second is None else second
        hits = (
            [names[name] if isinstance(name, int) else name for name in ids or ()] for ids in (first, second)
        )
        sides = [None if side is None else [ids, *side[1:]] for side, ids in zip((a, b), hits, strict=True)]
        expected = [names[name] if isinstance(name, int) else name for name in details["expected"]]
        return details | {"brief": sides, "expected": expected}

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
    corpus: dict[str, tuple[str, list[Json]]] | None = None,
    section: tuple[str, str] | None = None,
    repository: WebRepository | None = None,
) -> Page:
    """The report of B against A, or of B alone."""
    tmp_path.mkdir(exist_ok=True)
    runs: dict[str, Any] = {"b": b} if a is None else {"a": a, "b": b}
    path = tmp_path / "runs.sqlite"
    database = path if path.exists() else make_database(path, configs=configs, corpus=corpus, **runs)
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
    compared = ComparedRuns(inputs.runs_a, inputs.runs_b, repository)
    return Page("".join(render_report_html(report, page_queries, history, context, compared)))


def regression(tmp_path: Path, **more: Any) -> Page:
    """The first query lost its only target."""
    return rendered(tmp_path, [FINDS_C1], a={"q1": result("c1")}, b={"q1": result("c9")}, **more)
