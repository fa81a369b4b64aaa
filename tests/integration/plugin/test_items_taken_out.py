"""A failing query fails the session, unless the user's own selection left it out."""

from __future__ import annotations

import pytest

from tests.builders import result
from tests.integration.conftest import Project

DROPS = """
    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if "DROPPED" not in item.name]
"""


def dropping(project: Project, name: str) -> Project:
    project.pytester.makeconftest(DROPS.replace("DROPPED", name))
    return project


def test_a_failing_query_that_a_conftest_took_out_fails_the_session(project: Project) -> None:
    outcome = dropping(project, "q-002").pytest()
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        ["ERROR: 1 item that would fail did not run: query[[]q-002]; a plugin or conftest took it out *"]
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_gate_that_a_conftest_took_out_fails_the_session(project: Project) -> None:
    outcome = dropping(project, "gate").pytest("--kebab-gate=mrr >= 0.9", b="A2")
    assert outcome.ret == pytest.ExitCode.OK  # the gate holds
    outcome = dropping(project, "gate").pytest("--kebab-gate=mrr > 1", b="A2")
    outcome.stdout.fnmatch_lines(["ERROR: 1 item that would fail did not run: gate[[]mrr > 1]; *"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_query_that_passes_may_be_taken_out(project: Project) -> None:
    outcome = dropping(project, "q-001").pytest(b="A2")
    assert outcome.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    "args",
    [
        ("-k", "q-001"),
        ("--deselect=fixtures/golden_queries.yaml::query[q-002]",),
        ("fixtures/golden_queries.yaml::query[q-001]",),
    ],
    ids=["-k", "--deselect", "node id"],
)
def test_the_users_own_selection_may_leave_a_failing_query_out(
    project: Project, args: tuple[str, ...]
) -> None:
    outcome = project.pytest(*args)
    assert outcome.parseoutcomes()["passed"] == 1
    assert outcome.ret == pytest.ExitCode.OK


def test_under_xdist_failing_items_that_a_conftest_took_out_fail_the_session_and_no_others(
    project: Project,
) -> None:
    ids = ["q-kept", "q-out-passes", "q-out-fails", "q-not-by-k", "q-deselected"]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ids))
    a = dict.fromkeys(ids, result("c1"))
    project.make_database(A=a, B={**a, **dict.fromkeys(ids[2:], result("c9"))})
    project.pytester.makeconftest(
        DROPS.replace('"DROPPED" not in item.name', '"-out-" not in item.name and "gate" not in item.name')
    )
    outcome = project.pytest(
        "-n1",
        "--kebab-gate=mrr >= 0.1",
        "--kebab-gate=mrr >= 0.9",
        *("-k", "not by-k"),
        "--deselect=fixtures/golden_queries.yaml::query[q-deselected]",
    )
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.fnmatch_lines(
        ["ERROR: 2 items that would fail did not run: query[[]q-out-fails], gate[[]mrr >= 0.9]; *"]
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_group_of_xdist_does_not_hide_a_query(project: Project) -> None:
    project.pytester.makeconftest("""
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.xdist_group("all"))
    """)
    outcome = project.pytest("-n1", "--dist=loadgroup", "--kebab-fail-on=retrieval")
    outcome.assert_outcomes(passed=1, failed=1)
    outcome.stdout.no_fnmatch_line("*would fail did not run*")


def test_a_session_that_a_test_ends_with_code_0_fails(project: Project) -> None:
    project.pytester.makepyfile("""
        import pytest

        def test_stops():
            pytest.exit("enough", returncode=0)
    """)
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["*nothing was stored or written: the session was stopped"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert project.reports() == []


SWALLOWS = """
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(item):
        return True if "q-002" in item.name else None
"""
SHORTENS = """
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(session):
        session.items[:] = [item for item in session.items if "q-002" not in item.name]
"""
# A worker of xdist is told the numbers of the items that it runs, so there must be as many.
REPLACES = """
    import pytest

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(session):
        session.items[:] = [item for item in session.items if "q-002" not in item.name] * 2
"""
PASSED_OVER = "ERROR: 1 item that would fail did not run: query[[]q-002]; *"


@pytest.mark.parametrize("conftest", [SWALLOWS, SHORTENS, REPLACES], ids=["protocol", "loop", "replaced"])
def test_a_failing_query_that_was_to_run_and_was_passed_over_fails_the_session(
    project: Project, conftest: str
) -> None:
    project.pytester.makeconftest(conftest)
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines([PASSED_OVER])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failing_query_that_workers_of_xdist_passed_over_fails_the_session(project: Project) -> None:
    project.pytester.makeconftest(REPLACES)
    outcome = project.pytest("-n2")
    outcome.stdout.fnmatch_lines([PASSED_OVER])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_workers_of_xdist_that_lack_an_item_they_are_to_run_fail_the_session(project: Project) -> None:
    """xdist itself fails there; in which of its processes first, and so what is printed, is chance."""
    project.pytester.makeconftest(SHORTENS)
    outcome = project.pytest("-n2")
    assert outcome.ret in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERNAL_ERROR}
    outcome.stdout.fnmatch_lines(["*INTERNALERROR*"])


@pytest.mark.parametrize(
    "how", [("-n2",), ("-n1", "--dist=loadfile"), ("-n2", "--dist=each"), ("-n1", "--dist=worksteal")]
)
def test_however_xdist_spreads_the_items_those_that_were_passed_over_fail_the_session(
    project: Project, how: tuple[str, ...]
) -> None:
    project.pytester.makeconftest(SWALLOWS.replace('if "q-002" in', 'if "q-001" not in'))
    outcome = project.pytest(*how, "--kebab-gate=mrr >= 0.9")
    outcome.stdout.fnmatch_lines(
        ["ERROR: 2 items that would fail did not run: query[[]q-002], gate[[]mrr >= 0.9]; *"]
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_queries_that_failed_on_one_of_two_workers_did_run(project: Project) -> None:
    ids = [f"q-{number}" for number in range(8)]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))
    outcome = project.pytest("-n2")
    outcome.assert_outcomes(failed=8)
    outcome.stdout.no_fnmatch_line("*did not run*")


