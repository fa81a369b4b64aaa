"""Which golden fields an import fills: rules for what is found, alternatives, metadata, wrong documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.importers.cases import text_id
from pytest_kebab_eval.importers.importer import MAX_SLICES
from pytest_kebab_eval.model import GoldenQuery
from tests.unit.importers.test_import_run import bring, refusal

Json = dict[str, Any]

OWN = {
    "team": "search",
    "tier": 2,
    "beta": True,
    "forbidden_doc_ids": ["draft"],
    "must_rank_at_most": 3,
    "require": "all",
    "owners": ["a list is no slice"],
    "blank": " ",
}
FIELDS_OF_OWN: Json = {
    "metadata": {"team": "search", "tier": 2, "beta": True},
    "forbidden_doc_ids": ("draft",),
    "must_rank_at_most": 3,
    "require": "all",
}
A, A2, B = (text_id(text, "text") for text in ("a", "a2", "b"))
EXPECTED = [["a", "a2"], "b"]
ALTERNATIVES: Json = {"expected_chunk_ids": (A, A2, B), "alternatives": ((A, A2),)}


def only_query(directory: Path, importer: str, files: dict[str, Any]) -> GoldenQuery:
    """The golden query of an import; a file that is no text is written as JSON."""
    texts = {name: file if isinstance(file, str) else json.dumps(file) for name, file in files.items()}
    (query,) = bring(directory, importer, texts).queries().queries
    return query


@pytest.mark.parametrize(
    ("importer", "files", "fields"),
    [
        (
            "promptfoo",
            {
                "results.jsonl": {
                    "vars": {"query": "q?", "expected_contexts": EXPECTED},
                    "testCase": {"metadata": OWN, "assert": [{"type": "not-contains", "value": "secret"}]},
                    "response": {"output": "that"},
                }
            },
            {**FIELDS_OF_OWN, **ALTERNATIVES, "forbidden": ("secret",)},
        ),
        (
            "langsmith",
            {
                "results.jsonl": {"inputs": {"question": "q?"}, "outputs": {"answer": "x"}},
                "examples.jsonl": {
                    "inputs": {"question": "q?"},
                    "outputs": {"contexts": EXPECTED},
                    "metadata": OWN,
                },
            },
            {**FIELDS_OF_OWN, **ALTERNATIVES},
        ),
        (
            "langsmith",
            {
                "results.csv": "inputs.question,outputs.answer\nq?,x\n",
                "examples.csv": "inputs.question,outputs.contexts,metadata.team\nq?,['a'],search\n",
            },
            {"metadata": {"team": "search"}, "expected_chunk_ids": (A,)},
        ),
        (
            "deepeval",
            {
                "results.json": {
                    "testCases": [
                        {
                            "input": "q?",
                            "context": EXPECTED,
                            "additionalMetadata": OWN,
                            "customColumnKeyValues": {"source": "log"},
                        }
                    ]
                }
            },
            {
                **FIELDS_OF_OWN,
                **ALTERNATIVES,
                "metadata": {"source": "log", **FIELDS_OF_OWN["metadata"]},
            },
        ),
        (
            "ragas",
            {
                "results.jsonl": {
                    "user_input": "q?",
                    "response": "x",
                    "reference_context_ids": [["c1", "c2"], "c3"],
                    "synthesizer_name": "single_hop",
                    "persona_name": None,
                    "query_style": "POOR_GRAMMAR",
                }
            },
            {
                "metadata": {"synthesizer_name": "single_hop", "query_style": "POOR_GRAMMAR"},
                "expected_chunk_ids": ("c1", "c2", "c3"),
                "alternatives": (("c1", "c2"),),
            },
        ),
        (
            "eval-harness",
            {
                "dataset.json": {
                    "samples": [
                        {
                            "id": "q",
                            "expected_output": [["c1", 2], "c3"],
                            "metadata": {**OWN, "k": 7, "tags": ["t"]},
                        }
                    ]
                },
                "outputs.json": {"outputs": {"q": ["c1"]}},
            },
            {
                **FIELDS_OF_OWN,
                "k": 7,
                "tags": ("t",),
                "expected_chunk_ids": ("c1", "2", "c3"),
                "alternatives": (("c1", "2"),),
            },
        ),
        (
            "trec",
            {"run.txt": "q Q0 d1 1 2.0 x\n", "qrels.txt": "q 0 d1 1\nq 0 d2 0\nq 0 spam -2\n"},
            {"expected_chunk_ids": ("d1",), "expected_doc_ids": ("d1",), "relevance": {"d2": 0, "spam": 0}},
        ),
        (
            "trec",
            {"run.json": {"q": {"d1": 2}}, "qrels.json": {"q": {"d1": 2, "d2": 0, "d3": 1}}},
            {"expected_chunk_ids": ("d1", "d3"), "relevance": {"d1": 2, "d3": 1, "d2": 0}},
        ),
    ],
)
def test_an_import_fills_the_fields_that_a_format_has_the_like_of(
    tmp_path: Path, importer: str, files: dict[str, Any], fields: Json
) -> None:
    query = only_query(tmp_path, importer, files)
    assert {name: getattr(query, name) for name in fields} == fields


def test_a_topic_whose_documents_are_all_judged_wrong_expects_nothing(tmp_path: Path) -> None:
    files = {"run.txt": "q Q0 d1 1 2.0 x\n", "qrels.txt": "q 0 d1 0\n"}
    query = only_query(tmp_path, "trec", files)
    assert (query.expects_anything, query.can_be_answered, query.relevance) == (False, None, {"d1": 0})


def test_hits_judged_wrong_count_as_judged(tmp_path: Path) -> None:
    """Of q's hits d1 to d5, d1 is right, d2 wrong, and nobody has judged the others: 2 of 5."""
    run = "".join(f"q Q0 d{number} 1 {9 - number} x\n" for number in range(1, 6))
    brought = bring(tmp_path, "trec", {"run.txt": run, "qrels.txt": "q 0 d1 1\nq 0 d2 0\n"})
    assert brought.metrics().extra["judged@5"] == 0.4


