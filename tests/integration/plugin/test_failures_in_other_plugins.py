"""What plugins that show failures in their own way make of ours; the dependency group `compat` has them."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.builders import result
from tests.integration.conftest import GOLDEN, Project
from tests.integration.plugin.conftest import ALONE, several

MESSAGE = "lost c-lost, at rank 1 in A"  # what `several` has fail
WORKERS = [pytest.param((), id="alone"), pytest.param(("-n", "1"), id="workers")]
Run = Callable[..., pytest.RunResult]


@pytest.fixture(params=WORKERS)
def run(project: Project, request: pytest.FixtureRequest) -> Run:
    """Judges `several` with some options, in one process or in workers."""
    if request.param:
        pytest.importorskip("xdist")
    several(project)
    return lambda *options: project.pytest_subprocess(*ALONE, *request.param, *options)


# -- pytest-pretty -------------------------------------------------------------------------------


def test_pytest_pretty_has_message_and_line_in_its_table(run: Run) -> None:
    pytest.importorskip("pytest_pretty")
    lines = run("--tb=no").outlines
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert [GOLDEN, "query[lost]", "9", "9", MESSAGE] in rows


# -- GitHub annotations --------------------------------------------------------------------------


def annotated(outcome: pytest.RunResult) -> list[str]:
    """Those that GitHub would show, whoever wrote them; a progress dot may come first."""
    return re.findall(r"::error .*", "\n".join([*outcome.outlines, *outcome.errlines]))


@pytest.fixture
def actions(monkeypatch: pytest.MonkeyPatch, project: Project) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))


THEIRS = f"::error file={GOLDEN},line=9::query[lost]%0A%0A{MESSAGE}"
OURS = f"::error file={GOLDEN},line=9,title=query lost::{MESSAGE}"


def test_where_another_plugin_annotates_ours_does_not(run: Run, actions: None) -> None:
    pytest.importorskip("pytest_github_actions_annotate_failures")
    assert annotated(run("-p", "no:pretty")) == [THEIRS]


def test_where_it_is_turned_off_ours_annotates(run: Run, actions: None) -> None:
    off = ("-p", "no:pytest_github_actions_annotate_failures")
    assert annotated(run("-p", "no:pretty", *off)) == [OURS]


def test_what_fails_the_session_as_a_whole_is_annotated_once(project: Project, actions: None) -> None:
    pytest.importorskip("pytest_github_actions_annotate_failures")
    ids = [f"q{n}" for n in range(5)]
    found = {query_id: result("184") for query_id in ids}
    project.write_golden(*({"id": name, "expected_chunk_ids": ["doc184"]} for name in ids))
    project.make_database(A=found, B=found)
    (line,) = annotated(project.pytest_subprocess(*ALONE, "-p", "no:pretty"))
    assert "::kebab[session]%0A%0Anothing was measured" in line
