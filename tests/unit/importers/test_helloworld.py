"""helloworld's evaluation sets, results and configurations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Json
from tests.unit.importers.test_import_run import Brought, bring, refusal

CASE: Json = {
    "id": "t1",
    "question": "What is the project about?",
    "answerable": True,
    "expected_key_facts": ["about RAG systems", ""],
    "gold_supports": [
        {"rel_path": "projects/main.md", "heading_path": "# Overview", "snippets": ["RAG"]},
        {"rel_path": "projects/plan.md", "heading_path": ["Plan", "Goals"]},
    ],
    "required_support_groups": None,
    "recency_conflict_rule": None,
    "tags": ["work", "code"],
    "vaults": ["personal"],
    "category": "factual",
    "difficulty": "easy",
}
UNANSWERABLE: Json = {"id": "t2", "question": "Who won?", "answerable": False, "gold_supports": []}


def chunk(chunk_id: str, path: str, heading: Any, rank: int | None, text: str = "…") -> Json:
    found = {"chunk_id": chunk_id, "rel_path": path, "heading_path": heading, "text": text}
    return found | ({} if rank is None else {"rank": rank})


RESULT: Json = {
    "test_case_id": "t1",
    "question": "What is the project about?",
    "answer": "It is about RAG systems.",
    "references": [{"vault": "personal", "rel_path": "projects/main.md", "heading_path": "# Overview"}],
    "retrieved_chunks": [
        chunk("c9", "notes/other.md", "# Other", 1),
        chunk("c1", "projects/main.md", "# Overview > ## Goals", 2, "RAG systems for notes"),
    ],
    "latency": {"total_ms": 1234, "folder_selection_ms": 50, "retrieval_ms": 200, "judge_ms": 84},
    "groundedness": {"score": 4.5, "reasoning": "…", "unsupported_claims": ["x"]},
    "correctness": {"score": 4.0},
    "abstention": {"abstained": False, "hallucinated": False},
    "cost": {"judge_tokens": 500, "judge_cost_usd": 0.001},
}
REFUSED: Json = {"test_case_id": "t2", "answer": "I cannot tell.", "abstention": {"abstained": True}}
CONFIG: Json = {
    "k": 5,
    "llm_model": "llama3.2",
    "embedding_model": "granite-278m",
    "judge_model": "qwen2.5-14b",
    "judge_prompt_version": "v1.0",
    "judge_temperature": 0,
    "index_build_version": "chunker_v1.2",
}


def lines(items: list[Json]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def imported(
    directory: Path, cases: list[Json], results: list[Json], config: Json | None = CONFIG
) -> Brought:
    files = {"eval-set.jsonl": lines(cases), "results.jsonl": lines(results)}
    if config is not None:
        files["config.json"] = json.dumps(config, indent=2)
    return bring(directory, "helloworld", files)


# -- figures -------------------------------------------------------------------------------------


def test_a_sample_gives_the_figures_worked_by_hand(tmp_path: Path) -> None:
    metrics = imported(tmp_path, [CASE, UNANSWERABLE], [RESULT, REFUSED]).metrics()
    assert [metrics.values[f"hit@{k}"] for k in (1, 3, 5, 10)] == [
        0.0,
        1.0,
        1.0,
        1.0,
    ]  # the first support, at rank 2
    assert metrics.values["mrr"] == 0.5
    assert metrics.value("recall@5") == 0.5  # one of two supports
    assert metrics.value("recall_all@5") == 0.0
    assert metrics.value("precision@5_chunk") == 0.2  # one of five
    assert metrics.value("attribution_hit_rate") == 1.0  # the reference is to the first support
    assert metrics.values["refusal_correctness"] == 1.0
    assert (metrics.value("judge_groundedness"), metrics.value("judge_correctness")) == (4.5, 4.0)
    assert (metrics.value("latency_p50_ms"), metrics.value("latency_p50_ms:retrieval")) == (1234, 200)
    assert metrics.value("cost_usd") == 0.001
    assert metrics.slices["difficulty=easy"]["hit@3"] == 1.0


def test_one_whole_group_of_supports_is_enough(tmp_path: Path) -> None:
    case = {**CASE, "required_support_groups": [[0, 1], [0]]}
    assert imported(tmp_path, [case], [RESULT]).metrics().value("recall_all@5") == 1.0


# -- the evaluation set --------------------------------------------------------------------------


def test_a_test_case_becomes_a_golden_query(tmp_path: Path) -> None:
    queries = imported(tmp_path, [CASE, UNANSWERABLE], [RESULT]).queries().by_id()
    query = queries["t1"]
    assert (query.query, query.answerable) == ("What is the project about?", True)
    assert query.claims == ("about RAG systems",)
    assert [(support.path, support.heading, support.snippets) for support in query.gold_supports] == [
        ("projects/main.md", "# Overview", ("RAG",)),
        ("projects/plan.md", "Plan > Goals", ()),
    ]
    assert (query.category, query.difficulty, query.tags) == ("factual", "easy", ("work", "code"))
    assert queries["t2"].can_be_answered is False


def test_only_an_id_is_needed(tmp_path: Path) -> None:
    (query,) = imported(tmp_path, [{"id": 7}], [{"test_case_id": 7}]).queries().queries
    assert (query.id, query.query, query.answerable) == ("7", "7", None)


# -- the results ---------------------------------------------------------------------------------


def test_a_retrieved_chunk_becomes_a_hit(tmp_path: Path) -> None:
    hit = imported(tmp_path, [CASE], [RESULT]).result("t1").hits[1]
    assert (hit.rank, hit.chunk_id, hit.text) == (2, "c1", "RAG systems for notes")
    assert (hit.doc_id, hit.doc_path) == ("projects/main.md", "projects/main.md")
    assert hit.heading_path == ("# Overview", "## Goals")


def test_a_heading_path_may_be_a_list(tmp_path: Path) -> None:
    found = {**RESULT, "retrieved_chunks": [chunk("c1", "a.md", ["One", " Two "], 1)]}
    assert imported(tmp_path, [CASE], [found]).result("t1").hits[0].heading_path == ("One", "Two")


def test_ranks_stand_whatever_the_order_of_the_list(tmp_path: Path) -> None:
    chunks = [chunk("late", "a.md", "", 7), chunk("early", "a.md", "", 3)]
    hits = imported(tmp_path, [CASE], [{**RESULT, "retrieved_chunks": chunks}]).result("t1").hits
    assert [(hit.rank, hit.chunk_id) for hit in hits] == [(3, "early"), (7, "late")]


@pytest.mark.parametrize("rank", [None, 0])
def test_without_ranks_the_order_of_the_list_counts(tmp_path: Path, rank: int | None) -> None:
    chunks = [chunk("first", "a.md", "", rank), chunk("second", "a.md", "", rank)]
    hits = imported(tmp_path, [CASE], [{**RESULT, "retrieved_chunks": chunks}]).result("t1").hits
    assert [(hit.rank, hit.chunk_id) for hit in hits] == [(1, "first"), (2, "second")]


def test_an_abstention_is_a_refusal(tmp_path: Path) -> None:
    answer = imported(tmp_path, [UNANSWERABLE], [REFUSED]).result("t2").answer
    assert answer
    assert (answer.grounded, answer.text) == (False, "I cannot tell.")


@pytest.mark.parametrize("abstention", [None, {}, {"abstained": False}])
def test_anything_else_is_a_shipped_answer(tmp_path: Path, abstention: Json | None) -> None:
    answer = imported(tmp_path, [CASE], [{**RESULT, "abstention": abstention}]).result("t1").answer
    assert answer
    assert answer.grounded


def test_references_become_citations(tmp_path: Path) -> None:
    references = [
        {"rel_path": "a.md", "heading_path": ["One", "Two"]},
        {"chunk_id": "c1"},
        "c9",
        "b.md",
    ]
    answer = imported(tmp_path, [CASE], [{**RESULT, "references": references}]).result("t1").answer
    assert answer
    cited = [
        (cited.chunk_id, cited.citation and cited.citation.path, cited.citation and cited.citation.section)
        for cited in answer.citations
    ]
    assert cited == [
        (None, "a.md", "One > Two"),
        ("c1", None, None),
        ("c9", None, None),  # the id of a retrieved chunk
        (None, "b.md", None),
    ]


def test_timings_and_cost_are_kept_as_far_as_they_are_given(tmp_path: Path) -> None:
    found = imported(tmp_path, [CASE], [RESULT]).result("t1")
    assert (found.elapsed_ms, found.cost_usd) == (1234, 0.001)
    assert found.timings_ms
    assert (found.timings_ms.folder_selection, found.timings_ms.generation) == (50, None)


def test_a_result_with_little_in_it_has_nothing_made_up(tmp_path: Path) -> None:
    found = imported(tmp_path, [CASE], [{"test_case_id": "t1"}]).result("t1")
    assert (found.hits, found.answer, found.error, found.judge) == ((), None, None, None)
    assert (found.elapsed_ms, found.timings_ms, found.cost_usd) == (None, None, None)
    assert found.query == "What is the project about?"


def test_an_error_is_kept(tmp_path: Path) -> None:
    brought = imported(tmp_path, [CASE], [{**RESULT, "error": "API request timed out"}])
    assert brought.result("t1").error == "API request timed out"
    assert brought.metrics().failed_queries == 1


def test_a_test_case_without_a_result_is_absent_from_the_run(tmp_path: Path) -> None:
    summary = imported(tmp_path, [CASE, UNANSWERABLE], [RESULT]).summary
    assert (summary.queries, summary.golden) == (1, 2)


# -- the configuration ---------------------------------------------------------------------------


def test_the_judge_of_the_configuration_is_that_of_each_judgment(tmp_path: Path) -> None:
    judge = imported(tmp_path, [CASE], [RESULT]).result("t1").judge
    assert judge
    assert (judge.groundedness, judge.correctness) == (4.5, 4.0)
    assert (judge.model, judge.prompt_version, judge.temperature) == ("qwen2.5-14b", "v1.0", 0)


def test_the_judge_may_be_configured_in_a_place_of_its_own(tmp_path: Path) -> None:
    config = {"judge": {"model": "m", "prompt_version": 2, "temperature": 0.1}}
    judge = imported(tmp_path, [CASE], [RESULT], config).result("t1").judge
    assert judge
    assert (judge.model, judge.prompt_version, judge.temperature) == ("m", "2", 0.1)


def test_the_configuration_is_kept_whole_and_its_known_parts_in_their_places(tmp_path: Path) -> None:
    config = imported(tmp_path, [CASE], [RESULT]).config()
    assert config == {
        "index_version": "chunker_v1.2",
        "embedding": {"model": "granite-278m"},
        "llm": {"model_id": "llama3.2"},
        "config": CONFIG,
    }


def test_without_a_configuration_file_that_of_the_results_counts(tmp_path: Path) -> None:
    own = {**RESULT, "config": CONFIG, "indexing_coverage": {"chunker_version": "v1.2", "docs_processed": 9}}
    brought = imported(tmp_path, [CASE], [own], config=None)
    assert brought.config()["chunker_version"] == "v1.2"
    assert brought.config()["llm"] == {"model_id": "llama3.2"}
    judge = brought.result("t1").judge
    assert judge
    assert judge.model == "qwen2.5-14b"


def test_without_any_configuration_the_snapshot_is_empty(tmp_path: Path) -> None:
    assert imported(tmp_path, [CASE], [RESULT], config=None).config() == {}


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ('{"id": "t3"', "this is not JSON"),
        ('{"question": "?"}', "'id' is missing"),
        ('{"id": "t1"}', "the id 't1' is taken already, at line 1"),
        ('{"id": "t3", "gold_supports": [{"heading_path": "x"}]}', "missing required field `rel_path`"),
        ('{"id": "t3", "gold_supports": [{"rel_path": ""}]}', "wrong 'gold_supports'"),
        (
            '{"id": "t3", "required_support_groups": [[0]]}',
            "names support 0, but its gold_supports are missing",
        ),
        ('{"id": "t3", "answerable": "no"}', "got `str` - at `$.answerable`"),
    ],
)
def test_a_bad_line_of_the_evaluation_set_is_named(tmp_path: Path, third: str, why: str) -> None:
    cases = f"{lines([CASE, UNANSWERABLE])}{third}\n"
    message = refusal(tmp_path, "helloworld", {"eval-set.jsonl": cases, "results.jsonl": lines([RESULT])})
    assert message.startswith("eval-set.jsonl:3: ")
    assert why in message


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ('{"test_case_id": "t3", ', "this is not JSON"),
        ('{"answer": "x"}', "'test_case_id' is missing"),
        ('{"test_case_id": "t2"}', "the id 't2' is taken already, at line 2"),
        ('{"test_case_id": "t3", "latency": {"total_ms": "fast"}}', "got `str` - at `$.latency.total_ms`"),
        ('{"test_case_id": "t3", "groundedness": {"score": NaN}}', "this is not JSON"),
        (
            '{"test_case_id": "t3", "retrieved_chunks": [{"rank": 1}, {"rank": 1}]}',
            "a rank in 'retrieved_chunks' is missing, below 1 or there twice",
        ),
        (
            '{"test_case_id": "t3", "retrieved_chunks": [{"rank": 1}, {}]}',
            "a rank in 'retrieved_chunks' is missing, below 1 or there twice",
        ),
    ],
)
def test_a_bad_line_of_the_results_is_named(tmp_path: Path, third: str, why: str) -> None:
    results = f"{lines([RESULT, REFUSED])}{third}\n"
    message = refusal(tmp_path, "helloworld", {"eval-set.jsonl": lines([CASE]), "results.jsonl": results})
    assert message.startswith("results.jsonl:3: ")
    assert why in message


@pytest.mark.parametrize("content", ["[]", "{", "text"])
def test_a_bad_configuration_is_named(tmp_path: Path, content: str) -> None:
    files = {"eval-set.jsonl": lines([CASE]), "results.jsonl": lines([RESULT]), "config.json": content}
    assert refusal(tmp_path, "helloworld", files).startswith("config.json:1: this is not ")
