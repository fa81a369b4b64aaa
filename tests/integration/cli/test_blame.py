"""`kebab-eval blame`: the last run that found a query, and the first that lost it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_kebab_eval.store.database import Database
from tests.builders import Json, answer, hit, line, make_database, result
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
        "q-001: lost",
        "  last found   r3  2026-01-03T00:00:00Z  commit r3abcdef0123  rank 2",
        "  first lost   r4  2026-01-04T00:00:00Z  commit r4abcdef0123  not found",
        "  changed      rrf_k: 60 → 20",
        "  doubt        76% sure, 3 other runs not ruled out: r2, r3, r5",
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
        "times_lost": 1,
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
        "candidates": [row["first_bad"]],
        "sureness": 1.0,
        "before": {"passed": 1, "runs": 1},
        "after": {"passed": 0, "runs": 1},
    }


def test_a_query_that_comes_and_goes_is_flaky_rather_than_lost_in_one_run(project: Project) -> None:
    runs(project, HIT, MISS, HIT, HIT, MISS, MISS)
    (row,) = blamed("q-001")
    assert (row["status"], ends(row), row["times_lost"]) == ("flaky", ("r4", None), 2)
    called = call("blame", "q-001")
    assert called.lines[0] == (
        "q-001: failing, perhaps by luck: found in 3 of 6 runs, lost 2 times in all; no run is blamed"
    )
    candidates = ", ".join(seen["run_id"] for seen in row["candidates"])
    assert f"  if not luck  it was lost in one of {candidates}" in called.lines
    assert call("blame", "--all").stderr.endswith(
        "2 queries: 0 lost, 0 never found, 1 failing perhaps by luck\n"
    )


def test_a_lucky_hit_does_not_move_the_blame_and_it_is_said_how_sure_that_is(project: Project) -> None:
    runs(project, *[HIT] * 6, *[MISS] * 3, HIT, *[MISS] * 3)
    called = call("blame", "q-001")
    # In log units: 6 of 6 before and 1 of 7 since, -2.87; no change at all, 7 of 13, -8.97. One run later,
    # 6 of 7 and 1 of 6, -5.57; two earlier, 4 of 4 and 3 of 9, -5.73; all others are below -2.87 - 3.2.
    assert called.lines[0] == (
        "q-001: lost, found in 6 of 6 runs before and 1 of 7 since, lost 2 times in all"
    )
    assert called.lines[1].startswith("  good before  r6 ")  # it was last found in r10
    assert called.lines[2].startswith("  first lost   r7 ")
    assert called.lines[4] == "  doubt        70% sure, 3 other runs not ruled out: r5, r6, r8"
    (row,) = blamed("q-001")
    assert [seen["run_id"] for seen in row["candidates"]] == ["r5", "r6", "r7", "r8"]


def test_it_is_as_unsure_in_words_as_in_json_also_where_nothing_flips(project: Project) -> None:
    runs(project, *[HIT] * 13, MISS)
    (row,) = blamed("q-001")
    assert (row["sureness"], len(row["candidates"])) == (0.5163, 9)
    said = "52% sure, 8 other runs not ruled out"
    assert call("blame", "q-001").lines[-1] == f"  doubt        {said}: r6, r7, r8, r9, r10 and 3 more"
    for form in ("md", "html"):
        assert f"({said})" in call("report", "r1", "r14", "--format", form).stdout


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
    assert call("blame", "--all").stderr.endswith("1 query: 1 lost, 0 never found\n")
    project.write_golden(entry)
    assert [row["check"] for row in blamed("q-001")] == ["retrieval"]


def test_a_first_bad_run_that_is_sure_is_named_without_doubt(project: Project) -> None:
    runs(project, HIT, MISS)
    assert blamed("q-001")[0]["sureness"] == 1.0
    assert "doubt" not in call("blame", "q-001").stdout


def test_a_query_that_was_always_found_but_lately_is_not_said_to_flip_all_along(project: Project) -> None:
    runs(project, *[HIT] * 11, MISS, HIT, MISS)
    assert call("blame", "q-001").lines[0] == (
        "q-001: failing, perhaps by luck: found in 12 of 14 runs, lost 2 times in all; no run is blamed"
    )


def test_what_was_fixed_and_lost_again_is_blamed_on_the_second_loss(project: Project) -> None:
    runs(project, *[HIT] * 8, *[MISS] * 6, *[HIT] * 8, MISS, MISS)
    assert ends(blamed("q-001")[0]) == ("r22", "r23")
    assert call("blame", "q-001").lines[0] == "q-001: lost, lost 2 times in all"


def test_what_is_found_in_the_newest_run_is_found_again_if_it_was_only_lost_before(project: Project) -> None:
    runs(project, *[HIT] * 8, MISS, MISS, MISS, HIT)
    (row,) = blamed("q-001")
    assert (row["status"], ends(row)) == ("found", ("r12", None))


def test_a_hit_below_the_cutoff_is_lost_and_its_rank_is_said(project: Project) -> None:
    runs(project, HIT, LOW)
    assert call("blame", "q-001", "--compare-k", "1").lines[2].endswith("  rank 2, below the cutoff")
    assert ends(blamed("q-001")[0]) == ("r2", None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((HIT, HIT), "q-001: found in 2 of 2 runs, never lost"),
        ((HIT, MISS, HIT), "q-001: found in 2 of 3 runs, lost once and found again"),
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
    called = call("blame", "--all")
    assert called.lines[0] == "q-001: lost"
    assert called.lines[2].startswith("  first lost   r3 ")
    assert called.lines[2].endswith("  no result")
    assert called.stderr.splitlines()[-1] == "2 queries: 1 lost, 0 never found"


def test_a_query_of_which_nothing_is_expected_cannot_be_lost(project: Project) -> None:
    project.write_golden({"id": "q-001", "query": "?", "expected_doc_ids": []})
    runs(project, HIT, MISS)
    assert call("blame", "q-001").lines == ["q-001: nothing is expected to be found, so it cannot be lost"]
    assert blamed("q-001")[0]["status"] == "not_judged"


def test_all_queries_may_be_asked_for_and_those_that_are_lost_are_shown(project: Project) -> None:
    runs(project, HIT, MISS)
    called = call("blame", "--all")
    assert [text for text in called.lines if not text.startswith(" ")] == ["q-001: lost"]
    assert called.stderr.endswith("2 queries: 1 lost, 0 never found\n")
    assert [row["status"] for row in blamed("--all")] == ["lost", "found"]


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


# -- what B lost -----------------------------------------------------------------------------------


def test_regressions_are_those_of_a_comparison_and_runs_between_are_walked(project: Project) -> None:
    runs(project, MISS, HIT, HIT, MISS, MISS, HIT)
    (row,) = blamed("--regressions", "r2", "r5")
    assert (ends(row), row["runs"]) == (("r3", "r4"), 4)


def test_a_run_of_another_chunker_between_two_of_one_does_not_count_as_a_loss(project: Project) -> None:
    at: Json = {"doc_id": "d", "citation": line("d.md", 1, 10)}
    old, other = result(hit("c1", **at)), result(hit("n1", **at))
    lost = result(hit("x", doc_id="d", citation=line("d.md", 90, 99)))
    runs(project, old, other, old, lost, configs={"r2": {"chunker_version": "v2"}})
    assert ends(blamed("--regressions", "r1", "r4")[0]) == ("r3", "r4")


def test_a_result_that_b_does_not_have_is_lost_in_the_first_run_without_it(project: Project) -> None:
    runs(project, HIT, HIT, None, None)
    (row,) = blamed("--regressions", "r1", "r4")
    assert (ends(row), row["first_bad"]["state"]) == (("r2", "r3"), "absent")


def test_a_lost_answer_is_blamed_on_the_first_run_whose_answer_is_wrong(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"], "must_contain": ["yes"]})
    right, wrong = result("c1", answer=answer("yes")), result("c1", answer=answer("no"))
    runs(project, right, right, result("c1"), wrong, wrong)
    (row,) = blamed("--regressions", "r1", "r5")
    assert (row["check"], ends(row)) == ("answer", ("r2", "r3"))  # an answer that is gone is lost, too
    assert call("blame", "--regressions", "r1", "r5").lines[0] == "q-001 (answer): lost"


def test_an_error_of_a_query_that_was_never_found_is_blamed_as_an_error(project: Project) -> None:
    runs(project, MISS, MISS, result(error="boom"), result(error="boom"))
    (row,) = blamed("--regressions", "r1", "r4")
    assert (row["check"], ends(row)) == ("error", ("r2", "r3"))


def test_run_a_may_be_in_another_database(project: Project) -> None:
    runs(project, MISS, MISS)
    make_database(project.path / "main.sqlite", a={"q-001": HIT})
    execute(project.path / "main.sqlite", "UPDATE eval_runs SET created_at = '2025-12-31T00:00:00Z'")
    (row,) = blamed("--regressions", "a", "r2", "--db-a", "main.sqlite")
    assert ends(row) == ("a", "r1")


def test_where_nothing_is_lost_it_says_so(project: Project) -> None:
    runs(project, HIT, HIT)
    called = call("blame", "--regressions", "r1", "r2")
    assert (called.code, called.stdout, called.stderr) == (
        0,
        "",
        "0 of 2 queries failed.\n",
    )
    assert blamed("--regressions", "r1", "r2") == []


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "name the queries to look for, or say --all, or --regressions A B"),
        (["q-001", "--all"], "QUERY and --all exclude each other; give one of them"),
        (
            ["q-001", "--regressions", "A", "B"],
            "QUERY and --regressions exclude each other; give one of them",
        ),
        (["q-01"], "fixtures/golden_queries.yaml has no query 'q-01'; did you mean 'q-001'?"),
        (["q-001", "--suite", "no"], "kebab.sqlite has no runs of the suite 'no'; it has runs of 'suite'"),
        (["q-001", "--db", "no"], "there is no database no; name yours with --db=FILE"),
    ],
)
def test_wrong_use_is_one_sentence_and_exit_code_2(project: Project, args: list[str], said: str) -> None:
    called = call("blame", *args)
    assert (called.code, called.stdout) == (2, "")
    assert called.stderr.splitlines()[-1] == f"kebab-eval: {said}"


def test_a_run_that_is_not_there_is_named(project: Project) -> None:
    called = call("blame", "--regressions", "A", "Z")
    assert called.code == 2
    assert "there is no run 'Z' in kebab.sqlite" in called.stderr
