"""Each format by a table: files -> golden entries and results."""

from __future__ import annotations

import io
import json
import random
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import pytrec_eval

from pytest_kebab_eval.importers import Source, import_run
from pytest_kebab_eval.model import QueryResult
from tests.builders import Json, answer, hit, line, result
from tests.unit.importers.bringing import FORMATS, TREC, Brought, Files, bring, jsonl, write_sources


class Example(NamedTuple):
    """Files of a format; fields of one golden entry and what its result has, by words of `described`."""

    files: Files
    golden: Mapping[str, Any] = {}
    result: Mapping[str, Any] = {}
    query: str = "q"


def described(found: QueryResult) -> Json:
    """A result in few words: hits by id; an answer by its text, with `(refused)`; citations."""
    said = found.answer
    return {
        "query": found.query,
        "hits": [each.chunk_id for each in found.hits],
        "texts": [each.text for each in found.hits],
        "documents": [each.doc_id for each in found.hits],
        "answer": said and f"{said.text}{'' if said.grounded else ' (refused)'}",
        "citations": [
            each.chunk_id or (each.citation and f"{each.citation.path}#{each.citation.section}")
            for each in (said.citations if said else ())
        ],
        "error": found.error,
        "elapsed_ms": found.elapsed_ms,
        "cost_usd": found.cost_usd,
    }


def check(directory: Path, importer: str, example: Example) -> None:
    brought = bring(directory, importer, example.files)
    query = brought.queries()[example.query]
    assert {name: getattr(query, name) for name in example.golden} == example.golden
    found = described(brought.result(example.query)) if example.result else {}
    assert {name: found[name] for name in example.result} == example.result


# -- wfgy ----------------------------------------------------------------------------------------

GOLD: Json = {
    "qid": "q",
    "question": "Does X support null keys?",
    "answerable": True,
    "gold_claim_substr": ["rejects null keys", "", " "],
    "gold_citations": ["p1#2"],
}
TRACE: Json = {
    "qid": "q",
    "q": "?",
    "retrieved_ids": ["p1#1", "p1#2"],
    "answer_json": {"claim": "X rejects null keys.", "citations": ["p1#2"]},
}


def traced(*claims: str, **more: Any) -> Files:
    traces = ({**TRACE, "answer_json": {"claim": claim, "citations": []}} for claim in claims)
    return {"gold.jsonl": jsonl(GOLD, *more.get("gold", ())), "trace.jsonl": jsonl(*traces)}


WFGY = {
    "as the format's description has it": Example(
        {"gold.jsonl": jsonl(GOLD), "trace.jsonl": jsonl(TRACE)},
        {
            "query": "Does X support null keys?",
            "answerable": True,
            "claims": ("rejects null keys",),
            "expected_chunk_ids": ("p1#2",),
        },
        {"hits": ["p1#1", "p1#2"], "answer": "X rejects null keys.", "citations": ["p1#2"]},
    ),
    "a refusal, trimmed and case aside": Example(
        traced("  Not in Context\n"), {}, {"answer": "  Not in Context\n (refused)"}
    ),
    "not a refusal": Example(traced("It is not in context."), {}, {"answer": "It is not in context."}),
    "the last trace counts": Example(traced("one", "two"), {}, {"answer": "two"}),
    "no trace is no answer": Example(
        traced("one", gold=[{"q_id": 7}]),
        {"query": "7", "answerable": None, "claims": ()},
        {"hits": [], "answer": None},
        query="7",
    ),
    "a trace without an answer": Example(
        {"gold.jsonl": jsonl(GOLD), "trace.jsonl": jsonl({"qid": "q", "retrieved_ids": [1]})},
        {},
        {"hits": ["1"], "answer": None, "query": "Does X support null keys?"},
    ),
}


@pytest.mark.parametrize("example", WFGY.values(), ids=WFGY)
def test_wfgy(tmp_path: Path, example: Example) -> None:
    check(tmp_path, "wfgy", example)


