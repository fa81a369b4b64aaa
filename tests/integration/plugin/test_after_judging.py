"""What happens to the database or the disk between judging and reporting costs only what needs it."""

from __future__ import annotations

import errno
import re
from typing import Any

import pytest

from tests.builders import hit, make_database, result
from tests.integration.conftest import Project
from tests.integration.plugin.conftest import printed

OTHER = "replaced by another database"
# What a conftest does in `pytest_kebab_compared`, which is called when the verdicts are known.
EVENTS = {
    "locked": "KEPT.append(sqlite3.connect('kebab.sqlite', isolation_level=None));"
    " KEPT[0].execute('BEGIN EXCLUSIVE')",
    "removed": "os.unlink('kebab.sqlite')",
    "truncated": "os.truncate('kebab.sqlite', 5000)",
    "emptied": "os.truncate('kebab.sqlite', 0)",
    "replaced by text": "Path('kebab.sqlite').write_text('no database at all ' * 99)",
    "replaced by a directory": "os.unlink('kebab.sqlite'); os.mkdir('kebab.sqlite')",
    OTHER: "os.replace('other.sqlite', 'kebab.sqlite')",
    "made a FIFO": "os.unlink('kebab.sqlite'); os.mkfifo('kebab.sqlite')",
}
NOT_STORED = "the aggregates were not stored"
HOOK = """
import os, sqlite3
from pathlib import Path
KEPT = []
def pytest_kebab_compared(report):
    {event}
def pytest_unconfigure():
    for connection in KEPT:
        connection.close()
"""
MODES = [[], ["-vv", "--junitxml=junit.xml"]]

pytestmark = pytest.mark.usefixtures("impatient")


def after_judging(project: Project, event: str) -> Project:
    """A project whose conftest does this when the verdicts are known."""
    project.pytester.makeconftest(HOOK.format(event=event))
    make_database(project.path / "other.sqlite", other={"q-001": result("c1")})
    return project


def errors(text: str) -> list[str]:
    return re.findall(
        r"^ERROR: (.*)", text.replace(f"{NOT_STORED} in kebab.sqlite", NOT_STORED), re.MULTILINE
    )


