"""`--kebab-record RUN_ID --kebab-run-a RUN`: one session records a run and judges it."""

from __future__ import annotations

import pytest

from tests.builders import aggregate_of, result
from tests.integration.conftest import LEAN, Project
from tests.integration.plugin.conftest import (
    FOUND,
    LOST,
    QUERIES,
    RECORDS,
    TESTS,
    WORKERS,
    asked,
    gate,
    outcomes,
    recording,
    runs,
    snapshot,
)

Workers = tuple[str, ...]


@WORKERS
def test_one_command_catches_a_regression(project: Project, workers: Workers) -> None:
    outcome, found = outcomes(recording(project, LOST), *workers)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert found == {
        "test_search[q-001]": "passed",
        "test_search[q-002]": "passed",
        "query[q-001]": "passed",
        "query[q-002]": "failure",
    }
    assert list(found)[2:] == ["query[q-001]", "query[q-002]"]
    outcome.stdout.fnmatch_lines(
        [
            "kebab-eval: A base → B new, to be recorded",
            "kebab-eval: golden fixtures/golden_queries.yaml (2 queries)",
            "*[[]100%[]]",
            "lost c2, at rank 1 in A",
            "kebab-eval: run new: 2 of 2 golden queries recorded in kebab.sqlite",
            "*kebab-eval: base → new*",
            "report: runs/new/report.md",
        ]
    )


def test_a_run_that_lost_nothing_passes_and_all_is_stored_and_written(project: Project) -> None:
    outcome = gate(recording(project, FOUND), "--kebab-gate=hit@1 >= 1")
    outcome.assert_outcomes(passed=5)
    assert outcome.ret == pytest.ExitCode.OK
    assert runs(project) == {"base", "new"}
    assert aggregate_of(project.database, "new")["hit_at_k"]["1"] == 1.0
    assert project.reports() == [f"runs/new/report.{name}" for name in ("html", "json", "md")]


@WORKERS
def test_the_outcome_is_that_of_two_sessions(project: Project, workers: Workers) -> None:
    recording(project, LOST)
    gate(project, *workers)
    at_once = (project.path / "runs/new/report.json").read_bytes()
    project.pytest("fixtures", a="base", b="new")
    assert (project.path / "runs/new/report.json").read_bytes() == at_once


def test_latest_is_the_latest_run_before_the_recording(project: Project) -> None:
    recording(project, FOUND)
    project.make_database(older={"q-001": result("c9")}, old={"q-001": result("c1")})
    gate(project, a="latest~1")
    assert project.report("new")["run_a"] == "older"


@WORKERS
def test_gates_and_the_snapshot_are_judged(project: Project, workers: Workers) -> None:
    recording(project, FOUND)
    _, found = outcomes(project, *workers, "--kebab-snapshot=require", "--kebab-gate=delta mrr >= 1%")
    assert list(found.items())[4:] == [
        ("gate[delta mrr >= 1%]", "failure"),
        ("snapshot[compare-report]", "failure"),
    ]


def test_a_snapshot_is_recorded_and_compared(project: Project) -> None:
    recording(project, FOUND)
    assert gate(project, "-n1", "--snapshot-update").ret == pytest.ExitCode.OK
    recording(project, FOUND)
    _, found = outcomes(project)
    assert found["snapshot[compare-report]"] == "passed"
    snapshot(project).unlink()
    recording(project, FOUND)
    assert gate(project, "--snapshot-update").ret == pytest.ExitCode.OK
    recording(project, FOUND)
    _, found = outcomes(project, "-n1")
    assert found["snapshot[compare-report]"] == "passed"
    recording(project, LOST)
    _, found = outcomes(project)
    assert found["snapshot[compare-report]"] == "failure"


# -- what is checked before any test ---------------------------------------------------------------


@WORKERS
def test_the_first_run_is_judged_alone(project: Project, workers: Workers) -> None:
    recording(project, LOST).database.unlink()
    outcome = gate(project, *workers, "--kebab-if-no-baseline=pass", "--kebab-gate=hit@1 >= 0.5")
    outcome.stdout.fnmatch_lines(
        [
            "kebab-eval: run new, to be recorded, alone",
            "kebab-eval: warning: there is no baseline 'latest' yet, so run B is judged alone: *",
        ]
    )
    outcome.assert_outcomes(passed=5)
    assert outcome.ret == pytest.ExitCode.OK
    assert runs(project) == {"new"}


def test_the_second_run_is_not_judged_alone(project: Project) -> None:
    outcome = gate(recording(project, FOUND), "--kebab-if-no-baseline=pass", a="bse")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        ["ERROR: run A: there is no run 'bse' in kebab.sqlite (suite 'suite'); did you mean 'base'?*"]
    )


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--kebab-run-a=nope", "ERROR: run A: there is no run 'nope' in kebab.sqlite*"),
        ("--kebab-golden=no.yaml", "ERROR: *no.yaml*"),
        ("--kebab-gate=nonsense > 1", "ERROR: *nonsense*"),
        ("--kebab-record=base", "ERROR: kebab.sqlite has a run 'base' already;*"),
        (
            "--kebab-run-b=base",
            "ERROR: --kebab-record new records the candidate, and --kebab-run-b names another one, base;*",
        ),
    ],
    ids=["run A", "golden file", "gate", "run id", "run B"],
)
def test_wrong_use_is_told_before_any_test(project: Project, option: str, message: str) -> None:
    outcome = gate(recording(project, FOUND), *(["-n1"] if "run-a" in option else []), option)
    outcome.stderr.fnmatch_lines([message])
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert asked(project) == []
    assert runs(project) == {"base"}


