"""Reports of two small runs, and the tables of their Markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_kebab_eval import CompareReport, render_report_md
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.inputs import find_inputs
from pytest_kebab_eval.settings import Settings
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
    directory: Path, entries: Mapping[str, Json], a: Results | None, b: Results, *gates: str, **database: Any
) -> CompareReport:
    """Two runs, or B alone."""
    directory.mkdir(exist_ok=True)
    listed = [{"id": name, "query": "?", **entry} for name, entry in entries.items()]
    golden = write_golden(directory / "golden.yaml", listed)
    db = make_database(directory / "kebab.sqlite", a=a or {}, b=b, **database)
    chosen = Settings("a" if a else None, "b", db, db, golden, gates=gates)
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
    for header, _, *rows in tables(section(render_report_md(report), "Metrics")):
        for row in rows:
            if row[0].startswith(f"`{name}`"):
                return dict(zip(header, row, strict=True))
    raise AssertionError(name)


def section(markdown: str, title: str) -> str:
    return markdown.split(f"\n## {title}\n")[1].split("\n## ", maxsplit=1)[0]
