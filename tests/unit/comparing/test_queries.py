"""Two runs, query by query: section 3.3 of the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Json, answer, hit, line, result, side_a
from tests.unit.comparing.conftest import (
    C1,
    ERRORED,
    HIT,
    MISS,
    RULED,
    SHIPPED,
    at,
    compared,
    compared_all,
    kind_of,
)

# -- kinds and notes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "kind", "note", "ranks"),
    [
        (MISS, HIT, "win", "miss→hit", (None, 1)),
        (at(4), HIT, "win", "rank 4→1", (4, 1)),
        (at(4), at(4), "draw", None, (4, 4)),
        (HIT, at(2), "loss", "rank 1→2", (1, 2)),
        (HIT, MISS, "regression", "hit→miss", (1, None)),
        (HIT, None, "regression", "hit→absent", (1, None)),
        (HIT, ERRORED, "regression", "hit→error", (1, None)),
        (MISS, MISS, "draw", None, (None, None)),
        (MISS, None, "draw", None, (None, None)),
        (MISS, ERRORED, "draw", None, (None, None)),
        (ERRORED, HIT, "win", "error→hit", (None, 1)),
        (None, HIT, "new", "no baseline", (None, 1)),
        (None, MISS, "new", "no baseline", (None, None)),
        (None, ERRORED, "new", "no baseline", (None, None)),
        (ERRORED, ERRORED, "draw", None, (None, None)),
    ],
)
def test_the_kind_and_its_note(
    tmp_path: Path,
    a: Json | None,
    b: Json | None,
    kind: str,
    note: str | None,
    ranks: tuple[int | None, int | None],
) -> None:
    comparison = compared(tmp_path, C1, a, b)
    assert (kind_of(comparison), comparison.note, (comparison.a_hit_rank, comparison.b_hit_rank)) == (
        kind,
        note,
        ranks,
    )


def test_the_first_correct_rank_counts(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"]}
    comparison = compared(tmp_path, entry, result("x", "c2", "c1"), result("c1"))
    assert (comparison.a_hit_rank, comparison.b_hit_rank) == (2, 1)


def test_a_hit_of_an_errored_query_is_none(tmp_path: Path) -> None:
    assert compared(tmp_path, C1, HIT, result("c1", error="half way")).b_hit_rank is None


@pytest.mark.parametrize(("rank", "found"), [(10, 10), (11, None)])
def test_ranks_count_within_the_top_ten(tmp_path: Path, rank: int, found: int | None) -> None:
    assert compared(tmp_path, C1, at(rank), HIT).a_hit_rank == found


@pytest.mark.parametrize(
    ("compare_k", "kind"), [(3, "regression"), (4, "loss"), (20, "loss")], ids=["3", "4", "20"]
)
def test_how_deep_the_comparison_looks_can_be_set(tmp_path: Path, compare_k: int, kind: str) -> None:
    comparison = compared(tmp_path, C1, HIT, at(4), compare_k=compare_k)
    assert kind_of(comparison) == kind


def test_a_deeper_comparison_does_not_change_the_metrics(tmp_path: Path) -> None:
    report = compared_all(tmp_path, {"q1": C1}, {"q1": at(17)}, {"q1": at(15)}, compare_k=20)
    assert (report.per_query[0].a_hit_rank, report.per_query[0].b_hit_rank) == (17, 15)
    assert (side_a(report).values["mrr"], report.aggregate_b.values["mrr"]) == (0.0, 0.0)  # 0 past rank 10


def test_kinds_are_counted(tmp_path: Path) -> None:
    a = {"w": MISS, "l": HIT, "d": HIT, "r": HIT, "r2": HIT}
    b = {"w": HIT, "l": at(2), "d": HIT, "r": MISS, "r2": MISS}
    report = compared_all(tmp_path, dict.fromkeys(a, C1), a, b)
    assert [comparison.query_id for comparison in report.per_query] == ["d", "l", "r", "r2", "w"]
    kinds = [kind_of(comparison) for comparison in report.per_query]
    assert kinds == ["draw", "loss", "regression", "regression", "win"]


# -- checks ----------------------------------------------------------------------------------------

CLAIMS: Json = {"claims": ["use UV."]}
REFUSE: Json = {"expected_doc_ids": []}
BLANK, EMPTY = result("c1", answer=answer("")), result()
REFUSED = result("c1", answer=answer("no", grounded=False))
CITED = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer("uv", cites=[line("c1.md", 1, 9)]))
MISCITED = result(hit("c1", citation=line("c1.md", 1, 9)), answer=answer("uv", cites=[line("c1.md", 10, 19)]))


@pytest.mark.parametrize(
    ("entry", "a", "b", "checks"),
    [
        (C1, HIT, MISS, ("retrieval",)),
        (C1, HIT, None, ("absent",)),
        (C1, HIT, at(2), ()),  # a loss is no regression
        (RULED, SHIPPED, result("c1", answer=answer("pip")), ("answer",)),
        ({"forbidden": ["pip"]}, SHIPPED, result("c1", answer=answer("pip")), ("answer",)),
        (RULED, result(answer=answer("pip")), result(answer=answer("pip")), ()),  # failed before
        (REFUSE, REFUSED, SHIPPED, ("refusal",)),
        (REFUSE, SHIPPED, REFUSED, ()),
        ({"answerable": False}, REFUSED, SHIPPED, ("refusal",)),
        (C1, SHIPPED, REFUSED, ("refusal",)),  # expected of it: answerable
        ({}, SHIPPED, REFUSED, ()),  # nobody knows whether it should
        (C1, CITED, MISCITED, ("citation", "attribution")),
        (C1, MISCITED, CITED, ()),
        (C1, CITED, SHIPPED, ("citation", "attribution")),  # cites nothing any more
        ({}, MISS, ERRORED, ("error",)),
        ({}, ERRORED, ERRORED, ()),
        (C1, HIT, ERRORED, ("retrieval", "error")),
        (
            C1 | RULED,
            CITED,
            result("x", answer=answer("pip")),
            ("retrieval", "answer", "citation", "attribution"),
        ),
        (CLAIMS, SHIPPED, result("c1", answer=answer("pip")), ("answer",)),  # the claim is gone
        (CLAIMS | RULED, SHIPPED, result("c1", answer=answer("Just use uv.")), ()),
        (CLAIMS, result("c1", answer=answer("pip")), result("c1", answer=answer("conda")), ()),  # never held
        (CLAIMS, SHIPPED, result("c1"), ("answer",)),
        ({}, SHIPPED, BLANK, ("answer",)),
        (C1, SHIPPED, BLANK, ("answer",)),
        (RULED, SHIPPED, BLANK, ("answer",)),
        ({}, SHIPPED, result("c1", answer=answer("\u00a0\u200b\n")), ("answer",)),
        ({}, BLANK, BLANK, ()),
        ({}, BLANK, SHIPPED, ()),
        (REFUSE, REFUSED, BLANK, ()),  # nothing was answered
        (C1, BLANK, REFUSED, ()),  # there was no answer to lose
        (C1, SHIPPED, result("c1", answer=answer("", grounded=False)), ("refusal",)),
        ({}, HIT, EMPTY, ("retrieval",)),  # nothing is labelled
        ({"must_contain": ["uv"]}, HIT, EMPTY, ("retrieval",)),
        ({"forbidden_chunk_ids": ["c9"]}, HIT, EMPTY, ("retrieval",)),
        ({}, EMPTY, EMPTY, ()),
        ({}, EMPTY, HIT, ()),
        ({}, HIT, MISS, ()),
        (REFUSE, HIT, EMPTY, ()),
        (C1, MISS, EMPTY, ()),  # what is labelled was not there
    ],
)
def test_checks_are_what_passed_in_a_and_fails_in_b(
    tmp_path: Path, entry: Json, a: Json, b: Json | None, checks: tuple[str, ...]
) -> None:
    assert compared(tmp_path, entry, a, b).checks == checks


@pytest.mark.parametrize(
    ("b", "reason"),
    [
        (MISCITED, "a citation leads to no chunk; in A all led to one"),
        (SHIPPED, "the answer cites nothing; in A all citations led to a chunk"),
    ],
)
def test_an_answer_that_cites_nothing_is_told_from_one_that_cites_what_is_not_there(
    tmp_path: Path, b: Json, reason: str
) -> None:
    assert reason in compared_all(tmp_path, {"q1": C1}, {"q1": CITED}, {"q1": b}).failed["q1"]


def test_an_answer_that_is_not_there_any_more_does_not_keep_its_rules(tmp_path: Path) -> None:
    entries = {"q1": RULED, "q2": RULED}
    report = compared_all(
        tmp_path, entries, {"q1": SHIPPED, "q2": SHIPPED}, {"q1": result("c1"), "q2": SHIPPED}
    )
    assert [comparison.checks for comparison in report.per_query] == [("answer",), ()]


def test_that_no_answer_is_left_at_all_excuses_none(tmp_path: Path) -> None:
    assert compared(tmp_path, RULED, SHIPPED, result("c1")).checks == ("answer",)


# -- causes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("b", "cause"),
    [
        (ERRORED, "errored"),
        (None, "absent"),
        (result(), "empty"),
        (result(hit("x", 1), hit("d1#1", 17)), "below_cutoff"),
        (result("d1#2", "x#1"), "wrong_chunk"),
        (result("x#1", "d1#2"), "gone"),
        (result("x#1", "y#1"), "gone"),
    ],
)
def test_a_lost_hit_has_the_nearest_true_cause(tmp_path: Path, b: Json | None, cause: str) -> None:
    assert compared(tmp_path, {"expected_chunk_ids": ["d1#1"]}, result("d1#1"), b).cause == cause


def test_another_part_of_any_document_that_was_right_in_a_is_the_wrong_chunk(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["d1#1", "d2#1"]}
    a, b = result("d1#1", "d2#1"), result("d2#7", "x#1")
    assert compared(tmp_path, entry, a, b).cause == "wrong_chunk"


def test_the_cause_is_below_the_cutoff_before_it_is_the_wrong_chunk(tmp_path: Path) -> None:
    b = result(hit("d1#2", 1), hit("d1#1", 17))
    comparison = compared(tmp_path, {"expected_chunk_ids": ["d1#1"]}, result("d1#1"), b)
    assert comparison.cause == "below_cutoff"
    assert "rank 17" in (comparison.note or "")


def test_an_anchor_in_the_right_file_under_another_heading_is_the_wrong_chunk(tmp_path: Path) -> None:
    entry = {"gold_supports": [{"path": "d1.md", "heading": "Guide"}]}
    a, b = (result(hit("d1#1", heading_path=[heading])) for heading in ("Guide", "Faq"))
    assert compared(tmp_path, entry, a, b).cause == "wrong_chunk"


@pytest.mark.parametrize(
    ("entry", "a", "b", "cause"),
    [
        (RULED, SHIPPED, result("c1", answer=answer("pip")), "answer_rule"),
        (RULED, SHIPPED, result("c1"), "no_answer"),
        (CLAIMS, SHIPPED, result("c1", answer=answer("pip")), "claim_missing"),
        (CLAIMS | RULED, SHIPPED, result("c1", answer=answer("pip")), "answer_rule"),
        (C1, SHIPPED, REFUSED, "refused"),
        (RULED, SHIPPED, REFUSED, "refused"),
        (CLAIMS, SHIPPED, REFUSED, "refused"),
        (REFUSE, REFUSED, SHIPPED, "not_refused"),
        (C1, CITED, SHIPPED, "not_cited"),
        (C1, CITED, MISCITED, "not_cited"),
        ({}, MISS, ERRORED, "errored"),
        (C1, MISS, None, "absent"),
    ],
)
def test_what_is_lost_beside_a_hit_has_its_cause_as_well(
    tmp_path: Path, entry: Json, a: Json, b: Json | None, cause: str
) -> None:
    assert compared(tmp_path, entry, a, b).cause == cause


@pytest.mark.parametrize("b", [HIT, at(2)], ids=["draw", "loss"])
def test_where_nothing_was_lost_there_is_no_cause(tmp_path: Path, b: Json) -> None:
    assert compared(tmp_path, C1, HIT, b).cause is None


# -- targets lost and gained -----------------------------------------------------------------------


def test_targets_lost_and_gained_are_named(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c4", "c3", "c2", "c1"]}
    comparison = compared(tmp_path, entry, result("c1", "c3", "c2"), result("c1", "c4"))
    assert (comparison.lost, comparison.gained) == (("c2", "c3"), ("c4",))


def test_a_target_past_the_top_ten_is_not_found(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1", "c2"]}
    comparison = compared(tmp_path, entry, result("c1", "c2"), result(hit("c1", 1), hit("c2", 11)))
    assert (comparison.lost, comparison.gained) == (("c2",), ())


def test_a_query_without_a_result_in_b_lost_all_that_a_found(tmp_path: Path) -> None:
    assert compared(tmp_path, C1, HIT, None).lost == ("c1",)


def test_anchors_that_differ_only_in_their_snippets_are_two_targets(tmp_path: Path) -> None:
    supports = [{"path": "d1.md", "snippets": [comparison]} for comparison in ("alpha", "beta")]
    both = result(hit("d1#1", 1, text="alpha"), hit("d1#2", 2, text="beta"))
    comparison = compared(tmp_path, {"gold_supports": supports}, both, result(hit("d1#1", text="alpha")))
    assert len(comparison.lost) == 1


# -- what changed between the runs -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ({"embedding": {"model": "e5"}}, {"embedding": {"model": "bge"}}, ["embedding", "e5→bge"]),
        ({"embedding": "e5"}, {"embedding": "bge"}, ["embedding", "e5→bge"]),
        ({"llm": "m1"}, {"llm": "m2"}, ["model", "m1→m2"]),
        ({"embedding": {"version": "1"}}, {"embedding": {"version": "2"}}, ["embedding", "1→2"]),
        ({"llm": {"model_id": "m1"}}, {"llm": {"model_id": "m2"}}, ["model", "m1→m2"]),
        ({"prompt_template_version": "p1"}, {"prompt_template_version": "p2"}, ["prompt", "p1→p2"]),
        ({"index_version": "i1"}, {"index_version": "i2"}, ["index", "i1→i2"]),
    ],
)
def test_the_note_names_what_changed(tmp_path: Path, a: Json, b: Json, words: list[str]) -> None:
    comparison = compared(tmp_path, C1, HIT, MISS, configs={"a": a, "b": b})
    note = comparison.note or ""
    assert note.startswith("hit→miss")
    assert [word for word in words if word not in note] == []


def test_the_note_names_the_chunkers(tmp_path: Path) -> None:
    configs = {"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}}
    a = result(hit("c1", citation=line("c1.md", 1, 9)))
    b = result(hit("n1", doc_id="c1", citation=line("c1.md", 10, 19)))
    note = compared(tmp_path, C1, a, b, configs=configs).note or ""
    assert "chunker v1→v2" in note


def test_a_setting_that_one_run_does_not_say_has_changed(tmp_path: Path) -> None:
    configs: dict[str, Json] = {"a": {}, "b": {"index_version": "i2"}}
    assert "→i2" in (compared(tmp_path, C1, HIT, MISS, configs=configs).note or "")


@pytest.mark.parametrize("pair", [(HIT, HIT), (MISS, MISS)])
def test_a_draw_does_not_note_what_changed(tmp_path: Path, pair: tuple[Json, Json]) -> None:
    configs = {"a": {"index_version": "i1"}, "b": {"index_version": "i2"}}
    assert compared(tmp_path, C1, *pair, configs=configs).note is None


def test_settings_that_the_notes_do_not_name_are_in_the_report_all_the_same(tmp_path: Path) -> None:
    configs = {
        "a": {"rrf_k": 60, "config": {"search": {"depth": 5}}, "score_gate": 0.3},
        "b": {"rrf_k": 20, "config": {"search": {"depth": 9}}, "score_gate": 0.3},
    }
    report = compared_all(tmp_path, {"q1": C1}, {"q1": HIT}, {"q1": MISS}, configs=configs)
    changes = [(comparison.key, comparison.a, comparison.b) for comparison in report.config_changes]
    assert changes == [("config.search.depth", 5, 9), ("rrf_k", 60, 20)]
    assert report.per_query[0].note == "hit→miss"
