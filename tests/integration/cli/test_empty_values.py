"""What is given but empty, or twice with two values, is wrong use, for every command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pytest_kebab_eval import SettingsError, compare_runs, compute_aggregate
from pytest_kebab_eval.cli import COMMANDS
from tests.builders import dump
from tests.integration.conftest import Called, Project, call


def commands() -> Iterator[tuple[str, click.Command]]:
    for deferred in COMMANDS:
        command = deferred.load()
        yield deferred.name or "", command
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                sub = command.get_command(context, name)
                assert sub
                yield f"{deferred.name} {name}", sub


def named(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Argument):
        return parameter.human_readable_name.strip("[].")
    return parameter.opts[-1]


COMMANDS_BY_WORDS = dict(commands())


def arguments(command: click.Command, empty: click.Parameter, blank: str) -> list[str]:
    """All arguments of a command, and the one parameter that is blank."""
    given = [blank if each is empty else "x" for each in command.params if isinstance(each, click.Argument)]
    if isinstance(empty, click.Argument):
        return given
    several = [empty.opts[-1], *[blank] * empty.nargs]
    return [*given, *([f"{empty.opts[-1]}={blank}"] if empty.nargs == 1 else several)]


def assert_refused(called: Called, *texts: str) -> None:
    assert called.code == 2, called
    assert all(text in called.stderr for text in texts), called
    assert "Traceback" not in called.stderr
    assert called.stdout == ""


@pytest.fixture(autouse=True)
def _nothing_is_changed(project: Project) -> Iterator[None]:
    before, files = dump(project.database), sorted(project.path.rglob("*"))
    yield
    assert dump(project.database) == before
    assert sorted(project.path.rglob("*")) == files


@pytest.mark.parametrize("words", COMMANDS_BY_WORDS)
@pytest.mark.usefixtures("project")
def test_an_empty_value_is_wrong_use(words: str) -> None:
    command = COMMANDS_BY_WORDS[words]
    for parameter in command.params:
        if not getattr(parameter, "is_flag", False):
            for blank in ("", "  "):
                called = call(*words.split(), *arguments(command, parameter, blank))
                assert_refused(called, f"kebab-eval: {named(parameter)} is empty; ")


def test_two_values_for_one_option_are_wrong_use() -> None:
    for words, command in COMMANDS_BY_WORDS.items():
        given = [*words.split(), *("x" for each in command.params if isinstance(each, click.Argument))]
        for option in command.params:
            if isinstance(option, click.Option) and not option.is_flag and not option.multiple:
                flag = option.opts[-1]
                twice = [flag, *["first"] * option.nargs, flag, *["second"] * option.nargs]
                text = f"kebab-eval: {flag} is given twice, as 'first"
                assert_refused(call(*given, *twice), text, "as 'second")


def test_a_password_is_not_shown_where_two_databases_are_given(project: Project) -> None:
    called = call("runs", "--db=postgresql://u:hunter2@h/d", "--db", str(project.database))
    assert_refused(called, "--db is given twice, as 'postgresql://u:***@h/d' and as")


def test_the_same_value_twice_is_one_value(project: Project) -> None:
    called = call(
        "compare", "A", "A2", f"--db={project.database}", "--db", str(project.database), "--k=5", "--k=5"
    )
    assert called.code == 0, called


@pytest.mark.parametrize("command", ["runs", "history", "validate", "compare"])
@pytest.mark.usefixtures("project")
def test_an_empty_variable_is_wrong_use(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEBAB_EVAL_DB", "")
    runs = ("A", "B") if command == "compare" else ()
    assert_refused(call(command, *runs), "KEBAB_EVAL_DB is empty; name a file, or unset the variable")


@pytest.mark.usefixtures("project")
def test_a_list_with_an_empty_entry_is_wrong_use() -> None:
    called = call("compare", "A", "B", "--fail-on", "loss,,error")
    assert_refused(called, "kebab-eval: --fail-on has an empty entry: 'loss,,error'")


@pytest.mark.parametrize("words", ["compare", "import", "import trec"])
@pytest.mark.usefixtures("project")
def test_help_has_its_short_option_still(words: str) -> None:
    called = call(*words.split(), "-h")
    assert (called.code, "-h, --help" in called.stdout) == (0, True)


@pytest.mark.parametrize("variable", ["KEBAB_EVAL_DB", "KEBAB_EVAL_GOLDEN"])
def test_the_python_functions_mind_an_empty_variable_too(
    project: Project, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.path)
    monkeypatch.setenv(variable, " ")
    with pytest.raises(SettingsError, match=f"{variable} is empty"):
        compare_runs("A", "B")
    with pytest.raises(SettingsError, match=f"{variable} is empty"):
        compute_aggregate("A")


def test_the_python_functions_read_the_variables_where_nothing_is_given(
    project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KEBAB_EVAL_DB", str(project.database))
    monkeypatch.setenv("KEBAB_EVAL_GOLDEN", str(project.golden))
    assert compare_runs("A", "A2").run_b == "A2"
