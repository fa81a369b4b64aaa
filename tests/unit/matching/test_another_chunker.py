"""Which hits are correct where the chunkers differ: spans, where they come from, and the last resort."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, deltas_of, hit, line, make_database, result, side_a, write_golden
from tests.unit.matching.conftest import (
    C1,
    CORPUS,
    LOCK,
    OLD,
    SPANS,
    compared,
    config,
    judged,
    kind_of,
    lock_of,
    on_lines,
    only,
    place,
    rank_in_b,
)

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
def test_half_of_the_shorter_span_must_be_shared(start: int, end: int, rank: int | None) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    assert rank_in_b(C1, on_lines("n1", start, end), lock=lock) == rank


@pytest.mark.parametrize(("end", "rank"), [(1_000, 1), (1_001, None), (4_000, None)])
def test_a_target_must_be_a_hundredth_of_a_hit_for_the_hit_to_be_taken_for_it(
    end: int, rank: int | None
) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])  # 10 of 1,000 lines are a hundredth
    assert rank_in_b(C1, on_lines("n1", 1, end), lock=lock) == rank


def test_one_huge_chunk_for_every_query_is_a_regression(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    b = [on_lines("n1", 1, 4_000)]
    report = compared(tmp_path, C1, a=[on_lines("c1", 1, 10)], b=b, versions=("v1", "v2"), lock=lock)
    assert kind_of(only(report)) == "regression"


def test_of_a_chunk_that_was_cut_finer_precision_counts_one_hit(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    finer = [on_lines(f"n{rank}", 2 * rank - 1, 2 * rank, rank=rank) for rank in range(1, 6)]
    report = compared(tmp_path, C1, a=[on_lines("c1", 1, 10)], b=finer, versions=("v1", "v2"), lock=lock)
    assert side_a(report).value("precision@5_chunk") == 0.2
    assert report.aggregate_b.value("precision@5_chunk") == 0.2  # not five of five


def test_a_chunk_that_is_several_targets_counts_for_each_in_precision(tmp_path: Path) -> None:
    lock = lock_of(c1=[line(start=1, end=10)], c2=[line(start=11, end=20)])
    entry = {"expected_chunk_ids": ["c1", "c2"], "expected_doc_ids": ["d1"]}
    a = [on_lines("c1", 1, 10), on_lines("c2", 11, 20, rank=2)]
    report = compared(tmp_path, entry, a=a, b=[on_lines("n1", 1, 20)], versions=("v1", "v2"), lock=lock)
    assert side_a(report).value("precision@5_chunk") == 0.4
    assert report.aggregate_b.value("precision@5_chunk") == 0.4
    assert report.aggregate_b.value("precision@1_chunk") == 1.0  # at most


def test_with_one_chunker_every_hit_under_an_anchor_counts_in_precision(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md"}]}
    b = [on_lines("n1", 1, 10), on_lines("n2", 11, 20, rank=2)]
    report = compared(tmp_path, entry, a=b, b=b)
    assert report.aggregate_b.value("precision@5_chunk") == 0.4


# -- how long the hits are -------------------------------------------------------------------------


@pytest.mark.parametrize(("versions", "warned"), [(("v1", "v2"), True), (("v1", "v1"), False)])
@pytest.mark.parametrize(("end", "is_longer"), [(20, False), (21, True)])
def test_hits_of_more_than_twice_the_length_are_warned_of(
    tmp_path: Path, versions: tuple[str, str], warned: bool, end: int, is_longer: bool
) -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    a, b = [on_lines("c1", 1, 10)], [on_lines("n1", 1, end)]
    report = compared(tmp_path, C1, a=a, b=b, versions=versions, lock=lock)
    said = [warning for warning in report.warnings if "on average" in warning]
    sentence = (
        "the hits of run b have 21 lines on average, those of run a 10: as many hits hold 2.1 times as much,"
        " which moves hit@k, mrr, recall@k, recall_all@k, precision@k_chunk, ndcg@k and map; compare them at"
        " cutoffs that hold as much"
    )
    assert said == ([sentence] if warned and is_longer else [])


def test_where_texts_are_stored_they_say_how_long_hits_are(tmp_path: Path) -> None:
    a = [on_lines("c1", 1, 10, text="x" * 100)]
    b = [on_lines("n1", 1, 10, text="x" * 500)]
    report = compared(tmp_path, C1, a=a, b=b, versions=("v1", "v2"), lock=lock_of(c1=[line(start=1, end=10)]))
    assert any("500 characters on average, those of run a 100" in warning for warning in report.warnings)


def test_the_same_lines_of_another_document_are_not_correct() -> None:
    lock = lock_of(c1=[line(start=1, end=10)])
    assert rank_in_b(C1, on_lines("n1", 1, 10, doc_id="d2"), lock=lock) is None


def test_the_share_can_be_set() -> None:
    lock = lock_of(c1=[line(start=1, end=10)])  # lines 4-10 of 4-13 are shared: 7 of 10
    more: Json = {"lock": lock, "share": 0.8}
    assert rank_in_b(C1, on_lines("n1", 4, 13, 1), on_lines("n2", 1, 8, 2), **more) == 2


def test_a_chunk_of_two_spans_is_found_by_either() -> None:
    lock = lock_of(c1=[line(start=1, end=5), line(start=21, end=25)])
    assert rank_in_b(C1, on_lines("n1", 8, 18, 1), on_lines("n2", 21, 25, 2), lock=lock) == 2


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
    ("expected", "found", "is_found"),
    [
        (code(1, 10), code(6, 15), True),
        (code(1, 10), line(start=6, end=15), True),
        (line(start=1, end=10), code(6, 15), True),
        (code(1, 10), line(start=7, end=16), False),
        (byte(0, 100), byte(50, 150), True),
        (byte(0, 100), byte(60, 160), False),
        (time(0, 60_000), time(30_000, 90_000), True),
        (time(0, 60_000), time(31_000, 91_000), False),
        (page(3), page(3), True),
        (page(3, 0, 100), page(3, 50, 150), True),
        (page(3, 0, 100), page(3), True),
        (page(3), page(4), False),
        (page(3, 0, 100), page(3, 60, 160), False),
        (page(3, 0, 100), page(4, 0, 100), False),
        (region(0, 0, 10, 10), region(5, 0, 10, 10), True),  # 50 of 100
        (region(0, 0, 10, 10), region(2, 2, 1, 1), True),  # within
        (region(0, 0, 10, 10), region(-50, -50, 500, 500), True),  # around
        (region(0, 0, 10, 10), region(6, 0, 10, 10), False),  # 40 of 100
        (region(0, 0, 10, 10), region(5, 5, 10, 10), False),  # 25 of 100
        (region(0.1, 0, 0.6, 1), region(0.4, 0, 0.6, 1), True),  # 0.3 of 0.6, whatever floats make of it
    ],
)
def test_half_must_be_shared_of_spans_of_every_kind(expected: Json, found: Json, is_found: bool) -> None:
    ranking = judged(
        C1, hit("n1", doc_id="d1", citation={"path": "d1.md", **found}), lock=lock_of(c1=[expected])
    )
    assert (ranking.first == 1, ranking.by_document) == (is_found, False)


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
def test_absurd_numbers_in_a_stored_span_do_no_harm(citation: Json) -> None:
    span = {key: value for key, value in citation.items() if key != "path"}
    assert rank_in_b(C1, hit("n1", doc_id="d1", citation=citation), lock=lock_of(c1=[span])) == 1


# -- another chunker: where the spans come from ----------------------------------------------------

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
        ({}, {"lock": lock_of(c7=[line(start=21, end=30)]), "corpus": CORPUS}, 3),
        ({}, {"lock": lock_of(c1=[]), "corpus": CORPUS}, 3),
        ({}, {}, 4),
    ],
    ids=[
        *("expected_spans", "lock file", "chunks table", "a lock without the chunk", "a lock without spans"),
        "stored hit",
    ],
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
    db_a = make_database(tmp_path / "a.sqlite", a={"q1": result("c9")}, config=config("v1"))
    db_b = make_database(tmp_path / "b.sqlite", b={"q1": result(*PLACES)}, config=config("v2"), corpus=CORPUS)
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db_a, db_b=db_b, golden=golden)).report
    assert report.per_query[0].b_hit_rank == 3


def test_a_hits_own_span_is_that_of_its_chunk_before_that_of_its_citation(tmp_path: Path) -> None:
    index: Json = {"corpus": {"n1": ("d1", [line(start=1, end=10)])}, "corpus_version": "v2"}
    b = [on_lines("n1", 21, 30, 1), on_lines("n2", 21, 30, 2)]  # wanted: lines 21-30
    report = compared(tmp_path, C1, b=b, versions=("v1", "v2"), lock=LOCK, **index)
    assert only(report).b_hit_rank == 2


# -- another chunker: the last resort --------------------------------------------------------------


def test_where_nobody_knows_the_span_the_document_decides_and_the_note_says_so(tmp_path: Path) -> None:
    entry = C1 | {"expected_doc_ids": ["d1"]}
    report = compared(tmp_path, entry, a=["d9#1"], b=["d2#1", "d1#7"], versions=("v1", "v2"))
    assert only(report).b_hit_rank == 2
    assert "document" in (only(report).note or "")
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 0,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 1,
    }


def test_a_lock_entry_without_spans_still_names_the_document() -> None:
    lock = lock_of(c1=[])
    assert rank_in_b(C1, "d2#1", "d1#7", lock=lock) == 2


def test_a_query_matched_by_document_in_the_fallback_still_has_chunk_level_metrics(tmp_path: Path) -> None:
    entry = C1 | {"expected_doc_ids": ["d1"]}
    report = compared(tmp_path, entry, a=["d1#1"], b=["d1#7"], versions=("v1", "v2"))
    assert (side_a(report).values["hit@1"], report.aggregate_b.values["hit@1"]) == (1.0, 1.0)


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
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 1,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 0,
    }
