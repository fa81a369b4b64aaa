"""`kebab-eval propose`: golden queries from a log of questions."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_kebab_eval.golden import load_golden_set
from tests.builders import answer, hit, result
from tests.integration.conftest import Called, Project, call

ASKED = {
    "log-1": result(
        hit("d1#1", heading_path=["Setup", "VPN"], snippet="Open the client."),
        hit("d1#2", 2),
        hit("d2#1", 3),
        query="How do I log in to the VPN?",
    ),
    "log-2": result("d3#1", query="Where is the lunch menu?", answer=answer("I do not know", grounded=False)),
    "log-3": result(query="What is the answer to everything?"),
    "log-4": result("d4#1", query="Who broke the build?", error="timed out"),
    "q-001": result("c1", query="what is kept?"),
}


@pytest.fixture
def asked(project: Project) -> Project:
    project.make_database(logged=ASKED)
    return project


def log(*questions: str | dict[str, Any], at: str = "log.jsonl") -> str:
    rows = [{"question": given} if isinstance(given, str) else given for given in questions]
    Path(at).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return at


def propose(*more: str, of: str = "log.jsonl") -> Called:
    return call("propose", "--from", of, "--run", "logged", *more)


def entries(called: Called) -> Any:
    assert called.code == 0, called.stderr
    return yaml.safe_load(called.stdout)


# -- what is proposed ------------------------------------------------------------------------------


@pytest.mark.usefixtures("asked")
def test_a_question_becomes_an_entry_whose_target_is_what_the_run_found_first() -> None:
    log("how do I log in to the VPN")
    called = propose()
    assert entries(called) == [
        {
            "id": "log-1",
            "query": "how do I log in to the VPN",
            "expected_chunk_ids": ["d1#1"],
            "expected_doc_ids": ["d1"],
            "reviewed": False,
        }
    ]
    assert "# 1. d1.md > Setup > VPN: Open the client.\n- id: log-1\n" in called.stdout
    assert called.stderr == "1 question: 1 proposed, 0 near-duplicates, 0 without anything to expect\n"


def test_where_the_text_is_at_hand_the_sentence_that_answers_is_proposed_as_a_snippet(
    project: Project,
) -> None:
    text = (
        "# VPN\n\nThe client is on every laptop. To log in to the VPN, open it and\nenter the code. Ask IT."
    )
    found = hit("d1#1", doc_path="it/vpn.md", text=text)
    project.make_database(logged={"log-1": result(found, query="How do I log in to the VPN?")})
    log("How do I log in to the VPN?")
    (entry,) = entries(propose())
    assert entry["gold_supports"] == [
        {"path": "it/vpn.md", "snippets": ["To log in to the VPN, open it and"]}  # not over a line's end
    ]
    assert entry["expected_chunk_ids"] == ["d1#1"]


@pytest.mark.usefixtures("asked")
def test_more_hits_may_be_expected() -> None:
    log("How do I log in to the VPN?")
    (entry,) = entries(propose("--top", "3"))
    assert entry["expected_chunk_ids"] == ["d1#1", "d1#2", "d2#1"]
    assert entry["expected_doc_ids"] == ["d1", "d2"]


@pytest.mark.usefixtures("asked")
def test_what_is_proposed_is_a_golden_file_that_the_run_can_be_judged_by() -> None:
    log("How do I log in to the VPN?", "Where is the lunch menu?")
    assert propose("--out", "proposed.yaml").stdout == ""
    golden = load_golden_set("proposed.yaml")
    assert [(query.id, query.reviewed) for query in golden.queries] == [("log-1", False), ("log-2", False)]
    judged = call("aggregate", "logged", "--golden", "proposed.yaml", "--json")
    assert json.loads(judged.stdout)["logged"]["hit@1"] == [None, 1.0]


@pytest.mark.usefixtures("asked")
def test_what_the_run_answered_is_there_for_the_reviewer() -> None:
    log("Where is the lunch menu?")
    assert "# answer: the run refused: I do not know\n" in propose().stdout


@pytest.mark.usefixtures("asked")
def test_questions_asked_often_come_first_and_say_so() -> None:
    log("Where is the lunch menu?", "How do I log in to the VPN?", "how do I log in to the vpn")
    called = propose()
    assert [entry["id"] for entry in entries(called)] == ["log-1", "log-2"]
    assert "# asked 2 times\n" in called.stdout


@pytest.mark.usefixtures("asked")
def test_a_question_may_be_found_by_the_id_of_the_log() -> None:
    log({"id": "log-1", "question": "vpn???"})
    (entry,) = entries(propose())
    assert (entry["id"], entry["query"]) == ("log-1", "vpn???")


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("name", ["proposed.json", "proposed.jsonl"])
def test_the_ending_of_the_file_says_its_format(name: str) -> None:
    log("How do I log in to the VPN?")
    propose("--out", name)
    assert [query.id for query in load_golden_set(name).queries] == ["log-1"]


@pytest.mark.usefixtures("asked")
def test_as_json_it_has_what_is_left_out_too() -> None:
    log("How do I log in to the VPN?", "what is kept", "nobody asked this")
    data = json.loads(propose("--json").stdout)
    assert [entry["id"] for entry in data["proposed"]] == ["log-1"]
    assert [row["question"] for row in data["near_duplicates"]] == ["what is kept"]
    assert data["without_result"] == [
        {"line": 3, "question": "nobody asked this", "asked": 1, "reason": "the run has no result for it"}
    ]


def test_a_hit_without_a_chunk_id_is_expected_by_its_document(project: Project) -> None:
    found = {"rank": 1, "doc_id": "d9"}
    project.make_database(logged={"x": result(found, query="Which document?")})
    log("Which document?")
    (entry,) = entries(propose())
    assert entry["expected_doc_ids"] == ["d9"]
    assert "expected_chunk_ids" not in entry


def test_an_id_that_the_golden_file_has_is_not_taken_again(project: Project) -> None:
    project.make_database(logged={"q-001": result("c5", query="Something else altogether?")})
    log("Something else altogether?")
    (entry,) = entries(propose())
    assert entry["id"].startswith("q-")
    assert entry["id"] != "q-001"


# -- several runs ----------------------------------------------------------------------------------

OTHER = {
    "log-1": result(hit("d2#1"), hit("d1#1", 2), query="How do I log in to the VPN?"),
    "log-2": result("d3#1", query="Where is the lunch menu?", answer=answer("In the hall.")),
    "log-3": result("d5#1", query="What is the answer to everything?"),
}


@pytest.fixture
def two_runs(project: Project) -> Project:
    project.make_database(logged=ASKED, other=OTHER)
    return project


@pytest.mark.usefixtures("two_runs")
def test_the_first_hits_of_several_runs_are_pooled_each_once() -> None:
    log("How do I log in to the VPN?", "Where is the lunch menu?", "What is the answer to everything?")
    called = propose("--run", "other")
    assert [(entry["id"], entry["expected_chunk_ids"]) for entry in entries(called)] == [
        ("log-1", ["d1#1", "d2#1"]),
        ("log-2", ["d3#1"]),
        ("log-3", ["d5#1"]),  # of which the first run found nothing
    ]
    assert "# 1. (logged) d1.md > Setup > VPN: Open the client.\n# 1. (other) d2.md\n" in called.stdout
    assert "# answer of logged: the run refused: I do not know\n" in called.stdout
    assert "# answer of other: In the hall.\n# 1. (logged, other) d3.md\n" in called.stdout


@pytest.mark.usefixtures("two_runs")
def test_of_each_run_as_many_hits_are_taken_as_is_said() -> None:
    log("How do I log in to the VPN?")
    (entry,) = entries(propose("--run", "other", "--top", "2"))
    assert entry["expected_chunk_ids"] == ["d1#1", "d2#1", "d1#2"]  # by rank: 1, 1, 2; d1#1 is there already


@pytest.mark.usefixtures("two_runs")
def test_no_run_of_those_that_labels_are_pooled_from_is_favoured() -> None:
    log("How do I log in to the VPN?")
    propose("--out", "one.yaml")
    propose("--run", "other", "--out", "both.yaml")
    of_one, of_both = (
        json.loads(call("compare", "logged", "other", "--golden", name, "--json").stdout)
        for name in ("one.yaml", "both.yaml")
    )
    assert [report["deltas"]["mrr"] for report in (of_one, of_both)] == [-0.5, 0.0]


@pytest.mark.usefixtures("two_runs")
def test_a_run_that_is_named_twice_counts_once() -> None:
    log("How do I log in to the VPN?")
    assert "# 1. d1.md > Setup" in propose("--run", "logged").stdout


def test_runs_of_different_chunkers_are_refused(project: Project) -> None:
    project.make_database(configs={"other": {"chunker_version": "v2"}}, logged=ASKED, other=OTHER)
    log("How do I log in to the VPN?")
    called = propose("--run", "other")
    assert (called.code, called.stdout) == (2, "")
    assert "the runs have different chunker versions (v1, v2), and no chunk ids in common" in called.stderr


@pytest.mark.usefixtures("two_runs")
def test_what_nobody_has_reviewed_is_counted_a_slice_and_warned_of_where_it_fails() -> None:
    log("How do I log in to the VPN?", "Where is the lunch menu?")
    propose("--out", "one.yaml")
    validated = call("validate", "--golden", "one.yaml", "--golden-only")
    assert (validated.code, validated.stderr) == (
        0,
        "2 queries, 0 findings, 2 not reviewed (reviewed: false)\n",
    )
    compared = call(
        *("compare", "logged", "other", "--golden", "one.yaml", "--fail-on", "loss", "--json"),
        *("--gate", "hit@1{reviewed=false} >= 0.9"),
    )
    report = json.loads(compared.stdout)
    assert report["gates"][0]["value"] == 0.5
    assert report["warnings"][0] == (
        "of the queries that fail (1), 1 expect what was proposed and never reviewed (reviewed: false);"
        " what one run found first favours that run"
    )
    assert report["warnings"][0] in compared.stderr


# -- what is left out ------------------------------------------------------------------------------


@pytest.mark.usefixtures("asked")
def test_near_duplicates_of_golden_queries_and_of_each_other_are_left_out_and_named() -> None:
    log("What is kept", "How do I log in to the VPN?", {"question": "How do I log in to VPN", "id": "log-2"})
    called = propose()
    assert [entry["id"] for entry in entries(called)] == ["log-1"]
    assert called.stderr.splitlines() == [
        "near-duplicates, left out:",
        "  line 1: What is kept (nearly the golden query 'q-001', what is kept?)",
        "  line 3: How do I log in to VPN (nearly line 2, How do I log in to the VPN?)",
        "3 questions: 1 proposed, 2 near-duplicates, 0 without anything to expect",
    ]


@pytest.mark.usefixtures("asked")
def test_where_nothing_is_proposed_no_file_is_written_and_that_is_said() -> None:
    log("Never asked?")
    called = propose("--out", "proposed.yaml")
    assert called.code == 0
    assert called.stderr.endswith(
        "1 question: 0 proposed, 0 near-duplicates, 1 without anything to expect;"
        " proposed.yaml was not written\n"
    )
    assert not Path("proposed.yaml").exists()


@pytest.mark.usefixtures("asked")
def test_questions_that_the_run_has_nothing_for_are_listed_with_the_reason() -> None:
    log("What is the answer to everything?", "Who broke the build?", "Never asked?")
    called = propose()
    assert (called.code, called.stdout) == (0, "")
    assert called.stderr.splitlines()[1:4] == [
        "  line 1: What is the answer to everything? (the run found nothing)",
        "  line 2: Who broke the build? (its result has an error: timed out)",
        "  line 3: Never asked? (the run has no result for it)",
    ]


def test_a_run_without_texts_is_explained(project: Project) -> None:
    project.make_database(logged={"x": result("c1", query="")})
    log("How?")
    assert "the run stored no texts of queries; record with query=…" in propose().stderr


@pytest.mark.usefixtures("asked")
def test_nothing_is_written_where_nothing_is_proposed() -> None:
    log("Never asked?")
    assert propose("--out", "proposed.yaml").code == 0
    assert not Path("proposed.yaml").exists()


def test_without_a_golden_file_nothing_is_a_duplicate_of_it(asked: Project) -> None:
    asked.golden.unlink()
    log("what is kept?")
    called = propose()
    assert [entry["id"] for entry in entries(called)] == ["q-001"]
    assert called.stderr.startswith("there is no golden file fixtures/golden_queries.yaml yet")


# -- the log ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("log.csv", 'when,query\n1,"How do I log in to the VPN?"\n', []),
        ("log.csv", "when,asked\n1,How do I log in to the VPN?\n", ["--field", "asked"]),
        ("log.json", '[{"input": "How do I log in to the VPN?"}]', []),
        ("log.jsonl", '{"in": {"q": "How do I log in to the VPN?"}}\n', ["--field", "in.q"]),
        (
            "log.jsonl",
            '{"input": {"messages": [{"role": "user", "content": "How do I log in to the VPN?"}]}}\n',
            [],
        ),
    ],
)
def test_the_question_is_found_in_logs_of_several_shapes(name: str, text: str, more: list[str]) -> None:
    Path(name).write_text(text)
    assert [entry["id"] for entry in entries(propose(*more, of=name))] == ["log-1"]


@pytest.mark.usefixtures("asked")
def test_a_log_may_be_packed_or_come_from_standard_input() -> None:
    text = '{"question": "How do I log in to the VPN?"}\n'
    Path("log.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    assert [entry["id"] for entry in entries(propose(of="log.jsonl.gz"))] == ["log-1"]
    called = call("propose", "--from", "-", "--run", "logged", given=text)
    assert [entry["id"] for entry in entries(called)] == ["log-1"]


@pytest.mark.usefixtures("asked")
def test_a_hostile_question_is_shown_inert_and_written_as_it_is(asked: Project) -> None:
    hostile = "::error::\x1b[31m # - [x]: 'y' \"z\" ##[group]"
    asked.make_database(logged={"x": result(hit("c1", snippet="a\n- id: evil\n"), query=hostile)})
    log({"question": hostile})
    called = propose()
    assert "\x1b" not in called.stdout + called.stderr
    assert len(entries(called)) == 1
    propose("--out", "proposed.yaml")
    (query,) = load_golden_set("proposed.yaml").queries
    assert query.query == " ".join(hostile.split())


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(
    ("name", "text", "more", "said"),
    [
        ("log.csv", "a,b\n1,2\n", [], "log.csv:2: no field of this row is called question, query, "),
        (
            "log.csv",
            "a,b\n1,2\n",
            ["--field", "c"],
            "log.csv:2: there is no field 'c' in this row, which has: a, b",
        ),
        ("log.jsonl", '{"question": "x"}\n{oops\n', [], "log.jsonl:2: this is not JSON: "),
        ("log.jsonl", "", [], "log.jsonl: there are no rows in this file"),
        ("log.jsonl", '{"question": " ?"}\n', [], "log.jsonl: there is no question in this file"),
    ],
)
def test_a_log_that_cannot_be_read_is_wrong_use(name: str, text: str, more: list[str], said: str) -> None:
    Path(name).write_text(text)
    called = propose(*more, of=name)
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr.startswith(f"kebab-eval: {said}")


@pytest.mark.usefixtures("asked")
def test_a_file_that_is_there_is_never_replaced() -> None:
    log("How do I log in to the VPN?")
    propose("--out", "proposed.yaml")
    before = Path("proposed.yaml").read_bytes()
    called = propose("--out", "proposed.yaml")
    assert called.code == 2
    assert called.stderr == "kebab-eval: proposed.yaml is there already; name a new file for --out\n"
    assert Path("proposed.yaml").read_bytes() == before


@pytest.mark.usefixtures("asked")
def test_a_run_that_is_not_there_is_wrong_use() -> None:
    log("How?")
    called = call("propose", "--from", "log.jsonl", "--run", "no")
    assert called.code == 2
    assert "there is no run 'no'" in called.stderr
