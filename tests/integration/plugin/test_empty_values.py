"""An option, ini value or variable that is given but empty stops pytest; no gate is off by accident.

That every option is so, from every source, is in `tests/unit/settings`; here are pytest's ways to give one.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_kebab_eval.settings import OPTIONS, Option
from tests.builders import dump
from tests.integration.conftest import LEAN, Project

pytestmark = pytest.mark.usefixtures("ini_decides")

RUNS = {"run_a": "--kebab-run-a=A", "run_b": "--kebab-run-b=B"}


def run(project: Project, option: Option, *args: str) -> pytest.RunResult:
    """Call pytest with both runs named, but for the one that is to be empty."""
    runs = [text for name, text in RUNS.items() if name != option.name]
    return project.pytester.runpytest_inprocess(*LEAN, *runs, *args)


def assert_refused(project: Project, outcome: pytest.RunResult, *texts: str) -> None:
    """One sentence, exit code 4, and nothing was judged, stored or written."""
    shown = f"{outcome.stdout.str()}\n{outcome.stderr.str()}"
    assert outcome.ret == pytest.ExitCode.USAGE_ERROR, shown
    assert all(text in shown for text in texts), shown
    assert "Traceback" not in shown
    assert "INTERNALERROR" not in shown
    assert project.reports() == []


WITH_VALUE = [option for option in OPTIONS if not option.is_flag]
WITH_VARIABLE = [option for option in OPTIONS if option.env]
IN_INI = list({option.kind: option for option in OPTIONS if option.has_ini}.values())  # one of each kind
NOT_IN_INI = [option for option in OPTIONS if not option.has_ini]


def each(options: list[Option]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("option", options, ids=lambda option: option.name)


@pytest.fixture(autouse=True)
def _nothing_is_changed(project: Project) -> Iterator[None]:
    before = dump(project.database)
    yield
    assert dump(project.database) == before


@each(WITH_VALUE)
def test_an_empty_option_is_wrong_use(project: Project, option: Option) -> None:
    outcome = run(project, option, f"{option.flag}=")
    # argparse itself refuses what is not among the choices
    text = (
        f"argument {option.flag}: invalid choice" if option.kind == "choice" else f"{option.flag} is empty; "
    )
    assert_refused(project, outcome, text)


@each(WITH_VARIABLE)
def test_an_empty_variable_is_wrong_use(
    project: Project, option: Option, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(str(option.env), " ")
    outcome = run(project, option)
    assert_refused(project, outcome, f"{option.env} is empty; ", "or unset the variable")


@each(IN_INI)
def test_an_empty_ini_value_is_wrong_use(project: Project, option: Option) -> None:
    project.pytester.makeini(f"[pytest]\n{option.ini} =")
    assert_refused(project, run(project, option), f"{option.ini} in tox.ini is empty; ", "or leave it out")


@each(IN_INI)
def test_an_empty_ini_value_on_the_command_line_is_wrong_use(project: Project, option: Option) -> None:
    project.pytester.makeini("[pytest]")
    assert_refused(project, run(project, option, "-o", f"{option.ini}="), f"-o {option.ini} is empty; ")


@each(IN_INI)
def test_an_empty_text_in_toml_is_wrong_use(project: Project, option: Option) -> None:
    value = '["mrr >= 0.1", ""]' if option.kind == "list" else '""'
    project.pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\n{option.ini} = {value}")
    assert_refused(project, run(project, option), f"{option.ini} in pyproject.toml is empty; ")


@pytest.mark.skipif(pytest.version_tuple < (9,), reason="older versions have no TOML table of their own")
@each(IN_INI)
def test_an_empty_text_in_pytests_own_toml_is_wrong_use(project: Project, option: Option) -> None:
    value = "[]" if option.kind == "list" else '""'
    project.pytester.makepyprojecttoml(f"[tool.pytest]\n{option.ini} = {value}")
    assert_refused(project, run(project, option), f"{option.ini} in pyproject.toml is empty; ")


@pytest.mark.parametrize("value", ["", "A"], ids=repr)
@each(NOT_IN_INI)
def test_a_run_in_the_ini_file_is_wrong_use_even_where_none_is_named(
    project: Project, option: Option, value: str
) -> None:
    project.pytester.makeini(f"[pytest]\n{option.ini} = {value}")
    outcome = project.pytest_without_runs()
    assert_refused(project, outcome, f"{option.ini} in tox.ini is not an ini value; give {option.flag}")


@pytest.mark.parametrize("names", [("A",), ("B",), ("A", "B")], ids="".join)
def test_empty_run_variables_do_not_switch_the_gate_off(
    project: Project, names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in names:
        monkeypatch.setenv(f"KEBAB_EVAL_RUN_{name}", "")
    outcome = project.pytest_without_runs()
    assert_refused(project, outcome, f"KEBAB_EVAL_RUN_{names[0]} is empty; name a run, or unset the variable")


def test_an_empty_baseline_does_not_judge_the_candidate_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEBAB_EVAL_RUN_A", "")
    monkeypatch.setenv("KEBAB_EVAL_RUN_B", "B")
    assert_refused(project, project.pytest_without_runs(), "KEBAB_EVAL_RUN_A is empty")


def test_failing_on_nothing_has_to_be_said(project: Project) -> None:
    assert_refused(project, project.pytest("--kebab-fail-on="), "--kebab-fail-on is empty", "or none")
    assert_refused(project, project.pytest("--kebab-fail-on=loss,"), "--kebab-fail-on has an empty entry")
    project.pytest("--kebab-fail-on=none", "--kebab-no-store").assert_outcomes(passed=2)


def test_workers_of_xdist_do_not_mind_what_the_controller_refused(project: Project) -> None:
    assert_refused(project, project.pytest("--kebab-fail-on=", "-n2"), "--kebab-fail-on is empty")


@each([option for option in OPTIONS if option.name in ("record", "suite", "db", "gates")])
def test_a_session_that_records_minds_empty_options_too(project: Project, option: Option) -> None:
    record = () if option.name == "record" else ("--kebab-record=new",)
    outcome = project.pytest_without_runs(*record, f"{option.flag}=")
    assert_refused(project, outcome, f"{option.flag} is empty; ")
