"""What the index holds, in figures, so that a change of the index is seen beside a change of the metrics."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from pytest_kebab_eval import CompareReport, RunRecorder, render_report_md
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from pytest_kebab_eval.store import IndexCoverage
from tests.builders import line, make_database, result, write_golden


def make_index(
    path: Path, chunks: dict[str, Sequence[int | None]], empty: Sequence[str] = (), *more: str
) -> Path:
    """A database with runs `base` and `r`, documents with chunks of so many tokens, and some without any."""
    corpus = {f"{doc}#{n}": (doc, [line()]) for doc, tokens in chunks.items() for n in range(len(tokens))}
    make_database(path, base={"q1": result("c1")}, r={"q1": result("c1")}, corpus=corpus)
    connection = sqlite3.connect(path)
    for doc, tokens in chunks.items():
        for n, count in enumerate(tokens):
            connection.execute(
                "UPDATE chunks SET token_estimate = ? WHERE chunk_id = ?", (count, f"{doc}#{n}")
            )
    connection.executemany(
        "INSERT INTO documents VALUES (?, ?)", [(doc_id, f"{doc_id}.md") for doc_id in empty]
    )
    for statement in more:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def index_rows(report: CompareReport) -> list[str]:
    """The rows of the table in `report.md`, without its head."""
    lines = render_report_md(report).split("<summary>Index</summary>")[1].splitlines()
    return [row for row in lines if row.startswith("| ")][2:]


def judged(tmp_path: Path, db: Path, db_a: Path | None = None) -> CompareReport:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?"}])
    return evaluate(Settings("base" if db_a else None, "r", db_a or db, db, golden)).report


def coverage(tmp_path: Path, db: Path) -> IndexCoverage:
    found = judged(tmp_path, db).index_b
    assert found is not None
    return found


def test_documents_and_chunks_are_counted_and_those_without_chunks_apart(tmp_path: Path) -> None:
    db = make_index(tmp_path / "kebab.sqlite", {"d1": [10, 20], "d2": [30]}, ["empty-1", "empty-2"])
    found = coverage(tmp_path, db)
    assert (found.documents, found.documents_without_chunks, found.chunks) == (4, 2, 3)


def test_tokens_of_a_chunk_have_a_least_mean_95th_percentile_and_most(tmp_path: Path) -> None:
    # 1 to 20 tokens: the mean is 10.5, and 19 of 20 are the 95 %
    found = coverage(tmp_path, make_index(tmp_path / "kebab.sqlite", {"d1": range(20, 0, -1)}))
    assert (found.tokens_min, found.tokens_mean, found.tokens_p95, found.tokens_max) == (1, 10.5, 19, 20)


def test_one_chunk_is_least_and_most(tmp_path: Path) -> None:
    found = coverage(tmp_path, make_index(tmp_path / "kebab.sqlite", {"d1": [7]}))
    assert (found.tokens_min, found.tokens_mean, found.tokens_p95, found.tokens_max) == (7, 7, 7, 7)


def test_without_token_counts_the_rest_is_still_there(tmp_path: Path) -> None:
    db = make_index(
        tmp_path / "kebab.sqlite", {"d1": [7]}, (), "ALTER TABLE chunks DROP COLUMN token_estimate"
    )
    found = coverage(tmp_path, db)
    assert (found.documents, found.chunks, found.tokens_min, found.tokens_mean) == (1, 1, None, None)


def test_a_database_of_runs_alone_has_no_coverage(tmp_path: Path) -> None:
    db = make_database(tmp_path / "kebab.sqlite", r={"q1": result("c1")})
    report = judged(tmp_path, db)
    assert report.index_b is None
    assert "## Index" not in render_report_md(report)


def test_an_index_that_lost_all_its_chunks_is_shown_as_that(tmp_path: Path) -> None:
    db = make_index(tmp_path / "kebab.sqlite", {}, ["d1", "d2"])
    found = coverage(tmp_path, db)
    assert (found.documents, found.documents_without_chunks, found.chunks) == (2, 2, 0)


def test_two_indexes_are_shown_side_by_side(tmp_path: Path) -> None:
    a = make_index(tmp_path / "a.sqlite", {"d1": [10, 20]})
    b = make_index(tmp_path / "b.sqlite", {"d1": [5, 5, 5, 15]}, ["d2"])
    report = judged(tmp_path, b, db_a=a)
    assert index_rows(report) == [
        "| A | 1 | 0 | 2 | 10 | 15 | 20 | 20 |",
        "| B | 2 | 1 | 4 | 5 | 7.5 | 15 | 15 |",
    ]


def test_one_index_of_both_runs_is_shown_once(tmp_path: Path) -> None:
    db = make_index(tmp_path / "kebab.sqlite", {"d1": [10, 20]})
    report = judged(tmp_path, db, db_a=db)
    assert index_rows(report) == ["| A and B | 1 | 0 | 2 | 10 | 15 | 20 | 20 |"]


def test_each_side_has_the_chunks_of_its_own_chunker(tmp_path: Path) -> None:
    db = tmp_path / "own.sqlite"
    for version, tokens in (("v1", [10, 20]), ("v2", [5, 5, 5, 15]), ("v3", None)):
        chunks = [
            {"chunk_id": f"d1#{number}", "doc_id": "d1", "token_estimate": count}
            for number, count in enumerate(tokens or ())
        ]
        config = {"chunker_version": version}
        with RunRecorder(db, run_id=version, config=config, chunks=chunks if tokens else None) as run:
            run.record("q1", ["d1#1"])
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?"}])
    of_v1 = "| A | 1 | 0 | 2 | 10 | 15 | 20 | 20 |"
    assert index_rows(evaluate(Settings("v1", "v2", db, db, golden)).report) == [
        of_v1,
        "| B | 1 | 0 | 4 | 5 | 7.5 | 15 | 15 |",
    ]
    assert index_rows(evaluate(Settings("v1", "v3", db, db, golden)).report) == [of_v1]