def test_the_worked_example_of_wfgy_has_its_figures(tmp_path: Path) -> None:
    gold = [
        GOLD,
        {"qid": "u", "answerable": False, "gold_claim_substr": [], "gold_citations": []},
        {"qid": "b", "answerable": True, "gold_claim_substr": ["only domain"], "gold_citations": ["pB#1"]},
    ]
    traces = [
        TRACE,
        {"qid": "u", "retrieved_ids": ["p1#1"], "answer_json": {"claim": "not in context", "citations": []}},
        {
            "qid": "b",
            "retrieved_ids": ["pB#1"],
            "answer_json": {"claim": "Only domain x.", "citations": ["p9"]},
        },
    ]
    brought = bring(tmp_path, "wfgy", {"gold.jsonl": jsonl(*gold), "trace.jsonl": jsonl(*traces)})
    names = ("precision_answered", "citation_hit_rate", "under_refusal_rate", "over_refusal_rate")
    assert [brought.metric(name) for name in names] == [0.5, 0.5, 0.0, 0.0]  # b cites what was not retrieved


def test_an_item_of_wfgy_without_claims_has_none_contained(tmp_path: Path) -> None:
    without = {name: value for name, value in GOLD.items() if name != "gold_claim_substr"}
    brought = bring(tmp_path, "wfgy", {"gold.jsonl": jsonl(without), "trace.jsonl": jsonl(TRACE)})
    assert brought.queries()["q"].claims == ()
    assert [brought.metric(name) for name in ("precision_answered", "citation_hit_rate")] == [0.0, 1.0]


# -- eval-harness --------------------------------------------------------------------------------

RANKED = ["doc-7", "doc-3", "doc-1", "doc-9", "doc-2"]
SAMPLES = """\
samples:
  - id: q
    input: { question: "What is our refund window?" }
    expected_output: ["doc-3", "doc-9"]        # binary relevance
    metadata: { k: 5, tags: [refunds], team: search, a=b: 1, owners: [a list is no slice] }
"""


def sampled(expected: Any = None, asked: Any = "?") -> Files:
    sample = {"id": "q", "input": asked, "expected_output": expected}
    return {"dataset.json": {"samples": [sample]}, "outputs.json": {"outputs": {"q": RANKED}}}


def put_out(outputs: Any) -> Files:
    return {
        "dataset.yml": SAMPLES,
        "outputs.json": outputs if isinstance(outputs, str) else json.dumps(outputs),
    }


