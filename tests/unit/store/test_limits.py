"""Databases with far more of something than anyone has: an answer in a moment, and one sentence."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from pytest_kebab_eval.api import compare_runs
from pytest_kebab_eval.errors import NoSuchRun
from pytest_kebab_eval.store import find_run, open_database
from tests.builders import Json, answer, dump, hit, line, make_database, result, write_golden

MANY = 3_000


def compare(tmp_path: Path, stored: Json) -> tuple[list[str], float]:
    """What a comparison of this result with itself says of it, and its CPU seconds; nothing is changed."""
    db = make_database(tmp_path / "eval.sqlite", A={"q1": stored}, B={"q1": stored})
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    before, began = dump(db), time.process_time()
    report = compare_runs("A", "B", db=db, golden=golden)
    assert dump(db) == before
    return [broken.reason for broken in report.unreadable], time.process_time() - began


def test_too_many_citations_of_too_many_hits_are_unreadable_with_a_sentence(tmp_path: Path) -> None:
    hits = [hit(f"c{n}", n, doc_path="p.md", citation=line("p.md", 2 * n, 2 * n)) for n in range(1, MANY + 1)]
    cites = [line("p.md", 2 * n + 1, 2 * n + 1) for n in range(MANY)]
    reasons, seconds = compare(tmp_path, result(*hits, answer=answer(cites=cites)))
    assert reasons == ["3,000 citations without a chunk_id, of 3,000 hits, are too many"] * 2
    assert seconds < 5


def test_many_citations_of_chunks_are_read(tmp_path: Path) -> None:
    cited = [{"marker": str(number), "chunk_id": f"c{number}"} for number in range(MANY)]
    stored = result(*(f"c{number}" for number in range(MANY)), answer=answer(citations=cited))
    reasons, seconds = compare(tmp_path, stored)
    assert reasons == []
    assert seconds < 5


def test_a_mistyped_name_among_very_many_runs_is_an_error_in_a_moment(tmp_path: Path) -> None:
    db = make_database(tmp_path / "eval.sqlite", A={"q1": result("c1")})
    rows = [(f"run_{number:032x}", "s", "{}", "{}", None, f"2031-{number:06}") for number in range(20_000)]
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.executemany("INSERT INTO eval_runs VALUES (?, ?, ?, ?, ?, ?)", rows)
    for name in (f"run_{1:030x}x1", "run_0" * 1_000):
        began = time.process_time()
        with pytest.raises(NoSuchRun, match=r"(?s)there is no run .* it has:.*… and 19,?991 more"):
            find(db, name)
        assert time.process_time() - began < 5  # minutes, if each were compared


def find(db: Path, name: str) -> None:
    with open_database(db) as database:
        find_run(database, name)


def test_the_nearest_of_few_runs_is_still_named(tmp_path: Path) -> None:
    db = make_database(tmp_path / "eval.sqlite", baseline={"q1": result("c1")})
    with pytest.raises(NoSuchRun, match="did you mean 'baseline'"):
        find(db, "basline")
