"""Tables by the names of their columns: those of Ragas, DeepEval, LangSmith, promptfoo, and any other."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.importers.sources import Source
from pytest_kebab_eval.importers.table import Passage, passages, question_in, text_id
from pytest_kebab_eval.importers.tables import as_list, read_table
from tests.builders import Json
from tests.unit.importers.bringing import Files, bring, jsonl
from tests.unit.importers.test_formats import Example, check

WHO = text_id("Who?", "q")
ME, YOU = (text_id(text, "text") for text in ("It's me.", "You"))
TEXTS = ["It's me.", "You"]
GOLDEN: Json = {"query": "Who?", "claims": ("me",), "expected_answer": "me", "expected_chunk_ids": (ME,)}
FOUND: Json = {"query": "Who?", "hits": [ME, YOU], "texts": TEXTS, "answer": "Me."}


def row(**columns: Any) -> Files:
    return {"results.jsonl": jsonl(columns)}


PROMPTFOO = {
    "vars": {"query": "Who?", "context": TEXTS, "reference_contexts": TEXTS[:1], "reference": "me"},
    "response": {"output": "Me."},
    "error": "Expected output to contain",  # an assertion that failed
    "failureReason": 1,
    "latencyMs": 120,
    "cost": 0.5,
}
ASSERTIONS = [
    {"type": "contains", "value": "{{ query }} it"},
    {"type": "contains-all", "value": '"a, b", c'},
    {"type": "not-contains", "value": 7},
    {"type": "contains-any", "value": ["x", "y"]},
    *(
        {"type": "contains", "value": value}
        for value in ("{{query | upper}}", "{{nobody}}", "file://x", True)
    ),
    {"type": "llm-rubric", "value": "is polite"},
]
EXAMPLES = {
    "ragas, Python's lists": (
        "ragas",
        Example(
            {
                "results.csv": "user_input,retrieved_contexts,reference_contexts,response,reference\n"
                """Who?,"[""It's me."", 'You']","[""It's me.""]",Me.,me\n"""
            },
            GOLDEN,
            FOUND,
            WHO,
        ),
    ),
    "ragas before 0.2, NumPy's lists": (
        "ragas",
        Example(
            {
                "results.csv": "question,contexts,answer,ground_truth\n"
                """Who?,"[""It's me.""\n 'You']",Me.,me\n""",
                "dataset.csv": 'question,contexts,ground_truth\nWho?,"[""It\'s me.""]",me\n',
            },
            GOLDEN,
            FOUND,
            WHO,
        ),
    ),
    "ragas, ids": (
        "ragas",
        Example(
            row(user_input="Who?", retrieved_context_ids=[3, "b"], reference_context_ids=["b", 9]),
            {"expected_chunk_ids": ("b", "9")},
            {"hits": ["3", "b"], "answer": None},
            WHO,
        ),
    ),
    "deepeval, a test run": (
        "deepeval",
        Example(
            {
                "results.json": {
                    "testRunData": {
                        "testCases": [
                            {
                                "input": "Who?",
                                "actualOutput": "Me.",
                                "expectedOutput": "me",
                                "context": TEXTS[:1],
                                "retrievalContext": TEXTS,
                            }
                        ]
                    }
                }
            },
            GOLDEN,
            FOUND,
            WHO,
        ),
    ),
    "deepeval, a dataset whose passages are joined": (
        "deepeval",
        Example(
            {
                "results.csv": "input,actual_output,expected_output,retrieval_context,context\n"
                "Who?,Me.,me,It's me.|You,It's me.\n"
            },
            GOLDEN,
            FOUND,
            WHO,
        ),
    ),
    "langsmith, spread over columns": (
        "langsmith",
        Example(
            {
                "results.csv": ",inputs.question,outputs.answer,outputs.documents,error,reference.answer"
                ",reference.contexts,example_id,id\n"
                """0,Who?,Me.,"[{'page_content': ""It's me."", 'metadata': {'source': 'a.md'}}"""
                """, {'text': 'You'}]",,me,"[""It's me.""]",e1,run-1\n"""
            },
            GOLDEN,
            {**FOUND, "documents": ["a.md", None]},
            "e1",
        ),
    ),
    "langsmith, an experiment and its dataset, joined by the question": (
        "langsmith",
        Example(
            {
                **row(inputs={"input": {"question": "Who?"}}, outputs={"answer": "Me.", "contexts": TEXTS}),
                "dataset.jsonl": jsonl(
                    {
                        "id": "e1",
                        "inputs": {"question": "Who?"},
                        "outputs": {"answer": "me", "contexts": TEXTS[:1]},
                    }
                ),
            },
            GOLDEN,
            FOUND,
            "e1",
        ),
    ),
    "langsmith, an error": (
        "langsmith",
        Example(
            row(inputs="Who?", outputs=None, error="ValueError('x')", example_id="e1"),
            {"query": "Who?"},
            {"hits": [], "answer": None, "error": "ValueError('x')"},
            "e1",
        ),
    ),
    "promptfoo": (
        "promptfoo",
        Example({"results.json": {"results": {"results": [PROMPTFOO]}}}, GOLDEN, FOUND, WHO),
    ),
    "promptfoo, passages that the provider returned": (
        "promptfoo",
        Example(
            {
                "results.jsonl": jsonl(
                    {**PROMPTFOO, "response": {"output": {"answer": "Me.", "context": ["new"]}}}
                )
            },
            {},
            {"texts": ["new"], "answer": "Me."},
            WHO,
        ),
    ),
    "promptfoo, its assertions": (
        "promptfoo",
        Example(
            {
                "results.jsonl": jsonl(
                    {**PROMPTFOO, "testCase": {"assert": ASSERTIONS, "metadata": {"team": "x"}}}
                )
            },
            {
                "must_contain": ("Who? it", "a, b", "c"),
                "forbidden": ("7",),
                "claims": ("x", "y"),
                "metadata": {"team": "x"},
            },
            {"elapsed_ms": 120, "cost_usd": 0.5},
            WHO,
        ),
    ),
    "promptfoo, an error": (
        "promptfoo",
        Example(
            {"results.jsonl": jsonl({**PROMPTFOO, "response": {"error": "it broke"}})},
            {},
            {"error": "it broke"},
            WHO,
        ),
    ),
    "a table of usual names": (
        "table",
        Example(
            row(
                id=7,
                question="Who?",
                contexts=TEXTS,
                answer="Me.",
                reference="me",
                reference_contexts=TEXTS[:1],
            ),
            GOLDEN,
            FOUND,
            "7",
        ),
    ),
    "a table, its columns named": (
        "table",
        Example(
            {
                **row(asked="Who?", found=["a", "b"], said="Me.", right=["b"], truth="me"),
                "question": "asked",
                "ids": "found",
                "answer": "said",
                "expected": "right",
                "reference": "truth",
            },
            {"expected_chunk_ids": ("b",), "claims": ("me",)},
            {"hits": ["a", "b"], "answer": "Me."},
            WHO,
        ),
    ),
    "a table, passages with their own ids": (
        "table",
        Example(
            row(
                query="Who?",
                documents=[{"id": "x", "text": "a", "metadata": {"source": "a.md"}}, {"chunk_id": 2}],
            ),
            {},
            {"hits": ["x", "2"], "texts": ["a", None], "documents": ["a.md", None]},
            WHO,
        ),
    ),
}


