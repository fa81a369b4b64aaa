"""A session that records and judges, where not all tests ran, or not all items were selected."""

from __future__ import annotations

import pytest

from tests.integration.conftest import LEAN, Project
from tests.integration.plugin.conftest import (
    ALONE,
    FOUND,
    LOST,
    QUERIES,
    RECORDS,
    TELLS,
    TESTS,
    WORKERS,
    asked,
    gate,
    outcomes,
    recording,
    runs,
)

Workers = tuple[str, ...]
STOPS = """
    def test_stops(kebab_recorder):
        STOP
"""


def stopping(project: Project, stop: str) -> Project:
    """A project whose last test that records does this."""
    return recording(project, FOUND, "    import os, pytest\n" + RECORDS + STOPS.replace("STOP", stop))


def assert_nothing_recorded(project: Project, outcome: pytest.RunResult, why: str, code: int = 1) -> None:
    said = [
        line for line in outcome.outlines if line.startswith("kebab-eval: ERROR: run new was not recorded:")
    ]
    assert len(said) == 1, outcome.stdout.str()
    assert why in said[0]
    assert outcome.ret == code
    assert runs(project) == {"base"}
    assert project.reports() == []


# -- tests that fail, and sessions that stop -------------------------------------------------------


@WORKERS
def test_a_query_whose_test_raises_is_recorded_with_an_error_and_judged(
    project: Project, workers: Workers
) -> None:
    outcome, found = outcomes(recording(project, {"q-001": ["c1"]}), *workers)
    assert found == {
        "test_search[q-001]": "passed",
        "test_search[q-002]": "failure",
        "query[q-001]": "passed",
        "query[q-002]": "failure",
    }
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    outcome.stdout.fnmatch_lines(["kebab-eval: run new: 2 of 2 *, 1 of them with an error"])


@WORKERS
def test_x_stops_before_anything_is_recorded_or_judged(project: Project, workers: Workers) -> None:
    outcome, found = outcomes(stopping(project, "assert False"), "-x", *workers)
    assert not any(name.startswith("query") for name in found)
    said = [line for line in outcome.outlines if "ERROR: run new was not recorded" in line]
    assert bool(said) is bool(workers)  # alone, the failing test was the last that records
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_x_in_the_judging_leaves_the_recorded_run(project: Project) -> None:
    outcome, found = outcomes(recording(project, {"q-001": ["c9"], "q-002": ["c9"]}), "-x")
    assert list(found)[2:] == ["query[q-001]"]
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert runs(project) == {"base", "new"}


@pytest.mark.parametrize(("stop", "code"), [("raise KeyboardInterrupt", 2), ("pytest.exit('no', 0)", 1)])
def test_a_session_that_is_stopped_records_and_judges_nothing(project: Project, stop: str, code: int) -> None:
    stopping(project, stop)
    options = (*LEAN, "--kebab-record=new", "--kebab-run-a=base", "-v")
    outcome = project.pytester.runpytest_inprocess(*options, no_reraise_ctrlc=True)
    assert_nothing_recorded(project, outcome, "the session did not finish: 1 of 3 tests did not run", code)
    outcome.stdout.no_fnmatch_line("*query[[]*")


# -- a run that is not whole -----------------------------------------------------------------------


@WORKERS
def test_nothing_is_judged_where_nothing_was_recorded(project: Project, workers: Workers) -> None:
    outcome, found = outcomes(recording(project, FOUND, "    def test_other(): pass"), *workers, "-rs")
    assert found == {"test_other": "passed", "query[q-001]": "skipped", "query[q-002]": "skipped"}
    assert_nothing_recorded(project, outcome, "no test recorded anything")
    outcome.stdout.fnmatch_lines(["SKIPPED*run new was not recorded: no test recorded anything"])


def test_nothing_is_judged_where_the_run_cannot_be_stored(project: Project) -> None:
    stopping(project, "kebab_recorder.record('q-001', hits=['c1'])")
    outcome, found = outcomes(project)
    assert found["query[q-001]"] == found["query[q-002]"] == "skipped"
    assert_nothing_recorded(project, outcome, "q-001")


def test_nothing_is_judged_where_a_test_file_could_not_be_collected(project: Project) -> None:
    recording(project, FOUND).pytester.makepyfile(test_bad="import no_such_module")
    outcome, found = outcomes(project, "--continue-on-collection-errors")
    assert found["query[q-001]"] == found["query[q-002]"] == "skipped"
    assert_nothing_recorded(project, outcome, "1 test file could not be collected")


def test_a_test_that_asks_for_the_outcome_is_skipped_too(project: Project) -> None:
    tests = "    def test_report(kebab_report): pass"
    outcome, found = outcomes(recording(project, FOUND, tests))
    assert set(found.values()) == {"skipped"}
    assert_nothing_recorded(project, outcome, "no test recorded anything")


def test_nothing_is_judged_where_a_worker_died(project: Project) -> None:
    stopping(project, "os._exit(1)")
    outcome = gate(project, "-n2", "-rs")
    assert_nothing_recorded(project, outcome, "1 worker of xdist died")
    assert outcome.parseoutcomes()["skipped"] == 2


