"""After re-indexing, an id in `chunks` may be that of another chunk; and other comparisons that could lie."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_kebab_eval import CompareReport, compare_runs
from pytest_kebab_eval.cli import main
from tests.builders import Json, hit, line, make_database, result, write_golden

V1, V2 = {"chunker_version": "v1"}, {"chunker_version": "v2"}
EXPECTS = {"id": "q1", "query": "?", "expected_chunk_ids": ["d#3"], "expected_doc_ids": ["d"]}


def compared(tmp_path: Path, *, lock: str | None = None, **database: object) -> CompareReport:
    golden = write_golden(tmp_path / "golden.yaml", [EXPECTS])
    if lock is not None:
        (tmp_path / "golden.lock.json").write_text(lock, encoding="utf-8")
    make_database(tmp_path / "k.sqlite", **database)  # type: ignore[arg-type]
    return compare_runs("a", "b", db=tmp_path / "k.sqlite", golden=golden)


def at(chunk_id: str, start: int, end: int) -> Json:
    return result(hit(chunk_id, citation=line("d.md", start, end)))


def test_two_runs_of_one_chunker_are_matched_by_id_though_the_index_was_rebuilt(tmp_path: Path) -> None:
    # d#3 and d#4 overlap by half in the new index; the runs know nothing of it.
    index = {"d#3": ("d", [line(None, 11, 20)]), "d#4": ("d", [line(None, 16, 25)])}
    report = compared(
        tmp_path,
        config=V1,
        corpus=index,
        corpus_version="v2",
        a={"q1": result("d#3")},
        b={"q1": result("d#4")},
    )
    assert (report.per_query[0].kind, report.aggregate_b.match) == ("regression", "exact")


def test_ids_of_another_chunker_than_both_runs_are_matched_by_place_with_a_warning(tmp_path: Path) -> None:
    report = compared(
        tmp_path,
        config=V2,
        lock='{"chunker_version": "v1", "chunks": {"d#3": {"doc_id": "d", "spans":'
        ' [{"kind": "line", "start": 21, "end": 30}]}}}',
        a={"q1": at("d#n1", 21, 30)},
        b={"q1": at("d#n2", 1, 5)},
    )
    assert (report.per_query[0].kind, report.aggregate_a.match if report.aggregate_a else "") == (
        "regression",
        "fallback_doc_span",
    )
    assert any("of another chunker than both runs" in warning for warning in report.warnings)


@pytest.mark.parametrize("locked", [True, False])
def test_a_hit_is_where_its_own_chunker_put_it_not_where_the_new_index_has_its_id(
    tmp_path: Path, locked: bool
) -> None:
    # Under v1, d#3 was lines 21-30. The index is v2's by now, where d#3 is lines 11-15: what B returns.
    lock = (
        '{"chunker_version": "v1", "chunks": {"d#3": {"doc_id": "d",'
        ' "spans": [{"kind": "line", "start": 21, "end": 30}]}}}'
    )
    report = compared(
        tmp_path,
        configs={"a": V1, "b": V2},
        corpus={"d#3": ("d", [line(None, 11, 15)])},
        corpus_version="v2",
        lock=lock if locked else None,
        a={"q1": at("d#3", 21, 30)},
        b={"q1": at("d#3", 11, 15)},
    )
    assert (report.per_query[0].kind, report.per_query[0].a_hit_rank) == ("regression", 1)


def test_a_chunk_that_nobody_can_locate_is_still_itself(tmp_path: Path) -> None:
    golden = write_golden(
        tmp_path / "golden.yaml", [{"id": "q1", "query": "?", "expected_chunk_ids": ["c1"]}]
    )
    bare = result({"rank": 1, "chunk_id": "c1"})
    other = result({"rank": 1, "chunk_id": "c2"})
    db = make_database(tmp_path / "k.sqlite", configs={"a": V1, "b": V2}, a={"q1": bare}, b={"q1": other})
    assert compare_runs("a", "b", db=db, golden=golden).per_query[0].kind == "regression"


def test_a_lock_of_another_chunker_is_replaced_only_by_force(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [EXPECTS])
    lock = tmp_path / "golden.lock.json"
    lock.write_text('{"chunker_version": "v1", "chunks": {"d#3": {"doc_id": "d"}}}', encoding="utf-8")
    before = lock.read_bytes()
    db = make_database(
        tmp_path / "k.sqlite", corpus={"d#3": ("d", [line(None, 1, 5)])}, corpus_version="v2", a={}
    )
    words = ["lock", "--db", str(db), "--golden", str(golden)]
    refused = CliRunner().invoke(main, words)
    assert (refused.exit_code, lock.read_bytes()) == (2, before)
    assert "is of chunker v1, the database of v2; say --force" in refused.output
    assert CliRunner().invoke(main, [*words, "--force"]).exit_code == 0
    assert b'"chunker_version": "v2"' in lock.read_bytes()


def test_a_golden_file_of_other_runs_is_a_problem_and_not_a_pass(tmp_path: Path) -> None:
    report = compared(tmp_path, a={"x": result("c1")}, b={"x": result("c1")})
    assert "none of the 1 golden queries" in report.problems[0]


def test_what_no_run_found_is_listed(tmp_path: Path) -> None:
    assert compared(tmp_path, a={"q1": result("c1")}, b={"q1": result("c1")}).missed == ("q1",)