RANKINGS = (
    ["a", "b"],
    [{"id": "a", "text": "…"}, {"id": "b"}],
    {"retrieved": ["a", {"id": "b", "score": 0.5}]},
    '["a", "b"]',
    ' {"retrieved": [{"id": "a"}, {"id": "b"}]} ',
    ["a", "b", {"id": "a", "text": "late"}, "b"],  # a repeated id keeps its first rank
)
EVAL_HARNESS = {
    "a sample": Example(
        put_out({"outputs": {"q": RANKED}}),
        {
            "query": "What is our refund window?",
            "expected_chunk_ids": ("doc-3", "doc-9"),
            "relevance": {},
            "k": 5,
            "tags": ("refunds",),
            "metadata": {"team": "search", "a_b": 1},
        },
        {"hits": RANKED, "answer": None, "query": "What is our refund window?"},
    ),
    "gains": Example(sampled({"a": 3, "b": 1, "c": 0}), {"relevance": {"a": 3, "b": 1, "c": 0}}),
    "gains as text": Example(sampled('{"a": 2}'), {"relevance": {"a": 2}}),
    "ids as text, and numbers": Example(sampled('["a", 1]'), {"expected_chunk_ids": ("a", "1")}),
    "a text": Example(sampled("30 days"), {"expected_answer": "30 days", "expected_chunk_ids": ()}),
    "a number as text": Example(sampled("42"), {"expected_answer": "42"}),
    "nothing expected": Example(sampled([]), {"expected_doc_ids": None, "answerable": None}),
    "a question as text": Example(sampled(asked="Why?"), {"query": "Why?"}),
    "a question of another name": Example(sampled(asked={"query": "Why?", "user": "x"}), {"query": "Why?"}),
    "an input without a question": Example(sampled(asked={"user": "x"}), {"query": '{"user": "x"}'}),
    "no input": Example(sampled(asked=None), {"query": "q"}),
    **{
        f"ranked {n}": Example(put_out({"q": given}), {}, {"hits": ["a", "b"]})
        for n, given in enumerate(RANKINGS)
    },
    "a list of outputs": Example(put_out([{"id": "q", "actual_output": ["a"]}]), {}, {"hits": ["a"]}),
    "outputs in YAML": Example(
        {"dataset.yml": SAMPLES, "outputs.yaml": "outputs:\n  q: [a, 1]\n"}, {}, {"hits": ["a", "1"]}
    ),
    "told by their content": Example(
        {"dataset.txt": SAMPLES, "outputs.txt": '{"outputs": {"q": ["a"]}}'}, {}, {"hits": ["a"]}
    ),
    **{
        f"an answer, {text!r}": Example(put_out({"outputs": {"q": text}}), {}, {"hits": [], "answer": text})
        for text in ("Thirty days.", "42", '{"answer": "x"}', "[1] says so")
    },
    "no output": Example(put_out({"outputs": {"q": None}}), {}, {"hits": [], "answer": None}),
}


@pytest.mark.parametrize("example", EVAL_HARNESS.values(), ids=EVAL_HARNESS)
def test_eval_harness(tmp_path: Path, example: Example) -> None:
    check(tmp_path, "eval-harness", example)


def test_the_worked_example_of_eval_harness_has_its_figures(tmp_path: Path) -> None:
    brought = bring(tmp_path, "eval-harness", put_out({"outputs": {"q": RANKED}}))
    # ndcg@5: (1/log2(3) + 1/log2(5)) / (1 + 1/log2(3)) = 1.0616 / 1.6309
    names = ("hit@5", "recall@5", "mrr", "ndcg@5")
    assert [brought.metric(name) for name in names] == [1.0, 1.0, 0.5, 0.6509]


# -- helloworld ----------------------------------------------------------------------------------

CASE: Json = {
    "id": "q",
    "question": "What is it about?",
    "answerable": True,
    "expected_key_facts": ["about RAG", ""],
    "gold_supports": [
        {"rel_path": "main.md", "heading_path": "# Overview > ## Goals", "snippets": ["RAG"]},
        {"rel_path": "plan.md", "heading_path": ["Plan"]},
    ],
    "required_support_groups": [[0, 1]],
    "recency_conflict_rule": None,
    "tags": ["work"],
    "vaults": ["personal"],
    "category": "factual",
    "difficulty": "easy",
}
CHUNK: Json = {
    "chunk_id": "c1",
    "rel_path": "main.md",
    "heading_path": "# Overview",
    "rank": 2,
    "text": "RAG",
}
OUTCOME: Json = {
    "test_case_id": "q",
    "answer": "About RAG.",
    "references": [{"rel_path": "main.md", "heading_path": ["One", "Two"]}, {"chunk_id": 7}, "c1", "b.md"],
    "retrieved_chunks": [CHUNK, {"chunk_id": "c9", "rel_path": "other.md", "rank": 1}],
    "latency": {"total_ms": 1234, "retrieval_ms": 200},
    "groundedness": {"score": 4.5, "reasoning": "…", "unsupported_claims": ["x"]},
    "correctness": {"score": 4.0},
    "abstention": {"abstained": False, "hallucinated": False},
    "cost": {"judge_tokens": 500, "judge_cost_usd": 0.001},
}
CONFIG: Json = {
    "llm_model": "llama3.2",
    "embedding_model": "granite",
    "judge_model": "qwen",
    "judge_prompt_version": "v1",
    "judge_temperature": 0,
    "index_build_version": "v2",
}


