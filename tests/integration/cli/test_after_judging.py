"""What happens to the database between judging and printing costs only what needs it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.api import store_aggregate
from pytest_kebab_eval.cli import comparing, runs
from pytest_kebab_eval.evaluate import evaluate
from pytest_kebab_eval.store import sqlite
from tests.builders import aggregate_of
from tests.integration.conftest import Project, call, held

EVENTS: dict[str, Callable[[Path], object]] = {
    "removed": os.unlink,
    "truncated": lambda path: os.truncate(path, 5000),
    "replaced by text": lambda path: path.write_text("no database at all"),
}


@pytest.fixture(params=EVENTS)
def _event(request: pytest.FixtureRequest, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database breaks when the comparison has been made."""

    def then_break(*args: Any, **more: Any) -> Any:
        made = evaluate(*args, **more)
        EVENTS[request.param](project.database)
        return made

    monkeypatch.setattr(comparing, "evaluate", then_break)


@pytest.mark.usefixtures("_event")
@pytest.mark.parametrize("more", [[], ["--json"]], ids=" ".join)
def test_compare_needs_the_database_no_more(project: Project, more: list[str]) -> None:
    called = call("compare", "A", "B", *more)
    assert (called.code, called.stderr) == (1, "")
    assert "c2" in called.stdout


@pytest.mark.usefixtures("_event")
def test_what_fails_is_named_without_the_hits_that_explain_it(project: Project) -> None:
    called = call("compare", "A", "B", "-v")
    assert called.code == 1
    assert "FAILED q-002" in called.stdout
    assert "top hits" not in called.stdout
    (said,) = called.stderr.splitlines()
    assert said.startswith("kebab-eval: ")


@pytest.mark.usefixtures("_event")
def test_a_report_that_does_not_need_the_database_is_printed(project: Project) -> None:
    called = call("report", "A", "B", "--format", "json")
    assert (called.code, called.stderr) == (0, "")
    assert "q-002" in called.stdout


@pytest.mark.usefixtures("_event")
def test_a_report_is_printed_without_the_texts_of_what_failed(project: Project) -> None:
    called = call("report", "A", "B", "--format", "md")
    assert called.code == 1
    assert "q-002" in called.stdout
    (texts,) = called.stderr.splitlines()
    assert texts.startswith("kebab-eval: the texts of what failed are not shown: ")


@pytest.mark.usefixtures("_event")
@pytest.mark.parametrize("more", [[], ["-o", "page.html"]], ids=["printed", "written"])
def test_a_page_is_there_without_what_needs_the_database(project: Project, more: list[str]) -> None:
    called = call("report", "A", "B", "--format", "html", *more)
    page = Path("page.html").read_text("utf-8") if more else called.stdout
    assert called.code == 1
    assert "the stored result cannot be read" in page
    assert page.rstrip().endswith("</html>")
    trend, hits = called.stderr.splitlines()
    assert trend.startswith("kebab-eval: report.html has no trend: ")
    assert hits.startswith("kebab-eval: report.html has no hits and answers of some queries: ")
    assert "--kebab-" not in called.stderr


def test_aggregates_that_were_stored_before_an_error_are_named(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "READ_TIMEOUT_S", 0.05)
    monkeypatch.setattr(sqlite, "AGGREGATES_TIMEOUT_S", 0.05)

    def lock_second(run_id: str, *more: Any, **named: Any) -> None:
        begin = "BEGIN IMMEDIATE" if run_id == "A2" else "SELECT 1"
        with held(project.database, begin):
            store_aggregate(run_id, *more, **named)

    monkeypatch.setattr(runs, "store_aggregate", lock_second)
    called = call("aggregate", "A", "A2", "B")
    assert called.code == 1
    assert called.lines[0].startswith("A: ")
    assert "not stored in kebab.sqlite: it is locked by another program" in called.stderr
    assert aggregate_of(project.database, "A")["total_queries"] == 2
    assert aggregate_of(project.database, "B") == {}
