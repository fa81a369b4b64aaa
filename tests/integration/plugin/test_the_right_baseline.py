"""A run that came from `latest` is the baseline only if it can be: not B, nor newer, nor of its branch."""

from __future__ import annotations

import shutil

import pytest

from tests.builders import Json
from tests.integration.conftest import FOUND, Project, call, execute
from tests.integration.plugin.conftest import FOUND as HITS
from tests.integration.plugin.conftest import RECORDS, gate

ON_MAIN: Json = {"chunker_version": "v1", "pytest_kebab_eval": {"branch": "main"}}
ON_FEATURE: Json = {"chunker_version": "v1", "pytest_kebab_eval": {"branch": "feature"}}
NAME_ANOTHER = (
    "name the baseline by its id, or tag it: kebab-eval tag RUN baseline, and --kebab-run-a tag:baseline"
)


def refusal(project: Project, *args: str, a: str = "latest", b: str = "latest") -> str:
    outcome = project.pytest(*args, a=a, b=b)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    return "\n".join(outcome.errlines)


# -- the same run twice ----------------------------------------------------------------------------


@pytest.mark.parametrize(("a", "b"), [("latest", "latest"), ("A", "A"), ("A,A2", "A2"), ("B", "latest")])
def test_the_same_run_on_both_sides_is_wrong_use(project: Project, a: str, b: str) -> None:
    said = refusal(project, "--kebab-if-no-baseline=pass", a=a, b=b)
    assert (
        "of kebab.sqlite is named for A and for B, and never differs from itself; name another for A" in said
    )
    assert "with --kebab-db-a" in said


def test_the_command_refuses_the_same_run_too(project: Project) -> None:
    called = call("compare", "latest", "latest")
    assert called.code == 2
    assert "the run 'B' of kebab.sqlite is named for A and for B" in called.stderr


def test_latest_twice_with_one_run_is_no_baseline(project: Project) -> None:
    project.make_database(B=FOUND)
    said = refusal(project)
    assert "run A: 'latest' is run B itself, 'B', in kebab.sqlite" in said
    assert "if there is no baseline yet, --kebab-if-no-baseline=pass judges run B alone" in said
    outcome = project.pytest("--kebab-if-no-baseline=pass", a="latest", b="latest")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        ["*warning: there is no baseline 'latest' in kebab.sqlite yet, so run B is judged alone"]
    )


def test_a_run_that_was_copied_is_the_same_run(project: Project) -> None:
    shutil.copy(project.database, project.path / "baseline.sqlite")
    assert "the run 'B' of baseline.sqlite is named" in refusal(project, "--kebab-db-a=baseline.sqlite")


# -- another suite -----------------------------------------------------------------------------------


def of_suite(project: Project, *run_ids: str) -> None:
    """Runs of the suite `other`."""
    for run_id in run_ids:
        execute(project.database, "UPDATE eval_runs SET suite = 'other' WHERE run_id = ?", run_id)


def test_latest_is_looked_for_in_the_suite_of_the_other_side(project: Project) -> None:
    of_suite(project, "A2")
    project.pytest(a="latest~1", b="B")
    assert project.report()["run_a"] == "A"
    of_suite(project, "A")
    project.pytest(a="A", b="latest")
    assert project.report("A2")["run_a"] == "A"


def test_a_run_of_another_suite_is_not_taken_for_the_latest(project: Project) -> None:
    of_suite(project, "B")
    said = refusal(project, a="latest~1", b="B")
    assert "run A: there is no run 'latest~1' in kebab.sqlite (suite 'other')" in said
    said = refusal(project, "--kebab-suite=suite", a="latest", b="B")
    assert f"run A: 'latest' is 'A2', of another suite; {NAME_ANOTHER}" in said


def test_a_run_of_another_suite_that_is_named_is_taken_with_a_warning(project: Project) -> None:
    of_suite(project, "B")
    project.pytest(a="A", b="B").stdout.fnmatch_lines(
        ["*warning: A is of the suite 'suite', and B of 'other'"]
    )


