"""What a person decided on unlabelled hits -> the labels that are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval.errors import GoldenError
from pytest_kebab_eval.golden import Lock, LockedChunk
from pytest_kebab_eval.model import Hit
from pytest_kebab_eval.upkeep.reviewing import Label, Review, apply_decisions
from pytest_kebab_eval.upkeep.unlabelled import ExpectedPassage, QueryToReview, UnlabelledHit
from tests.builders import Json, golden, stored_hit

SUPPORT = {"path": "n.md", "snippets": ["what it says"]}
OLD = {"path": "c.md", "snippets": ["what is expected"]}
C1, C2 = ExpectedPassage("c1", doc_id="d1", support=OLD), ExpectedPassage("c2")


def unlabelled(chunk_id: str = "n", **more: Any) -> UnlabelledHit:
    return UnlabelledHit(stored_hit(chunk_id, doc_id="d9"), "text", "n.md", **more)


def review(
    verdict: str, *entries: Json, hit: UnlabelledHit | None = None, lock: Lock | None = None, **more: Any
) -> Review:
    """What becomes of a golden file when a hit of its first query is decided on."""
    require, same_as = more.pop("require", "any"), more.pop("same_as", None)
    known = [{"id": f"q{number}", "query": "?", **entry} for number, entry in enumerate(entries, 1)]
    set_of_them = golden(*known)
    given_set = type(set_of_them)(set_of_them.path, set_of_them.queries, lock)
    about = {"expected": (C1, C2), "hits": (), "lost": ("c1",), "found_by": "chunk", **more}
    reviewed = QueryToReview(set_of_them.queries[0], **about)
    decision = Label(reviewed, hit or unlabelled(), verdict, same_as)
    text = yaml.safe_dump(json.loads(json.dumps(known)))  # without aliases
    return apply_decisions(given_set, text, [decision], require)


def labels(verdict: str, entry: Json, **more: Any) -> Json:
    """The fields of an entry that a decision changed."""
    made = review(verdict, entry, **more)
    assert made.left == ()
    (changed,) = yaml.safe_load(made.text)
    return {name: value for name, value in changed.items() if entry.get(name) != value and name != "id"} | {
        name: None for name in entry if name not in changed
    }


CHUNKS: Json = {"expected_chunk_ids": ["c1", "c2"], "query": "?"}


@pytest.mark.parametrize(
    ("verdict", "entry", "more", "changed"),
    [
        ("right", CHUNKS, {}, {"expected_chunk_ids": [["c1", "n"], "c2"]}),
        ("right", CHUNKS, {"lost": ("c2",)}, {"expected_chunk_ids": ["c1", ["c2", "n"]]}),
        (
            "right",
            CHUNKS,
            {"lost": ("c1", "c2"), "hit": unlabelled(nearest="c2")},
            {"expected_chunk_ids": ["c1", ["c2", "n"]]},
        ),
        ("right", CHUNKS, {"lost": ()}, {"expected_chunk_ids": ["c1", "c2", "n"]}),
        ("right", CHUNKS, {"require": "all"}, {"expected_chunk_ids": ["c1", "c2", "n"]}),
        (
            "right",
            {**CHUNKS, "require": "all"},
            {},
            {"expected_chunk_ids": ["c1", "c2", "n"]},
        ),
        (
            "right",
            {**CHUNKS, "require": "any"},
            {"require": "all"},
            {"expected_chunk_ids": [["c1", "n"], "c2"]},
        ),
        ("same", CHUNKS, {"require": "all"}, {"expected_chunk_ids": [["c1", "n"], "c2"]}),
        ("same", CHUNKS, {"same_as": "c2"}, {"expected_chunk_ids": ["c1", ["c2", "n"]]}),
        ("same", CHUNKS, {"hit": unlabelled(nearest="c2")}, {"expected_chunk_ids": ["c1", ["c2", "n"]]}),
        (
            "right",
            {"query": "?", "expected_chunk_ids": [["c1", "c3"], "c2"]},
            {},
            {"expected_chunk_ids": [["c1", "c3", "n"], "c2"]},
        ),
        (
            "right",
            {"query": "?", "relevance": {"c1": 3, "c2": 1}},
            {},
            {"relevance": {"c1": 3, "c2": 1, "n": 3}},
        ),
        ("wrong", CHUNKS, {}, {"relevance": {"n": 0}}),
        ("wrong", {**CHUNKS, "relevance": {"c1": 2}}, {}, {"relevance": {"c1": 2, "n": 0}}),
        (
            "right",
            {**CHUNKS, "expected_doc_ids": ["d0", "d1"]},
            {},
            {"expected_chunk_ids": [["c1", "n"], "c2"], "expected_doc_ids": ["d0", ["d1", "d9"]]},
        ),
        (
            "right",
            {**CHUNKS, "expected_doc_ids": ["d9"]},
            {},
            {"expected_chunk_ids": [["c1", "n"], "c2"]},
        ),
        (
            "right",
            {**CHUNKS, "gold_supports": [OLD]},
            {"hit": unlabelled(support=SUPPORT)},
            {"expected_chunk_ids": [["c1", "n"], "c2"], "gold_supports": [OLD, SUPPORT]},
        ),
        (
            "right",
            {"query": "?", "gold_supports": [OLD]},
            {"hit": unlabelled(support=SUPPORT), "found_by": "anchor"},
            {"gold_supports": [OLD, SUPPORT]},
        ),
        (
            "same",
            {"query": "?", "gold_supports": [{"path": "n.md", "snippets": ["one"]}]},
            {"hit": unlabelled(support=SUPPORT), "found_by": "anchor"},
            {"gold_supports": [{"path": "n.md", "snippets": ["one", "what it says"]}]},
        ),
        (
            "same",
            {"query": "?", "gold_supports": [{"path": "n.md", "heading": "One", "snippets": ["one"]}]},
            {"hit": unlabelled(support=SUPPORT), "found_by": "anchor"},
            {"gold_supports": [{"path": "n.md", "heading": "One", "snippets": ["one"]}, SUPPORT]},
        ),
        (
            "right",
            {"query": "?", "expected_chunk_ids": ["c1"]},
            {"hit": unlabelled(support=SUPPORT), "found_by": "anchor", "expected": (C1,)},
            {"gold_supports": [OLD, SUPPORT]},
        ),
    ],
)
def test_a_verdict_becomes_a_label(verdict: str, entry: Json, more: Json, changed: Json) -> None:
    assert labels(verdict, entry, **more) == changed


@pytest.mark.parametrize(
    ("verdict", "more", "reason"),
    [
        ("right", {"found_by": "anchor"}, "has a right hit whose path or text is not known"),
        (
            "right",
            {"found_by": "anchor", "hit": unlabelled(support=SUPPORT)},
            "expects 'c2', whose path or text is not known",
        ),
        (
            "wrong",
            {"hit": UnlabelledHit(Hit(rank=1, doc_id="d9"), None, None)},
            "has a wrong hit without a chunk id",
        ),
    ],
)
def test_what_cannot_be_written_is_left_with_the_reason(verdict: str, more: Json, reason: str) -> None:
    made = review(verdict, CHUNKS, **more)
    assert (made.labelled, len(made.left)) == ((), 1)
    assert made.left[0].reason.startswith(reason)
    assert yaml.safe_load(made.text) == [{"id": "q1", **CHUNKS}]


def test_paraphrases_get_the_same_documents() -> None:
    documents = {"expected_doc_ids": ["d1"], "group": "g"}
    target = ExpectedPassage("d1", doc_id="d1")
    made = review("right", documents, documents, expected=(target,), lost=("d1",), found_by="document")
    assert [entry["expected_doc_ids"] for entry in yaml.safe_load(made.text)] == [[["d1", "d9"]]] * 2


def test_labels_that_would_make_the_file_invalid_are_refused() -> None:
    with pytest.raises(GoldenError, match="is left as it is: with these labels, line 1: "):
        review("right", {**CHUNKS, "forbidden_doc_ids": ["d9"], "expected_doc_ids": ["d1"]})


def test_the_lock_gets_the_chunk() -> None:
    old = LockedChunk("d1", text="what is expected")
    hit = unlabelled(locked=LockedChunk("d9", text="what it says"))
    made = review("right", CHUNKS, hit=hit, lock=Lock("v1", {"c1": old}))
    assert made.lock == Lock("v1", {"c1": old, "n": LockedChunk("d9", text="what it says")})
    assert review("wrong", CHUNKS, hit=hit, lock=Lock("v1", {"c1": old})).lock is None


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["right", "same", "wrong"])), max_size=4))
def test_every_decision_is_a_label_and_nothing_else_changes(decided: list[tuple[str, str]]) -> None:
    verdicts = dict(decided)
    known = [{"id": "q1", **CHUNKS}, {"id": "q2", "query": "??", "tags": ["x"]}]
    reviewed = QueryToReview(golden(*known).queries[0], (C1, C2), (), ("c2",), "chunk")
    decisions = [Label(reviewed, unlabelled(name), verdict) for name, verdict in verdicts.items()]
    made = apply_decisions(golden(*known), yaml.safe_dump(known), decisions)
    first, second = yaml.safe_load(made.text)
    right = [name for name, verdict in verdicts.items() if verdict != "wrong"]
    assert first["expected_chunk_ids"] == ["c1", ["c2", *right] if right else "c2"]
    assert first.get("relevance", {}) == {name: 0 for name, verdict in verdicts.items() if verdict == "wrong"}
    assert second == known[1]
