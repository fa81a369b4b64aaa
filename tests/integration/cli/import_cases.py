"""A small run in every format that can be imported: good files, and damaged ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_kebab_eval.importers.table import text_id
from tests.builders import result

Files = Mapping[str, str]


def jsonl(*lines: Any) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


class Case(NamedTuple):
    """A format: good files by option, and the queries that they give.

    With the files of `damaged`, the queries `lost` have lost something.
    """

    name: str
    files: Files
    queries: list[str]
    damaged: Files
    lost: list[str]


# -- rankings ------------------------------------------------------------------------------------

RUN = "t1 Q0 d1 0 2.5 x\nt2 Q0 d2 0 1.5 x\n"
DAMAGED_RUN = "t1 Q0 d9 0 2.5 x\nt2 Q0 d2 0 1.5 x\n"
TREC = Case(
    "trec",
    {"run": RUN, "qrels": "t1 0 d1 1\nt2 0 d1 1\n"},
    ["t1", "t2"],
    {"run": DAMAGED_RUN},
    ["t1"],
)
# -- questions with passages and answers ---------------------------------------------------------

PYTHON, PERL = text_id("Who made Python?", "q"), text_id("Who made Perl?", "q")
ASKED = {  # a question -> what was retrieved, answered, and expected
    "Who made Python?": (["Guido made Python.", "Snakes."], "It was Guido van Rossum.", "Guido van Rossum"),
    "Who made Perl?": (["Larry made Perl.", "Pearls."], "It was Larry Wall.", "Larry Wall"),
}


def ragas(question: str, *, lost: bool = False) -> dict[str, Any]:
    contexts, answer, reference = ASKED[question]
    return {
        "user_input": question,
        "retrieved_contexts": contexts[1:] if lost else contexts,
        "reference_contexts": contexts[:1],
        "response": answer,
        "reference": reference,
        "faithfulness": 0.5,
    }


def deepeval(question: str, *, lost: bool = False) -> dict[str, Any]:
    contexts, answer, reference = ASKED[question]
    return {
        "name": "test_case_0",
        "input": question,
        "actualOutput": answer,
        "expectedOutput": reference,
        "context": contexts[:1],
        "retrievalContext": contexts[1:] if lost else contexts,
        "completionTime": 1.5,
        "success": True,
    }


def promptfoo(number: int, question: str, *, lost: bool = False) -> dict[str, Any]:
    contexts, answer, reference = ASKED[question]
    test = {
        "vars": {"query": question, "context": contexts},
        "assert": [
            {"type": "icontains", "value": reference},
            {"type": "llm-rubric", "value": "is polite"},
        ],
    }
    return {
        "promptIdx": 0,
        "testIdx": number,
        "testCase": test,
        "provider": {"id": "openai:gpt-4.1", "label": ""},
        "prompt": {"raw": question, "label": "{{query}}"},
        "vars": test["vars"],
        "response": {"output": "No idea." if lost else answer, "cached": False},
        "error": "Expected output to contain" if lost else None,
        "failureReason": 1 if lost else 0,
        "success": not lost,
        "latencyMs": 120,
        "cost": 0.001,
    }


def promptfoo_file(*results: Any) -> str:
    summary = {"version": 3, "timestamp": "2026-01-01T00:00:00.000Z", "prompts": [], "results": results}
    return json.dumps({"evalId": "eval-1", "results": summary, "config": {}, "shareableUrl": None}, indent=2)


def langsmith(number: int, question: str, *, lost: bool = False) -> dict[str, Any]:
    contexts, answer, reference = ASKED[question]
    found = [{"page_content": text, "metadata": {"source": "notes.md"}} for text in contexts]
    return {
        "inputs.question": question,
        "outputs.answer": answer,
        "outputs.documents": found[1:] if lost else found,
        "error": None,
        "reference.answer": reference,
        "reference.contexts": contexts[:1],
        "execution_time": 2.0,
        "example_id": f"example-{number}",
        "id": f"run-{number}",
    }


FIRST, SECOND = ASKED
RAGAS = Case(
    "ragas",
    {"results": jsonl(ragas(FIRST), ragas(SECOND))},
    sorted([PYTHON, PERL]),
    {"results": jsonl(ragas(FIRST), ragas(SECOND, lost=True))},
    [PERL],
)
DEEPEVAL = Case(
    "deepeval",
    {"results": json.dumps({"testCases": [deepeval(FIRST), deepeval(SECOND)], "official": False})},
    sorted([PYTHON, PERL]),
    {"results": json.dumps({"testCases": [deepeval(FIRST, lost=True), deepeval(SECOND)]})},
    [PYTHON],
)
PROMPTFOO = Case(
    "promptfoo",
    {"results": promptfoo_file(promptfoo(0, FIRST), promptfoo(1, SECOND))},
    sorted([PYTHON, PERL]),
    {"results": promptfoo_file(promptfoo(0, FIRST), promptfoo(1, SECOND, lost=True))},
    [PERL],
)
LANGSMITH = Case(
    "langsmith",
    {"results": jsonl(langsmith(1, FIRST), langsmith(2, SECOND))},
    ["example-1", "example-2"],
    {"results": jsonl(langsmith(1, FIRST, lost=True), langsmith(2, SECOND))},
    ["example-1"],
)
# -- formats of single projects ------------------------------------------------------------------

GOLD = {
    "qid": "w1",
    "question": "?",
    "answerable": True,
    "gold_claim_substr": ["a claim"],
    "gold_citations": ["p1"],
}
TRACE = {
    "qid": "w1",
    "q": "?",
    "retrieved_ids": ["p1"],
    "answer_json": {"claim": "a claim", "citations": ["p1"]},
}
CASE = {
    "id": "h1",
    "question": "?",
    "answerable": True,
    "expected_key_facts": ["a fact"],
    "gold_supports": [{"rel_path": "a.md", "heading_path": "Intro", "snippets": []}],
}
CHUNK = {"chunk_id": "c1", "rel_path": "a.md", "heading_path": "Intro", "rank": 1, "text": "t"}
OUTCOME = {
    "test_case_id": "h1",
    "answer": "a fact",
    "references": [],
    "retrieved_chunks": [CHUNK],
    "abstention": {"abstained": False},
}
SAMPLES = """\
samples:
  - id: e1
    input: what?
    expected_output: [d1]