def asked(*outcomes: Json, config: Json | None = None) -> Files:
    files = {"eval-set.jsonl": jsonl(CASE), "results.jsonl": jsonl(*outcomes)}
    return files if config is None else {**files, "config.json": config}


HELLOWORLD = {
    "a test case and its result": Example(
        asked(OUTCOME),
        {
            "query": "What is it about?",
            "answerable": True,
            "claims": ("about RAG",),
            "required_support_groups": ((0, 1),),
            "tags": ("work",),
            "category": "factual",
            "difficulty": "easy",
        },
        {
            "query": "What is it about?",
            "hits": ["c9", "c1"],
            "texts": [None, "RAG"],
            "documents": ["other.md", "main.md"],
            "answer": "About RAG.",
            "citations": ["main.md#One > Two", "7", "c1", "b.md#None"],
            "elapsed_ms": 1234,
            "cost_usd": 0.001,
        },
    ),
    "in the order of the list, where no chunk has a rank": Example(
        asked({"test_case_id": "q", "retrieved_chunks": [{"chunk_id": "b"}, {"chunk_id": "a"}]}),
        {},
        {"hits": ["b", "a"], "answer": None},
    ),
    "abstained": Example(
        asked({"test_case_id": "q", "answer": "I cannot tell.", "abstention": {"abstained": True}}),
        {},
        {"answer": "I cannot tell. (refused)"},
    ),
    "an error": Example(asked({**OUTCOME, "error": "timed out"}), {}, {"error": "timed out"}),
    "nothing is made up": Example(
        asked({"test_case_id": "q"}), {}, {"hits": [], "answer": None, "elapsed_ms": None, "cost_usd": None}
    ),
}


@pytest.mark.parametrize("example", HELLOWORLD.values(), ids=HELLOWORLD)
def test_helloworld(tmp_path: Path, example: Example) -> None:
    check(tmp_path, "helloworld", example)


def test_supports_of_helloworld_are_anchors(tmp_path: Path) -> None:
    brought = bring(tmp_path, "helloworld", asked(OUTCOME))
    supports = brought.queries()["q"].gold_supports
    found = [(support.path, support.heading, support.snippets) for support in supports]
    assert found == [("main.md", "# Overview > ## Goals", ("RAG",)), ("plan.md", "Plan", ())]


@pytest.mark.parametrize(
    ("more", "must_cite"),
    [
        ({}, None),
        ({"recency_conflict_rule": "cite_both"}, "all"),
        ({"recency_conflict_rule": "acknowledge_both"}, "all"),
        ({"recency_conflict_rule": "cite_newer"}, (1,)),
        ({"recency_conflict_rule": "cite_newer", "gold_supports": []}, None),
        ({"recency_conflict_rule": "cite_both", "answerable": False}, None),
    ],
    ids=str,
)
def test_the_rule_for_conflicts_says_what_must_be_cited(
    tmp_path: Path, more: Json, must_cite: object
) -> None:
    files = {"eval-set.jsonl": jsonl({**CASE, "required_support_groups": [], **more})}
    brought = bring(tmp_path, "helloworld", {**asked(OUTCOME), **files})
    assert brought.queries()["q"].must_cite == must_cite


@pytest.mark.parametrize("is_own_file", [True, False])
def test_the_configuration_of_helloworld_is_the_runs_and_that_of_its_judge(
    tmp_path: Path, is_own_file: bool
) -> None:
    own = asked(OUTCOME, config=CONFIG)
    brought = bring(tmp_path, "helloworld", own if is_own_file else asked({**OUTCOME, "config": CONFIG}))
    judge = brought.result("q").judge
    assert judge
    assert (judge.groundedness, judge.correctness, judge.model) == (4.5, 4.0, "qwen")
    assert (judge.prompt_version, judge.temperature) == ("v1", 0)
    assert brought.config() == {
        "index_version": "v2",
        "embedding": {"model": "granite"},
        "llm": {"model_id": "llama3.2"},
        "config": CONFIG,
    }


