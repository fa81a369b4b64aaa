"""Reports of setups and teardowns are kept where pytest need not look through them for every failure."""

from __future__ import annotations

import pytest

from tests.integration.conftest import Project
from tests.integration.plugin.conftest import ALONE, STANDARD, several

KEPT = """
def pytest_terminal_summary(terminalreporter):
    for heading, reports in terminalreporter.stats.items():
        if any(report.when == "teardown" for report in reports):
            print(f"KEPT {bool(heading)} {str(heading)!r}", sorted(report.location[2] for report in reports))
"""
PRINTS = """
def pytest_runtest_teardown(item): print("torn down", item.name)
"""


@pytest.mark.parametrize("options", [["--junitxml=junit.xml"], ["--durations=3"], ["-n", "1"]], ids=" ".join)
@pytest.mark.parametrize("conftest", ["", STANDARD], ids=["fast", "standard"])
def test_they_have_a_heading_that_the_summary_line_does_not_count(
    project: Project, options: list[str], conftest: str
) -> None:
    if "-n" in options:
        pytest.importorskip("xdist")
    several(project).pytester.makeconftest(KEPT + conftest)
    outcome = project.pytest(*ALONE, *options)
    outcome.stdout.fnmatch_lines(["KEPT False 'kebab-eval: setup and teardown' *query[[]one]*"])
    outcome.stdout.no_fnmatch_line("KEPT False ''*")
    outcome.stdout.fnmatch_lines(["*== 1 failed, 4 passed, 1 skipped in *"])


def test_those_of_other_tests_keep_theirs(project: Project) -> None:
    several(project).pytester.makeconftest(KEPT + STANDARD)
    project.pytester.makepyfile(test_other="def test_other(): pass")
    outcome = project.pytest(*ALONE, "test_other.py", "fixtures")
    outcome.stdout.fnmatch_lines(["KEPT False '' [[]'test_other', 'test_other']"])


def test_what_a_teardown_prints_is_shown_with_the_failure(project: Project) -> None:
    several(project).pytester.makeconftest(PRINTS)
    outcome = project.pytest(*ALONE)
    outcome.stdout.fnmatch_lines(["*Captured stdout teardown*", "torn down query[[]lost]"])


def test_times_are_added_up_from_the_reports_where_they_were(project: Project) -> None:
    several(project).pytester.makeconftest(KEPT + STANDARD)
    outcome = project.pytest(*ALONE, "-o", "console_output_style=times")
    outcome.stdout.fnmatch_lines(["KEPT False '' *"])
