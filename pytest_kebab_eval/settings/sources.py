"""Where the values of options come from: the command line, the environment, an ini file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_kebab_eval.settings.options import BY_NAME, Option


class Given(NamedTuple):
    """A value as the user wrote it; None if no source has one."""

    value: Any
    source: str  # as an error names it: --kebab-k, KEBAB_EVAL_DB, kebab_k
    directory: Path  # that a relative path starts from


class Sources(NamedTuple):
    """The sources of settings; each has an option's value, or None."""

    command_line: Callable[[Option], Any]
    ini: Callable[[Option], Any] = lambda option: None
    environment: Mapping[str, str] = {}
    invocation_dir: Path = Path()
    root_dir: Path = Path()

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

    def _each(self, option: Option) -> Iterator[Given]:
        yield Given(self.command_line(option), option.flag, self.invocation_dir)
        if option.env:
            yield Given(self.environment.get(option.env) or None, option.env, self.invocation_dir)
        if option.has_ini:
            yield Given(_without_blanks(self.ini(option)), option.ini, self.root_dir)


def _without_blanks(value: Any) -> Any:
    """An ini value without its blank lines; None if nothing is left."""
    if isinstance(value, list):
        value = [line for line in value if str(line).strip()]
    return None if value in ("", []) else value


def names_a_run(sources: Sources) -> bool:
    """Whether there is anything to do at all."""
    return any(sources.value(name).value is not None for name in ("run_a", "run_b"))