def test_without_any_configuration_the_snapshot_is_empty(tmp_path: Path) -> None:
    assert bring(tmp_path, "helloworld", asked(OUTCOME)).config() == {}


# -- kebab ---------------------------------------------------------------------------------------


def test_results_of_kebab_are_stored_as_they_are(tmp_path: Path) -> None:
    text = '{"hits_top_k": [ ], "score": 1.0e-3, "query_id": "q1", "emoji": "\\u00e9 😀"}'
    cited = answer(cites=[line("d1.md", 3, 9)])
    more = result(hit("d1#1", chunker_version="v2"), query_id="q2", answer=cited, unknown={"é": [1.50]})
    brought = bring(tmp_path, "kebab", {"results.jsonl": f"  {text} \r\n{json.dumps(more)}\n"})
    with closing(sqlite3.connect(brought.db)) as connection:
        stored = dict(connection.execute("SELECT query_id, result_json FROM eval_query_results"))
    assert stored == {"q1": text, "q2": json.dumps(more)}
    assert brought.config() == {"chunker_version": "v2"}


def test_hits_of_several_chunkers_leave_the_run_without_one(tmp_path: Path) -> None:
    hits = (hit("c1", chunker_version="v1"), hit("c2", 2, chunker_version="v2"))
    assert bring(tmp_path, "kebab", {"results.jsonl": result(*hits, query_id="q1")}).config() == {}


# -- trec ----------------------------------------------------------------------------------------


def trec(run: str, qrels: str, topics: str | None = None) -> Files:
    return {"run.txt": run, "qrels.txt": qrels, **({} if topics is None else {"topics.txt": topics})}


SGML = "<top>\n<num> Number: 051\n<title> Topic: Airbus\nsubsidies\n\n<desc> How?\n</top>\n"
ONE = ("51 Q0 d1 0 2 x\n", "51 0 d1 1\n")
TRECS = {
    "by score, then docno, both descending": Example(
        trec("q Q0 a 1 1 x\nz Q0 d 1 9 x\nq Q0 c 2 2 x\nq Q0 b 3 2.0 x\n", "q 0 a 1\n"),
        {"query": "q"},
        {"hits": ["c", "b", "a"], "documents": ["c", "b", "a"], "query": "q"},
    ),
    "grades": Example(
        trec("q Q0 d1 1 1 x\n", "q 0 d1 3\nq 0 d2 0\nq 0 d3 1\nq 0 d4 -2\n"),
        {
            "expected_chunk_ids": ("d1", "d3"),
            "expected_doc_ids": ("d1", "d3"),
            "relevance": {"d1": 3, "d3": 1, "d2": 0, "d4": 0},
        },
    ),
    "no relevant document is not judged": Example(
        trec("q Q0 d1 1 1 x\n", "q 0 d1 0\n"), {"expected_doc_ids": None, "can_be_answered": None}
    ),
    "judged, without results": Example(
        trec("z Q0 d1 1 1 x\n", "q 0 d1 1\nz 0 d1 1\n"), {}, {"hits": [], "answer": None}
    ),
    "SGML": Example(
        trec(*ONE, topics=SGML), {"query": "Airbus subsidies"}, {"query": "Airbus subsidies"}, "51"
    ),
    "SGML in capitals": Example(trec(*ONE, topics=SGML.upper()), {"query": "AIRBUS SUBSIDIES"}, {}, "51"),
    "topics with tabs": Example(
        trec(*ONE, topics="52\tno\n\n51\tAirbus  subsidies\r\n"), {"query": "Airbus subsidies"}, {}, "51"
    ),
    "a topic without text": Example(
        trec("51 Q0 d1 0 2 x\n52 Q0 d 0 1 x\n", "51 0 d1 1\n52 0 d 1\n", topics="51\tA?\n"),
        {"query": "52"},
        {},
        "52",
    ),
    "dictionaries": Example(
        {
            "run.json": {"q": {"a": 1, "c": 2, "b": 2.0}, "r": {}},
            "qrels.json": {"q": {"a": 2, "x": 0}, "r": {}},
        },
        {"expected_chunk_ids": ("a",), "relevance": {"a": 2, "x": 0}},
        {"hits": ["c", "b", "a"]},
    ),
}


