"""What `promptfoo eval` writes; `make tools` has it write the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.import_cases import FIRST, PYTHON, jsonl, promptfoo, promptfoo_file
from tests.unit.importers.test_cases import answer, texts
from tests.unit.importers.test_import_run import bring, refusal


def test_assertions_that_compare_text_become_rules(tmp_path: Path) -> None:
    given = promptfoo(0, FIRST)
    given["testCase"]["assert"] = [
        {"type": "contains", "value": "Guido"},
        {"type": "not-contains", "value": "Larry"},
        {"type": "assert-set", "assert": [{"type": "contains-any", "value": ["Guido van", "Rossum"]}]},
        {"type": "context-recall", "value": "Guido made Python.", "threshold": 0.9},
        {"type": "javascript", "value": "true"},
        {"type": "contains", "value": 7},
        {"type": "contains", "value": {"not": "text"}},
        {"type": "contains", "value": True},
        {"type": {"not": "a type"}, "value": "x"},
    ]
    query = bring(tmp_path, "promptfoo", {"results.json": promptfoo_file(given)}).queries().queries[0]
    assert (query.must_contain, query.forbidden) == (("Guido", "7"), ("Larry",))
    assert (query.claims, query.expected_answer) == (("Guido van", "Rossum"), "Guido made Python.")


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("one, two", ("one", "two")),
        ('"one, two", three', ("one, two", "three")),
        ('"say ""one""",, two', ('say "one"', "two")),
        (["one, two", 3], ("one, two", "3")),
        ("{{ expected }}, two", ("Guido", "two")),
        ('"unclosed, two', ('"unclosed', "two")),
        (" , ", ()),
    ],
)
def test_several_texts_of_one_assertion_have_commas_between_them(
    tmp_path: Path, value: Any, texts: tuple[str, ...]
) -> None:
    given = promptfoo(0, FIRST) | {"vars": {"query": FIRST, "expected": "Guido"}}
    given["testCase"]["assert"] = [{"type": "contains-all", "value": value}]
    query = bring(tmp_path, "promptfoo", {"results.json": promptfoo_file(given)}).queries().queries[0]
    assert query.must_contain == texts


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("{{expected}}", ("Guido",)),
        ("{{ expected }} van {{year}}", ("Guido van 1991",)),
        ("{{expected | upper}}", ()),
        ("{% if x %}y{% endif %}", ()),
        ("{{nobody}}", ()),
        ("file://expected.txt", ()),
    ],
)
def test_variables_are_filled_in_and_what_only_promptfoo_can_fill_in_is_left_out(
    tmp_path: Path, value: str, texts: tuple[str, ...]
) -> None:
    given = promptfoo(0, FIRST) | {"vars": {"query": FIRST, "expected": "Guido", "year": 1991}}
    given["testCase"]["assert"] = [{"type": "contains", "value": value}]
    query = bring(tmp_path, "promptfoo", {"results.json": promptfoo_file(given)}).queries().queries[0]
    assert query.must_contain == texts


def test_tests_of_several_providers_and_prompts_are_queries_of_their_own(tmp_path: Path) -> None:
    # promptfoo counts on over the providers: the second one's prompts are 2 and 3; rows come as they ended.
    columns = [("a", "p"), ("a", "q"), ("b", "p"), ("b", "q")]
    rows = [
        promptfoo(0, FIRST)
        | {"provider": {"id": provider, "label": ""}, "promptIdx": number, "promptId": prompt}
        for number, (provider, prompt) in enumerate(columns)
    ]
    brought = bring(tmp_path, "promptfoo", {"results.jsonl": jsonl(*reversed(rows))})
    names = [query.id for query in brought.queries().queries]
    assert sorted(names) == [f"{PYTHON}@a#0", f"{PYTHON}@a#1", f"{PYTHON}@b#0", f"{PYTHON}@b#1"]