def test_a_rule_that_is_none_is_an_error_with_its_line(tmp_path: Path) -> None:
    example = '{"inputs": {"question": "q?"}, "metadata": {"must_rank_at_most": "first"}}\n'
    files = {"results.csv": "inputs.question,outputs.answer\nq?,x\n", "examples.jsonl": example}
    assert "examples.jsonl:1: " in refusal(tmp_path, "langsmith", files)
    assert "has a wrong 'must_rank_at_most'" in refusal(tmp_path, "langsmith", files)


def test_names_that_no_gate_could_have_are_changed(tmp_path: Path) -> None:
    sample = {"id": "q", "metadata": {"a=b": 1, "{c}": 2, "\u0007": 3, "d e": 4, "huge": 10**400}}
    files = {"dataset.json": {"samples": [sample]}, "outputs.json": {"outputs": {"q": ["c1"]}}}
    assert only_query(tmp_path, "eval-harness", files).metadata == {"a_b": 1, "_c_": 2, "d e": 4}


def test_metadata_that_differs_from_query_to_query_makes_no_slices(tmp_path: Path) -> None:
    """One value too many: `ticket` is kept in lists; `team` has two values, and stays."""
    count = MAX_SLICES + 1
    samples = [{"id": f"q{n}", "metadata": {"ticket": f"T-{n}", "team": f"t{n % 2}"}} for n in range(count)]
    outputs = {f"q{n}": ["d"] for n in range(count)}
    files = {"dataset.json": json.dumps({"samples": samples}), "outputs.json": json.dumps(outputs)}
    brought = bring(tmp_path, "eval-harness", files)
    assert brought.queries().queries[1].metadata == {"ticket": ["T-1"], "team": "t1"}
    slices = brought.metrics().slices
    assert [name for name in slices if name.startswith("metadata.")] == [
        "metadata.team=t0",
        "metadata.team=t1",
    ]


@pytest.mark.parametrize("name", ["g.yaml", "g.json", "g.jsonl"])
def test_every_new_field_is_written_in_every_format(tmp_path: Path, name: str) -> None:
    sample = {"id": "q", "expected_output": [["c1", "c2"], "c3"], "metadata": OWN}
    files = {
        "dataset.json": json.dumps({"samples": [sample]}),
        "outputs.json": json.dumps({"outputs": {"q": ["c1"]}}),
    }
    (query,) = bring(tmp_path, "eval-harness", files, golden=name).queries().queries
    assert {field: getattr(query, field) for field in FIELDS_OF_OWN} == FIELDS_OF_OWN
    assert query.alternatives == (("c1", "c2"),)