"""
WFGY = Case(
    "wfgy",
    {"gold": jsonl(GOLD), "trace": jsonl(TRACE)},
    ["w1"],
    {"trace": jsonl(TRACE | {"retrieved_ids": ["p2"]})},
    ["w1"],
)
EVAL_HARNESS = Case(
    "eval-harness",
    {"dataset": SAMPLES, "outputs": '{"outputs": {"e1": ["d1", "d2"]}}'},
    ["e1"],
    {"outputs": '{"outputs": {"e1": ["d2"]}}'},
    ["e1"],
)
HELLOWORLD = Case(
    "helloworld",
    {"eval-set": jsonl(CASE), "results": jsonl(OUTCOME)},
    ["h1"],
    {"results": jsonl(OUTCOME | {"retrieved_chunks": [CHUNK | {"rel_path": "b.md"}]})},
    ["h1"],
)
KEBAB = Case(
    "kebab",
    {"results": jsonl({"query_id": "k1", **result("c1")}, {"query_id": "k2", **result("c2")})},
    ["k1", "k2"],
    {"results": jsonl({"query_id": "k1", **result("c1")}, {"query_id": "k2", **result("c9")})},
    ["k2"],
)

CASES = [KEBAB, TREC, RAGAS, DEEPEVAL, PROMPTFOO, LANGSMITH, WFGY, EVAL_HARNESS, HELLOWORLD]
