"""What plugins that show failures in their own way make of ours; the dependency group `compat` has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.builders import Json, result
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


# -- Allure --------------------------------------------------------------------------------------


def allure_results(project: Project) -> dict[str, Json]:
    """Allure's results by the names of the tests."""
    found = [json.loads(path.read_text("utf-8")) for path in (project.path / "allure").glob("*-result.json")]
    return {test["name"]: test for test in found}


@pytest.fixture
def allure(project: Project, run: Run) -> dict[str, Json]:
    pytest.importorskip("allure_pytest")
    run("--alluredir=allure", "--kebab-gate=hit@5 >= 0.9")
    return allure_results(project)


def test_allure_has_status_message_and_text(allure: dict[str, Json]) -> None:
    statuses = {name: test["status"] for name, test in allure.items()}
    assert statuses == {
        "query[one]": "passed",
        "query[two]": "passed",
        "query[lost]": "failed",
        "query[unasked]": "skipped",
        "query[three]": "passed",
        "query[four]": "passed",
        "gate[hit@5 >= 0.9]": "failed",
    }
    details = allure["query[lost]"]["statusDetails"]
    assert details["message"] == f"Failure: {MESSAGE}"
    assert details["trace"].startswith(f"{MESSAGE}\n  query     ?\n")


def test_allure_has_a_test_for_each_query(allure: dict[str, Json]) -> None:
    assert allure["query[lost]"]["fullName"] == "fixtures.golden_queries#query[lost]"
    for identity in ("fullName", "historyId", "testCaseId"):
        assert len({test[identity] for test in allure.values()}) == 7


def test_allure_has_the_properties_as_parameters(allure: dict[str, Json]) -> None:
    def values(name: str) -> dict[str, Any]:
        return {parameter["name"]: parameter["value"] for parameter in allure[name]["parameters"]}

    assert values("query[lost]") == {
        "kebab_kind": "'regression'",
        "kebab_a_hit_rank": "1",
        "kebab_b_hit_rank": "'none'",
        "kebab_checks": "'retrieval'",
        "kebab_cause": "'gone'",
    }
    assert values("gate[hit@5 >= 0.9]")["kebab_value"] == "0.8"  # four of the five queries in run B


def test_a_query_keeps_its_history_in_allure_when_its_outcome_changes(project: Project) -> None:
    pytest.importorskip("allure_pytest")
    ids = []
    for run_b in ("A2", "B"):
        project.pytest_subprocess(*ALONE, "--alluredir=allure", "--clean-alluredir", b=run_b)
        ids.append({name: test["historyId"] for name, test in allure_results(project).items()})
    assert ids[0] == ids[1]


def test_an_id_with_colons_is_one_name_in_allure(project: Project) -> None:
    pytest.importorskip("allure_pytest")
    project.write_golden({"id": "a::b", "expected_chunk_ids": ["c1"]})
    project.make_database(A={"a::b": result("c1")}, B={"a::b": result("c1")})
    project.pytest_subprocess(*ALONE, "--alluredir=allure")
    assert allure_results(project)["query[a::b]"]["fullName"] == "fixtures.golden_queries#query[a::b]"


def test_allure_runs_the_query_of_a_test_plan(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("allure_pytest")
    plan = {"version": "1.0", "tests": [{"selector": "fixtures.golden_queries#query[q-001]"}]}
    (project.path / "plan.json").write_text(json.dumps(plan), "utf-8")
    monkeypatch.setenv("ALLURE_TESTPLAN_PATH", str(project.path / "plan.json"))
    project.pytest_subprocess(*ALONE, "--alluredir=allure")
    assert set(allure_results(project)) == {"query[q-001]"}
