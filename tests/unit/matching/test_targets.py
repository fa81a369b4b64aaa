"""Which hits are correct: section 3.1 of the contract, seen through comparisons and aggregates."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json, deltas_of, hit, line
from tests.unit.matching.conftest import (
    C1,
    OWN_SPAN,
    Corpus,
    compared,
    kind_of,
    lock_of,
    on_lines,
    only,
    rank_in_a,
    scored,
)

# -- one chunker -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "hits", "rank"),
    [
        (C1, ["c8", "c9", "c1"], 3),
        (C1, [on_lines("c2", 1, 10)], None),  # the same lines under another id
        ({"expected_chunk_ids": ["d1#1"], "expected_doc_ids": ["d1"]}, ["d1#2"], None),
        ({"expected_chunk_ids": ["d1#1"], "gold_supports": [{"path": "d1.md"}]}, ["d1#2", "d1#1"], 2),
        ({"relevance": {"c2": 3}}, ["c1", "c2"], 2),
        ({"relevance": {"c1": 0, "c2": 1}}, ["c1", "c2"], 2),
        ({"expected_chunk_ids": ["c1", "c2"], "relevance": {"c1": 0}}, ["c1", "c2"], 2),
        ({"expected_doc_ids": ["d1"]}, ["d2#1", "d1#2"], 2),
    ],
    ids=[
        *("an id", "lines", "not by document", "not by anchor", "a gain", "a gain of zero", "one taken back"),
        "documents alone",
    ],
)
def test_with_one_chunker_a_hit_is_correct_by_its_id(
    entry: Json, hits: list[str | Json], rank: int | None
) -> None:
    assert rank_in_a(entry, *hits, lock=lock_of(c1=[line(start=1, end=10)])) == rank


def test_a_query_whose_gains_are_all_zero_has_no_chunk_level_targets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"relevance": {"c1": 0}}, "c1")
    assert (aggregate.values["hit@1"], aggregate.counts["hit@1"]) == (None, 0)


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


# -- anchors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("anchor", "heading_path", "holds"),
    [
        ("", ["Guide"], True),
        ("", None, True),
        ("Guide", ["Guide"], True),
        ("Guide", ["Guide", "Install"], True),
        ("Guide > Install", ["Guide", "Install", "Linux"], True),
        ("# Guide > ## Install", ["Guide", "Install"], True),
        ("Guide > Install", ["# Guide", "### Install"], True),
        ("#Guide", ["Guide"], True),
        ("Guide>Install", ["Guide", "Install"], True),
        ("  Guide   >  Install ", ["Guide", "Install"], True),
        ("Guide > Quick start", ["Guide", "Quick   start"], True),
        ("Guide > Inst", ["Guide", "Install"], True),  # a prefix as text
        ("C# basics", ["C# basics"], True),
        ("안내서", ["안내서", "설치"], True),
        ("Install", ["Guide", "Install"], False),
        ("Guide > Install", ["Guide"], False),
        ("Guide", None, False),
        ("Guide", [], False),
        ("C# basics", ["C basics"], False),  # a '#' within a word is no mark
    ],
)
def test_an_anchor_holds_where_the_heading_path_starts_with_its_own(
    anchor: str, heading_path: list[str] | None, holds: bool
) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "heading": anchor}]}
    assert rank_in_a(entry, hit("d1#1", heading_path=heading_path)) == (1 if holds else None)
    assert rank_in_a(entry, hit("d2#1", heading_path=heading_path)) is None  # another path


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("Run PIP INSTALL first.", True),
        ("Use conda.", True),  # any one of the snippets will do
        ("Nothing of the kind.", False),
        ("", False),
        (None, True),  # a text that is not at hand is not asked
    ],
)
def test_a_snippet_must_be_in_the_text_case_aside(text: str | None, holds: bool) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "snippets": ["pip install", "Conda"]}]}
    assert rank_in_a(entry, hit("d1#1", text=text)) == (1 if holds else None)


def test_the_chunks_table_has_the_text_that_a_hit_does_not_bring(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "snippets": ["text of d1#2"]}]}
    corpus: Corpus = {"d1#1": ("d1", []), "d1#2": ("d1", [])}
    report = compared(tmp_path, entry, a=["d1#1", "d1#2"], b=["d1#1", "d1#2"], corpus=corpus)
    assert only(report).a_hit_rank == 2


def test_anchors_are_chunk_level_targets(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"gold_supports": [{"path": "d1.md"}]}, "d9#1", "d1#1")
    assert (aggregate.values["hit@1"], aggregate.values["hit@3"], aggregate.values["mrr"]) == (
        0.0,
        1.0,
        0.5,
    )


def test_anchors_are_used_before_documents() -> None:
    entry = {"gold_supports": [{"path": "d1.md", "heading": "Guide"}], "expected_doc_ids": ["d1"]}
    hits = [hit("d1#1", 1, heading_path=["Faq"]), hit("d1#2", 2, heading_path=["Guide"])]
    assert rank_in_a(entry, *hits) == 2


def test_a_query_with_anchors_is_counted_as_matched_by_anchor(tmp_path: Path) -> None:
    report = compared(tmp_path, {"gold_supports": [{"path": "d1.md"}]}, a=["d1#1"], b=["d1#1"])
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 1,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 0,
    }


# -- documents, for the comparison alone -----------------------------------------------------------


def test_with_documents_alone_there_are_no_chunk_level_metrics(tmp_path: Path) -> None:
    aggregate = scored(tmp_path, {"expected_doc_ids": ["d1"]}, "d1#1")
    names = ("hit@1", "mrr", "precision@1_chunk")
    assert [aggregate.values[name] for name in names] == [None, None, None]
    assert aggregate.values["recall@1_doc"] == 1.0


def test_matching_by_document_is_counted_and_is_a_draws_only_note(tmp_path: Path) -> None:
    report = compared(tmp_path, {"expected_doc_ids": ["d1"]}, a=["d1#1"], b=["d1#2"])
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 0,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 1,
    }
    assert "document" in (only(report).note or "")


@pytest.mark.parametrize("entry", [{}, {"expected_doc_ids": []}], ids=["not judged", "should refuse"])
def test_a_query_that_expects_nothing_found_is_matched_by_nothing(tmp_path: Path, entry: Json) -> None:
    report = compared(tmp_path, entry, a=["c1"], b=["c2"])
    assert set(deltas_of(report).matched_by.values()) == {0}
    assert (kind_of(only(report)), only(report).note) == ("draw", None)


# -- spans that are targets of their own -----------------------------------------------------------


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
    assert (aggregate.values["hit@1"], aggregate.counts["hit@1"]) == (1.0, 1)


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