@pytest.mark.parametrize("example", TRECS.values(), ids=TRECS)
def test_trec(tmp_path: Path, example: Example) -> None:
    check(tmp_path, "trec", example)


def test_dictionaries_are_told_on_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BufferedReader(io.BytesIO(b'{"q": {"a": 1.5}}'))  # type: ignore[arg-type, unused-ignore]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    given = {"run": Source("-"), **write_sources(tmp_path, {"qrels.json": {"q": {"a": 1}}})}
    import_run(FORMATS["trec"], given, db=tmp_path / "db", run_id="r", suite=None, golden_out=None)
    assert stdin.read() == b""


def test_a_topic_that_nobody_judged_relevant_to_anything_needs_no_result(tmp_path: Path) -> None:
    brought = bring(tmp_path, "trec", {**TREC, "qrels.txt": f"{TREC['qrels.txt']}t3 0 d1 0\n"})
    assert (brought.summary.queries, brought.summary.golden) == (2, 3)


Scores = dict[str, dict[str, float]]


def made_up(seed: int, *, with_ties: bool) -> tuple[Scores, dict[str, dict[str, int]]]:
    """A run and graded judgments, also of documents that were not found."""
    chance = random.Random(seed)
    run, qrels = {}, {}
    for query in (f"q{number}" for number in range(20)):
        documents = [f"d{number}" for number in chance.sample(range(60), 30)]
        scores = (chance.randrange(8) if with_ties else 30 - rank + chance.random() for rank in range(30))
        run[query] = dict(zip(documents, map(float, scores), strict=True))
        judged = chance.sample(documents, 4) + [f"x{number}" for number in range(2)]
        qrels[query] = {name: chance.choice([-1, 0, 1, 1, 2, 3]) for name in judged} | {"x9": 1}
    return run, qrels


def trec_files(run: Scores, qrels: dict[str, dict[str, int]]) -> Files:
    """Both as columns, the lines of a topic scattered."""
    lines = [f"{q} Q0 {name} 0 {score} t\n" for q, hits in run.items() for name, score in hits.items()]
    random.Random(0).shuffle(lines)
    rows = (f"{query} 0 {name} {gain}\n" for query, gains in qrels.items() for name, gain in gains.items())
    return {"run.txt": "".join(lines), "qrels.txt": "".join(rows)}


def assert_equal_metrics(brought: Brought, expected: dict[str, float]) -> None:
    found = {name: brought.metric(name) for name in expected}
    assert found == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("is_json", [False, True])
@pytest.mark.parametrize("with_ties", [False, True])
def test_metrics_are_those_of_trec_eval(tmp_path: Path, is_json: bool, with_ties: bool) -> None:
    run, qrels = made_up(1, with_ties=with_ties)
    files = {"run.json": run, "qrels.json": qrels} if is_json else trec_files(run, qrels)
    names = {"recall_5": "recall@5", "recall_10": "recall@10", "ndcg_cut_10": "ndcg@10", "success_1": "hit@1"}
    judged = pytrec_eval.RelevanceEvaluator(qrels, set(names)).evaluate(run)
    expected = {ours: sum(one[theirs] for one in judged.values()) / 20 for theirs, ours in names.items()}
    assert_equal_metrics(bring(tmp_path, "trec", files), expected)
