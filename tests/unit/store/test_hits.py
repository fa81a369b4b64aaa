"""The shapes in which hits may be handed in, and how each is stored."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from pytest_kebab_eval import Hit, InputError
from pytest_kebab_eval.store.given import to_stored_hits
from tests.builders import hit


def refusal(hits: Any) -> str:
    """Why the hits are refused."""
    with pytest.raises(InputError) as caught:
        to_stored_hits(hits)
    return str(caught.value)


class Scalar:
    """A scalar as NumPy has it: no number of Python's, but `item()` gives one."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def item(self) -> Any:
        return self.value

    def __repr__(self) -> str:
        return f"Scalar({self.value!r})"


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


@pytest.mark.parametrize("shape", [None, True, 0.5, b"c1", ["c1", 0.5], ("c1", 0.5, "d1")], ids=repr)
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
    assert refusal([("c1", score)]) == f"the score of hit 1 (c1) is {score}, which is no number"


# -- what people have ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        (184, "184"),
        (0, "0"),
        (Scalar(184), "184"),
        (Scalar("c1"), "c1"),
        (Decimal(184), "184"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Path("docs/a.md"), "docs/a.md"),
        (PureWindowsPath("docs\\a.md"), "docs/a.md"),
    ],
    ids=repr,
)
def test_an_id_may_be_a_number_a_uuid_or_a_path(given: Any, stored: str) -> None:
    expected = {"rank": 1, "chunk_id": stored, "doc_id": stored}
    assert to_stored_hits([given]) == [expected]
    assert to_stored_hits([{"chunk_id": given}]) == [expected]


@pytest.mark.parametrize("given", [UUID(int=7), Path("docs/a.md")], ids=repr)
def test_the_document_of_a_pair_may_be_a_uuid_or_a_path(given: Any) -> None:
    assert to_stored_hits([("c1", given)])[0]["doc_id"] == str(given)


@pytest.mark.parametrize("score", [2, 2.0, Scalar(2.0), Decimal("2.0")], ids=repr)
def test_a_score_may_be_any_number(score: Any) -> None:
    expected = [{"rank": 1, "chunk_id": "c1", "doc_id": "c1", "retrieval": {"fusion_score": 2.0}}]
    assert to_stored_hits([("c1", score)]) == expected
    assert to_stored_hits([{"chunk_id": "c1", "score": score}]) == expected
    assert to_stored_hits({"c1": score}) == expected


def test_numpy_scalars_and_arrays_are_taken() -> None:
    numpy = pytest.importorskip("numpy")
    found = to_stored_hits(zip(numpy.array([7, 3]), numpy.array([0.5, 0.25], dtype="float32"), strict=True))
    assert [(stored["chunk_id"], stored["retrieval"]["fusion_score"]) for stored in found] == [
        ("7", 0.5),
        ("3", 0.25),
    ]
    assert [stored["chunk_id"] for stored in to_stored_hits(numpy.array(["c7", "c3"]))] == ["c7", "c3"]


def test_scores_by_id_are_ordered_by_score_and_then_by_id_descending() -> None:
    found = to_stored_hits({"a": 0.5, "b": 2, "d": 0.5, "c": 0.5})
    assert [(stored["rank"], stored["chunk_id"]) for stored in found] == [
        (1, "b"),
        (2, "d"),
        (3, "c"),
        (4, "a"),
    ]


def test_scores_by_id_are_ordered_as_pytrec_eval_orders_them() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    scores = {"a": 0.5, "b": 2.0, "d": 0.5, "c": 0.5}
    for stored in to_stored_hits(scores):
        relevant = {"q": {stored["chunk_id"]: 1}}
        judged = pytrec_eval.RelevanceEvaluator(relevant, {"recip_rank"}).evaluate({"q": scores})
        assert judged["q"]["recip_rank"] == pytest.approx(1 / stored["rank"])


# -- what is ambiguous ---------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"c1", "c2"}, frozenset({"c1"})], ids=["set", "frozenset"])
def test_a_set_is_refused(given: Any) -> None:
    assert refusal(given) == "hits is a set, which has no order; give a list, best hit first"