def test_a_recording_in_another_suite_has_no_latest(project: Project) -> None:
    project.pytester.makepyfile(test_it=RECORDS.replace("HITS", repr(HITS)))
    outcome = project.pytest_without_runs("--kebab-record=new", "--kebab-run-a=latest")
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(
        [
            "ERROR: run A: * has no runs of the suite 'default'; it has runs of 'suite', and 'latest' looks*",
        ]
    )
    said = outcome.stderr.str()
    assert "the suite of B; record B in the suite of A, with --kebab-suite, or name A by its id" in said
    assert not (project.path / "ran-q-001").exists()


# -- newer than B ------------------------------------------------------------------------------------


def test_latest_that_is_newer_than_b_is_refused(project: Project) -> None:
    said = refusal(project, a="latest", b="A2")
    assert f"run A: 'latest' is 'B', newer than B; {NAME_ANOTHER}" in said


def test_a_newer_run_that_is_named_is_taken_with_a_warning(project: Project) -> None:
    outcome = project.pytest(a="B", b="A2")
    outcome.stdout.fnmatch_lines(["*warning: A is newer than B; are the two swapped?"])


# -- branches ----------------------------------------------------------------------------------------


def on_branches(project: Project) -> None:
    """`main` has A, `feature` A2 and B."""
    project.make_database(
        A=FOUND, A2=FOUND, B=FOUND, configs={"A": ON_MAIN, "A2": ON_FEATURE, "B": ON_FEATURE}
    )


def test_a_run_before_on_the_same_branch_is_no_baseline(project: Project) -> None:
    on_branches(project)
    said = refusal(project, a="latest~1", b="latest")
    assert (
        "run A: 'latest~1' is 'A2', of B's own branch, 'feature', so that what one push loses would be"
        in said
    )
    assert NAME_ANOTHER in said


def test_a_run_of_the_same_branch_that_is_named_is_taken(project: Project) -> None:
    on_branches(project)
    assert project.pytest(a="A2", b="B").ret == 0


def test_the_latest_run_of_a_branch_is_the_baseline(project: Project) -> None:
    on_branches(project)
    assert project.pytest(a="latest@main", b="B").ret == 0
    assert project.report()["run_a"] == "A"
    assert project.report()["config_changes"] == []


def test_a_branch_without_runs_is_an_error_that_names_those_there_are(project: Project) -> None:
    on_branches(project)
    said = refusal(project, "--kebab-if-no-baseline=pass", a="latest@mian", b="B")
    assert (
        "there is no run 'latest@mian' in kebab.sqlite (suite 'suite'); it has runs of 'feature', 'main'"
        in said
    )


def test_runs_that_know_no_branch_are_of_none(project: Project) -> None:
    assert "its runs do not say of which branch they are" in refusal(project, a="latest@main", b="B")


def test_the_second_push_of_the_first_branch_has_no_baseline_yet(project: Project) -> None:
    project.make_database(one=FOUND, two=FOUND, config=ON_FEATURE)
    outcome = project.pytest("--kebab-if-no-baseline=pass", a="latest@main", b="two")
    assert outcome.ret == 0
    outcome.stdout.fnmatch_lines(
        ["*warning: there is no baseline 'latest@main' in kebab.sqlite yet, so run B is judged alone"]
    )


def test_the_run_that_is_recorded_has_a_branch_before_it_is_stored(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.makepyfile(test_it=RECORDS.replace("HITS", repr(HITS)))
    monkeypatch.setenv("CI_COMMIT_BRANCH", "feature")
    on_branches(project)
    outcome = gate(project)
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines(["ERROR: run A: 'latest' is 'B', of B's own branch, 'feature'*"])
    assert not (project.path / "ran-q-001").exists()
    assert gate(project, a="latest@main").ret == 0
