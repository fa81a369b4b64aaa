"""Precision, citations, refusals and recall of grounded answers, against their definitions as sets.

S are the shipped answers, R the refusals, A the answerable questions, U the unanswerable ones. Of an answer,
C says that it contains any claim of at least five characters, case aside; H that its citations and the gold
ones intersect, and that all of them were retrieved.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_kebab_eval import AggregateMetrics, compute_aggregate
from tests.builders import Json, answer, make_database, result, write_golden

REFUSED = "not in context"
IDS = [f"p{number}#1" for number in range(6)]
CLAIMS = ["rejects null keys", "example.com", "fives", "four", "a"]
WORDS = [*CLAIMS, "Rejects NULL keys", "EXAMPLE.com", "FIVES", "nothing of the kind"]


class Item(NamedTuple):
    """A question of the gold set and its trace; no claim is no answer."""

    answerable: bool
    claim_substr: tuple[str, ...]
    gold_citations: tuple[str, ...]
    retrieved: tuple[str, ...] = ()
    claim: str | None = None
    citations: tuple[str, ...] = ()

    @property
    def shipped(self) -> bool:
        return self.claim is not None and self.claim != REFUSED

    @property
    def refused(self) -> bool:
        return self.claim == REFUSED

    @property
    def contains(self) -> bool:
        said = (self.claim or "").lower()
        return any(len(item) >= 5 and item.lower() in said for item in self.claim_substr)

    @property
    def citation_hit(self) -> bool:
        cited = set(self.citations)
        return bool(cited & set(self.gold_citations)) and cited <= set(self.retrieved)


def share(part: Sequence[Item], whole: Sequence[Item]) -> float | None:
    """A part of a whole, rounded as it is stored; nothing of nothing is undefined."""
    return round(len(part) / len(whole), 4) if whole else None


def defined(items: Sequence[Item], k: int) -> dict[str, float | None]:
    """The scores as their definitions put them."""
    s = [x for x in items if x.shipped]
    a = [x for x in items if x.answerable]
    u = [x for x in items if not x.answerable]
    return {
        "precision_answered": share([x for x in s if x.answerable and x.contains and x.citation_hit], s),
        "under_refusal_rate": share([x for x in u if x.shipped], u),
        "over_refusal_rate": share([x for x in a if x.refused], a),
        "citation_hit_rate": share([x for x in s if x.citation_hit], s),
        f"recall_all@{k}": share([x for x in a if set(x.gold_citations) <= set(x.retrieved[:k])], a),
    }


def ours(items: Sequence[Item]) -> AggregateMetrics:
    """The same questions and traces as a golden file and a stored run."""
    entries: list[Json] = []
    results: dict[str, Json] = {}
    for number, item in enumerate(items):
        entries.append(
            {
                "id": f"q{number}",
                "query": "?",
                "answerable": item.answerable,
                "claims": list(item.claim_substr),
                "expected_chunk_ids": list(item.gold_citations),
            }
        )
        said = None
        if item.claim is not None:
            citations = [{"marker": "[1]", "citation": None, "chunk_id": chunk} for chunk in item.citations]
            said = answer(item.claim, grounded=not item.refused, citations=citations)
        results[f"q{number}"] = result(*item.retrieved, answer=said)
    with tempfile.TemporaryDirectory() as directory:
        golden = write_golden(Path(directory, "golden.yaml"), entries)
        db = make_database(Path(directory, "kebab.sqlite"), a=results)
        return compute_aggregate("a", db=db, golden=golden)


ids = st.lists(st.sampled_from(IDS), unique=True, max_size=5).map(tuple)
some_ids = st.lists(st.sampled_from(IDS), unique=True, min_size=1, max_size=3).map(tuple)
said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" and ".join) | st.just(REFUSED)
traced = {"retrieved": ids, "claim": said, "citations": ids}
substrings = st.lists(st.sampled_from(CLAIMS), unique=True, max_size=3).map(tuple)
answerable = st.builds(
    Item, answerable=st.just(True), claim_substr=substrings, gold_citations=some_ids, **traced
)
unanswerable = st.builds(
    Item, answerable=st.just(False), claim_substr=st.just(()), gold_citations=st.just(()), **traced
)
# One item that says everything, so that every score is asked for by the golden file and the run.
FIRST = Item(True, ("rejects null keys",), ("p1#1",), ("p1#1",), "It rejects null keys.", ("p1#1",))


@given(drawn=st.lists(answerable | unanswerable, max_size=6), k=st.sampled_from([1, 3, 5, 10]))
def test_the_scores_are_those_of_the_definitions(drawn: list[Item], k: int) -> None:
    items = [FIRST, *drawn]
    scores = ours(items).values
    expected = defined(items, k)
    assert {name: scores[name] for name in expected} == expected


@given(drawn=st.lists(answerable | unanswerable, min_size=1, max_size=6))
def test_an_unanswerable_question_with_gold_citations_is_never_a_precise_answer(drawn: list[Item]) -> None:
    items = [FIRST, *(item._replace(answerable=False, gold_citations=("p1#1",)) for item in drawn)]
    names = ("precision_answered", "citation_hit_rate", "under_refusal_rate", "over_refusal_rate")
    scores, expected = ours(items).values, defined(items, 5)
    assert {name: scores[name] for name in names} == {name: expected[name] for name in names}


def test_the_worked_example() -> None:
    items = [
        Item(
            True,
            ("rejects null keys",),
            ("p1#2",),
            ("p1#1", "p1#2", "p2#1"),
            "X rejects null keys.",
            ("p1#2",),
        ),
        Item(False, (), (), ("p1#1", "p2#1"), REFUSED),
        Item(
            True,
            ("only domain example.com",),
            ("pB#1",),
            ("pB#1", "p1#2"),
            "Only domain example.com is allowed.",
            ("pB#1",),
        ),
    ]
    scores = ours(items)
    names = ("precision_answered", "citation_hit_rate", "under_refusal_rate", "over_refusal_rate")
    assert [scores.value(name) for name in names] == [1.0, 1.0, 0.0, 0.0]
    assert [scores.counts[name] for name in names] == [2, 2, 1, 2]  # 2/2, 2/2, 0/1, 0/2
    assert (scores.value("recall_all@1"), scores.value("recall_all@5")) == (0.5, 1.0)


@pytest.mark.parametrize(
    ("claim", "contained"),
    [("fives", 1.0), ("four", 0.0), ("FIVES", 1.0), ("six or", 0.0)],
)
def test_a_claim_counts_from_five_characters_on_case_aside(claim: str, contained: float) -> None:
    item = FIRST._replace(claim_substr=(claim,), claim="Four and fives and six.")
    assert ours([item]).value("precision_answered") == contained


def test_no_claims_given_is_none_contained() -> None:
    # the other question has claims, so that precision is asked for: of two shipped answers one is right
    assert ours([FIRST, FIRST._replace(claim_substr=())]).value("precision_answered") == 0.5


def test_a_question_without_an_answer_is_neither_shipped_nor_refused() -> None:
    silent = FIRST._replace(claim=None)
    scores = ours([FIRST, silent, silent._replace(answerable=False, gold_citations=())])
    assert (scores.counts["precision_answered"], scores.value("precision_answered")) == (1, 1.0)
    assert (scores.counts["over_refusal_rate"], scores.value("over_refusal_rate")) == (2, 0.0)
    assert (scores.counts["under_refusal_rate"], scores.value("under_refusal_rate")) == (1, 0.0)


@pytest.mark.parametrize(
    ("citations", "hit"),
    [
        (("p1#1",), 1.0),
        (("p1#1", "p2#1"), 1.0),  # beside the right one, another that was retrieved
        (("p1#1", "p9#9"), 0.0),  # beside the right one, one that was not
        (("p2#1",), 0.0),
        ((), 0.0),
    ],
)
def test_a_citation_hit_is_of_a_target_and_of_retrieved_chunks_only(
    citations: tuple[str, ...], hit: float
) -> None:
    item = FIRST._replace(retrieved=("p1#1", "p2#1"), citations=citations)
    assert ours([item]).value("citation_hit_rate") == hit
