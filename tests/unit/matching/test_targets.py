"""Which hits are correct: section 3.1 of the contract, seen through comparisons and aggregates."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import (
    AggregateMetrics,
    ChunkerError,
    CompareReport,
    QueryComparison,
    compute_aggregate,
)
from pytest_kebab_eval.comparing.deltas import Deltas
from pytest_kebab_eval.evaluation import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, hit, line, make_database, result, write_golden

Hits = Sequence[str | Json]
Corpus = dict[str, tuple[str, list[Json]]]


def config(version: str | None) -> Json:
    return {} if version is None else {"chunker_version": version}


def lock_of(version: str | None = "v1", **spans: Sequence[Json]) -> Json:
    """The content of a lock file; every chunk is in document d1."""
    chunks = {chunk_id: {"doc_id": "d1", "spans": list(given)} for chunk_id, given in spans.items()}
    return {"chunker_version": version, "chunks": chunks}


def place(tmp_path: Path, entries: Sequence[Json], lock: Json | None, **database: Any) -> tuple[Path, Path]:
    golden = write_golden(tmp_path / "golden.yaml", [{"query": "?", **entry} for entry in entries])
    if lock is not None:
        (tmp_path / "golden.lock.json").write_text(json.dumps(lock), encoding="utf-8")
    return make_database(tmp_path / "kebab.sqlite", **database), golden


def compared(
    tmp_path: Path,
    entry: Json,
    *,
    a: Hits = (),
    b: Hits = (),
    versions: tuple[str | None, str | None] = ("v1", "v1"),
    lock: Json | None = None,
    settings: Json | None = None,
    **database: Any,
) -> CompareReport:
    """One query, q1, in two runs."""
    db, golden = place(
        tmp_path,
        [{"id": "q1", **entry}],
        lock,
        a={"q1": result(*a)},
        b={"q1": result(*b)},
        configs={"a": config(versions[0]), "b": config(versions[1])},
        **database,
    )
    chosen = Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden, **(settings or {}))
    return evaluate(chosen).report


def only(report: CompareReport) -> QueryComparison:
    (comparison,) = report.per_query
    return comparison


def deltas_of(report: CompareReport) -> Deltas:
    assert report.deltas is not None
    return report.deltas


def side_a(report: CompareReport) -> AggregateMetrics:
    assert report.aggregate_a is not None
    return report.aggregate_a


def kind_of(comparison: QueryComparison) -> str | None:
    return comparison.kind.value if comparison.kind else None


def rank_in_a(tmp_path: Path, entry: Json, *hits: str | Json, **more: Any) -> int | None:
    """The first correct rank where both runs are of one chunker."""
    return only(compared(tmp_path, entry, a=hits, b=hits, **more)).a_hit_rank


def rank_in_b(tmp_path: Path, entry: Json, *hits: str | Json, **more: Any) -> int | None:
    """The first correct rank in B, which was chunked anew."""
    return only(compared(tmp_path, entry, b=hits, versions=("v1", "v2"), **more)).b_hit_rank


def on_lines(chunk_id: str, start: int, end: int, rank: int = 1, doc_id: str = "d1") -> Json:
    """A hit that says by its citation which lines it is."""
    path = f"{doc_id}.md"
    return hit(chunk_id, rank, doc_id=doc_id, doc_path=path, citation=line(path, start, end))


def scored(
    tmp_path: Path, entry: Json, *hits: str | Json, version: str | None = "v1", **more: Any
) -> AggregateMetrics:
    """One query in a run that is scored alone."""
    lock = more.pop("lock", None)
    db, golden = place(
        tmp_path,
        [{"id": "q1", **entry}],
        lock,
        a={"q1": result(*hits)},
        configs={"a": config(version)},
        **more,
    )
    return compute_aggregate("a", db=db, golden=golden)


C1 = {"expected_chunk_ids": ["c1"]}

# -- one chunker ---------------------------------------------------------------------------------


def test_with_one_chunker_a_hit_is_correct_by_its_chunk_id(tmp_path: Path) -> None:
    assert rank_in_a(tmp_path, C1, "c8", "c9", "c1") == 3


def test_with_one_chunker_the_same_lines_under_another_id_are_not_correct(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    assert rank_in_a(tmp_path, C1, on_lines("c2", 1, 10), lock=lock) is None


def test_with_one_chunker_the_expected_document_is_not_enough_where_chunks_are_expected(
    tmp_path: Path,
) -> None:
    entry = {"expected_chunk_ids": ["d1#1"], "expected_doc_ids": ["d1"]}
    assert rank_in_a(tmp_path, entry, "d1#2") is None


def test_with_one_chunker_anchors_are_not_asked_where_chunks_are_expected(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["d1#1"], "gold_supports": [{"path": "d1.md"}]}
    assert rank_in_a(tmp_path, entry, "d1#2", "d1#1") == 2


def test_a_chunk_with_a_gain_is_a_target(tmp_path: Path) -> None:
    assert rank_in_a(tmp_path, {"relevance": {"c2": 3}}, "c1", "c2") == 2


def test_a_gain_of_zero_is_not_a_target(tmp_path: Path) -> None:
    assert rank_in_a(tmp_path, {"relevance": {"c1": 0, "c2": 1}}, "c1", "c2") == 2


def test_a_gain_of_zero_takes_back_an_expected_chunk(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"], "relevance": {"c1": 0}}
    assert rank_in_a(tmp_path, entry, "c1", "c2") == 2


def test_a_query_whose_gains_are_all_zero_has_no_chunk_level_targets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"relevance": {"c1": 0}}, "c1")
    assert (aggregate.by_name()["hit@1"], aggregate.counts["hit@1"]) == (None, 0)


def test_runs_that_both_keep_silent_about_their_chunker_have_the_same(tmp_path: Path) -> None:
    report = compared(tmp_path, C1, a=["c1"], b=["c2"], versions=(None, None))
    assert deltas_of(report).chunker_version_match == "exact"
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (1, None)


@pytest.mark.parametrize("versions", [("v1", None), (None, "v1"), ("v1", "v2")])
def test_a_version_on_one_side_alone_is_a_different_one(
    tmp_path: Path, versions: tuple[str | None, str | None]
) -> None:
    report = compared(tmp_path, C1, a=["c1"], b=["c1"], versions=versions)
    assert deltas_of(report).chunker_version_match == "fallback_doc_span"


# -- anchors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("anchor", "heading_path"),
    [
        ("", ["Guide"]),
        ("", None),
        ("Guide", ["Guide"]),
        ("Guide", ["Guide", "Install"]),
        ("Guide > Install", ["Guide", "Install", "Linux"]),
        ("# Guide > ## Install", ["Guide", "Install"]),
        ("Guide > Install", ["# Guide", "### Install"]),
        ("#Guide", ["Guide"]),
        ("Guide>Install", ["Guide", "Install"]),
        ("  Guide   >  Install ", ["Guide", "Install"]),
        ("Guide > Quick start", ["Guide", "Quick   start"]),
        ("Guide > Inst", ["Guide", "Install"]),  # a prefix as text
        ("C# basics", ["C# basics"]),
        ("안내서", ["안내서", "설치"]),
    ],
)
def test_an_anchor_holds_where_the_heading_path_starts_with_its_own(
    tmp_path: Path, anchor: str, heading_path: list[str] | None
) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "heading": anchor}]}
    assert rank_in_a(tmp_path, entry, hit("d1#1", heading_path=heading_path)) == 1


@pytest.mark.parametrize(
    ("anchor", "heading_path"),
    [
        ("Install", ["Guide", "Install"]),
        ("Guide > Install", ["Guide"]),
        ("Guide", None),
        ("Guide", []),
        ("C# basics", ["C basics"]),  # a '#' within a word is no mark
    ],
)
def test_an_anchor_does_not_hold_under_another_heading(
    tmp_path: Path, anchor: str, heading_path: list[str] | None
) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "heading": anchor}]}
    assert rank_in_a(tmp_path, entry, hit("d1#1", heading_path=heading_path)) is None


def test_an_anchor_does_not_hold_on_another_path(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d2.md", "heading": "Guide"}]}
    assert rank_in_a(tmp_path, entry, hit("d1#1", heading_path=["Guide"])) is None


@pytest.mark.parametrize(
    ("text", "rank"),
    [
        ("Run PIP INSTALL first.", 1),
        ("Use conda.", 1),  # any one of the snippets will do
        ("Nothing of the kind.", None),
        ("", None),
    ],
)
def test_a_snippet_must_be_in_the_text_case_aside(tmp_path: Path, text: str, rank: int | None) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "snippets": ["pip install", "Conda"]}]}
    assert rank_in_a(tmp_path, entry, hit("d1#1", text=text)) == rank


def test_a_snippet_is_not_asked_of_a_hit_whose_text_is_not_at_hand(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "snippets": ["pip install"]}]}
    assert rank_in_a(tmp_path, entry, "d1#1") == 1


def test_the_chunks_table_has_the_text_that_a_hit_does_not_bring(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "snippets": ["text of d1#2"]}]}
    corpus: Corpus = {"d1#1": ("d1", []), "d1#2": ("d1", [])}
    assert rank_in_a(tmp_path, entry, "d1#1", "d1#2", corpus=corpus) == 2


def test_anchors_are_chunk_level_targets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"gold_supports": [{"path": "d1.md"}]}, "d9#1", "d1#1")
    assert (aggregate.by_name()["hit@1"], aggregate.by_name()["hit@3"], aggregate.by_name()["mrr"]) == (
        0.0,
        1.0,
        0.5,
    )


def test_anchors_are_used_before_documents(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "heading": "Guide"}], "expected_doc_ids": ["d1"]}
    hits = [hit("d1#1", 1, heading_path=["Faq"]), hit("d1#2", 2, heading_path=["Guide"])]
    assert rank_in_a(tmp_path, entry, *hits) == 2


def test_a_query_with_anchors_is_counted_as_matched_by_anchor(tmp_path: Path) -> None:
    report = compared(tmp_path, {"gold_supports": [{"path": "d1.md"}]}, a=["d1#1"], b=["d1#1"])
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 1, "span": 0, "text": 0, "document": 0}


# -- documents, for the comparison alone -----------------------------------------------------------


def test_with_documents_alone_a_hit_in_one_is_correct_for_the_comparison(tmp_path: Path) -> None:
    comparison = only(compared(tmp_path, {"expected_doc_ids": ["d1"]}, a=["d1#1"], b=["d2#1", "d1#2"]))
    assert (comparison.a_hit_rank, comparison.b_hit_rank) == (1, 2)


def test_with_documents_alone_there_are_no_chunk_level_metrics(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"expected_doc_ids": ["d1"]}, "d1#1")
    names = ("hit@1", "mrr", "precision@1_chunk")
    assert [aggregate.by_name()[name] for name in names] == [None, None, None]
    assert aggregate.by_name()["recall@1_doc"] == 1.0


def test_matching_by_document_is_counted_and_is_a_draws_only_note(tmp_path: Path) -> None:
    report = compared(tmp_path, {"expected_doc_ids": ["d1"]}, a=["d1#1"], b=["d1#2"])
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 0, "span": 0, "text": 0, "document": 1}
    assert "document" in (only(report).note or "")


@pytest.mark.parametrize("entry", [{}, {"expected_doc_ids": []}], ids=["not judged", "should refuse"])
def test_a_query_that_expects_nothing_found_is_matched_by_nothing(tmp_path: Path, entry: Json) -> None:
    report = compared(tmp_path, entry, a=["c1"], b=["c2"])
    assert set(deltas_of(report).matched_by.values()) == {0}
    assert (kind_of(only(report)), only(report).note) == ("draw", None)


# -- another chunker: the share of the shorter span ------------------------------------------------


@pytest.mark.parametrize(
    ("start", "end", "rank"),
    [
        (6, 15, 1),  # lines 6-10 are shared: 5 of 10
        (7, 16, None),  # 7-10: 4 of 10
        (3, 4, 1),  # a finer chunk within: 2 of 2
        (10, 11, 1),  # a finer chunk, half of it within: 1 of 2
        (10, 12, None),  # 1 of 3
        (1, 500, 1),  # a coarser chunk around it: 10 of 10
        (6, 500, 1),  # a coarser chunk that has the second half: 5 of 10
        (7, 500, None),  # 4 of 10
        (11, 20, None),  # the next chunk, nothing shared
        (10, 10, 1),  # lines are inclusive, the last one too
    ],
)
def test_half_of_the_shorter_span_must_be_shared(
    tmp_path: Path, start: int, end: int, rank: int | None
) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    assert rank_in_b(tmp_path, C1, on_lines("n1", start, end), lock=lock) == rank


def test_the_same_lines_of_another_document_are_not_correct(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    assert rank_in_b(tmp_path, C1, on_lines("n1", 1, 10, doc_id="d2"), lock=lock) is None


def test_the_share_can_be_set(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])  # lines 4-10 of 4-13 are shared: 7 of 10
    more: Json = {"lock": lock, "settings": {"span_overlap": 0.8}}
    assert rank_in_b(tmp_path, C1, on_lines("n1", 4, 13, 1), on_lines("n2", 1, 8, 2), **more) == 2


def test_a_chunk_of_two_spans_is_found_by_either(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=5), line(start=21, end=25)])
    assert rank_in_b(tmp_path, C1, on_lines("n1", 8, 18, 1), on_lines("n2", 21, 25, 2), lock=lock) == 2


def code(start: int, end: int) -> Json:
    return {"kind": "code", "line_start": start, "line_end": end, "symbol": "f", "lang": "py"}


def byte(start: int, end: int) -> Json:
    return {"kind": "byte", "start": start, "end": end}


def page(number: int, start: int | None = None, end: int | None = None) -> Json:
    return {"kind": "page", "page": number, "char_start": start, "char_end": end}


def time(start: int, end: int) -> Json:
    return {"kind": "time", "start_ms": start, "end_ms": end}


def region(x: float, y: float, w: float, h: float) -> Json:
    return {"kind": "region", "x": x, "y": y, "w": w, "h": h}


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (code(1, 10), code(6, 15)),
        (code(1, 10), line(start=6, end=15)),
        (line(start=1, end=10), code(6, 15)),
        (byte(0, 100), byte(50, 150)),
        (time(0, 60_000), time(30_000, 90_000)),
        (page(3), page(3)),
        (page(3, 0, 100), page(3, 50, 150)),
        (page(3, 0, 100), page(3)),
        (region(0, 0, 10, 10), region(5, 0, 10, 10)),  # 50 of 100
        (region(0, 0, 10, 10), region(2, 2, 1, 1)),  # within
        (region(0, 0, 10, 10), region(-50, -50, 500, 500)),  # around
    ],
)
def test_spans_of_every_kind_that_share_half_are_the_same_passage(
    tmp_path: Path, expected: Json, found: Json
) -> None:
    corpus = {"n1": ("d1", [found])}
    report = compared(
        tmp_path,
        C1,
        b=[hit("n1", doc_id="d1")],
        versions=("v1", "v2"),
        lock=lock_of(c1=[expected]),
        corpus=corpus,
        corpus_version="v2",
    )
    assert only(report).b_hit_rank == 1
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 0, "span": 1, "text": 0, "document": 0}


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (code(1, 10), line(start=7, end=16)),
        (byte(0, 100), byte(60, 160)),
        (time(0, 60_000), time(31_000, 91_000)),
        (page(3), page(4)),
        (page(3, 0, 100), page(3, 60, 160)),
        (page(3, 0, 100), page(4, 0, 100)),
        (region(0, 0, 10, 10), region(6, 0, 10, 10)),  # 40 of 100
        (region(0, 0, 10, 10), region(5, 5, 10, 10)),  # 25 of 100
    ],
)
def test_spans_of_every_kind_that_share_less_are_not(tmp_path: Path, expected: Json, found: Json) -> None:
    corpus = {"n1": ("d1", [found])}
    more: Json = {"lock": lock_of(c1=[expected]), "corpus": corpus, "corpus_version": "v2"}
    assert rank_in_b(tmp_path, C1, hit("n1", doc_id="d1"), **more) is None


def test_exactly_half_of_a_region_is_half_also_in_decimal_fractions(tmp_path: Path) -> None:
    # x from 0.1 to 0.7 and from 0.4 to 1.0: 0.3 of 0.6 is shared
    corpus = {"n1": ("d1", [region(0.4, 0, 0.6, 1)])}
    more: Json = {"lock": lock_of(c1=[region(0.1, 0, 0.6, 1)]), "corpus": corpus, "corpus_version": "v2"}
    assert rank_in_b(tmp_path, C1, hit("n1", doc_id="d1"), **more) == 1


@pytest.mark.parametrize(
    "citation",
    [
        line("d1.md", 10**17, 10**17),
        {"kind": "page", "path": "d1.md", "page": 10**18},
        {"kind": "page", "path": "d1.md", "page": 10**400},
        {"kind": "region", "path": "d1.md", "x": 0, "y": 0, "w": 1e-200, "h": 1e-200},
        {"kind": "region", "path": "d1.md", "x": 1e300, "y": 0, "w": 1, "h": 1},
    ],
    ids=["line", "page", "huge page", "tiny region", "far region"],
)
def test_absurd_numbers_in_a_stored_span_do_no_harm(tmp_path: Path, citation: Json) -> None:
    span = {key: value for key, value in citation.items() if key != "path"}
    report = compared(
        tmp_path,
        C1,
        a=["c1"],
        b=[hit("n1", doc_id="d1", citation=citation)],
        versions=("v1", "v2"),
        lock=lock_of(c1=[span]),
    )
    assert len(report.per_query) == 1


# -- another chunker: where the spans come from ----------------------------------------------------

OLD = on_lines("c1", 41, 50)  # a stored hit of run A, and the place it gives for c1
SPANS = [{"doc_id": "d1", "kind": "line", "start": 11, "end": 20, "chunk_id": "c1"}]
LOCK = lock_of(c1=[line(start=21, end=30)])
CORPUS = {"c1": ("d1", [line(start=31, end=40)])}
PLACES = [
    on_lines("n1", 11, 20, 1),
    on_lines("n2", 21, 30, 2),
    on_lines("n3", 31, 40, 3),
    on_lines("n4", 41, 50, 4),
]


@pytest.mark.parametrize(
    ("entry", "more", "rank"),
    [
        ({"expected_spans": SPANS}, {"lock": LOCK, "corpus": CORPUS}, 1),
        ({}, {"lock": LOCK, "corpus": CORPUS}, 2),
        ({}, {"corpus": CORPUS}, 3),
        ({}, {}, 4),
    ],
    ids=["expected_spans", "lock file", "chunks table", "stored hit"],
)
def test_the_span_of_an_expected_chunk_comes_from_the_first_that_knows_it(
    tmp_path: Path, entry: Json, more: Json, rank: int
) -> None:
    report = compared(tmp_path, C1 | entry, a=[OLD], b=PLACES, versions=("v1", "v2"), **more)
    assert only(report).b_hit_rank == rank
    assert deltas_of(report).matched_by["span"] == 1


def test_a_stored_hit_of_run_b_gives_the_place_as_well(tmp_path: Path) -> None:
    old = on_lines("o1", 35, 44)  # shares 41-44, 4 of 10; then 43-52: 41-50 has 8 of it
    report = compared(
        tmp_path, C1, a=[old, on_lines("o2", 43, 52, 2)], b=[OLD], versions=("v2", "v1"), lock=None
    )
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (2, 1)


def test_a_lock_that_does_not_know_the_chunk_leaves_it_to_the_next(tmp_path: Path) -> None:
    lock = lock_of(c7=[line(start=21, end=30)])
    assert rank_in_b(tmp_path, C1, *PLACES, lock=lock, corpus=CORPUS) == 3


def test_a_lock_entry_without_spans_leaves_them_to_the_next(tmp_path: Path) -> None:
    assert rank_in_b(tmp_path, C1, *PLACES, lock=lock_of(c1=[]), corpus=CORPUS) == 3


def test_a_stored_hit_without_a_place_leaves_it_to_the_next(tmp_path: Path) -> None:
    db, golden = place(
        tmp_path,
        [{"id": "q0"}, {"id": "q1", **C1}, {"id": "q2"}],
        None,
        a={"q0": result(hit("c1", doc_id="d1")), "q1": result("c9"), "q2": result(OLD)},
        b={"q1": result(*PLACES), "q2": result("n9")},
        configs={"a": config("v1"), "b": config("v2")},
    )
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)).report
    assert report.per_query[1].b_hit_rank == 4


def test_the_index_of_either_database_knows_the_expected_chunk(tmp_path: Path) -> None:
    golden = write_golden(tmp_path / "golden.yaml", [{"id": "q1", "query": "?", **C1}])
    db_a = make_database(tmp_path / "a.sqlite", a={"q1": result("c9")}, config=config("v2"))
    db_b = make_database(tmp_path / "b.sqlite", b={"q1": result(*PLACES)}, config=config("v1"), corpus=CORPUS)
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db_a, db_b=db_b, golden=golden)).report
    assert report.per_query[0].b_hit_rank == 3


def test_a_hits_own_span_is_that_of_its_chunk_before_that_of_its_citation(tmp_path: Path) -> None:
    corpus = {"n1": ("d1", [line(start=1, end=10)])}
    more: Json = {"lock": LOCK, "corpus": corpus, "corpus_version": "v2"}  # wanted: lines 21-30
    assert rank_in_b(tmp_path, C1, on_lines("n1", 21, 30, 1), on_lines("n2", 21, 30, 2), **more) == 2


# -- another chunker: the last resort --------------------------------------------------------------


def test_where_nobody_knows_the_span_the_document_decides_and_the_note_says_so(tmp_path: Path) -> None:
    entry = C1 | {"expected_doc_ids": ["d1"]}
    report = compared(tmp_path, entry, a=["d9#1"], b=["d2#1", "d1#7"], versions=("v1", "v2"))
    assert only(report).b_hit_rank == 2
    assert "document" in (only(report).note or "")
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 0, "span": 0, "text": 0, "document": 1}


def test_a_lock_entry_without_spans_still_names_the_document(tmp_path: Path) -> None:
    lock = lock_of(c1=[])
    assert rank_in_b(tmp_path, C1, "d2#1", "d1#7", lock=lock) == 2


def test_a_query_matched_by_document_in_the_fallback_still_has_chunk_level_metrics(tmp_path: Path) -> None:
    entry = C1 | {"expected_doc_ids": ["d1"]}
    report = compared(tmp_path, entry, a=["d1#1"], b=["d1#7"], versions=("v1", "v2"))
    assert (side_a(report).by_name()["hit@1"], report.aggregate_b.by_name()["hit@1"]) == (1.0, 1.0)


def test_spans_that_do_not_compare_are_matched_by_document_and_that_is_noted(tmp_path: Path) -> None:
    paged = hit("n1", doc_id="d1", citation={"kind": "page", "path": "d1.md", "page": 7})
    report = compared(
        tmp_path,
        C1,
        a=[on_lines("c1", 1, 10)],
        b=[paged],
        versions=("v1", "v2"),
        lock=lock_of(c1=[line(start=1, end=10)]),
    )
    assert (kind_of(only(report)), only(report).b_hit_rank) == ("draw", 1)
    assert "document" in (only(report).note or "")
    assert deltas_of(report).matched_by["document"] == 1


def test_a_draw_that_was_matched_by_span_has_no_note(tmp_path: Path) -> None:
    report = compared(
        tmp_path,
        C1,
        a=[on_lines("c1", 1, 10)],
        b=[on_lines("n1", 1, 12)],
        versions=("v1", "v2"),
        lock=lock_of(c1=[line(start=1, end=10)]),
    )
    assert (kind_of(only(report)), only(report).note) == ("draw", None)


def test_another_chunker_asks_the_anchors_instead_of_the_spans(tmp_path: Path) -> None:
    entry = C1 | {"gold_supports": [{"path": "d1.md", "heading": "Guide"}]}
    hits = [
        on_lines("n1", 1, 10, 1) | {"heading_path": ["Faq"]},
        on_lines("n2", 90, 99, 2) | {"heading_path": ["Guide"]},
    ]
    report = compared(
        tmp_path, entry, b=hits, versions=("v1", "v2"), lock=lock_of(c1=[line(start=1, end=10)])
    )
    assert only(report).b_hit_rank == 2
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 1, "span": 0, "text": 0, "document": 0}


# -- spans that are targets of their own -----------------------------------------------------------

OWN_SPAN = {"expected_spans": [{"doc_id": "d1", "kind": "line", "start": 1, "end": 10}]}


@pytest.mark.parametrize("versions", [("v1", "v1"), ("v1", "v2")], ids=["one chunker", "two"])
def test_a_span_without_a_chunk_is_a_target_of_its_own(tmp_path: Path, versions: tuple[str, str]) -> None:
    report = compared(
        tmp_path,
        OWN_SPAN,
        a=[on_lines("x", 11, 20, 1), on_lines("y", 1, 4, 2)],
        b=[on_lines("z", 7, 16)],  # lines 7-10: 4 of 10
        versions=versions,
    )
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (2, None)
    assert len(only(report).lost) == 1
    assert deltas_of(report).matched_by["span"] == 1


def test_a_span_of_its_own_is_a_chunk_level_target(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, OWN_SPAN, on_lines("x", 1, 10))
    assert (aggregate.by_name()["hit@1"], aggregate.counts["hit@1"]) == (1.0, 1)


def test_a_span_of_its_own_stands_beside_the_expected_chunks(tmp_path: Path) -> None:
    a, b = [hit("c1", 1), on_lines("x", 1, 10, 2)], [on_lines("x", 1, 10, 1)]
    comparison = only(compared(tmp_path, C1 | OWN_SPAN, a=a, b=b))
    assert (comparison.a_hit_rank, comparison.b_hit_rank, comparison.lost, comparison.gained) == (
        1,
        1,
        ("c1",),
        (),
    )


def test_one_hit_may_be_an_expected_chunk_and_a_span_of_its_own(tmp_path: Path) -> None:
    # lines 1-10 are found in both runs: as c1 itself in A, under another id in B
    comparison = only(compared(tmp_path, C1 | OWN_SPAN, a=[on_lines("c1", 1, 10)], b=[on_lines("x", 1, 10)]))
    assert (comparison.lost, comparison.gained) == (("c1",), ())


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
    assert (side_a(report).by_name()["mrr"], report.aggregate_b.by_name()["mrr"]) == (1.0, 0.5)
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
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 1, "span": 2, "text": 0, "document": 1}


def test_strict_refuses_to_compare_two_chunkers_and_names_them(tmp_path: Path) -> None:
    with pytest.raises(ChunkerError, match=r"v1.*v2"):
        compared(tmp_path, C1, versions=("v1", "v2"), settings={"strict_chunker_version": True})


def test_strict_has_nothing_against_one_chunker(tmp_path: Path) -> None:
    report = compared(tmp_path, C1, a=["c1"], b=["c1"], settings={"strict_chunker_version": True})
    assert deltas_of(report).chunker_version_match == "exact"


# -- a run scored alone ----------------------------------------------------------------------------


def test_alone_a_run_of_the_locks_version_is_matched_by_chunk_id(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, C1, on_lines("n1", 21, 30), lock=LOCK, version="v1")
    assert (aggregate.match, aggregate.by_name()["hit@1"]) == ("exact", 0.0)


@pytest.mark.parametrize("version", ["v2", None])
def test_alone_a_run_of_another_version_than_the_lock_is_matched_by_span(
    tmp_path: Path, version: str | None
) -> None:
    hits = [on_lines("n0", 1, 10, 1), on_lines("n1", 21, 30, 2)]
    aggregate = scored(tmp_path, C1, *hits, lock=LOCK, version=version)
    assert (aggregate.match, aggregate.by_name()["mrr"]) == ("fallback_doc_span", 0.5)


def test_alone_and_without_a_lock_the_expected_ids_in_the_index_say_the_version(tmp_path: Path) -> None:
    hits = [on_lines("n0", 1, 10, 1), on_lines("n1", 31, 40, 2)]
    aggregate = scored(tmp_path, C1, *hits, version="v2", corpus=CORPUS, corpus_version="v1")
    assert (aggregate.match, aggregate.by_name()["mrr"]) == ("fallback_doc_span", 0.5)


def test_alone_the_lock_has_the_word_before_the_index(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, C1, "c1", version="v1", lock=LOCK, corpus=CORPUS, corpus_version="v3")
    assert aggregate.match == "exact"


def test_alone_and_with_nothing_to_say_otherwise_the_version_is_the_golden_sets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, C1, "c1", version="v9")
    assert (aggregate.match, aggregate.by_name()["hit@1"]) == ("exact", 1.0)


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
    assert report.aggregate_b.by_name()["hit@1"] == 1.0  # lines 25-30: 6 of 10
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