@pytest.mark.parametrize(("importer", "example"), EXAMPLES.values(), ids=EXAMPLES)
def test_a_row_becomes_a_query_and_its_result(tmp_path: Path, importer: str, example: Example) -> None:
    check(tmp_path, importer, example)


def test_passages_are_known_by_their_texts_where_texts_are_expected(tmp_path: Path) -> None:
    found = [{"id": f"uuid-{text}", "text": text} for text in ("a", "b")]
    files = row(question="Who?", contexts=found, reference_contexts=["b"])
    assert bring(tmp_path, "table", files).metric("mrr") == 0.5


def test_passages_are_known_by_their_ids_where_ids_are_expected(tmp_path: Path) -> None:
    found = [{"id": "x", "text": "old"}, {"id": "y", "text": "new words"}]
    files = row(question="Who?", contexts=found, reference_contexts=[{"id": "y", "text": "words"}])
    assert bring(tmp_path, "table", files).metric("mrr") == 0.5


def test_a_question_that_is_there_twice_is_two_queries(tmp_path: Path) -> None:
    files = {"results.jsonl": jsonl(*({"question": "Who?", "answer": text} for text in ("Me.", "You.")))}
    brought = bring(tmp_path, "table", files)
    answers = [brought.result(name).answer for name in (WHO, f"{WHO}-2")]
    assert [answer and answer.text for answer in answers] == ["Me.", "You."]


LONG = "Answer from the passages alone: {{context}} Question: {{query}}"


def test_providers_and_prompts_of_promptfoo_are_told_apart_in_whatever_order_they_ended(
    tmp_path: Path,
) -> None:
    rows = [
        {**PROMPTFOO, "testIdx": test, "provider": {"id": provider, "label": ""}, "prompt": {"label": prompt}}
        for test in (1, 0)
        for provider in ("a", "b")
        for prompt in ("p", LONG)
    ]
    names = set(bring(tmp_path, "promptfoo", {"results.jsonl": jsonl(*rows)}).queries())
    once = {f"{WHO}@{provider}@{prompt}" for provider in "ab" for prompt in ("p", text_id(LONG, "of"))}
    assert names == once | {f"{name}-2" for name in once}


