"""An option with two values in one place is wrong use: the last would win, and hide what the first names."""

from __future__ import annotations

import pytest

from pytest_kebab_eval.settings import OPTIONS, Option
from tests.integration.conftest import LEAN, Project

ONE_VALUE = [option for option in OPTIONS if not option.is_repeatable]
TWICE = "--kebab-golden{} is given twice, as 'x.yaml' and as 'y.yaml'; give it once"


def call(project: Project, *args: str) -> pytest.RunResult:
    return project.pytester.runpytest_inprocess(*LEAN, *args)


def assert_refused(project: Project, outcome: pytest.RunResult, text: str) -> None:
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR
    outcome.stderr.fnmatch_lines([f"ERROR: {text}"])
    assert project.reports() == []


@pytest.mark.parametrize("option", ONE_VALUE, ids=lambda option: option.name)
def test_two_values_are_wrong_use(project: Project, option: Option) -> None:
    first, second = (option.choices or ("1", "2"))[:2]
    runs = [] if option.name in ("run_a", "run_b", "record") else ["--kebab-run-a=A", "--kebab-run-b=B"]
    outcome = call(project, *runs, f"{option.flag}={first}", option.flag, second)
    assert_refused(
        project, outcome, f"{option.flag} is given twice, as '{first}' and as '{second}'; give it once*"
    )


def test_several_runs_of_a_side_are_one_value(project: Project) -> None:
    outcome = call(project, "--kebab-run-a=A", "--kebab-run-a=A2", "--kebab-run-b=B")
    commas = "give it once, with commas between several"
    assert_refused(project, outcome, f"--kebab-run-a is given twice, as 'A' and as 'A2'; {commas}")


def test_the_same_value_twice_is_one_value(project: Project) -> None:
    assert project.pytest("--kebab-k=3", "--kebab-k", "3", b="A2").ret == 0


def test_gates_may_be_repeated(project: Project) -> None:
    outcome = project.pytest("--kebab-gate=mrr >= 0.1", "--kebab-gate=hit@5 >= 0.1", b="A2")
    outcome.assert_outcomes(passed=4)


def test_two_values_in_a_file_of_arguments_are_wrong_use(project: Project) -> None:
    (project.path / "args.txt").write_text("--kebab-golden=x.yaml\n--kebab-golden=y.yaml\n", "utf-8")
    assert_refused(project, project.pytest("@args.txt"), TWICE.format(""))


# -- pytest's own order: addopts, PYTEST_ADDOPTS, the command line ---------------------------------

X, Y = "--kebab-golden=x.yaml", "--kebab-golden=y.yaml"
REAL = "--kebab-golden=fixtures/golden_queries.yaml"


@pytest.mark.parametrize("place", ["addopts", "PYTEST_ADDOPTS"])
def test_two_values_in_one_place_are_wrong_use(
    project: Project, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if place == "addopts":
        project.pytester.makeini(f"[pytest]\naddopts = {X} {Y}\n")
    else:
        monkeypatch.setenv("PYTEST_ADDOPTS", f"{X} {Y}")
    assert_refused(project, project.pytest(REAL), TWICE.format(f" in {place}"))


@pytest.mark.usefixtures("ini_decides")
@pytest.mark.parametrize(
    ("addopts", "variable", "words"),
    [(X, "", REAL), ("", X, REAL), (X, Y, REAL), (X, REAL, "")],
    ids=["line over addopts", "line over variable", "line over both", "variable over addopts"],
)
def test_a_later_place_wins_over_an_earlier_one(
    project: Project, addopts: str, variable: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.pytester.makeini(f"[pytest]\naddopts = {addopts}\n")
    monkeypatch.setenv("PYTEST_ADDOPTS", variable)
    outcome = project.pytest(*words.split(), b="A2")
    assert outcome.ret == 0
    outcome.assert_outcomes(passed=3)


def test_workers_of_xdist_do_not_take_the_controllers_words_for_their_own(project: Project) -> None:
    project.pytester.makeini(f"[pytest]\naddopts = {X}\n")
    assert project.pytest_subprocess("-n1", REAL, b="A2").ret == 0
