"""Passages that are told by their text, where chunkers differ and spans are not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import compute_aggregate
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, deltas_of, hit, line, result
from tests.unit.matching.conftest import C1, compared, only, place, scored

ROTATION = "Keys are rotated on the first Monday of a quarter, by the engineer who is on call."
REVOKING = "Create the new key beside the old one, move every service, then revoke the old key."
BACKUPS = "Daily dumps are kept for thirty-five days, weekly ones for a year, all in another region."
PASSAGE = f"{ROTATION} {REVOKING}"
WRAPPED = f"# Keys\n\n**{ROTATION[:20]}**\n{ROTATION[20:]}\n- {REVOKING}"

DIFFERENT: Json = {"versions": ("v1", "v2")}


def saying(text: str | None, chunk_id: str = "n1", rank: int = 1, doc_id: str | None = "d1") -> Json:
    return hit(chunk_id, rank, doc_id=doc_id, doc_path=f"{doc_id}.md", text=text)


def expecting(text: str = PASSAGE, **more: Any) -> Json:
    return {"expected_chunk_ids": ["c1"], "expected_doc_ids": ["d1"], "expected_texts": {"c1": text}, **more}


def lock_of(chunk: Json) -> Json:
    return {"chunker_version": "v1", "chunks": {"c1": {"doc_id": "d1", "spans": [], **chunk}}}


def rank_in_b(tmp_path: Path, entry: Json, *hits: Json, **more: Any) -> int | None:
    return only(compared(tmp_path, entry, b=hits, **DIFFERENT, **more)).b_hit_rank


# -- what is correct -------------------------------------------------------------------------------


def test_a_hit_of_the_right_document_with_the_same_text_is_correct_whatever_its_layout(
    tmp_path: Path,
) -> None:
    assert rank_in_b(tmp_path, expecting(), saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2)) == 2


@pytest.mark.parametrize(("words", "rank"), [(2_000, 1), (20_000, None)])
def test_a_text_must_be_a_hundredth_of_a_hit_for_the_hit_to_be_taken_for_it(
    tmp_path: Path, words: int, rank: int | None
) -> None:
    others = " ".join(
        str(number) for number in range(words)
    )  # 6,890 or 88,890 digits; the passage: 136 letters
    assert rank_in_b(tmp_path, expecting(), saying(f"{PASSAGE} {others[:95_000]}")) == rank


def test_half_of_the_shorter_text_must_be_shared(tmp_path: Path) -> None:
    # The sentences are about as long as each other: one of two is shared, then one of three or four.
    more = f"{BACKUPS} {BACKUPS[::-1]}"
    assert rank_in_b(tmp_path, expecting(), saying(f"{REVOKING} {more}", "n1")) == 1
    (tmp_path / "kebab.sqlite").unlink()
    assert (
        rank_in_b(tmp_path, expecting(f"{PASSAGE} {PASSAGE[::-1]}"), saying(f"{REVOKING} {more}", "n1"))
        is None
    )


def test_the_share_is_that_of_spans(tmp_path: Path) -> None:
    hits = (saying(f"{REVOKING} {BACKUPS}", "n1", 1), saying(PASSAGE, "n2", 2))
    assert rank_in_b(tmp_path, expecting(), *hits, settings={"span_overlap": 0.9}) == 2


def test_the_same_text_in_another_document_is_not_correct(tmp_path: Path) -> None:
    assert rank_in_b(tmp_path, expecting(), saying(PASSAGE, doc_id="d2")) is None


def test_a_hit_that_merely_shares_words_is_not_correct(tmp_path: Path) -> None:
    words = " ".join(sorted(PASSAGE.split()))
    assert rank_in_b(tmp_path, expecting(), saying(words)) is None


def test_a_query_matched_by_text_is_counted_and_noted(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(), a=[saying(PASSAGE, "c1")], b=[saying(WRAPPED)], **DIFFERENT)
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 0, "span": 0, "text": 1, "document": 0}
    assert (only(report).kind, only(report).note) == ("draw", "matched by text")


def test_both_runs_and_the_aggregates_follow_the_same_rule(tmp_path: Path) -> None:
    # In A the expected id itself says something else by now: its text decides, not its id.
    report = compared(tmp_path, expecting(), a=[saying(BACKUPS, "c1")], b=[saying(PASSAGE)], **DIFFERENT)
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (None, 1)
    values = [part.values["hit@1"] for part in (report.aggregate_a, report.aggregate_b) if part]
    assert values == [0.0, 1.0]


def test_with_one_chunker_texts_are_not_asked(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(), a=["c1"], b=[saying(PASSAGE)])
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (1, None)


# -- without a document ----------------------------------------------------------------------------


@pytest.mark.parametrize("doc_id", [None, "", "n1"], ids=["none", "empty", "its own id"])
def test_without_a_document_id_text_alone_decides(tmp_path: Path, doc_id: str | None) -> None:
    assert rank_in_b(tmp_path, expecting(), saying(WRAPPED, "n1", doc_id=doc_id)) == 1


def test_text_alone_decides_at_a_higher_share(tmp_path: Path) -> None:
    # About half of the shorter text is shared: enough in the right document, not enough without one.
    half = f"{REVOKING} {BACKUPS}"
    assert rank_in_b(tmp_path, expecting(), saying(half, doc_id="d1")) == 1
    (tmp_path / "kebab.sqlite").unlink()
    assert rank_in_b(tmp_path, expecting(), saying(half, doc_id=None)) is None


def test_a_short_text_alone_tells_nothing(tmp_path: Path) -> None:
    entry = expecting("See the settings page.")
    assert rank_in_b(tmp_path, entry, saying("See the settings page.", doc_id=None)) is None
    (tmp_path / "kebab.sqlite").unlink()
    assert rank_in_b(tmp_path, entry, saying("See the settings page.")) == 1


def test_a_short_text_under_the_expected_id_is_the_passage(tmp_path: Path) -> None:
    entry = expecting("See the settings page.")
    assert rank_in_b(tmp_path, entry, saying("See the settings page.", "c1", doc_id=None)) == 1
    (tmp_path / "kebab.sqlite").unlink()
    assert rank_in_b(tmp_path, entry, saying("Something else is here.", "c1", doc_id=None)) is None


def test_a_target_without_a_document_is_found_in_any(tmp_path: Path) -> None:
    entry = {"expected_chunk_ids": ["c1"], "expected_texts": {"c1": PASSAGE}}
    assert rank_in_b(tmp_path, entry, saying(WRAPPED, doc_id="d7")) == 1


# -- where the text comes from ---------------------------------------------------------------------


def test_the_text_of_the_lock_file_is_used(tmp_path: Path) -> None:
    hits = (saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2))
    assert rank_in_b(tmp_path, C1, *hits, lock=lock_of({"text": PASSAGE})) == 2


def test_the_text_of_a_stored_hit_is_used(tmp_path: Path) -> None:
    report = compared(
        tmp_path,
        C1,
        a=[saying(PASSAGE, "c1")],
        b=[saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2)],
        **DIFFERENT,
    )
    assert (only(report).a_hit_rank, only(report).b_hit_rank) == (1, 2)
    assert deltas_of(report).matched_by["text"] == 1


def test_a_stored_hit_without_a_text_leaves_it_to_the_next_that_has_one(tmp_path: Path) -> None:
    db, golden = place(
        tmp_path,
        [{"id": "q0"}, {"id": "q1", **C1}, {"id": "q2"}],
        None,
        a={"q0": result(saying(None, "c1")), "q1": result(), "q2": result(saying(PASSAGE, "c1"))},
        b={"q1": result(saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2))},
        configs={"a": {"chunker_version": "v1"}, "b": {"chunker_version": "v2"}},
    )
    report = evaluate(Settings(run_a="a", run_b="b", db_a=db, db_b=db, golden=golden)).report
    assert report.per_query[1].b_hit_rank == 2


def test_a_snippet_is_no_text_since_it_may_be_cut(tmp_path: Path) -> None:
    a = [hit("c1", doc_id="d1", snippet=PASSAGE)]
    report = compared(tmp_path, C1, a=a, b=[saying(BACKUPS)], **DIFFERENT)
    assert deltas_of(report).matched_by["document"] == 1


def test_the_chunks_table_has_the_texts_of_expected_chunks_and_hits(tmp_path: Path) -> None:
    # The builder stores `text of <id>`: that of the expected chunk is found again under another id.
    entry = {"expected_chunk_ids": ["c1"]}
    report = compared(
        tmp_path,
        entry,
        a=[hit("c1", doc_id="d1")],
        b=[saying("text of c1")],
        corpus={"c1": ("d1", [])},
        **DIFFERENT,
    )
    assert (only(report).b_hit_rank, deltas_of(report).matched_by["text"]) == (1, 1)


def test_a_chunk_of_another_version_in_the_table_is_not_the_expected_one(tmp_path: Path) -> None:
    report = compared(
        tmp_path,
        {"expected_chunk_ids": ["c1"], "expected_doc_ids": ["d1"]},
        b=[saying("text of c1")],
        corpus={"c1": ("d1", [])},
        corpus_version="v2",
        **DIFFERENT,
    )
    assert deltas_of(report).matched_by == {"chunk": 0, "anchor": 0, "span": 0, "text": 0, "document": 1}


def test_the_golden_file_wins_over_the_lock_file(tmp_path: Path) -> None:
    assert rank_in_b(tmp_path, expecting(PASSAGE), saying(PASSAGE), lock=lock_of({"text": BACKUPS})) == 1


# -- spans first, documents last -------------------------------------------------------------------


def test_spans_decide_where_both_are_known(tmp_path: Path) -> None:
    lock = lock_of({"spans": [line(start=1, end=10)], "text": PASSAGE})
    elsewhere = {**saying(PASSAGE), "citation": line("d1.md", 50, 60)}
    report = compared(tmp_path, C1, b=[elsewhere], lock=lock, **DIFFERENT)
    assert (only(report).b_hit_rank, deltas_of(report).matched_by["span"]) == (None, 1)


def test_a_hit_without_a_span_is_told_by_its_text_where_the_expected_span_is_known(tmp_path: Path) -> None:
    lock = lock_of({"spans": [line(start=1, end=10)], "text": PASSAGE})
    report = compared(
        tmp_path, C1, b=[saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2)], lock=lock, **DIFFERENT
    )
    assert (only(report).b_hit_rank, deltas_of(report).matched_by["text"]) == (2, 1)


def test_a_hit_without_a_text_is_matched_by_its_document(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(), b=[saying(None)], **DIFFERENT)
    assert (only(report).b_hit_rank, deltas_of(report).matched_by["document"]) == (1, 1)
    assert "matched by document alone" in (only(report).note or "")


def test_of_two_targets_each_is_told_in_its_own_way(tmp_path: Path) -> None:
    lock = lock_of({"spans": [line(start=1, end=10)]})
    lock["chunks"]["c2"] = {"doc_id": "d1", "spans": [], "text": BACKUPS}
    hits = ({**saying("other", "n1", 1), "citation": line("d1.md", 1, 10)}, saying(BACKUPS, "n2", 2))
    report = compared(tmp_path, {"expected_chunk_ids": ["c1", "c2"]}, b=hits, lock=lock, **DIFFERENT)
    assert only(report).gained == ("c1", "c2")


# -- what a regression was a draw by ----------------------------------------------------------------


def kind(tmp_path: Path, entry: Json, *b: Json, **more: Any) -> str | None:
    """What becomes of a query whose passage A found first."""
    return only(compared(tmp_path, entry, a=[saying(PASSAGE, "c1")], b=b, **DIFFERENT, **more)).kind


@pytest.mark.parametrize("text", ["```", "---", "![](x.png)", "", " \n"])
@pytest.mark.parametrize("lock", [None, "spans"])
def test_a_hit_without_letters_does_not_match_and_changes_nothing(
    tmp_path: Path, text: str, lock: str | None
) -> None:
    blank, span = saying(text, "n1", 1), {"citation": line("d1.md", 50, 60)}
    if lock is None:
        report = compared(tmp_path, expecting(), a=[saying(PASSAGE, "c1")], b=[blank], **DIFFERENT)
    else:
        spans = lock_of({"spans": [line(start=1, end=10)]})
        a = {**saying(PASSAGE, "c1"), "citation": line("d1.md", 1, 10)}
        b = [blank, {**saying(BACKUPS, "n2", 2), **span}]
        report = compared(tmp_path, C1, a=[a], b=b, lock=spans, **DIFFERENT)
    assert (only(report).kind, only(report).b_hit_rank) == ("regression", None)
    assert deltas_of(report).matched_by["document"] == 0


def test_a_word_within_other_words_is_no_longer_found(tmp_path: Path) -> None:
    entry = expecting(f"{PASSAGE} You can not export them.")
    assert kind(tmp_path, entry, saying("Note", "n1")) == "regression"


def test_a_short_hit_is_not_the_only_evidence_where_there_are_longer_ones(tmp_path: Path) -> None:
    short = saying("on call.", "n1", 1)
    assert kind(tmp_path, expecting(), short, saying(BACKUPS, "n2", 2)) == "regression"
    (tmp_path / "kebab.sqlite").unlink()
    assert rank_in_b(tmp_path, expecting(), short, saying(WRAPPED, "n2", 2)) == 1


def test_short_hits_count_where_the_chunker_makes_no_others(tmp_path: Path) -> None:
    hits = (saying("Backups are kept.", "n1", 1), saying("by the engineer who is on call", "n2", 2))
    assert rank_in_b(tmp_path, expecting(), *hits) == 2


@pytest.mark.parametrize("text", ["Keys", "## Keys", "A"])
def test_a_short_hit_that_says_little_is_no_evidence_for_a_longer_target(tmp_path: Path, text: str) -> None:
    assert rank_in_b(tmp_path, expecting(), saying(text, "n1", 1)) is None


def test_a_chunk_too_long_to_be_compared_is_not_every_target_of_its_document(tmp_path: Path) -> None:
    long = "\n".join(f"{n}: an unrelated line of the same document, on subject {n}." for n in range(3000))
    assert len(long) > 100_000
    assert rank_in_b(tmp_path, expecting(), saying(long, "n1", 1)) is None


@pytest.mark.parametrize("doc_id", ["d1", None])
def test_a_near_copy_is_a_regression(tmp_path: Path, doc_id: str | None) -> None:
    plan = "Signed invoices of customers are kept for {} in the {} plan, then deleted for good."
    entry = expecting(plan.format("30 days", "standard"))
    copy = saying(plan.format("365 days", "enterprise"), "n1", doc_id=doc_id)
    a = [saying(plan.format("30 days", "standard"), "c1")]
    assert only(compared(tmp_path, entry, a=a, b=[copy], **DIFFERENT)).kind == "regression"


# -- citations -------------------------------------------------------------------------------------


def attribution(tmp_path: Path, text: str, cited: Json) -> float | None:
    """Whether the answer's citation is of a target, in a run of another chunker."""
    found = result(saying(text), answer=answer(cites=[cited]))
    db, golden = place(
        tmp_path,
        [{"id": "q1", **expecting()}],
        lock_of({}),
        a={"q1": found},
        config={"chunker_version": "v2"},
    )
    return compute_aggregate("a", db=db, golden=golden).values["attribution_hit_rate"]


def test_a_citation_of_a_hit_with_the_right_text_is_of_a_target(tmp_path: Path) -> None:
    assert attribution(tmp_path, WRAPPED, {"kind": "caption", "path": "d1.md"}) == 1.0


def test_a_citation_has_no_text_so_the_right_document_is_not_enough(tmp_path: Path) -> None:
    assert attribution(tmp_path, BACKUPS, {"kind": "caption", "path": "d1.md"}) == 0.0


# -- one run ---------------------------------------------------------------------------------------


def test_a_run_alone_of_another_chunker_is_matched_by_text(tmp_path: Path) -> None:
    entry = expecting()
    aggregate = scored(
        tmp_path, entry, saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2), version="v2", lock=lock_of({})
    )
    assert (aggregate.values["hit@1"], aggregate.values["hit@3"]) == (0.0, 1.0)
