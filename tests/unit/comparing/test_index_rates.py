"""What the index lacks, as metrics of a run: from the tables, else from the run's configuration."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.comparing.report import CompareReport
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.reports.as_markdown import render_report_md
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, deltas_of, line, make_database, result, side_a, write_golden

SAID: Json = {
    "docs_processed": 10,
    "docs_without_chunks": 1,
    "chunks_attempted": 40,
    "chunks_embedded": 36,
    "chunks_skipped": 4,
    "chunks_skipped_reasons": {"too long": 3, "empty": 1},
}
FOUND = {"q1": result("d1#1", elapsed_ms=1500)}


def compared(
    directory: Path, a: Any, b: Any, *gates: str, documents: Mapping[str, int] | None = None
) -> CompareReport:
    """Two equal runs, with what their configurations say; `documents`: how many chunks the tables have."""
    configs = {
        run: {"chunker_version": "v1"} | ({"index_coverage": said} if said is not None else {})
        for run, said in (("a", a), ("b", b))
    }
    corpus = {f"{name}#{n}": (name, [line()]) for name, n in (documents or {}).items() if n}
    with_tables = corpus if documents is not None else None
    db = make_database(directory / "kebab.sqlite", configs=configs, corpus=with_tables, a=FOUND, b=FOUND)
    if documents is not None:
        with closing(sqlite3.connect(db)) as connection, connection:
            connection.execute("DELETE FROM documents")
            connection.executemany(
                "INSERT INTO documents VALUES (?, ?)", [(name, name) for name in documents]
            )
    golden = write_golden(
        directory / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["d1#1"]}]
    )
    return evaluate(Settings("a", "b", db, db, golden, gates=gates, fail_on=frozenset())).report


def test_the_configuration_tells_what_was_skipped_and_has_no_chunks(tmp_path: Path) -> None:
    report = compared(tmp_path, SAID, SAID | {"docs_without_chunks": 3, "chunks_skipped": 10})
    names = ("no_chunks_rate", "chunks_skipped_rate")
    assert [side_a(report).values[name] for name in names] == [0.1, 0.1]
    assert [report.aggregate_b.values[name] for name in names] == [0.3, 0.25]
    assert [report.aggregate_b.counts[name] for name in names] == [10, 40]
    assert [deltas_of(report).values[name] for name in names] == [0.2, 0.15]
    text = render_report_md(report)
    assert "A: 40 chunks attempted, 36 embedded, 4 skipped: `too long` 3, `empty` 1." in text
    assert "All queries took 1.5 s in A and 1.5 s in B." in text


def test_the_tables_tell_which_documents_have_no_chunks_by_type(tmp_path: Path) -> None:
    documents = {"d1.md": 1, "d2.md": 1, "sheet.XLS": 0, "notes/.env": 0}
    report = compared(tmp_path, None, None, documents=documents)
    assert (report.aggregate_b.values["no_chunks_rate"], report.aggregate_b.counts["no_chunks_rate"]) == (
        0.5,
        4,
    )
    assert report.aggregate_b.values["chunks_skipped_rate"] is None
    assert report.index_b
    assert [
        (found.ending, found.documents, found.documents_without_chunks) for found in report.index_b.by_type
    ] == [("", 1, 1), (".md", 2, 0), (".xls", 1, 1)]
    assert "| `.xls` | 1 | 1 | 0 |" in render_report_md(report)


@pytest.mark.parametrize(
    "said",
    [
        None,
        {},
        {"docs_processed": 0, "docs_without_chunks": 0},
        {"docs_processed": "10"},
        ["no"],
        {"chunks_skipped": 5},
        {"chunks_skipped": 5, "chunks_attempted": 4},
        {"docs_processed": True, "docs_without_chunks": True},
    ],
    ids=str,
)
def test_what_nobody_says_is_null_and_fails_its_gate(tmp_path: Path, said: Any) -> None:
    report = compared(tmp_path, SAID, said, "no_chunks_rate <= 0.5", "delta chunks_skipped_rate <= 0.1")
    assert (
        report.aggregate_b.values["no_chunks_rate"]
        is report.aggregate_b.values["chunks_skipped_rate"]
        is None
    )
    assert [gate.passed for gate in report.gates] == [False, False]
    assert "nothing was measured" in report.gates[0].reason


@pytest.mark.parametrize(
    ("gate", "passed", "said"),
    [
        ("no_chunks_rate <= 0.3", True, "no_chunks_rate is 0.3 over 10 documents"),
        ("no_chunks_rate <= 0.2", False, "no_chunks_rate is 0.3 over 10 documents, not <= 0.2"),
        ("delta no_chunks_rate <= 0.1", False, "is 0.2 over 10 documents of A and 10 of B"),
        ("delta no_chunks_rate <= 0.2", True, "is 0.2 over 10 documents of A and 10 of B"),
        ("chunks_skipped_rate <= 10%", True, "over 40 chunks"),
    ],
)
def test_gates_hold_them_against_a_limit(tmp_path: Path, gate: str, passed: bool, said: str) -> None:
    report = compared(tmp_path, SAID, SAID | {"docs_without_chunks": 3}, gate)
    assert report.gates[0].passed is passed
    assert said in report.gates[0].reason
