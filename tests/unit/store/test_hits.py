"""The shapes in which hits may be handed in, and how each is stored."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kebab_eval import Hit, InputError
from pytest_kebab_eval.store.hits import to_stored_hits
from tests.builders import hit


def test_ids_are_ranked_as_they_come() -> None:
    assert to_stored_hits(["c7", "c3"]) == [
        {"rank": 1, "chunk_id": "c7", "doc_id": "c7"},
        {"rank": 2, "chunk_id": "c3", "doc_id": "c3"},
    ]


def test_a_pair_of_an_id_and_a_number_is_a_hit_with_a_score() -> None:
    assert to_stored_hits([("c1", 0.5)]) == [
        {"rank": 1, "chunk_id": "c1", "doc_id": "c1", "retrieval": {"fusion_score": 0.5}}
    ]


def test_a_pair_of_two_texts_is_a_chunk_and_its_document() -> None:
    assert to_stored_hits([("c1", "d1")]) == [{"rank": 1, "chunk_id": "c1", "doc_id": "d1"}]


def test_a_whole_hit_is_kept_with_fields_that_nobody_reads() -> None:
    whole = hit("c1", rank=4, retrieval={"fusion_score": 0.25, "lexical_rank": 2}, chunker_version="v1")
    assert to_stored_hits([whole]) == [whole]


def test_a_whole_hit_without_a_rank_has_the_rank_of_its_position() -> None:
    assert to_stored_hits([{"chunk_id": "c1", "doc_id": "d1"}, {"chunk_id": "c2"}]) == [
        {"rank": 1, "chunk_id": "c1", "doc_id": "d1"},
        {"rank": 2, "chunk_id": "c2", "doc_id": "c2"},
    ]


def test_a_hit_object_keeps_its_rank() -> None:
    (found,) = to_stored_hits([Hit(rank=3, chunk_id="c1", doc_id="d1", heading_path=("Intro",))])
    assert (found["rank"], found["chunk_id"], list(found["heading_path"])) == (3, "c1", ["Intro"])


def test_hits_may_come_from_a_generator() -> None:
    found = to_stored_hits(f"c{number}" for number in (1, 2))
    assert [stored["chunk_id"] for stored in found] == ["c1", "c2"]


@pytest.mark.parametrize("shape", [None, 3, ["c1", 0.5], ("c1", 0.5, "d1")], ids=repr)
def test_a_hit_of_no_known_shape_is_refused_with_those_there_are(shape: Any) -> None:
    with pytest.raises(InputError) as caught:
        to_stored_hits(["c0", shape])
    assert str(caught.value).startswith(f"hit 2 is {shape!r}; give an id, a pair")


@pytest.mark.parametrize("given", ["c1", b"c1", 3, None], ids=repr)
def test_hits_that_are_no_list_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match="hits must be a list of hits, not"):
        to_stored_hits(given)


def test_a_mapping_without_an_id_is_refused() -> None:
    with pytest.raises(InputError, match="hit 1 has neither a chunk_id nor a doc_id"):
        to_stored_hits([{"text": "x"}])


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    with pytest.raises(InputError, match=rf"hit 1 \(c1\) has the score {score}, which is no number"):
        to_stored_hits([("c1", score)])
