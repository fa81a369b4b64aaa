"""The options of the command, made from the same table as those of pytest."""

from __future__ import annotations

import contextlib
import copy
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.settings import BY_NAME, OPTIONS, Option, Sources

F = TypeVar("F", bound=Callable[..., Any])

_IN_COMMAND = tuple(option for option in OPTIONS if option.in_command)
_COMMAND_FLAGS = {option.flag: option.command_flag for option in _IN_COMMAND}


def options(*names: str) -> Callable[[F], F]:
    """The options of those names; a command takes their values as `**given`."""
    return decorated_with([_click_option(BY_NAME[name]) for name in names])


def decorated_with(decorators: Sequence[Callable[[Any], Any]]) -> Callable[[F], F]:
    """All of these in one, the first outermost, so that help lists options in this order."""

    def decorate(command: F) -> F:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _click_option(option: Option) -> Callable[[Any], Any]:
    shape: dict[str, Any] = {"metavar": option.metavar, "multiple": option.kind == "list"}
    if option.is_flag:
        shape = {"is_flag": True, "default": None}
    elif option.kind == "choice":
        shape = {"type": click.Choice(option.choices)}
    text = f"{option.description} [env: {option.env}]" if option.env else option.description
    sentence = f"{text[0].upper()}{text[1:]}."
    return click.option(option.command_flag, option.name, help=sentence, **shape)


comparing_options = options(*(option.name for option in _IN_COMMAND))
walking_options = options(  # of what looks for the run or the commit that lost a query
    *("db", "db_a", "db_b", "golden", "suite", "fail_on", "require", "strict_chunker_version"),
    *("k", "compare_k", "span_overlap", "mask"),
)
run_arguments = decorated_with([click.argument("a", metavar="A"), click.argument("b", metavar="B")])
path_to_file = click.Path(dir_okay=False, path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def sources_from(**given: Any) -> Sources:
    """Settings are read from the command line, else from the environment."""

    def on_command_line(option: Option) -> Any:
        value = given.get(option.name)
        return None if value == () else value  # what click has for an option that may be repeated

    return Sources(on_command_line, environment=os.environ)


def refuse_empty(command: click.Command, args: list[str], parent: click.Context | None) -> None:
    """A `SettingsError` for an option or argument that is given, but blank, or twice with two values.

    What else is wrong is click's to say.
    """
    from pytest_kebab_eval.settings.resolving import refuse_two_values

    with contextlib.suppress(click.UsageError):
        for parameter, values in _given_values(command, args, parent):
            option = BY_NAME.get(parameter.name or "")
            if any(isinstance(text, str) and not text.strip() for value in values for text in value):
                if isinstance(parameter, click.Argument):
                    raise SettingsError(
                        f"{parameter.human_readable_name.strip('[].')} is empty; give a value"
                    )
                advice = option.advice if option else "give a value"
                remedy = "" if parameter.required else ", or leave the option out"
                raise SettingsError(f"{parameter.opts[-1]} is empty; {advice}{remedy}")
            if isinstance(parameter, click.Option) and not parameter.multiple:
                refuse_two_values(parameter.opts[-1], (" ".join(map(str, value)) for value in values), option)


def _given_values(
    command: click.Command, args: list[str], parent: click.Context | None
) -> Iterator[tuple[click.Parameter, list[tuple[Any, ...]]]]:
    """Each parameter that is given, with all of its values, where click itself keeps an option's last."""
    every = copy.copy(command)
    every.params = [copy.copy(parameter) for parameter in command.params]
    for parameter in every.params:
        parameter.multiple = isinstance(parameter, click.Option)
    found, _, _ = every.make_parser(click.Context(every, parent)).parse_args(list(args))
    for parameter in command.params:
        values = found.get(parameter.name or "")
        if values is not None:
            repeated = values if isinstance(parameter, click.Option) else [values]
            yield parameter, [value if isinstance(value, tuple) else (value,) for value in repeated]


def with_command_flags(text: str) -> str:
    """The text with the command's options in place of pytest's: `--db` for `--kebab-db`."""
    return re.sub(r"--kebab-[a-z-]+", lambda flag: _COMMAND_FLAGS.get(flag[0], flag[0]), text)
