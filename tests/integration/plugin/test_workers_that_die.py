"""A worker of xdist that dies while a run is recorded: only what it had not reported is lost, and said."""

from __future__ import annotations

import re

import pytest

from tests.integration.conftest import Project
from tests.integration.plugin.test_recording import found, record, rows
from tests.integration.plugin.test_recording_golden_queries import golden_of, results

pytest.importorskip("xdist")

DIES_THRICE = """
    import os, pytest

    @pytest.fixture
    def index(kebab_query):
        if kebab_query.id == "q2":
            os._exit(3)

    def test_search(kebab_query, kebab_recorder, index):
        if kebab_query.id == "q4":
            os._exit(3)
        kebab_recorder.record(kebab_query.id, hits=["of " + kebab_query.id])
        if kebab_query.id == "q6":
            os._exit(3)
"""
RECORDS = """
    def test_search(kebab_query, kebab_recorder):
        kebab_recorder.record(kebab_query.id, hits=["of " + kebab_query.id])
"""
ALL = {f"q{number}": [f"of q{number}"] for number in range(1, 9)}


def dying(project: Project, source: str, *args: str) -> pytest.RunResult:
    golden_of(project, 8).makepyfile(source)
    return record(project.pytester, "-n", "2", *args)


def test_the_queries_that_they_were_at_are_recorded_as_errored_and_the_rest_is_whole(
    project: Project,
) -> None:
    """One dies in the setup of q2, one in the call of q4, and one when q6 is recorded."""
    outcome = dying(project, DIES_THRICE)
    assert outcome.ret == 1
    outcome.assert_outcomes(passed=5, failed=3)
    said = "kebab-eval: run new: 8 of 8 golden queries recorded in kebab.sqlite, 2 of them with an error"
    outcome.stdout.fnmatch_lines([f"{said}; 3 workers of xdist died (gw*)"])
    assert found(project.pytester) == {**ALL, "q2": [], "q4": []}  # what was recorded of q6 is kept
    stored = results(project.pytester)
    for name in ("q2", "q4"):
        assert re.fullmatch(
            r"worker gw\d of xdist died before this query was recorded", stored[name]["error"]
        )
        assert stored[name]["query"] == f"{name[1:]}?"


def test_a_query_that_another_plugin_gives_to_another_worker_has_its_result(project: Project) -> None:
    """As pytest-rerunfailures does, but for its race: it may not know yet that the test was begun."""
    project.pytester.makeconftest("""
        def pytest_handlecrashitem(crashitem, report, sched):
            report.outcome = "rerun"
            sched.mark_test_pending(crashitem)
    """)
    outcome = dying(
        project,
        """
    import os
    from pathlib import Path

    def test_search(kebab_query, kebab_recorder):
        if kebab_query.id == "q4" and not Path("died").exists():
            Path("died").touch()
            os._exit(3)
        kebab_recorder.record(kebab_query.id, hits=["of " + kebab_query.id])
    """,
    )
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        ["*8 of 8 golden queries recorded in kebab.sqlite; 1 worker of xdist died (gw[01])"]
    )
    assert found(project.pytester) == ALL


def test_a_worker_that_dies_in_a_test_that_records_nothing_takes_no_result_along(project: Project) -> None:
    outcome = dying(
        project,
        """
    import os

    def test_crashes():
        os._exit(3)
    """
        + RECORDS,
    )
    assert outcome.ret == 1
    outcome.stdout.fnmatch_lines(["*8 of 8 golden queries recorded in kebab.sqlite; 1 worker of xdist died*"])
    assert found(project.pytester) == ALL


def test_a_worker_that_dies_after_its_last_test_takes_no_result_along(project: Project) -> None:
    project.pytester.makeconftest("""
        import os
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_sessionfinish(session):
            if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
                os._exit(0)
    """)
    dying(project, RECORDS)
    assert found(project.pytester) == ALL


def test_what_a_worker_would_have_recorded_in_the_end_is_errored(project: Project) -> None:
    """A session-wide fixture asks all questions at once, when the last test is over."""
    outcome = dying(
        project,
        """
    import os, pytest

    @pytest.fixture(scope="session")
    def batch(kebab_recorder):
        asked = []
        yield asked
        if os.environ["PYTEST_XDIST_WORKER"] == "gw1":
            os._exit(3)
        for query_id in asked:
            kebab_recorder.record(query_id, hits=["of " + query_id])

    def test_search(kebab_query, kebab_recorder, batch):
        batch.append(kebab_query.id)
    """,
    )
    assert outcome.ret == 1
    stored = results(project.pytester)
    errored = {query_id for query_id, result in stored.items() if result["error"]}
    assert set(stored) == set(ALL)
    assert 0 < len(errored) < 8
    assert all("worker gw1 of xdist died" in stored[query_id]["error"] for query_id in errored)


def test_results_are_in_no_report_that_other_plugins_see(project: Project) -> None:
    golden_of(project, 2).makepyfile(RECORDS)
    project.pytester.makeconftest("""
        def pytest_runtest_logreport(report):
            assert "of q" not in str(vars(report))
    """)
    outcome = record(project.pytester, "-n", "1", "--junitxml=out.xml", "-o", "junit_family=xunit2")
    assert outcome.ret == 0
    assert "of q1" not in (project.path / "out.xml").read_text()
    assert len(rows(project.pytester, "SELECT * FROM eval_query_results")) == 2
