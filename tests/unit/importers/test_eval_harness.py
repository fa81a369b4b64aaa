"""eval-harness datasets and saved outputs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Json
from tests.unit.importers.test_import_run import Brought, bring, refusal

# The worked example of the format's own description, and its graded sibling.
DATASET = """\
samples:
  - id: q-1
    input: { question: "What is our refund window?" }
    expected_output: ["doc-3", "doc-9"]        # binary relevance
    metadata: { k: 5 }                          # optional per-sample cutoff
  - id: q-2
    input: { question: "And abroad?" }
    expected_output: { "doc-3": 3, "doc-9": 1 } # graded gains
    metadata: { tags: [refunds] }
"""
RANKED = ["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"]


def imported(directory: Path, outputs: Any, dataset: str = DATASET) -> Brought:
    files = {"dataset.yml": dataset, "outputs.json": json.dumps(outputs)}
    return bring(directory, "eval-harness", files)


def sample(**fields: Any) -> str:
    return json.dumps({"samples": [{"id": "q-1", **fields}]})


def chunk_ids(brought: Brought, query_id: str) -> list[str | None]:
    hits = brought.result(query_id).hits
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    return [hit.chunk_id for hit in hits]


# -- figures -------------------------------------------------------------------------------------


def test_the_worked_example_of_the_format(tmp_path: Path) -> None:
    metrics = imported(tmp_path, {"outputs": {"q-1": RANKED}}).metrics()
    assert metrics.values["hit@5"] == 1.0
    assert metrics.value("recall@5") == 1.0
    assert metrics.values["mrr"] == 0.5
    # (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3)) = 1.0616 / 1.6309
    assert metrics.value("ndcg@5") == 0.6509


def test_graded_gains_weigh_in_ndcg(tmp_path: Path) -> None:
    # (3/log2(3) + 1/log2(5)) / (3 + 1/log2(3)) = 2.3235 / 3.6309
    metrics = imported(tmp_path, {"outputs": {"q-2": RANKED}}).metrics()
    assert metrics.value("ndcg@5") == 0.6399


def test_an_expected_text_is_looked_for_in_the_texts(tmp_path: Path) -> None:
    dataset = sample(expected_output="30  Days")
    outputs = {"q-1": {"retrieved": [{"id": "a", "text": "no"}, {"id": "b", "text": "within 30 days."}]}}
    metrics = imported(tmp_path, {"outputs": outputs}, dataset).metrics()
    assert (metrics.value("containment@1"), metrics.value("containment@3")) == (0.0, 1.0)


def test_the_samples_own_cutoff_counts(tmp_path: Path) -> None:
    dataset = sample(expected_output=["doc-3"], metadata={"k": 1})
    metrics = imported(tmp_path, {"outputs": {"q-1": RANKED}}, dataset).metrics()
    assert (metrics.value("hit@k"), metrics.value("hit@5")) == (0.0, 1.0)


# -- outputs -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "output",
    [
        ["doc-7", "doc-3"],
        [{"id": "doc-7", "text": "…"}, {"id": "doc-3"}],
        {"retrieved": ["doc-7", {"id": "doc-3", "score": 0.5}]},
        '["doc-7", "doc-3"]',
        ' {"retrieved": [{"id": "doc-7"}, {"id": "doc-3"}]} ',
    ],
)
@pytest.mark.parametrize("shape", ["map", "list", "bare map", "bare list"])
def test_a_ranked_output_in_any_of_its_shapes(tmp_path: Path, output: Any, shape: str) -> None:
    listed = [{"id": "q-1", "actual_output": output}]
    outputs: Any = {
        "map": {"outputs": {"q-1": output}},
        "list": {"outputs": listed},
        "bare map": {"q-1": output},
        "bare list": listed,
    }[shape]
    assert chunk_ids(imported(tmp_path, outputs), "q-1") == ["doc-7", "doc-3"]


def test_a_repeated_id_keeps_its_first_rank_and_the_gap_closes(tmp_path: Path) -> None:
    output = ["a", "b", "a", {"id": "b", "text": "late"}, "c"]
    brought = imported(tmp_path, {"outputs": {"q-1": output}})
    assert chunk_ids(brought, "q-1") == ["a", "b", "c"]
    assert brought.result("q-1").hits[1].text is None


@pytest.mark.parametrize("text", ["Thirty days.", "42", '"quoted"', '{"answer": "x"}', "[1] says so", ""])
def test_any_other_text_is_an_answer(tmp_path: Path, text: str) -> None:
    found = imported(tmp_path, {"outputs": {"q-1": text}}).result("q-1")
    assert found.answer
    assert (found.answer.text, found.answer.grounded, found.hits) == (text, True, ())


@pytest.mark.parametrize("output", [None, [], '{"retrieved": []}'])
def test_no_output_is_a_result_with_no_hits_and_no_answer(tmp_path: Path, output: Any) -> None:
    found = imported(tmp_path, {"outputs": {"q-1": output}}).result("q-1")
    assert (found.hits, found.answer) == ((), None)


def test_the_query_of_a_result_is_the_samples_question(tmp_path: Path) -> None:
    found = imported(tmp_path, {"outputs": {"q-1": RANKED}}).result("q-1")
    assert found.query == "What is our refund window?"


def test_a_sample_without_an_output_is_absent_from_the_run(tmp_path: Path) -> None:
    summary = imported(tmp_path, {"outputs": {"q-1": RANKED}}).summary
    assert (summary.queries, summary.golden) == (1, 2)


def test_an_output_without_a_sample_is_imported_too(tmp_path: Path) -> None:
    brought = imported(tmp_path, {"outputs": {"q-1": RANKED, "q-9": RANKED}})
    assert chunk_ids(brought, "q-9") == RANKED


def test_outputs_may_be_yaml(tmp_path: Path) -> None:
    outputs = "outputs:\n  q-1: [doc-7, doc-3]\n  q-2: |\n    Thirty days.\n  7: [1, 2]\n"
    brought = bring(tmp_path, "eval-harness", {"dataset.yml": DATASET, "outputs.yaml": outputs})
    assert chunk_ids(brought, "q-1") == ["doc-7", "doc-3"]
    assert chunk_ids(brought, "7") == ["1", "2"]
    answer = brought.result("q-2").answer
    assert answer
    assert answer.text == "Thirty days.\n"


def test_a_dataset_may_be_json_and_its_format_is_told_by_its_content(tmp_path: Path) -> None:
    dataset = json.dumps({"name": "x", "samples": [{"id": "q-1", "input": "?"}]}, indent="\t")
    files = {"dataset.txt": dataset, "outputs.txt": "outputs: {q-1: [a]}\n"}
    assert chunk_ids(bring(tmp_path, "eval-harness", files), "q-1") == ["a"]


# -- samples -------------------------------------------------------------------------------------


def test_a_sample_becomes_a_golden_query(tmp_path: Path) -> None:
    queries = imported(tmp_path, {"outputs": {"q-1": RANKED}}).queries().by_id()
    first, second = queries["q-1"], queries["q-2"]
    assert (first.query, first.k) == ("What is our refund window?", 5)
    assert (first.expected_chunk_ids, first.relevance) == (("doc-3", "doc-9"), {})
    assert (second.relevance, second.tags) == ({"doc-3": 3, "doc-9": 1}, ("refunds",))


@pytest.mark.parametrize(
    ("given", "query"),
    [
        ("Plain text?", "Plain text?"),
        ({"query": "Q?", "user": "x"}, "Q?"),
        ({"user": "x"}, '{"user": "x"}'),
        (None, "q-1"),
        ({}, "q-1"),
    ],
)
def test_the_question_is_found_in_the_input(tmp_path: Path, given: Any, query: str) -> None:
    (found,) = imported(tmp_path, {"outputs": {"q-1": []}}, sample(input=given)).queries().queries
    assert found.query == query


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        ('["a", "b"]', {"expected_chunk_ids": ("a", "b")}),
        ('{"a": 2}', {"relevance": {"a": 2}}),
        ("42", {"expected_answer": "42"}),
        ([1, "b"], {"expected_chunk_ids": ("1", "b")}),
        ([], {"expected_chunk_ids": (), "expected_doc_ids": None, "answerable": None}),
        (None, {"expected_chunk_ids": (), "expected_doc_ids": None, "answerable": None}),
    ],
)
def test_an_expected_output_in_any_of_its_shapes(tmp_path: Path, expected: Any, fields: Json) -> None:
    dataset = sample(expected_output=expected)
    (query,) = imported(tmp_path, {"outputs": {"q-1": []}}, dataset).queries().queries
    assert {name: getattr(query, name) for name in fields} == fields


# -- what is wrong -------------------------------------------------------------------------------

OUTPUTS = '{"outputs": {"q-1": ["a"]}}'


@pytest.mark.parametrize(
    ("dataset", "line", "why"),
    [
        ("samples:\n  - id: a\n  - id: [\n", 4, "this is not YAML"),
        ("samples:\n  - id: a\n  - input: x\n", 3, "'id' is missing"),
        ("samples:\n  - id: a\n  - just text\n", 3, "number 2 of the samples must be a mapping with an id"),
        ("samples:\n  - id: a\n  - id: a\n", 3, "the id 'a' is taken already, at line 2"),
        ("samples:\n  - id: a\n    metadata: {k: 0}\n", 2, "wrong 'k'"),
        ("samples:\n  - id: 2031-01-31\n", 2, "'id' must be text, not 2031-01-31"),
        ("samples:\n  - id: a\n    expected_output: {d: much}\n", 2, "wrong 'relevance'"),
        ("samples:\n  - id: a\n    expected_output: {d: -1}\n", 2, "a number from 0 on"),
        ("samples:\n  - id: a\n    expected_output: 3\n", 2, "'expected_output' must be a list of ids"),
        ("samples:\n  - id: a\n    id: b\n", 3, "the key 'id' is there twice"),
        ("name: x\nsamples: many\n", 2, "'samples' must be a list or a mapping"),
        ("name: x\n", 1, "'name' is no sample; the samples belong under 'samples'"),
        ("? [a]\n: x\n", 1, "a key must be plain text"),
        ("just text\n", 1, "the top level must be a mapping with 'samples', or a list"),
        ("samples: [{id: a}]\n---\nmore: x\n", 2, "a second YAML document"),
        ("samples:\n  - id: !!python/object:os.system a\n", 2, "is not allowed here"),
    ],
)
def test_a_bad_dataset_is_named_with_the_line(tmp_path: Path, dataset: str, line: int, why: str) -> None:
    message = refusal(tmp_path, "eval-harness", {"dataset.yml": dataset, "outputs.json": OUTPUTS})
    assert message.startswith(f"dataset.yml:{line}: ")
    assert why in message


@pytest.mark.parametrize(
    ("outputs", "line", "why"),
    [
        ('{"outputs": {\n "a": ["x"],\n "b": [}}', 3, "this is not JSON"),
        ('{"outputs": {\n "a": ["x"],\n "b": 7}}', 3, "the output of 'b' must be a ranked list"),
        ('{"outputs": {\n "a": ["x"],\n "b": {"hits": []}}}', 3, "the output of 'b' must be a ranked list"),
        ('{"outputs": {\n "a": ["x"],\n "b": ["x", ""]}}', 3, "number 2 of the retrieved has no id"),
        ('{"outputs": {\n "a": ["x"],\n "b": [{"text": "x"}]}}', 3, "number 1 of the retrieved has no id"),
        ('{"outputs": {\n "a": ["x"],\n "b": [1.5]}}', 3, "'id' must be text, not 1.5"),
        ('{"outputs": {\n "a": ["x"],\n "a": ["y"]}}', 3, "the id 'a' is taken already, at line 2"),
        ('{"outputs": {"a": ["x"], "a": ["y"]}}', 1, "the id 'a' is there twice"),
        ('{"outputs": [\n {"id": "a"},\n {"id": "a"}]}', 2, "the output of 'a' must be a ranked list"),
        ('{"outputs": [\n {"actual_output": []}]}', 2, "'id' is missing"),
        ('{"outputs": [\n "text"]}', 2, "number 1 of the outputs must be a mapping with an id"),
        ('{"outputs":\n "text"}', 2, "'outputs' must be a list or a mapping"),
        ('{"outputs": {"a": []}}\n}', 2, "there is something after its end"),
        ('{"outputs": {"a": []},\n}', 2, "this is not JSON"),
        ('{"outputs": {"a": []}\n', 2, "this is not JSON"),
        ('{"outputs": {"a" []}}\n', 1, "this is not JSON: expected :"),
        ('{7: {"a": []}}\n', 1, "this is not JSON: a key must be in quotes"),
        ('"text"', 1, "the top level must be a mapping with 'outputs', or a list"),
        ('{"outputs": {"a": NaN}}', 1, "NaN is not a JSON number"),
        ('{"outputs":\n {"a": "\\ud800"}}', 2, "not Unicode text"),
        ('{"outputs": {"a": ' + "[" * 100_000, 1, "nested too deeply"),
    ],
)
def test_bad_outputs_are_named_with_the_line(tmp_path: Path, outputs: str, line: int, why: str) -> None:
    message = refusal(tmp_path, "eval-harness", {"dataset.yml": DATASET, "outputs.json": outputs})
    assert message.startswith(f"outputs.json:{line}: ")
    assert why in message


@pytest.mark.parametrize("content", ['{"outputs": {}}', '{"outputs": []}', "{}", "[]"])
def test_a_file_without_outputs_is_an_error(tmp_path: Path, content: str) -> None:
    files = {"dataset.yml": DATASET, "outputs.json": content}
    assert refusal(tmp_path, "eval-harness", files) == "outputs.json: there are no outputs in this file"
