"""Two files whose ids differ: nothing is imported if no id is in both, and a warning says what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.importers.test_import_run import bring, refusal, with_bare_names


def jsonl(*lines: Any) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def trec(run: list[str], judged: list[str]) -> dict[str, str]:
    return {
        "run.txt": "".join(f"{topic} Q0 d1 1 2.0 bm25\n" for topic in run),
        "qrels.txt": "".join(f"{topic} 0 d1 1\n" for topic in judged),
    }


def wfgy(run: list[str], judged: list[str]) -> dict[str, str]:
    return {
        "trace.jsonl": jsonl(*({"qid": name, "retrieved_ids": ["p1"]} for name in run)),
        "gold.jsonl": jsonl(*({"qid": name, "gold_citations": ["p1"]} for name in judged)),
    }


def eval_harness(run: list[str], judged: list[str]) -> dict[str, str]:
    samples = [{"id": name, "input": "?", "expected_output": ["d1"]} for name in judged]
    return {
        "outputs.json": json.dumps({"outputs": {name: ["d1"] for name in run}}),
        "dataset.json": json.dumps({"samples": samples}),
    }


def helloworld(run: list[str], judged: list[str]) -> dict[str, str]:
    return {
        "results.jsonl": jsonl(*({"test_case_id": name, "answer": "yes"} for name in run)),
        "eval-set.jsonl": jsonl(
            *({"id": name, "question": "?", "expected_key_facts": ["a fact"]} for name in judged)
        ),
    }


FORMATS = {
    "trec": (trec, "run.txt", "qrels.txt", "topic"),
    "wfgy": (wfgy, "trace.jsonl", "gold.jsonl", "id"),
    "eval-harness": (eval_harness, "outputs.json", "dataset.json", "id"),
    "helloworld": (helloworld, "results.jsonl", "eval-set.jsonl", "id"),
}
EACH_FORMAT = pytest.mark.parametrize("name", FORMATS)


@EACH_FORMAT
def test_files_without_a_common_id_are_refused_with_an_id_of_each(tmp_path: Path, name: str) -> None:
    files, run, judged, noun = FORMATS[name]
    assert refusal(tmp_path, name, files(["q1", "q2"], ["1", "2", "3"])) == (
        f"{run}: none of its 2 {noun}s is one of the 3 {noun}s in {judged}: 'q1' is in {run}, '1' in"
        f" {judged}; write the ids alike, or name the files of the same queries"
    )


@EACH_FORMAT
def test_ids_of_one_file_alone_are_imported_with_a_warning_that_has_both_counts(
    tmp_path: Path, name: str
) -> None:
    files, run, judged, noun = FORMATS[name]
    summary = bring(tmp_path, name, files(["a", "b", "x"], ["a", "y", "b", "z"])).summary
    assert summary.golden == 4
    (warning,) = summary.warnings
    assert with_bare_names(warning, tmp_path, [run, judged]) == (
        f"{run} has 3 {noun}s and {judged} has 4 {noun}s, 2 of them in both: 'x' is in {run} alone,"
        f" 'y' is in {judged} alone; say --allow-missing if that is right"
    )


@EACH_FORMAT
def test_the_same_ids_in_another_order_are_no_warning(tmp_path: Path, name: str) -> None:
    assert bring(tmp_path, name, FORMATS[name][0](["a", "b"], ["b", "a"])).summary.warnings == ()


def test_a_warning_names_only_the_file_that_has_more(tmp_path: Path) -> None:
    (warning,) = bring(tmp_path, "trec", trec(["a"], ["a", "b"])).summary.warnings
    assert "has 1 topic and " in warning
    assert "in both: 'b' is in" in warning
