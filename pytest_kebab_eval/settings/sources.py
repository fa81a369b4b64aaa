"""Where the values of options come from: the command line, the environment, an ini file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.settings.options import BY_NAME, Option


class Given(NamedTuple):
    """A value as the user wrote it; None if no source has one."""

    value: Any
    source: str  # as an error names it: --kebab-k, KEBAB_EVAL_DB, kebab_k in pytest.ini
    directory: Path  # that a relative path starts from
    remedy: str = "leave the option out"  # how not to give a value there


class Sources(NamedTuple):
    """The sources of settings; each has an option's value, or None."""

    command_line: Callable[[Option], Any]
    ini: Callable[[Option], Any] = lambda option: None
    environment: Mapping[str, str] = {}
    invocation_dir: Path = Path()
    root_dir: Path = Path()
    ini_source: Callable[[Option], str] = lambda option: option.ini  # as an error names it

    def read(self, name: str) -> Any:
        """An option's value as `Settings` has it, or its default; a `SettingsError` if it makes no sense."""
        from pytest_kebab_eval.settings.kinds import convert

        option, given = BY_NAME[name], self.value(name)
        if given.value is None:
            given = given._replace(value=option.default)
        return None if given.value is None else convert(option, given)

    def value(self, name: str) -> Given:
        """An option's value as it was given: on the command line, else in the environment, else in ini."""
        option = BY_NAME[name]
        nothing = Given(None, option.flag, self.invocation_dir)
        return next((given for given in self._each(option) if given.value is not None), nothing)

    def refuse_empty(self) -> None:
        """A `SettingsError` for an option that is given, but empty, whether or not it is read."""
        from pytest_kebab_eval.settings.kinds import refuse_empty

        for name, option in BY_NAME.items():
            given = self.value(name)
            if given.value is not None:
                refuse_empty(option, given)

    def _each(self, option: Option) -> Iterator[Given]:
        yield Given(self.command_line(option), option.flag, self.invocation_dir)
        if option.env:
            variable = self.environment.get(option.env)
            yield Given(variable, option.env, self.invocation_dir, "unset the variable")
        if option.has_ini:
            yield Given(self.ini(option), self.ini_source(option), self.root_dir, "leave it out")


def is_given(sources: Sources, *names: str) -> bool:
    """Whether any of these options has a value, even an empty one."""
    return any(sources.value(name).value is not None for name in names)
