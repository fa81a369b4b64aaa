"""Passages that are told by their text, where chunkers differ and spans are not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import compute_aggregate
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.settings import Settings
from tests.builders import Json, answer, deltas_of, hit, line, result
from tests.unit.matching.conftest import C1, compared, only, place, rank_in_b, scored

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


# -- what is correct -------------------------------------------------------------------------------


MORE = f"{BACKUPS} {BACKUPS[::-1]}"
HALF = f"{REVOKING} {BACKUPS}"  # shares about half of the passage
SHORT = "See the settings page."
NUMBERS = " ".join(map(str, range(20_000)))
TOO_LONG = "\n".join(f"{n}: an unrelated line of the same document, on subject {n}." for n in range(3000))


@pytest.mark.parametrize(
    ("expected", "hits", "rank"),
    [
        (PASSAGE, [saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2)], 2),
        (PASSAGE, [saying(PASSAGE, doc_id="d2")], None),
        (PASSAGE, [saying(" ".join(sorted(PASSAGE.split())))], None),
        # The sentences are about as long as each other: one of two is shared, then one of three or four.
        (PASSAGE, [saying(f"{REVOKING} {MORE}")], 1),
        (f"{PASSAGE} {PASSAGE[::-1]}", [saying(f"{REVOKING} {MORE}")], None),
        # The passage has 136 letters, the hit's others 6,890 or some 80,000 digits; a hundredth is needed.
        (PASSAGE, [saying(f"{PASSAGE} {NUMBERS[:8_890]}")], 1),
        (PASSAGE, [saying(f"{PASSAGE} {NUMBERS[:95_000]}")], None),
        (PASSAGE, [saying(TOO_LONG)], None),
        # Short hits are no evidence where there are longer ones, or where they say little.
        (f"{PASSAGE} You can not export them.", [saying("Note")], None),
        (PASSAGE, [saying("on call."), saying(BACKUPS, "n2", 2)], None),
        (PASSAGE, [saying("on call."), saying(WRAPPED, "n2", 2)], 1),
        (PASSAGE, [saying("Backups are kept."), saying("by the engineer who is on call", "n2", 2)], 2),
        *[(PASSAGE, [saying(little)], None) for little in ("Keys", "## Keys", "A")],
        # Without a document, text alone decides, at a higher share; a short one tells nothing but of its id.
        *[(PASSAGE, [saying(WRAPPED, doc_id=none)], 1) for none in (None, "", "n1")],
        (PASSAGE, [saying(HALF)], 1),
        (PASSAGE, [saying(HALF, doc_id=None)], None),
        (SHORT, [saying(SHORT)], 1),
        (SHORT, [saying(SHORT, doc_id=None)], None),
        (SHORT, [saying(SHORT, "c1", doc_id=None)], 1),
        (SHORT, [saying("Something else is here.", "c1", doc_id=None)], None),
    ],
)
def test_a_hit_of_the_document_is_correct_if_it_shares_half_of_the_shorter_text(
    expected: str, hits: list[Json], rank: int | None
) -> None:
    assert rank_in_b(expecting(expected), *hits) == rank


def test_the_share_is_that_of_spans() -> None:
    assert rank_in_b(expecting(), saying(HALF, "n1", 1), saying(PASSAGE, "n2", 2), share=0.9) == 2


def test_a_target_without_a_document_is_found_in_any() -> None:
    entry = {"expected_chunk_ids": ["c1"], "expected_texts": {"c1": PASSAGE}}
    assert rank_in_b(entry, saying(WRAPPED, doc_id="d7")) == 1


def test_a_query_matched_by_text_is_counted_and_noted(tmp_path: Path) -> None:
    report = compared(tmp_path, expecting(), a=[saying(PASSAGE, "c1")], b=[saying(WRAPPED)], **DIFFERENT)
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 0,
        "span": 0,
        "text": 1,
        "answer": 0,
        "document": 0,
    }
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


# -- where the text comes from ---------------------------------------------------------------------


def test_the_text_of_the_lock_file_is_used() -> None:
    hits = (saying(BACKUPS, "n1", 1), saying(WRAPPED, "n2", 2))
    assert rank_in_b(C1, *hits, lock=lock_of({"text": PASSAGE})) == 2


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
    assert deltas_of(report).matched_by == {
        "chunk": 0,
        "anchor": 0,
        "span": 0,
        "text": 0,
        "answer": 0,
        "document": 1,
    }


def test_the_golden_file_wins_over_the_lock_file() -> None:
    assert rank_in_b(expecting(PASSAGE), saying(PASSAGE), lock=lock_of({"text": BACKUPS})) == 1


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