def test_prompts_of_files_without_their_ids_are_told_apart_by_their_templates(tmp_path: Path) -> None:
    rows = [
        promptfoo(0, FIRST) | {"prompt": {"raw": FIRST, "label": label}, "promptIdx": number}
        for number, label in enumerate(["{{query}}", "Q: {{query}}"])
    ]
    brought = bring(tmp_path, "promptfoo", {"results.jsonl": jsonl(*rows)})
    assert [query.id for query in brought.queries().queries] == [f"{PYTHON}#0", f"{PYTHON}#1"]


def test_a_question_that_is_there_twice_is_numbered_by_the_number_of_its_test(tmp_path: Path) -> None:
    rows = [promptfoo(number, FIRST) | {"response": {"output": f"answer {number}"}} for number in (1, 0)]
    brought = bring(tmp_path, "promptfoo", {"results.jsonl": jsonl(*rows)})
    assert [answer(brought, name) for name in (PYTHON, f"{PYTHON}-2")] == ["answer 0", "answer 1"]


@pytest.mark.parametrize("ending", [".csv", ".yaml", ".html"])
def test_what_promptfoo_writes_in_other_formats_is_refused_with_the_way_out(
    tmp_path: Path, ending: str
) -> None:
    assert refusal(tmp_path, "promptfoo", {f"results{ending}": "question,Status\nWho?,PASS\n"}) == (
        f"results{ending}: of what promptfoo writes, JSON and JSONL are read, not {ending};"
        " `promptfoo export eval latest -o results.json` writes the same evaluation as JSON"
    )


def test_only_what_promptfoo_calls_an_error_is_one(tmp_path: Path) -> None:
    rows = [
        promptfoo(0, FIRST, lost=True),
        promptfoo(1, FIRST) | {"error": "timed out", "failureReason": 2, "response": None},
        promptfoo(2, FIRST) | {"response": {"error": "refused"}, "failureReason": 0},
    ]
    brought = bring(tmp_path, "promptfoo", {"results.jsonl": jsonl(*rows)})
    names = (PYTHON, f"{PYTHON}-2", f"{PYTHON}-3")
    assert [brought.result(name).error for name in names] == [None, "timed out", "refused"]


def test_version_2_of_promptfoos_file_is_read_as_version_3(tmp_path: Path) -> None:
    table = {"head": {"prompts": [], "vars": ["query"]}, "body": []}
    summary = {"version": 2, "results": [promptfoo(0, FIRST)], "table": table, "stats": {}}
    content = json.dumps({"results": summary, "config": {}, "shareableUrl": None})
    brought = bring(tmp_path, "promptfoo", {"results.json": content})
    assert answer(brought, PYTHON) == "It was Guido van Rossum."


@pytest.mark.parametrize(
    "response",
    [
        {"output": {"answer": "A.", "context": ["from the output"]}},
        {"output": '{"answer": "A.", "context": "from the output"}'},
        {"output": "A.", "metadata": {"chunks": ["from the output"]}},
    ],
)
def test_passages_that_the_provider_returned_go_before_those_of_the_test(
    tmp_path: Path, response: dict[str, Any]
) -> None:
    brought = bring(
        tmp_path, "promptfoo", {"results.jsonl": jsonl(promptfoo(0, FIRST) | {"response": response})}
    )
    assert (texts(brought, PYTHON), answer(brought, PYTHON)) == (["from the output"], "A.")


def test_the_question_of_a_test_without_a_known_variable_is_all_of_them(tmp_path: Path) -> None:
    rows = [
        promptfoo(0, FIRST) | {"vars": {"topic": "keys"}},
        promptfoo(1, FIRST) | {"vars": {}, "testCase": {}},
    ]
    brought = bring(tmp_path, "promptfoo", {"results.jsonl": jsonl(*rows)})
    assert [query.query for query in brought.queries().queries] == ['{"topic":"keys"}', FIRST]