def test_a_run_b_of_the_environment_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_B", "base")
    outcome = gate(recording(project, FOUND))
    outcome.stderr.fnmatch_lines(["ERROR: *, and KEBAB_EVAL_RUN_B names another one, base;*"])


# -- which runs, and where -------------------------------------------------------------------------


def test_naming_the_recorded_run_as_run_b_changes_nothing(project: Project) -> None:
    outcome = gate(recording(project, LOST), "--kebab-run-b=new")
    outcome.assert_outcomes(passed=3, failed=1)


def test_run_b_without_run_a_judges_the_recorded_run_alone(project: Project) -> None:
    project = recording(project, LOST)
    options = ("--kebab-record=new", "--kebab-run-b=new", "--kebab-gate=hit@1 >= 1")
    outcome = project.pytester.runpytest_inprocess(*LEAN, *options)
    outcome.assert_outcomes(passed=4, failed=1)
    outcome.stdout.fnmatch_lines(["kebab-eval: run new, to be recorded, alone"])


def test_recording_alone_judges_nothing(project: Project) -> None:
    outcome = recording(project, LOST).pytest_without_runs("--kebab-record=new")
    outcome.assert_outcomes(passed=2)
    assert outcome.ret == pytest.ExitCode.OK


def test_the_run_is_recorded_where_run_b_is_looked_for(project: Project) -> None:
    recording(project, LOST)
    project.database.rename(project.path / "base.sqlite")
    outcome = gate(project, "--kebab-db-a=base.sqlite", "--kebab-db-b=kebab.sqlite")
    outcome.assert_outcomes(passed=3, failed=1)
    assert runs(project) == {"new"}


@WORKERS
def test_what_only_the_recorded_run_shows_to_be_wrong_use_is_told_then(
    project: Project, workers: Workers
) -> None:
    project = recording(project, FOUND, RECORDS.replace("v1", "v2"))
    outcome = gate(project, *workers, "--strict-chunker-version")
    outcome.stderr.fnmatch_lines(["ERROR: the chunker versions differ (A v1, B v2)*"])
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    assert runs(project) == {"base", "new"}


# -- the order -------------------------------------------------------------------------------------


def test_queries_come_last_however_plugins_sort(project: Project) -> None:
    recording(project, LOST)
    project.pytester.makeconftest("""
        import pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_collection_modifyitems(items):
            yield
            items.reverse()

        @pytest.hookimpl(trylast=True)
        def pytest_collection_finish(session):
            session.items.reverse()
    """)
    outcome, found = outcomes(project)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert [name.partition("[")[0] for name in found] == ["test_search", "test_search", "query", "query"]
    assert found["query[q-002]"] == "failure"


def test_collecting_only_lists_both_and_records_nothing(project: Project) -> None:
    recording(project, FOUND).pytester.makepyfile(test_zzz="def test_last(): pass")
    outcome = gate(project, "--collect-only", "-q")
    listed = [line for line in outcome.outlines if "::" in line]
    assert listed == [*TESTS, "test_zzz.py::test_last", *QUERIES]
    assert outcome.ret == pytest.ExitCode.OK
    assert runs(project) == {"base"}
    assert project.reports() == []


@WORKERS
def test_what_a_fixture_of_the_session_records_in_the_end_is_judged(
    project: Project, workers: Workers
) -> None:
    tests = """
        import pytest

        @pytest.fixture(scope="session")
        def late(kebab_recorder):
            yield
            for query_id, hits in HITS.items():
                kebab_recorder.record(query_id, hits=hits)

        def test_search(late):
            pass
    """
    outcome = gate(recording(project, LOST, tests), *workers)
    outcome.assert_outcomes(passed=2, failed=1)
    assert runs(project) == {"base", "new"}


# -- tests that ask for the outcome ----------------------------------------------------------------

ASKS = """
    def test_report(kebab_report, kebab_run_b):
        assert kebab_report.run_b == kebab_run_b.run_id == "new"
"""


def test_a_test_that_takes_the_report_runs_after_the_recording(project: Project) -> None:
    outcome, found = outcomes(recording(project, FOUND, ASKS + RECORDS))
    assert outcome.ret == pytest.ExitCode.OK
    assert list(found)[2:] == ["test_report", "query[q-001]", "query[q-002]"]


def test_a_test_that_takes_the_report_fails_on_a_worker(project: Project) -> None:
    outcome, found = outcomes(recording(project, FOUND, RECORDS + ASKS), "-n1")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert found.pop("test_report") == "error"
    assert set(found.values()) == {"passed"}
    outcome.stdout.fnmatch_lines(
        ["run new is still being recorded, and not compared yet; run this test without -n, or *"]
    )


def test_a_test_that_records_cannot_take_the_report(project: Project) -> None:
    tests = RECORDS + ASKS.replace("(kebab_report", "(kebab_recorder, kebab_report")
    outcome, found = outcomes(recording(project, FOUND, tests))
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert found["test_report"] == "error"
    outcome.stdout.fnmatch_lines(
        ["run new is still being recorded, and not compared yet; take kebab_report *"]
    )
