"""A stored result that cannot be read fails its query, and a config that cannot be read is a warning."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.builders import aggregate_of, hit, result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import printed

# -- one result that cannot be read ----------------------------------------------------------------


@pytest.mark.parametrize("broken", ["A", "B"])
@pytest.mark.parametrize(
    "stored",
    ["{", result(hit("c2", 1), hit("c3", 1)), b"\xff\xfe", result("c2", query_id="q-001")],
    ids=["no json", "rank twice", "no text", "of another query"],
)
def test_a_result_that_does_not_parse_fails_its_query_alone_and_keeps_its_run_from_being_stored(
    project: Project, broken: str, stored: Any
) -> None:
    good = {"q-001": result("c1"), "q-002": result("c2")}
    runs: Any = {"A": dict(good), "B": dict(good)}
    runs[broken]["q-002"] = stored
    project.make_database(**runs)
    outcome = project.pytest("-v")
    text = printed(outcome)
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        ["*query[[]q-001] PASSED*", "*query[[]q-002] FAILED*", f"*in run {broken} ({broken}) cannot be read*"]
    )
    assert f"unreadable: query q-002 in run {broken}" in text
    assert f"ERROR: the aggregate of run {broken} was not stored" in text
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    other = "B" if broken == "A" else "A"
    assert aggregate_of(project.database, broken) == {}
    assert aggregate_of(project.database, other)["total_queries"] == 2
    assert project.reports()


def test_a_result_in_the_row_of_another_query_is_named_with_what_to_do(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": result("c1", query_id="q-002")})
    outcome = project.pytest()
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert ("its query_id is 'q-002', so that it is the result of another query; record it again") in printed(
        outcome
    )


def test_a_broken_result_is_not_called_missing(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    text = printed(project.pytest())
    assert "the stored result in run B (B) cannot be read" in text
    assert "no result" not in text


def test_what_was_stored_before_for_a_broken_run_is_kept(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    with closing(sqlite3.connect(project.database)) as connection:
        connection.execute("UPDATE eval_runs SET aggregate_json = '{\"kept\": 1}' WHERE run_id = 'B'")
        connection.commit()
    printed(project.pytest())
    assert aggregate_of(project.database, "B") == {"kept": 1}


def test_with_both_runs_broken_neither_is_stored(project: Project) -> None:
    project.make_database(A={"q-001": "{"}, B={"q-002": "{"})
    before = project.database.read_bytes()
    outcome = project.pytest()
    outcome.assert_outcomes(failed=3)
    assert "the aggregates of" not in printed(outcome)
    assert project.database.read_bytes() == before


def test_a_broken_result_of_a_query_that_is_not_in_the_golden_file_fails_the_session(
    project: Project,
) -> None:
    good = {"q-001": result("c1"), "q-002": result("c2")}
    project.make_database(A=good, B={**good, "stray": "{"})
    outcome = project.pytest()
    text = printed(outcome)
    outcome.assert_outcomes(passed=2, failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert "unreadable: query stray in run B (B)" in text
    assert aggregate_of(project.database, "A")["total_queries"] == 2
    assert aggregate_of(project.database, "B") == {}


def test_a_broken_result_fails_the_session_though_nothing_is_to_be_stored(project: Project) -> None:
    project.make_database(A={}, B={"stray": "{"})
    outcome = project.pytest("--kebab-no-store")
    assert "unreadable: query stray in run B (B)" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_broken_result_is_no_regression_that_an_xfail_could_accept(project: Project) -> None:
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"], "xfail": {"reason": "known"}})
    project.make_database(A={"q1": result("c1")}, B={"q1": "{"})
    outcome = project.pytest()
    outcome.assert_outcomes(failed=1)
    assert "the stored result in run B (B) cannot be read" in printed(outcome)


def test_a_broken_result_is_named_in_both_reports(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    printed(project.pytest())
    (broken,) = project.report()["unreadable"]
    assert (broken["side"], broken["query_id"]) == ("b", "q-001")
    markdown = (project.path / "runs/B/report.md").read_text("utf-8")
    assert "| B | `q-001` `what is kept?` |" in markdown


# -- with workers ----------------------------------------------------------------------------------


def test_an_unreadable_result_is_not_said_to_have_errored(project: Project) -> None:
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["*run B     cannot be read"])
    outcome.stdout.no_fnmatch_line("*run B errored on this query*")
    outcome.stdout.no_fnmatch_line("*→error*")


def test_an_unreadable_result_fails_its_query_under_xdist_too(project: Project) -> None:
    pytest.importorskip("xdist")
    project.make_database(A={"q-001": result("c1")}, B={"q-001": "{"})
    outcome = project.pytest("-n", "1")
    assert "the stored result in run B (B) cannot be read" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert aggregate_of(project.database, "B") == {}


BIG = 2**70


def test_a_whole_number_beyond_64_bits_in_a_config_does_no_harm_under_xdist(project: Project) -> None:
    pytest.importorskip("xdist")
    project.write_golden({"id": "q1", "expected_chunk_ids": ["c1"]})
    project.make_database(
        configs={"A": {}, "B": {"config": {"seed": BIG}}},
        A={"q1": result("c1")},
        B={"q1": result("c9")},
    )
    outcome = project.pytest("-n", "1")
    assert "lost c1" in printed(outcome)
    outcome.assert_outcomes(failed=1)


# -- a config snapshot that does not parse ---------------------------------------------------------


def test_a_config_that_does_not_parse_is_a_warning(project: Project) -> None:
    project.write_golden({"id": "q-001", "expected_chunk_ids": ["c1"]})
    project.make_database(configs={"A": "{}", "B": "{"}, A={"q-001": result("c1")}, B={"q-001": result("c1")})
    outcome = project.pytest()
    assert "warning: the config snapshot of run B does not parse; it counts as empty" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize("quiet", ["-q", "--no-header"])
def test_a_config_that_does_not_parse_is_a_warning_however_quiet_pytest_is(
    project: Project, quiet: str
) -> None:
    project.make_database(configs={"A": "{}", "B": "{"}, A={"q-001": result("c1")}, B={"q-001": result("c1")})
    assert "the config snapshot of run B does not parse" in printed(project.pytest(quiet))