class Frame:
    """A DataFrame as far as it is looked at; to iterate over it gives the names of its columns."""

    columns = ("id", "score")

    def iterrows(self) -> None: ...

    def __iter__(self) -> Any:
        return iter(self.columns)


FRAME_REFUSAL = (
    "hits is a DataFrame; give the column of its ids, or"
    " list(zip(frame['id'], frame['score'])), best hit first"
)


def test_a_data_frame_is_refused() -> None:
    assert refusal(Frame()) == FRAME_REFUSAL


def test_a_data_frame_of_pandas_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    assert refusal(pandas.DataFrame({"id": ["c1"], "score": [0.5]})) == FRAME_REFUSAL


def test_the_whole_response_of_a_search_engine_is_refused() -> None:
    body = {"took": 3, "hits": {"hits": [{"_id": "c1"}]}}
    for response in (body, SimpleNamespace(body=body)):
        assert refusal(response) == "hits is a whole response; give response['hits']['hits']"


@pytest.mark.parametrize(
    ("hits", "message"),
    [
        (
            ["c1", "c2", "c1"],
            "hit 3 has the chunk_id 'c1', as hit 1 has; give each chunk once, at its best rank",
        ),
        (
            [1, "1"],
            "hit 2 has the chunk_id '1', as hit 1 has; give each chunk once, at its best rank",
        ),
        (
            [hit("c1", rank=2), hit("c2", rank=2)],
            "hit 2 has the rank '2', as hit 1 has; leave ranks out",
        ),
        (["c1", ""], "hit 2 is empty; give each its own id"),
        ([" "], "hit 1 is empty; give each its own id"),
        ([{"chunk_id": ""}], "the chunk_id of hit 1 is empty; give each its own id"),
        ([("c1", "")], "the document of hit 1 is empty; give each its own id"),
        ({"": 0.5}, "hit 1 is empty; give each its own id"),
        (
            [{"chunk_id": 0.5}],
            "the chunk_id of hit 1 is 0.5; give text, a whole number, a UUID or a path as an id",
        ),
        ([{"chunkid": "c1"}], "hit 1 has the unknown key 'chunkid'; did you mean 'chunk_id'?"),
        ([{"id": "c1"}], "hit 1 has the unknown key 'id'; did you mean 'chunk_id'?"),
        (
            [{"chunk_id": "c1", "colour": "red"}],
            (
                "hit 1 has the unknown key 'colour'; there is chunk_id, doc_id, doc_path, heading_path, text,"
                " snippet, citation, score, rank, retrieval, chunker_version, section_label, index_version,"
                " embedding_model, metadata"
            ),
        ),
        ([{"chunk_id": "c1", "score": "high"}], "the score of hit 1 is 'high'; give a number"),
        (
            {"c1": [0.5]},
            "hits is a mapping, so of scores by id, but 'c1' has [0.5]; give {id: score}, or a list of hits",
        ),
        (
            [{"chunk_id": "c1", "citation": {"kind": "lines", "path": "a.md"}}],
            "the citation of hit 1 has the kind 'lines', which does not exist; did you mean 'line'?",
        ),
        (
            [{"chunk_id": "c1", "citation": {"kind": "line", "path": "a.md", "start": 9, "end": 3}}],
            "the citation of hit 1 ends before it starts: start 9, end 3; swap them",
        ),
        (
            [{"chunk_id": "c1", "citation": {"path": "a.md"}}],
            "the citation of hit 1 has no kind; there is line, code, page, region, time, caption",
        ),
        (
            [{"chunk_id": "c1", "citation": "a.md#L3"}],
            "the citation of hit 1 is 'a.md#L3'; give a mapping with kind and path",
        ),
    ],
)
def test_what_is_ambiguous_is_refused_with_the_position_and_what_to_write(hits: Any, message: str) -> None:
    assert refusal(hits) == message


def test_two_hits_of_a_document_without_chunk_ids_are_two_hits() -> None:
    assert len(to_stored_hits([{"doc_id": "d1", "text": "a"}, {"doc_id": "d1", "text": "b"}])) == 2


def test_anything_may_stand_under_metadata() -> None:
    (found,) = to_stored_hits([{"chunk_id": "c1", "metadata": {"colour": "red"}}])
    assert found["metadata"] == {"colour": "red"}
