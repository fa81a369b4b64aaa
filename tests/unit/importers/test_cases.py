"""Questions with passages and answers, as Ragas, DeepEval and LangSmith have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.importers.cases import text_id
from tests.integration.cli.import_cases import jsonl
from tests.unit.importers.test_import_run import Brought, bring, refusal


def texts(brought: Brought, query: str) -> list[str | None]:
    return [hit.text for hit in brought.result(query).hits]


def answer(brought: Brought, query: str) -> str | None:
    found = brought.result(query).answer
    return found.text if found else None


# -- Ragas ---------------------------------------------------------------------------------------

RAGAS_CSV = """\
user_input,retrieved_contexts,reference_contexts,response,reference
Who?,"[""It's me."", 'You\\n']","[""It's me.""]",Me.,me
"""
RAGAS_OLD = """\
question,contexts,answer,ground_truth
Who?,"[""It's me."" 'You\\n']",Me.,me
"""


@pytest.mark.parametrize("content", [RAGAS_CSV, RAGAS_OLD], ids=["since 0.2", "before"])
def test_ragas_columns_of_both_kinds_give_the_same_results(tmp_path: Path, content: str) -> None:
    brought = bring(tmp_path, "ragas", {"results.csv": content})
    query = brought.queries().queries[0]
    assert texts(brought, text_id("Who?", "q")) == ["It's me.", "You\n"]
    assert answer(brought, text_id("Who?", "q")) == "Me."
    assert (query.query, query.claims, query.expected_answer) == ("Who?", ("me",), "me")


def test_an_expected_passage_is_found_by_its_text(tmp_path: Path) -> None:
    brought = bring(tmp_path, "ragas", {"results.csv": RAGAS_CSV})
    assert brought.queries().queries[0].expected_chunk_ids == (text_id("It's me.", "text"),)
    assert brought.metrics().values["hit@1"] == 1.0


def test_context_ids_of_ragas_are_the_ids(tmp_path: Path) -> None:
    row = {"user_input": "Who?", "retrieved_context_ids": [3, "b"], "reference_context_ids": ["b", 9]}
    brought = bring(tmp_path, "ragas", {"results.jsonl": jsonl(row)})
    metrics = brought.metrics().values
    assert (metrics["mrr"], metrics["recall@5"]) == (0.5, 0.5)


def test_contexts_of_an_old_test_set_are_those_that_are_expected(tmp_path: Path) -> None:
    files = {
        "results.csv": "question,contexts,answer\nWho?,['a' 'b'],Me.\n",
        "testset.csv": "question,contexts,ground_truth\nWho?,['b'],me\n",
    }
    assert bring(tmp_path, "ragas", files).metrics().values["mrr"] == 0.5


def test_a_question_that_is_there_twice_is_two_queries(tmp_path: Path) -> None:
    rows = ({"user_input": "Who?", "response": text} for text in ("Me.", "You."))
    brought = bring(tmp_path, "ragas", {"results.jsonl": jsonl(*rows)})
    name = text_id("Who?", "q")
    assert (answer(brought, name), answer(brought, f"{name}-2")) == ("Me.", "You.")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (
            {"user_input": [{"content": "Hi", "type": "human"}], "response": "x"},
            "this is a conversation of several",
        ),
        ({"response": "x"}, "there is no 'user_input', nor a 'question'"),
        ({"user_input": " ", "response": "x"}, "this row has no question"),
        ({"user_input": "\ud800", "response": "x"}, "this is not JSON"),
    ],
)
def test_a_row_of_ragas_that_is_no_question_is_refused(
    tmp_path: Path, row: dict[str, Any], says: str
) -> None:
    message = refusal(tmp_path, "ragas", {"results.jsonl": jsonl(row)})
    assert message.startswith(f"results.jsonl:1: {says}")


# -- DeepEval ------------------------------------------------------------------------------------


def test_passages_in_a_cell_of_deepeval_are_split_as_it_does(tmp_path: Path) -> None:
    cell = "one|deepeval_source=a.md,deepeval_context=two, too"
    content = f'input,actual_output,expected_output,retrieval_context,context\nWho?,Me.,me,"{cell}",one\n'
    brought = bring(tmp_path, "deepeval", {"results.csv": content})
    hits = brought.result(text_id("Who?", "q")).hits
    assert [(hit.text, hit.doc_id) for hit in hits] == [("one", None), ("two, too", "a.md")]
    assert brought.metrics().values["mrr"] == 1.0


def test_a_test_run_of_deepeval_may_be_wrapped_and_has_times_and_costs(tmp_path: Path) -> None:
    case = {"input": "Who?", "actualOutput": "Me.", "completionTime": 1.5, "tokenCost": 0.25}
    brought = bring(
        tmp_path, "deepeval", {"results.json": json.dumps({"testRunData": {"testCases": [case]}})}
    )
    found = brought.result(text_id("Who?", "q"))
    assert (found.elapsed_ms, found.cost_usd) == (1500, 0.25)


@pytest.mark.parametrize("given", [10**400, -1, True, "soon", None, []])
def test_a_time_that_is_none_is_left_out(tmp_path: Path, given: Any) -> None:
    case = {"input": "Who?", "actualOutput": "Me.", "completionTime": given}
    brought = bring(tmp_path, "deepeval", {"results.json": json.dumps({"testCases": [case]})})
    assert brought.result(text_id("Who?", "q")).elapsed_ms is None


# -- LangSmith -----------------------------------------------------------------------------------

LANGSMITH_CSV = """\
,inputs.question,outputs.answer,outputs.documents,error,reference.answer,execution_time,example_id
0,Who?,Me.,"[{'page_content': 'It is me.', 'metadata': {'source': 'a.md'}}]",,me,2.0,e1
1,What?,,,ValueError('x'),that,0.5,e2
"""


def test_a_table_of_the_langsmith_sdk_is_read(tmp_path: Path) -> None:
    brought = bring(tmp_path, "langsmith", {"results.csv": LANGSMITH_CSV})
    first, second = brought.result("e1"), brought.result("e2")
    assert [(hit.text, hit.doc_id) for hit in first.hits] == [("It is me.", "a.md")]
    assert (first.elapsed_ms, first.error, second.error, second.answer) == (
        2000,
        None,
        "ValueError('x')",
        None,
    )
    assert [query.claims for query in brought.queries().queries] == [("me",), ("that",)]


def test_results_without_an_example_id_are_joined_by_their_question(tmp_path: Path) -> None:
    files = {
        "results.jsonl": jsonl({"inputs": {"question": "Who?"}, "outputs": {"answer": "me"}}),
        "examples.jsonl": jsonl({"id": "e1", "inputs": {"question": "Who?"}, "outputs": {"answer": "me"}}),
    }
    assert answer(bring(tmp_path, "langsmith", files), "e1") == "me"


@pytest.mark.parametrize("has_examples", [True, False])
def test_passages_with_ids_are_known_by_their_texts_where_texts_are_expected(
    tmp_path: Path, has_examples: bool
) -> None:
    found = [{"id": f"uuid-{text}", "page_content": text} for text in ("a", "b")]
    row = {"example_id": "e1", "inputs": {"question": "Who?"}, "outputs": {"documents": found}}
    reference = {"contexts": ["b"]}
    files = {
        True: {
            "results.jsonl": jsonl(row),
            "examples.jsonl": jsonl({"id": "e1", "inputs": row["inputs"], "outputs": reference}),
        },
        False: {"results.jsonl": jsonl(row | {"reference": reference})},
    }[has_examples]
    assert bring(tmp_path, "langsmith", files).metrics().values["mrr"] == 0.5


def test_passages_with_ids_are_known_by_them_where_ids_are_expected(tmp_path: Path) -> None:
    row = {
        "inputs": {"question": "Who?"},
        "outputs": {"documents": [{"id": "x", "text": "old"}, {"id": "y", "text": "new words"}]},
        "reference": {"documents": [{"id": "y", "text": "words"}]},
    }
    assert bring(tmp_path, "langsmith", {"results.jsonl": jsonl(row)}).metrics().values["mrr"] == 0.5


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    # JSON documents can spell one, which JSONL's reader refuses by itself.
    files = {"results.json": '[{"user_input": "Who?", "response": "\\ud800"}]'}
    says = "results.json:1: this has a character that is not Unicode text"
    assert refusal(tmp_path, "ragas", files) == says
