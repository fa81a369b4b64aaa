"""Passages in the shapes that other tools export, and the ids that those without one get."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_kebab_eval.importers.cases import (
    Passage,
    answer_in,
    passages,
    passages_in,
    question_in,
    references_in,
    text_id,
)
from pytest_kebab_eval.importers.tables import as_list

# The first twelve digits of: printf 'Add a key.' | sha256sum
ADD_A_KEY = "text-0dc44d24b2cb"


def test_an_id_is_made_of_the_text_and_stays_the_same_whatever_the_spacing() -> None:
    found = passages(["Add a key.", "Add  a\n key. ", "Add a lock."])
    assert [passage.text for passage in found] == ["Add a key.", "Add a lock."]
    assert found[0].id == ADD_A_KEY


def test_a_repeated_passage_keeps_its_first_rank() -> None:
    assert [passage.text for passage in passages(["a", "b", "a", "", None, "c"])] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "cell",
    [
        """["it's", "a \\"b\\"\\n"]""",
        """["it's", 'a "b"\\n']""",
        """["it's" 'a "b"\\n']""",
        """["it's"\n 'a "b"\\x0a']""",
    ],
    ids=["JSON", "Python", "NumPy", "NumPy on two lines"],
)
def test_a_list_in_a_cell_is_read_as_it_was_printed(cell: str) -> None:
    assert as_list(cell) == ["it's", 'a "b"\n']


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ("", []),
        ("[]", []),
        ("one passage", ["one passage"]),
        ("[1] a footnote", ["[1] a footnote"]),
        ("['a' b]", ["['a' b]"]),
        (
            "[{'page_content': 'x', 'metadata': {'n': None}}]",
            [{"page_content": "x", "metadata": {"n": None}}],
        ),
        ("[{'x': __import__('os')}]", ["[{'x': __import__('os')}]"]),
        ("[" * 500 + "{" + "]" * 500, ["[" * 500 + "{" + "]" * 500]),
        ("['\\u00e9\\U0001F600\\UFFFFFFFF\\'']", ["é😀\\UFFFFFFFF'"]),
    ],
)
def test_a_cell_that_is_no_list_is_one_item(cell: str, items: list[Any]) -> None:
    assert as_list(cell) == items


@pytest.mark.parametrize(
    ("item", "passage"),
    [
        ({"page_content": "x", "metadata": {"source": "a.md"}}, Passage(text_id("x", "text"), "x", "a.md")),
        ({"page_content": "x", "id": "1", "metadata": {"chunk_id": "c1"}}, Passage("c1", "x")),
        ({"lc": 1, "id": ["a", "b"], "kwargs": {"page_content": "x", "id": "k"}}, Passage("k", "x")),
        ({"node": {"id_": "n", "text": "x"}, "score": 0.5}, Passage(text_id("x", "text"), "x")),
        ({"id": 7, "content": "x", "meta": {"file_path": "b.md"}}, Passage("7", "x", "b.md")),
        ({"doc_id": "d1"}, Passage("d1", None, "d1")),
    ],
)
def test_an_object_gives_its_id_its_text_and_its_document(item: dict[str, Any], passage: Passage) -> None:
    assert passages([item]) == (passage,)


def test_an_object_without_id_and_text_is_no_passage() -> None:
    assert passages([{"score": 1}, {}, {"text": " "}]) == ()


def test_ids_that_are_kept_apart_are_those_of_the_passages() -> None:
    assert passages(["a", "b"], [1, "x"]) == (Passage("1", "a"), Passage("x", "b"))
    assert passages(None, ["x", 2]) == (Passage("x"), Passage("2"))
    assert passages("['a' 'b']", "[1, 2]") == (Passage("1", "a"), Passage("2", "b"))


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ("Why?", "Why?"),
        ({"question": "Why?", "lang": "en"}, "Why?"),
        ({"input": {"query": "Why?"}}, "Why?"),
        ({"anything": "Why?"}, "Why?"),
        ({"messages": [{"role": "user", "content": "Who?"}, {"type": "human", "content": "Why?"}]}, "Why?"),
        ([{"role": "system", "content": "Be nice."}], '[{"role":"system","content":"Be nice."}]'),
        ({"a": 1, "b": 2}, '{"a":1,"b":2}'),
        ({"a": "\ud800", "b": 2}, '{"a": "\\ud800", "b": 2}'),
        (None, ""),
    ],
)
def test_the_question_of_an_input_is_found(given: Any, question: str) -> None:
    assert question_in(given) == question


def test_the_answer_and_the_passages_of_an_output_are_found() -> None:
    output = {"result": "That.", "source_documents": ["a", "b"]}
    assert answer_in(output) == "That."
    assert [passage.text for passage in passages_in(output)] == ["a", "b"]
    assert (answer_in("That."), answer_in(["a"]), answer_in({"x": 1}), answer_in(None)) == (
        "That.",
        None,
        None,
        None,
    )
    assert passages_in("That.") == ()


def test_references_are_texts_or_those_of_an_object() -> None:
    assert references_in({"answer": "That."}) == ("That.",)
    assert references_in(["This.", "That."]) == ("This.", "That.")
    assert references_in(None) == ()
