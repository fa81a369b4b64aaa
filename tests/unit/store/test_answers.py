"""The shapes in which answers and their citations may be handed in, and how each is stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval import Answer, InputError, RunRecorder
from pytest_kebab_eval.model import Cited, Span
from pytest_kebab_eval.store.given import to_stored_answer
from tests.builders import Json, line
from tests.unit.store.conftest import rows


def stored(given: Any) -> Json:
    found = to_stored_answer(given)
    assert found is not None
    return found


def cited(*citations: Any) -> list[Json]:
    found: list[Json] = stored({"answer": "42", "citations": citations})["citations"]
    return found


def test_an_answer_as_text_is_a_grounded_answer() -> None:
    assert stored("42") == {"answer": "42", "grounded": True, "citations": []}


def test_an_answer_as_a_mapping_keeps_what_it_says() -> None:
    given = {"answer": "I do not know", "grounded": False, "refusal_reason": "no hits", "model": "m1"}
    assert stored(given) == {**given, "citations": []}


def test_an_answer_object_is_stored_as_it_reads_back() -> None:
    found = stored(Answer(grounded=True, text="42", citations=(Cited(chunk_id="c1", marker="[1]"),)))
    assert (found["answer"], found["grounded"]) == ("42", True)
    assert found["citations"] == [{"citation": None, "marker": "[1]", "chunk_id": "c1"}]


@pytest.mark.parametrize("refused", [True, False])
def test_an_answer_that_is_refused_is_not_grounded(refused: bool) -> None:
    found = stored({"answer": "I do not know", "refused": refused})
    assert found == {"answer": "I do not know", "grounded": not refused, "citations": []}


def test_a_refusal_needs_no_text() -> None:
    assert stored({"refused": True}) == {"answer": "", "grounded": False, "citations": []}


def test_ids_as_citations_are_those_of_chunks() -> None:
    found = cited("c1", 2)
    assert [(citation["marker"], citation["chunk_id"]) for citation in found] == [("[1]", "c1"), ("[2]", "2")]


def test_citations_may_come_from_a_generator() -> None:
    found = stored({"answer": "42", "citations": (f"c{number}" for number in (1, 2))})["citations"]
    assert [citation["chunk_id"] for citation in found] == ["c1", "c2"]


def test_a_passage_is_a_citation_with_or_without_what_is_around_it() -> None:
    passage = line("a.md", 3, 9)
    assert cited(passage) == [{"marker": "[1]", "citation": passage}]
    assert cited({"citation": passage}) == [{"marker": "[1]", "citation": passage}]
    assert cited(Span(kind="line", path="a.md", start=3, end=9)) == [{"marker": "[1]", "citation": passage}]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (7, "an answer is text or a mapping, not 7"),
        ({"answer": 7}, "the answer's text is 7; give text"),
        ({}, "an answer needs its text under 'answer'; it is empty"),
        ({"grounded": True}, "an answer needs its text under 'answer'; it has grounded"),
        (
            {"answer": "42", "citation": []},
            "the answer has the unknown key 'citation'; did you mean 'citations'?",
        ),
        ({"text": "42"}, "the answer has the unknown key 'text'; did you mean 'answer'?"),
        ({"answer": "42", "grounded": "yes"}, "grounded of the answer is 'yes'; give true or false"),
        (
            {"answer": "42", "grounded": True, "refused": True},
            "the answer has both grounded and refused true; give one of them",
        ),
        ({"answer": "42", "citations": "c1"}, "citations must be a list, not 'c1'"),
        ({"answer": "42", "citations": {"c1"}}, "citations must be a list, not {'c1'}"),
        (
            {"answer": "42", "citations": ["c1", ""]},
            "citation 2 of the answer is empty; give each its own id",
        ),
        (
            {"answer": "42", "citations": [{"id": "c1"}]},
            "citation 1 of the answer has the unknown key 'id'; did you mean 'chunk_id'?",
        ),
        (
            {"answer": "42", "citations": [{"marker": "[1]"}]},
            "citation 1 of the answer says neither which chunk_id nor which citation; give one of them",
        ),
        (
            {"answer": "42", "citations": [{"citation": {"kind": "pages", "path": "a.pdf"}}]},
            "citation 1 of the answer has the kind 'pages', which does not exist; did you mean 'page'?",
        ),
        (
            {"answer": "42", "citations": [{"kind": "web"}]},
            (
                "citation 1 of the answer has the kind 'web', which does not exist;"
                " there is line, code, page, region, time, caption"
            ),
        ),
        (
            {"answer": "42", "citations": [{"kind": "time", "path": "a.mp3", "start_ms": 900, "end_ms": 30}]},
            "citation 1 of the answer ends before it starts: start_ms 900, end_ms 30; swap them",
        ),
        (
            {"answer": "42", "citations": [{"kind": "line", "path": "a.md", "start": "3", "end": 4}]},
            "start of citation 1 of the answer is '3'; give a number",
        ),
    ],
)
def test_an_answer_that_is_ambiguous_is_refused_with_what_to_write(given: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        to_stored_answer(given)
    assert str(caught.value) == message


# -- said beside the answer ------------------------------------------------------------------------


def stored_answer(db: Path, answer: Any, **more: Any) -> Any:
    with RunRecorder(db, run_id="r") as run:
        run.record("q1", ["c1"], answer, **more)
    ((text,),) = rows(db, "SELECT result_json FROM eval_query_results")
    return json.loads(text)["answer"]


@pytest.mark.parametrize(
    ("answer", "more", "expected"),
    [
        ("no idea", {"grounded": False}, {"answer": "no idea", "grounded": False, "citations": []}),
        (None, {"grounded": False}, {"answer": "", "grounded": False, "citations": []}),
        (
            {"answer": "30 days"},
            {"grounded": True, "citations": ["c1"]},
            {
                "answer": "30 days",
                "grounded": True,
                "citations": [{"marker": "[1]", "citation": None, "chunk_id": "c1"}],
            },
        ),
    ],
)
def test_grounded_and_citations_may_be_given_beside_the_answer(
    db: Path, answer: Any, more: Any, expected: Any
) -> None:
    assert stored_answer(db, answer, **more) == expected


@pytest.mark.parametrize(
    ("answer", "more", "message"),
    [
        (None, {"grounded": True}, "grounded= is said of an answer; give answer= as well"),
        (None, {"citations": ["c1"]}, "citations= is said of an answer; give answer= as well"),
        (
            {"answer": "x", "grounded": True},
            {"grounded": False},
            "grounded= is in the answer already; give it",
        ),
    ],
)
def test_what_is_said_twice_or_of_no_answer_is_refused(
    db: Path, answer: Any, more: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        stored_answer(db, answer, **more)