def test_a_query_that_failed_on_a_worker_that_died_later_did_run(project: Project) -> None:
    project.pytester.makeconftest("""
        import os
        import pytest

        def pytest_runtest_logreport(report):
            global has_failed
            has_failed = report.failed or "has_failed" in globals()

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(session):
            if hasattr(session.config, "workerinput") and has_failed:
                os._exit(1)
    """)
    outcome = project.pytest("-n2", "--max-worker-restart=0")
    outcome.stdout.fnmatch_lines(["*node down: Not properly terminated*", "FAILED *q-002*"])
    outcome.stdout.no_fnmatch_line("*did not run*")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_session_that_stops_at_the_first_failure_says_how_much_was_left(project: Project) -> None:
    outcome = project.pytest("-x", "--kebab-gate=mrr > 0")
    outcome.stdout.fnmatch_lines(["not run: 1 item, since the session was stopped"])
    outcome.stdout.no_fnmatch_line("*did not run*")


def test_with_workers_of_xdist_it_says_the_same(project: Project) -> None:
    ids = [f"q-{number:02}" for number in range(40)]
    project.write_golden(*({"id": name, "expected_chunk_ids": ["c1"]} for name in ids))
    project.make_database(A=dict.fromkeys(ids, result("c1")), B=dict.fromkeys(ids, result("c9")))
    project.pytester.makepyfile("def test_own(): pass")
    outcome = project.pytest("-n2", "--maxfail=2")
    counts = outcome.parseoutcomes()
    left = 40 - counts["failed"]  # those that workers ran meanwhile are reported, and counted as such
    assert left
    outcome.stdout.fnmatch_lines([f"not run: {left} items, since the session was stopped"])
    outcome.stdout.no_fnmatch_line("*did not run*")
    assert outcome.ret == pytest.ExitCode.INTERRUPTED
