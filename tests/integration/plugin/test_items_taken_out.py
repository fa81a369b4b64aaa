"""A failing query fails the session, unless the user's own selection left it out."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Project

DROPS = """
    import pytest

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(items):
        items[:] = [item for item in items if "DROPPED" not in item.name]
"""
WORKERS = pytest.mark.parametrize("workers", [(), ("-n2",)], ids=["alone", "xdist"])


def dropping(project: Project, name: str) -> Project:
    project.pytester.makeconftest(DROPS.replace("DROPPED", name))
    return project


@WORKERS
def test_a_failing_query_that_a_conftest_took_out_fails_the_session(
    project: Project, workers: tuple[str, ...]
) -> None:
    outcome = dropping(project, "q-002").pytest(*workers)
    outcome.assert_outcomes(passed=1)
    outcome.stdout.fnmatch_lines(
        ["ERROR: 1 item that would fail did not run: query[[]q-002]; a plugin or conftest took it out *"]
    )
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@WORKERS
def test_a_failing_gate_that_a_conftest_took_out_fails_the_session(
    project: Project, workers: tuple[str, ...]
) -> None:
    outcome = dropping(project, "gate").pytest(*workers, "--kebab-gate=mrr >= 0.9", b="A2", a="A2")
    assert outcome.ret == pytest.ExitCode.OK  # the gate holds
    outcome = dropping(project, "gate").pytest(*workers, "--kebab-gate=mrr <= 0.9", b="A2", a="A2")
    outcome.stdout.fnmatch_lines(["ERROR: 1 item that would fail did not run: gate[[]mrr <= 0.9]; *"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@WORKERS
def test_a_query_that_passes_may_be_taken_out(project: Project, workers: tuple[str, ...]) -> None:
    outcome = dropping(project, "q-001").pytest(*workers, b="A2")
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
@WORKERS
def test_the_users_own_selection_may_leave_a_failing_query_out(
    project: Project, args: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    outcome = project.pytest(*args, *workers)
    assert outcome.parseoutcomes()["passed"] == 1
    assert outcome.ret == pytest.ExitCode.OK


def test_a_group_of_xdist_does_not_hide_a_query(project: Project) -> None:
    project.pytester.makeconftest("""
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.xdist_group("all"))
    """)
    outcome = project.pytest("-n2", "--dist=loadgroup", "--kebab-fail-on=retrieval")
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
SKIPS = """
    import pytest

    def pytest_runtest_setup(item):
        if "q-002" in item.name:
            pytest.skip("not today")
"""


@pytest.mark.parametrize("conftest", [SWALLOWS, SHORTENS, SKIPS], ids=["protocol", "loop", "setup"])
def test_a_failing_query_that_was_to_run_and_was_passed_over_fails_the_session(
    project: Project, conftest: str
) -> None:
    project.pytester.makeconftest(conftest)
    outcome = project.pytest()
    outcome.stdout.fnmatch_lines(["ERROR: 1 item that would fail did not run: query[[]q-002]; *"])
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_session_that_stops_at_the_first_failure_says_how_much_was_left(project: Project) -> None:
    outcome = project.pytest("-x", "--kebab-gate=mrr >= 0")
    outcome.stdout.fnmatch_lines(["not run: 1 item, since the session was stopped"])
    outcome.stdout.no_fnmatch_line("*did not run*")