@pytest.mark.parametrize("mode", MODES, ids=" ".join)
@pytest.mark.parametrize("event", EVENTS)
def test_failures_are_shown_and_all_reports_are_written_without_the_database(
    project: Project, event: str, mode: list[str]
) -> None:
    outcome = after_judging(project, EVENTS[event]).pytest(*mode)
    text = printed(outcome)
    outcome.assert_outcomes(passed=1, failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert "lost c2, at rank 1 in A" in text
    assert "c8" in text  # a hit that run B has instead
    assert project.reports() == ["runs/B/report.html", "runs/B/report.json", "runs/B/report.md"]
    assert [query["kind"] for query in project.report()["per_query"]] == ["draw", "regression"]
    assert [sentence.partition(": ")[0] for sentence in errors(text)] == [
        *([NOT_STORED] if event != OTHER else ["nothing was stored"]),
        *(["report.html has no trend"] if event != OTHER else []),
        "report.html has no hits and answers of some queries",
        *(["the hits of some queries are not shown"] if "-vv" in mode else []),
    ]


@pytest.mark.parametrize("event", ["locked", "truncated"])
def test_the_same_holds_with_workers(project: Project, event: str) -> None:
    outcome = after_judging(project, EVENTS[event]).pytest("-vv", "-n", "1")
    text = printed(outcome)
    outcome.assert_outcomes(passed=1, failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED
    assert "lost c2, at rank 1 in A" in text
    assert len(errors(text)) == 4
    assert len(project.reports()) == 3


@pytest.mark.parametrize("event", EVENTS)
def test_an_error_after_judging_fails_a_session_that_lost_nothing(project: Project, event: str) -> None:
    outcome = after_judging(project, EVENTS[event]).pytest("-q", b="A2")
    assert errors(printed(outcome))
    outcome.assert_outcomes(passed=2, failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("event", EVENTS)
def test_what_is_only_shown_fails_the_session_too_where_nothing_is_stored_or_written(
    project: Project, event: str
) -> None:
    options = ("--kebab-no-store", "--kebab-no-html", "-vv")
    outcome = after_judging(project, EVENTS[event]).pytest(*options, b="A2")
    (said,) = errors(printed(outcome))
    assert said.startswith("the hits of some queries are not shown: ")
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_page_without_the_database_has_the_ranks_and_says_what_is_missing(project: Project) -> None:
    printed(after_judging(project, EVENTS["removed"]).pytest())
    page = (project.path / "runs/B/report.html").read_text("utf-8")
    assert '"gone":"the stored result cannot be read"' in page
    assert re.search(r'"id":"q-001".*?"a":"1","b":"1"', page)


def test_a_locked_database_is_unchanged(project: Project) -> None:
    before = project.database.read_bytes()
    printed(after_judging(project, EVENTS["locked"]).pytest("-vv"))
    assert project.database.read_bytes() == before


@pytest.mark.parametrize(
    ("event", "mode"),
    [("locked", []), ("removed", []), ("truncated", []), ("replaced by text", []), ("removed", ["-n", "1"])],
)
def test_a_fixture_that_reads_a_result_fails_in_one_line(
    project: Project, event: str, mode: list[str]
) -> None:
    project.pytester.makepyfile("def test_it(kebab_query, kebab_result_a, kebab_result_b): pass")
    outcome = after_judging(project, EVENTS[event]).pytest(*mode)
    text = printed(outcome)
    outcome.assert_outcomes(passed=1, failed=1, errors=2)
    assert not re.search(r"^(E|>) |\.py:\d+: ", text, re.MULTILINE)


def test_a_fixture_whose_database_breaks_while_it_is_open_fails_in_one_line(project: Project) -> None:
    project.pytester.makepyfile(
        "from pathlib import Path\n"
        "def test_it(kebab_query, kebab_result_b):\n    Path('kebab.sqlite').write_text('x' * 99999)\n"
    )
    large = result(hit("c2", text="x" * 5_000_000))  # on pages that were not read yet
    found = {"q-001": result("c1"), "q-002": large}
    project.make_database(A=found, B=found)
    outcome = project.pytest()
    assert "it is no SQLite database" in printed(outcome)
    outcome.assert_outcomes(passed=3, errors=1)


# -- the disk ------------------------------------------------------------------------------------

NO_DIRECTORY = "os.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd())"
DISK_EVENTS = {
    "a file in the directory's place": "Path('runs').touch()",
    "a link to nowhere": "os.symlink('/nonexistent/there', 'runs')",
}


@pytest.mark.parametrize("event", DISK_EVENTS)
def test_a_directory_that_cannot_be_made_costs_the_reports_alone(project: Project, event: str) -> None:
    outcome = after_judging(project, DISK_EVENTS[event]).pytest("-vv")
    (said,) = errors(printed(outcome))
    assert said.startswith("cannot write the reports to runs/B: ")
    assert "stored the aggregates of A and B in kebab.sqlite" in printed(outcome)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("name", ["report.md", "report.json", "report.html"])
def test_a_report_that_cannot_be_written_costs_only_itself(project: Project, name: str) -> None:
    (project.path / "runs/A2" / name).mkdir(parents=True)
    outcome = project.pytest(b="A2")
    (said,) = errors(printed(outcome))
    assert said == f"cannot write runs/A2/{name}: Is a directory"
    written = {f"runs/A2/report.{form}" for form in ("md", "html", "json")} - {f"runs/A2/{name}"}
    assert set(project.reports()) == written
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("mode", [[], ["-n", "1"]], ids=" ".join)
def test_a_full_disk_costs_each_report_one_line(
    project: Project, monkeypatch: pytest.MonkeyPatch, mode: list[str]
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pytest_kebab_eval.reports.publishing.write_whole", full)
    outcome = project.pytest(*mode, b="A2")
    names = ("md", "html", "json")
    assert sorted(errors(printed(outcome))) == sorted(
        f"cannot write runs/A2/report.{form}: No space left on device" for form in names
    )
    outcome.assert_outcomes(passed=2, failed=1)
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_hook_that_breaks_a_template_costs_only_the_reports_that_use_it(project: Project) -> None:
    project.pytester.makeconftest(
        "def pytest_kebab_report_context(report, context):\n    context['rows'] = 1\n"
        "    context['changed_rows'] = context['unchanged_rows'] = 1\n"
    )
    outcome = project.pytest(b="A2")
    said = errors(printed(outcome))
    assert "cannot write runs/A2/report.md: TypeError: 'int' object is not iterable" in said
    assert "runs/A2/report.json" in project.reports()
    assert outcome.ret == pytest.ExitCode.TESTS_FAILED


def test_a_step_summary_that_cannot_be_written_costs_only_itself(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path))
    outcome = project.pytest(b="A2")
    (said,) = errors(printed(outcome))
    assert said.startswith("cannot add to the step summary ")
    assert len(project.reports()) == 3


def test_a_working_directory_that_is_gone_costs_nothing_that_does_not_need_it(project: Project) -> None:
    outcome = after_judging(project, NO_DIRECTORY).pytest("-vv")
    text = printed(outcome)
    outcome.assert_outcomes(passed=1, failed=1)
    assert "\n  run A     rank 1\n" in text
    assert "FileNotFoundError" not in text
    assert len(project.reports()) == 3
    assert errors(text) == []
