"""Whether runs are compared by chunk id or by location, in totals and alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pytest_kebab_eval import RunRecorder, compute_aggregate
from pytest_kebab_eval.errors import ChunkerError
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, deltas_of, line, result, side_a, write_golden
from tests.unit.matching.conftest import (
    C1,
    CORPUS,
    LOCK,
    OWN_SPAN,
    Corpus,
    compared,
    config,
    on_lines,
    only,
    place,
    scored,
)

# -- totals: the same matching for everything ------------------------------------------------------


def test_a_rechunked_run_does_not_score_zero(tmp_path: Path) -> None:
    report = compared(
        tmp_path,
        C1,
        a=[on_lines("c1", 1, 10)],
        b=[on_lines("n9", 50, 60, 1), on_lines("n1", 1, 5, 2)],
        versions=("v1", "v2"),
    )
    assert only(report).b_hit_rank == 2
    assert (side_a(report).values["mrr"], report.aggregate_b.values["mrr"]) == (1.0, 0.5)
    assert (side_a(report).match, report.aggregate_b.match) == ("fallback_doc_span",) * 2


def test_every_query_is_counted_under_what_it_was_matched_by(tmp_path: Path) -> None:
    entries: list[Json] = [
        {"id": "by-anchor", "gold_supports": [{"path": "d1.md"}], "expected_chunk_ids": ["c1"]},
        {"id": "by-span", "expected_chunk_ids": ["c1"]},
        {"id": "by-span-2", **OWN_SPAN},
        {"id": "by-document", "expected_doc_ids": ["d1"]},
        {"id": "by-nothing", "expected_doc_ids": []},
        {"id": "in-neither-run", "expected_chunk_ids": ["c1"]},
    ]
    stored = {str(entry["id"]): result(on_lines("c1", 1, 10)) for entry in entries[:-1]}
    configs = {"a": config("v1"), "b": config("v2")}
    db, golden = place(tmp_path, entries, None, a=stored, b=stored, configs=configs)
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)).report
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 1,
        "span": 2,
        "text": 0,
        "answer": 0,
        "document": 1,
    }


def test_strict_refuses_to_compare_two_chunkers_and_names_them(tmp_path: Path) -> None:
    with pytest.raises(ChunkerError, match=r"v1.*v2"):
        compared(tmp_path, C1, versions=("v1", "v2"), settings={"strict_chunker_version": True})


def test_strict_has_nothing_against_one_chunker(tmp_path: Path) -> None:
    report = compared(tmp_path, C1, a=["c1"], b=["c1"], settings={"strict_chunker_version": True})
    assert deltas_of(report).chunker_version_match == "exact"


# -- a run scored alone ----------------------------------------------------------------------------


def test_alone_a_run_of_the_locks_version_is_matched_by_chunk_id(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, C1, on_lines("n1", 21, 30), lock=LOCK, version="v1")
    assert (aggregate.match, aggregate.values["hit@1"]) == ("exact", 0.0)


@pytest.mark.parametrize("version", ["v2", None])
def test_alone_a_run_of_another_version_than_the_lock_is_matched_by_span(
    tmp_path: Path, version: str | None
) -> None:
    hits = [on_lines("n0", 1, 10, 1), on_lines("n1", 21, 30, 2)]
    aggregate = scored(tmp_path, C1, *hits, lock=LOCK, version=version)
    assert (aggregate.match, aggregate.values["mrr"]) == ("fallback_doc_span", 0.5)


@pytest.mark.parametrize(
    ("version", "match"), [("v1", "exact"), ("v2", "fallback_doc_span"), ("v3", "fallback_doc_span")]
)
def test_alone_the_chunker_that_has_all_expected_ids_is_the_golden_files(
    tmp_path: Path, version: str, match: str
) -> None:
    # v2 shares c1 with v1, by chance: there it is another part of the document.
    own = {"v1": {"c1": (1, 10), "c2": (11, 20)}, "v2": {"c1": (1, 3), "n1": (12, 20)}, "v3": {"x": (12, 20)}}
    db, golden = tmp_path / "own.sqlite", tmp_path / "golden.yaml"
    write_golden(golden, [{"id": f"q{n}", "query": "?", "expected_chunk_ids": [f"c{n}"]} for n in (1, 2)])
    for run_id, cuts in own.items():
        chunks = [
            {"chunk_id": name, "doc_id": "d1", "start": start, "end": end}
            for name, (start, end) in cuts.items()
        ]
        with RunRecorder(db, run_id=run_id, config=config(run_id), chunks=chunks) as run:
            run.record("q2", [list(cuts)[-1]])  # at lines 11 or 12 to 20 by each chunker
    aggregate = compute_aggregate(version, db=db, golden=golden)
    assert (aggregate.match, aggregate.values["hit@1"]) == (match, 1.0)


def test_alone_and_without_a_lock_the_expected_ids_in_the_index_say_the_version(tmp_path: Path) -> None:
    hits = [on_lines("n0", 1, 10, 1), on_lines("n1", 31, 40, 2)]
    aggregate = scored(tmp_path, C1, *hits, version="v2", corpus=CORPUS, corpus_version="v1")
    assert (aggregate.match, aggregate.values["mrr"]) == ("fallback_doc_span", 0.5)


def test_alone_the_lock_has_the_word_before_the_index(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, C1, "c1", version="v1", lock=LOCK, corpus=CORPUS, corpus_version="v3")
    assert aggregate.match == "exact"


def test_alone_and_with_nothing_to_say_otherwise_the_version_is_the_golden_sets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, C1, "c1", version="v9")
    assert (aggregate.match, aggregate.values["hit@1"]) == ("exact", 1.0)


def test_alone_and_in_a_comparison_a_rechunked_run_has_the_same_aggregate(tmp_path: Path) -> None:
    db, golden = place(
        tmp_path,
        [{"id": "q1", **C1}],
        LOCK,
        a={"q1": result(on_lines("c1", 21, 30))},
        b={"q1": result(on_lines("n1", 25, 40), answer=answer(cites=[line("d1.md", 25, 40)]))},
        configs={"a": config("v1"), "b": config("v2")},
    )
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)).report
    assert report.aggregate_b.values["hit@1"] == 1.0  # lines 25-30: 6 of 10
    assert compute_aggregate("b", db=db, golden=golden) == report.aggregate_b


@pytest.mark.parametrize("first", ["guide", "code"])
def test_runs_of_one_version_are_matched_by_chunk_id_whatever_else_the_index_holds(
    tmp_path: Path, first: str
) -> None:
    entries: list[Json] = [{"id": name, "expected_chunk_ids": [name]} for name in ("guide", "code")]
    entries.sort(key=lambda entry: entry["id"] != first)
    stored = {"guide": result("guide"), "code": result("code")}
    corpus: Corpus = {"guide": ("d1", []), "code": ("d2", [])}
    db, golden = place(tmp_path, entries, None, a=stored, b=stored, config=config("md-v1"), corpus=corpus)
    set_versions(db, guide="md-v1", code="rust-ast-v1")
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)).report
    assert deltas_of(report).chunker_version_match == "exact"


def set_versions(db: Path, **versions: str) -> None:
    connection = sqlite3.connect(db)
    for chunk_id, version in versions.items():
        connection.execute("UPDATE chunks SET chunker_version = ? WHERE chunk_id = ?", (version, chunk_id))
    connection.commit()
    connection.close()
