"""`kebab-eval churn`: the queries whose results moved most."""

from __future__ import annotations

import json

import pytest

from tests.builders import hit, result
from tests.integration.conftest import Project, call, execute

A = {"q-001": result("c1", "x"), "q-002": result("c2"), "log-1": result("x", "y", query="what was asked?")}
B = {"q-001": result("x", "c1"), "q-002": result("z"), "log-1": result("y", "x", query="what was asked?")}


@pytest.fixture
def moved(project: Project) -> Project:
    project.make_database(A=A, B=B)
    return project


@pytest.mark.usefixtures("moved")
def test_queries_are_ranked_by_how_much_they_moved_labelled_or_not() -> None:
    called = call("churn", "A", "B")
    assert called.code == 0
    assert called.lines == [
        "   rbo  overlap@10  first hit  A → B       query",
        "0.0000      0.0000  changed    regression  q-002  what is lost?",
        "0.9000      1.0000  changed    –           log-1  what was asked?",
        "0.9000      1.0000  changed    loss        q-001  what is kept?",
    ]
    assert called.stderr == "3 of 3 queries moved\n"


@pytest.mark.usefixtures("moved")
def test_only_the_top_is_shown() -> None:
    called = call("churn", "A", "B", "--top", "1")
    assert [text.split()[-4] for text in called.lines[1:]] == ["q-002"]
    assert called.stderr == "3 of 3 queries moved, 1 shown\n"


@pytest.mark.usefixtures("moved")
def test_as_json_each_query_has_its_numbers() -> None:
    rows = json.loads(call("churn", "A", "B", "--json").stdout)
    assert [row["query_id"] for row in rows] == ["q-002", "log-1", "q-001"]
    assert rows[1] == {
        "query_id": "log-1",
        "query": "what was asked?",
        "rbo": 0.9,
        "overlap": 1.0,
        "top_changed": True,
        "hits_a": 2,
        "hits_b": 2,
        "errored": None,
        "in_golden": False,
        "kind": None,
    }


def test_a_golden_file_is_not_needed(moved: Project) -> None:
    moved.golden.unlink()
    called = call("churn", "A", "B")
    assert called.code == 0
    assert [text.split()[4] for text in called.lines[1:]] == ["q-002", "log-1", "q-001"]


def test_a_golden_file_that_is_named_must_be_there(moved: Project) -> None:
    called = call("churn", "A", "B", "--golden", "no.yaml")
    assert (called.code, called.stdout) == (2, "")
    assert "no.yaml" in called.stderr


def test_runs_of_different_chunkers_are_compared_by_document(project: Project) -> None:
    old, new = hit("a#1", doc_id="d"), hit("b#1", doc_id="d")
    project.make_database(
        configs={"B": {"chunker_version": "v2"}}, A={"q-001": result(old)}, B={"q-001": result(new)}
    )
    called = call("churn", "A", "B")
    assert called.stdout == ""
    assert "the runs are of different chunkers, so their documents are compared" in called.stderr
    assert called.stderr.endswith("0 of 1 query moved\n")


def test_an_error_stands_where_a_kind_would(moved: Project) -> None:
    execute(
        moved.database,
        "UPDATE eval_query_results SET result_json = ? WHERE run_id = 'B' AND query_id = 'q-001'",
        json.dumps(result(error="boom")),
    )
    (row,) = [text for text in call("churn", "A", "B").lines if "q-001" in text]
    assert "error in B" in row


def test_queries_of_one_run_alone_are_counted(moved: Project) -> None:
    execute(moved.database, "DELETE FROM eval_query_results WHERE run_id = 'A' AND query_id = 'log-1'")
    assert call("churn", "A", "B").stderr.endswith("2 of 2 queries moved, 1 only in B\n")


@pytest.mark.usefixtures("moved")
def test_a_run_that_is_not_there_is_wrong_use() -> None:
    called = call("churn", "A", "Z")
    assert (called.code, called.stdout) == (2, "")
    assert "there is no run 'Z'" in called.stderr
