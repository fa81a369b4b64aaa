"""`kebab-eval blame`: the last run that found a query, and the first that lost it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_kebab_eval.store.database import Database
from tests.builders import Json, hit, line, make_database, result
from tests.integration.conftest import Project, call, execute

HIT, LOW, MISS = result("c1"), result("x", "c1"), result("x", "y")


def runs(project: Project, *of_q1: Json | str | None, **more: Any) -> None:
    """Runs r1, r2, …, each with this result of q-001 (None: it has none), and q-002 always found."""
    project.database.unlink(missing_ok=True)
    found = {"q-002": result("c2")}
    stored: dict[str, Any] = {
        f"r{number}": found if given is None else {"q-001": given, **found}
        for number, given in enumerate(of_q1, start=1)
    }
    make_database(project.database, **more, **stored)


def blamed(*args: str) -> Any:
    called = call("blame", *args, "--json")
    assert called.code == 0, called.stderr
    return json.loads(called.stdout)


def ends(row: Any) -> tuple[str | None, str | None]:
    good, bad = row["last_good"], row["first_bad"]
    return good and good["run_id"], bad and bad["run_id"]


# -- what is said ----------------------------------------------------------------------------------


def test_it_says_where_a_query_was_last_found_and_first_lost_with_commit_rank_and_configuration(
    project: Project,
) -> None:
    configs: dict[str, Json | str] = {
        "r3": {"chunker_version": "v1", "rrf_k": 60},
        "r4": {"chunker_version": "v1", "rrf_k": 20},
    }
    runs(project, HIT, LOW, LOW, MISS, MISS, configs=configs)
    execute(project.database, "UPDATE eval_runs SET commit_hash = run_id || 'abcdef0123456789'")
    called = call("blame", "q-001")
    assert (called.code, called.stderr) == (0, "5 runs of the suite 'suite', from r1 to r5\n")
    assert called.lines == [
        "q-001: lost, found in 3 of 3 before and 0 of 2 since",
        "  last found   r3  2026-01-03T00:00:00Z  commit r3abcdef0123  rank 2",
        "  first lost   r4  2026-01-04T00:00:00Z  commit r4abcdef0123  not found",
        "  changed      rrf_k: 60 → 20",
    ]


def test_as_json_it_has_all_of_it(project: Project) -> None:
    runs(project, HIT, MISS, configs={"r2": {"chunker_version": "v1", "rrf_k": 20}})
    (row,) = blamed("q-001")
    assert row == {
        "query_id": "q-001",
        "check": "retrieval",
        "status": "lost",
        "runs": 2,
        "passed": 1,
        "last_good": {
            "run_id": "r1",
            "created_at": "2026-01-01T00:00:00Z",
            "commit_hash": None,
            "state": "found",
            "rank": 1,
            "reason": None,
            "uncommitted_changes": False,
        },
        "first_bad": {
            "run_id": "r2",
            "created_at": "2026-01-02T00:00:00Z",
            "commit_hash": None,
            "state": "lost",
            "rank": None,
            "reason": None,
            "uncommitted_changes": False,
        },
        "unknown": [],
        "config_changes": [{"key": "rrf_k", "a": None, "b": 20}],
        "before": {"passed": 1, "runs": 1},
        "since": {"passed": 0, "runs": 1},
    }


def test_the_last_run_of_all_that_found_it_counts_however_often_it_was_lost_before(project: Project) -> None:
    runs(project, HIT, MISS, HIT, HIT, MISS, MISS)
    (row,) = blamed("q-001")
    assert (row["status"], ends(row)) == ("lost", ("r4", "r5"))
    assert call("blame", "q-001").lines[0] == "q-001: lost, found in 3 of 4 before and 0 of 2 since"


def test_a_query_is_blamed_for_every_rule_of_the_golden_file_that_it_can_fail_on(project: Project) -> None:
    rules = {"require": "all", "must_rank_at_most": 1, "forbidden_chunk_ids": ["draft"]}
    entry = {"id": "q-001", "query": "?", "expected_chunk_ids": ["c1", "c2"]}
    project.write_golden(entry | rules)
    both, one = result("c1", "c2"), result("c1", "draft")
    runs(project, *[both] * 5, *[one] * 5)
    rows = {row["check"]: (row["status"], *ends(row)) for row in blamed("q-001")}
    assert rows == {
        "retrieval": ("found", "r10", None),
        "coverage": ("lost", "r5", "r6"),
        "forbidden": ("lost", "r5", "r6"),
        "rank_limit": ("found", "r10", None),
    }
    project.write_golden(entry)
    assert [row["check"] for row in blamed("q-001")] == ["retrieval"]


def test_a_hit_below_the_cutoff_is_lost_and_its_rank_is_said(project: Project) -> None:
    runs(project, HIT, LOW)
    assert call("blame", "q-001", "--compare-k", "1").lines[2].endswith("  rank 2, below the cutoff")
    assert ends(blamed("q-001")[0]) == ("r2", None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((HIT, HIT), "q-001: found in 2 of 2 runs"),
        ((HIT, MISS, HIT), "q-001: found in 2 of 3 runs"),
        ((MISS, MISS), "q-001: never found in 2 runs"),
        ((None, None), "q-001: no result that tells in 2 runs"),
    ],
    ids=["never lost", "found again", "never found", "absent"],
)
def test_what_is_not_lost_is_said_plainly(project: Project, given: tuple[Json, ...], said: str) -> None:
    runs(project, *given)
    assert call("blame", "q-001").lines[0] == said


def test_an_error_is_a_loss_and_its_text_is_said(project: Project) -> None:
    runs(project, HIT, result(error="timed out"), HIT | {"hits_top_k": []})
    assert call("blame", "q-001").lines[2].endswith("r2  2026-01-02T00:00:00Z  error: timed out")


def test_runs_without_a_result_or_with_one_that_cannot_be_read_are_named(project: Project) -> None:
    runs(project, HIT, None, "{broken", MISS)
    lines = call("blame", "q-001").lines
    assert lines[1].startswith("  last found   r1 ")
    assert lines[2].startswith("  first lost   r4 ")
    assert lines[4].startswith("  not known    r2 (no result), r3 (cannot be read: ")


def test_a_result_that_the_newest_run_lacks_is_lost(project: Project) -> None:
    both = {"q-001": HIT, "q-002": result("c2")}
    alone = {"q-002": result("c2")}
    project.make_database(r1=both, r2=both, r3=alone, r4=alone, r5={})
    called = call("blame", "q-001")
    assert called.lines[0] == "q-001: lost, found in 2 of 2 before and 0 of 2 since"
    assert called.lines[2].startswith("  first lost   r3 ")
    assert called.lines[2].endswith("  no result")


def test_a_query_of_which_nothing_is_expected_cannot_be_lost(project: Project) -> None:
    project.write_golden({"id": "q-001", "query": "?", "expected_doc_ids": []})
    runs(project, HIT, MISS)
    assert call("blame", "q-001").lines == ["q-001: nothing is expected to be found, so it cannot be lost"]
    assert blamed("q-001")[0]["status"] == "not_judged"


# -- which runs ------------------------------------------------------------------------------------


def test_only_runs_of_the_suite_are_walked(project: Project) -> None:
    runs(project, HIT, MISS, HIT, MISS)
    execute(project.database, "UPDATE eval_runs SET suite = 'other' WHERE run_id IN ('r2', 'r3')")
    assert ends(blamed("q-001")[0]) == ("r1", "r4")  # the suite of the newest run
    assert ends(blamed("q-001", "--suite", "other")[0]) == ("r3", None)


def test_runs_are_walked_in_order_of_time_whatever_their_ids(project: Project) -> None:
    runs(project, HIT, MISS, HIT)
    execute(project.database, "UPDATE eval_runs SET created_at = '2025-12-31T00:00:00Z' WHERE run_id = 'r3'")
    assert ends(blamed("q-001")[0]) == ("r1", "r2")


def test_few_queries_are_read_by_their_keys(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    others: Json = {f"o-{number}": result("x") for number in range(20)}
    project.database.unlink()
    make_database(project.database, r1={"q-001": HIT, **others}, r2={"q-001": MISS, **others})

    def read_whole(*_: object) -> None:
        raise AssertionError("a whole run is read")

    monkeypatch.setattr(Database, "results", read_whole)
    assert ends(blamed("q-001")[0]) == ("r1", "r2")


def test_runs_of_another_chunker_are_matched_by_place(project: Project) -> None:
    """By their ids, every query would be lost where the chunker changed."""
    old = result(hit("c1", doc_id="d", citation=line("d.md", 1, 10)))
    same_place = result(hit("n1", doc_id="d", citation=line("d.md", 2, 9)))
    elsewhere = result(hit("n2", doc_id="d", citation=line("d.md", 40, 50)))
    v2: Json = {"chunker_version": "v2"}
    runs(project, old, same_place, elsewhere, configs={"r2": v2, "r3": v2})
    called = call("blame", "q-001")
    assert "they are of several chunkers" in called.stderr
    assert ends(blamed("q-001")[0]) == ("r2", "r3")


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["q-01"], "fixtures/golden_queries.yaml has no query 'q-01'; did you mean 'q-001'?"),
        (["q-001", "--suite", "no"], "kebab.sqlite has no runs of the suite 'no'; it has runs of 'suite'"),
        (["q-001", "--db", "no"], "there is no database no; name yours with --db=FILE"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(project: Project, args: list[str], said: str) -> None:
    called = call("blame", *args)
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr.splitlines()[-1] == f"kebab-eval: {said}"
