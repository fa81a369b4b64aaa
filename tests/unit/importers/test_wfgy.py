"""WFGY's gold sets and traces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Json
from tests.unit.importers.test_import_run import Brought, bring, refusal

# The worked example of the format's own description.
GOLD: list[Json] = [
    {
        "qid": "A0001",
        "question": "Does X support null keys?",
        "answerable": True,
        "gold_claim_substr": ["rejects null keys"],
        "gold_citations": ["p1#2"],
        "constraints": ["X rejects null keys."],
    },
    {
        "qid": "A0002",
        "question": "Explain Z.",
        "answerable": False,
        "gold_claim_substr": [],
        "gold_citations": [],
    },
    {
        "qid": "A0003",
        "question": "What domain is allowed?",
        "answerable": True,
        "gold_claim_substr": ["only domain example.com"],
        "gold_citations": ["pB#1"],
    },
]


def trace(qid: str, retrieved: list[str], claim: str | None, *citations: str) -> Json:
    said = {"claim": claim, "citations": list(citations)}
    return {"qid": qid, "q": "?", "retrieved_ids": retrieved, "answer_json": said}


TRACES = [
    trace("A0001", ["p1#1", "p1#2", "p2#1"], "X rejects null keys.", "p1#2"),
    trace("A0002", ["p1#1", "p2#1"], "not in context"),
    trace("A0003", ["pB#1", "p1#2"], "Only domain example.com is allowed.", "pB#1"),
]


def lines(items: list[Json]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def imported(directory: Path, gold: list[Json], traces: list[Json]) -> Brought:
    return bring(directory, "wfgy", {"gold.jsonl": lines(gold), "trace.jsonl": lines(traces)})


# -- figures -------------------------------------------------------------------------------------


def test_the_worked_example_of_the_format(tmp_path: Path) -> None:
    metrics = imported(tmp_path, GOLD, TRACES).metrics()
    assert (metrics.value("precision_answered"), metrics.counts["precision_answered"]) == (1.0, 2)  # 2/2
    assert (metrics.value("citation_hit_rate"), metrics.counts["citation_hit_rate"]) == (1.0, 2)  # 2/2
    assert (metrics.value("under_refusal_rate"), metrics.counts["under_refusal_rate"]) == (0.0, 1)  # 0/1
    assert (metrics.value("over_refusal_rate"), metrics.counts["over_refusal_rate"]) == (0.0, 2)  # 0/2
    assert metrics.value("recall_all@5") == 1.0  # the format's own recall@k


def test_a_run_that_gets_all_of_it_wrong(tmp_path: Path) -> None:
    traces = [
        trace("A0001", ["p1#1"], "Not In Context "),  # over-refusal: 1/2
        trace("A0002", ["p1#1"], "Z is a letter.", "p1#1"),  # under-refusal: 1/1
        trace("A0003", ["p1#2"], "Only domain example.com.", "pB#1"),  # cites what was not retrieved
    ]
    metrics = imported(tmp_path, GOLD, traces).metrics()
    assert metrics.value("over_refusal_rate") == 0.5
    assert metrics.value("under_refusal_rate") == 1.0
    assert metrics.value("citation_hit_rate") == 0.0  # 0/2
    assert metrics.value("precision_answered") == 0.0  # 0/2


def test_no_claims_given_is_none_contained(tmp_path: Path) -> None:
    gold = [{**GOLD[0], "gold_claim_substr": []}, GOLD[2]]
    metrics = imported(tmp_path, gold, [TRACES[0], TRACES[2]]).metrics()
    assert metrics.value("citation_hit_rate") == 1.0
    assert metrics.value("precision_answered") == 0.5  # 1/2


# -- traces --------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["not in context", "  Not in Context\n", "NOT IN CONTEXT"])
def test_the_refusal_token_is_compared_trimmed_and_case_aside(tmp_path: Path, token: str) -> None:
    answer = imported(tmp_path, GOLD, [trace("A0001", [], token)]).result("A0001").answer
    assert answer
    assert not answer.grounded


@pytest.mark.parametrize("claim", ["It is not in context.", "not  in context", ""])
def test_any_other_claim_is_shipped(tmp_path: Path, claim: str) -> None:
    answer = imported(tmp_path, GOLD, [trace("A0001", [], claim)]).result("A0001").answer
    assert answer
    assert answer.grounded
    assert answer.text == claim


def test_hits_and_citations_have_the_ids_of_the_trace(tmp_path: Path) -> None:
    found = imported(tmp_path, GOLD, TRACES).result("A0001")
    assert [(hit.rank, hit.chunk_id) for hit in found.hits] == [(1, "p1#1"), (2, "p1#2"), (3, "p2#1")]
    assert found.answer
    assert [cited.chunk_id for cited in found.answer.citations] == ["p1#2"]


def test_no_trace_is_no_answer(tmp_path: Path) -> None:
    brought = imported(tmp_path, GOLD, TRACES[:2])
    found = brought.result("A0003")
    assert (found.hits, found.answer, found.query) == ((), None, "What domain is allowed?")
    assert brought.metrics().counts["precision_answered"] == 1  # it is not among the shipped


def test_a_trace_without_an_answer_has_its_hits(tmp_path: Path) -> None:
    found = imported(tmp_path, GOLD, [{"qid": "A0001", "retrieved_ids": ["p1#2"]}]).result("A0001")
    assert [hit.chunk_id for hit in found.hits] == ["p1#2"]
    assert found.answer is None


def test_the_last_trace_of_a_question_counts(tmp_path: Path) -> None:
    traces = [TRACES[0], trace("A0001", ["p9"], "not in context")]
    found = imported(tmp_path, GOLD, traces).result("A0001")
    assert [hit.chunk_id for hit in found.hits] == ["p9"]
    assert found.answer
    assert not found.answer.grounded


def test_a_trace_beyond_the_gold_set_is_imported_too(tmp_path: Path) -> None:
    brought = imported(tmp_path, GOLD, [*TRACES, trace("B1", ["p1"], "not in context")])
    assert brought.summary.queries == 4
    assert brought.summary.golden == 3


def test_the_id_may_be_spelt_q_id_and_be_a_number(tmp_path: Path) -> None:
    found = imported(tmp_path, [{"q_id": 7, "question": "?"}], [{"q_id": 7, "retrieved_ids": [1]}])
    assert [hit.chunk_id for hit in found.result("7").hits] == ["1"]


# -- gold ----------------------------------------------------------------------------------------


def test_a_gold_item_becomes_a_golden_query(tmp_path: Path) -> None:
    queries = imported(tmp_path, GOLD, TRACES).queries().by_id()
    first, second = queries["A0001"], queries["A0002"]
    assert (first.query, first.answerable) == ("Does X support null keys?", True)
    assert (first.claims, first.expected_chunk_ids) == (("rejects null keys",), ("p1#2",))
    assert (second.answerable, second.claims, second.expected_chunk_ids) == (False, (), ())


def test_empty_claims_are_dropped(tmp_path: Path) -> None:
    gold = [{"qid": "q", "question": "?", "gold_claim_substr": ["", "  ", "a claim"], "gold_citations": None}]
    (query,) = imported(tmp_path, gold, [{"qid": "q"}]).queries().queries
    assert query.claims == ("a claim",)


def test_answerable_is_left_open_where_the_gold_item_does_not_say(tmp_path: Path) -> None:
    (query,) = imported(tmp_path, [{"qid": "q"}], [{"qid": "q"}]).queries().queries
    assert query.answerable is None
    assert query.query == "q"


# -- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ('{"qid": "A', "this is not JSON"),
        ("[]", "this is not a gold item: Expected `object`, got `array`"),
        ('{"question": "?"}', "'qid' is missing"),
        ('{"qid": ""}', "'qid' is missing"),
        ('{"qid": "A0001"}', "the id 'A0001' is taken already, at line 1"),
        ('{"qid": "q", "answerable": "yes"}', "Expected `bool | null`, got `str` - at `$.answerable`"),
        ('{"qid": "q", "gold_claim_substr": "x"}', "got `str` - at `$.gold_claim_substr`"),
    ],
)
def test_a_bad_line_of_the_gold_set_is_named(tmp_path: Path, third: str, why: str) -> None:
    files = {"gold.jsonl": f"{lines(GOLD[:2])}{third}\n", "trace.jsonl": lines(TRACES)}
    message = refusal(tmp_path, "wfgy", files)
    assert message.startswith("gold.jsonl:3: ")
    assert why in message


@pytest.mark.parametrize(
    ("third", "why"),
    [
        ('{"qid": "A0003"', "this is not JSON"),
        ('{"retrieved_ids": []}', "'qid' is missing"),
        ('{"qid": "A0003", "retrieved_ids": "p1"}', "got `str` - at `$.retrieved_ids`"),
        ('{"qid": "A0003", "answer_json": {"citations": [null]}}', "`$.answer_json.citations[0]`"),
        ('{"qid": "A0003", "answer_json": {"claim": NaN}}', "this is not JSON"),
    ],
)
def test_a_bad_line_of_the_traces_is_named(tmp_path: Path, third: str, why: str) -> None:
    files = {"gold.jsonl": lines(GOLD), "trace.jsonl": f"{lines(TRACES[:2])}{third}\n"}
    message = refusal(tmp_path, "wfgy", files)
    assert message.startswith("trace.jsonl:3: ")
    assert why in message