# -- rows and cells --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "a,b\n1,x\n2,\n"),
        ("t.csv", 'a,b\r\n"1","x"\r\n\r\n2,""\r\n'),
        ("t.jsonl", '{"a": "1", "b": "x"}\n\n{"a": "2", "b": NaN}\n'),
        ("t.json", '[{"a": "1", "b": "x"}, {"a": "2", "b": null}]'),
        ("t.json", '{"a": "1", "b": "x"}\n{"a": "2", "b": null}\n'),
        (
            "t.json",
            '{"version": 3, "rows": {"more": [1], "rows": [{"a": "1", "b": "x"}, {"a": "2", "b": null}]}}',
        ),
        ("stdin", "a,b\n1,x\n2,\n"),
        ("stdin", '{"a": "1", "b": "x"}\n{"a": "2", "b": null}\n'),
    ],
)
def test_the_same_rows_are_read_from_every_format(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_bytes(content.encode())
    rows = [row.value for row in read_table(Source(str(tmp_path / name)), ["rows"])]
    assert rows == [{"a": "1", "b": "x"}, {"a": "2", "b": None}]


def test_a_row_is_at_the_line_that_it_starts_on(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n"one\n\ntwo",x\n3,y\n', "utf-8")
    (tmp_path / "t.json").write_text('[\n{"a": 1},\n\n{"a": 2}]', "utf-8")
    lines = [[row.line for row in read_table(Source(str(tmp_path / name)))] for name in ("t.csv", "t.json")]
    assert lines == [[2, 5], [2, 4]]


def test_a_cell_may_be_longer_than_the_csv_module_allows_and_its_limit_stays(tmp_path: Path) -> None:
    before = csv.field_size_limit(131_072)  # as it is in a new process
    try:
        (tmp_path / "t.csv").write_text(f'a\n"{"x" * 131_073}"\n', "utf-8")
        assert [len(row.value["a"]) for row in read_table(Source(str(tmp_path / "t.csv")))] == [131_073]
        assert csv.field_size_limit() == 131_072
    finally:
        csv.field_size_limit(before)


@pytest.mark.parametrize(
    ("cell", "items"),
    [
        ("""["it's", "a \\"b\\"\\n"]""", ["it's", 'a "b"\n']),
        ("""["it's", 'a "b"\\n']""", ["it's", 'a "b"\n']),
        ("""["it's"\n 'a "b"\\x0a']""", ["it's", 'a "b"\n']),
        ("[{'page_content': 'x', 'n': None}]", [{"page_content": "x", "n": None}]),
        ("", []),
        ("[]", []),
        ("one passage", ["one passage"]),
        ("[1] a footnote", ["[1] a footnote"]),
        ("['\\ud800']", ["['\\ud800']"]),
        ("['a' b]", ["['a' b]"]),
        ("[b'x', {1}]", ["[b'x', {1}]"]),
        ("[{'x': __import__('os')}]", ["[{'x': __import__('os')}]"]),
        ("[" * 500 + "{" + "]" * 500, ["[" * 500 + "{" + "]" * 500]),
        ("[" + " " * 100_000 + "x]", ["[" + " " * 100_000 + "x]"]),
    ],
)
def test_a_list_in_a_cell_is_read_as_it_was_printed(cell: str, items: list[Any]) -> None:
    assert as_list(cell) == items


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ("Add  a\n key. ", Passage("text-0dc44d24b2cb", "Add  a\n key. ")),  # printf 'Add a key.' | sha256sum
        ({"page_content": "x", "id": "1", "metadata": {"chunk_id": "c1"}}, Passage("c1", "x")),
        ({"lc": 1, "id": ["a", "b"], "kwargs": {"page_content": "x", "id": "k"}}, Passage("k", "x")),
        ({"node": {"id_": "n", "text": "x"}, "score": 0.5}, Passage(text_id("x", "text"), "x")),
        ({"id": 7, "content": "x", "meta": {"file_path": "b.md"}}, Passage("7", "x", "b.md")),
        ({"doc_id": "d1"}, Passage("d1", None, "d1")),
        ({"score": 1}, None),
        (" ", None),
    ],
)
def test_a_passage_has_its_id_its_text_and_its_document(item: Any, found: Passage | None) -> None:
    assert passages([item, item]) == ((found,) if found else ())


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ("Why?", "Why?"),
        ({"input": {"query": "Why?"}}, "Why?"),
        ({"anything": "Why?", "context": ["x"]}, "Why?"),
        ({"messages": [{"role": "user", "content": "Who?"}, {"type": "human", "content": "Why?"}]}, "Why?"),
        ([{"role": "system", "content": "Be nice."}], '[{"role":"system","content":"Be nice."}]'),
        ({"a": 1, "b": 2, "context": ["x"]}, '{"a":1,"b":2}'),
        (None, ""),
    ],
)
def test_the_question_of_an_input_is_found(given: Any, question: str) -> None:
    assert question_in(given) == question