def test_every_worker_running_every_test_records_nothing(project: Project) -> None:
    outcome = gate(recording(project, FOUND), "-n2", "--dist=each")
    assert_nothing_recorded(project, outcome, "is recorded twice in run new")


# -- selection -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "not (query and q-002)"),
        ("--deselect", QUERIES[1]),
        ("--deselect", QUERIES[1], "-n1"),
    ],
    ids=["k", "deselect", "xdist"],
)
def test_a_query_may_be_left_out_of_the_judging(project: Project, args: tuple[str, ...]) -> None:
    outcome = gate(recording(project, LOST), *args)
    assert outcome.parseoutcomes()["passed"] >= 2
    assert outcome.ret == pytest.ExitCode.OK
    outcome.stdout.fnmatch_lines(["deselected: 1 query, not run as tests; *"])
    assert project.report("new")["per_query"][1]["kind"] == "regression"


@WORKERS
def test_an_item_of_the_golden_file_can_be_named(project: Project, workers: Workers) -> None:
    outcome, found = outcomes(recording(project, LOST), "test_it.py", QUERIES[1], *workers)
    assert list(found)[2:] == ["query[q-002]"]
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_naming_the_tests_that_record_leaves_out_no_query(project: Project) -> None:
    outcome, found = outcomes(recording(project, LOST), *TESTS)
    assert list(found)[2:] == ["query[q-001]", "query[q-002]"]
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_the_golden_file_can_be_named(project: Project) -> None:
    _, found = outcomes(recording(project, LOST), "test_it.py", "fixtures/golden_queries.yaml")
    assert list(found)[2:] == ["query[q-001]", "query[q-002]"]


def test_naming_the_golden_file_alone_records_nothing(project: Project) -> None:
    outcome = gate(recording(project, FOUND), "fixtures")
    assert_nothing_recorded(project, outcome, "no test recorded anything")
    outcome.assert_outcomes(skipped=2)


def test_lf_without_tests_that_record_records_nothing(project: Project) -> None:
    gate(recording(project, LOST), "--kebab-runs-dir=before").assert_outcomes(passed=3, failed=1)
    outcome = gate(recording(project, FOUND), "--lf")
    assert_nothing_recorded(project, outcome, "no test recorded anything")


def test_lf_knows_the_queries_that_failed_beside_workers(project: Project) -> None:
    assert gate(recording(project, LOST), "-n1").ret == pytest.ExitCode.TESTS_FAILED
    outcome = project.pytest("--lf", a="base", b="new")
    outcome.assert_outcomes(failed=1)


def test_a_failing_query_that_a_conftest_took_out_fails_the_session(project: Project) -> None:
    recording(project, LOST).pytester.makeconftest("""
        def pytest_collection_modifyitems(items):
            items[:] = [item for item in items if "query[q-002]" != item.name]
    """)
    outcome = gate(project)
    outcome.stdout.fnmatch_lines(["ERROR: 1 item that would fail did not run: query[[]q-002];*"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize(
    ("mark", "reported"), [("skip", "skipped"), ("xfail", "xfailed"), ("xfail(run=False)", "xfailed")]
)
def test_a_failing_query_that_a_conftest_marks_fails_the_session(
    project: Project, mark: str, reported: str
) -> None:
    recording(project, LOST).pytester.makeconftest(f"""
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                if "query[q-002]" == item.name:
                    item.add_marker(pytest.mark.{mark})
    """)
    outcome = gate(project)
    outcome.stdout.fnmatch_lines(
        [f"ERROR: 1 item that should have failed was reported as {reported}: query[[]q-002]; *"]
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_beside_workers_failing_queries_that_were_taken_out_or_marked_fail_the_session(
    project: Project,
) -> None:
    recording(project, {"q-001": ["c9"], "q-002": ["c9"]}).pytester.makeconftest("""
        import pytest

        def pytest_collection_modifyitems(items):
            items[:] = [item for item in items if "query[q-002]" != item.name]
            for item in items:
                if "query[q-001]" == item.name:
                    item.add_marker(pytest.mark.xfail)
    """)
    outcome = gate(project, "-n1")
    outcome.stdout.fnmatch_lines(
        [
            "ERROR: 1 item that should have failed was reported as xfailed: query[[]q-001]; *",
            "ERROR: 1 item that would fail did not run: query[[]q-002];*",
        ]
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


# -- beside others ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "dist"), [(1, "loadfile"), (1, "loadgroup"), (2, "worksteal")])
def test_however_xdist_spreads_the_tests(project: Project, workers: int, dist: str) -> None:
    outcome = gate(recording(project, LOST), f"-n{workers}", f"--dist={dist}")
    outcome.assert_outcomes(passed=3, failed=1)
    assert asked(project) == ["q-001", "q-002"]


def test_no_workers_is_one_process(project: Project) -> None:
    gate(recording(project, LOST), "-n0").assert_outcomes(passed=3, failed=1)


def test_the_queries_take_the_fast_path(project: Project) -> None:
    recording(project, FOUND).pytester.makeconftest(TELLS)
    printed = gate(project, "-s", *ALONE).stdout.str()
    assert "WAY direct fixtures/golden_queries.yaml::query[q-001] passed" in printed
    assert "WAY standard fixtures/golden_queries.yaml::query[q-002] passed" in printed  # the last one
