"""Every option, written once, and where its value comes from: command line, environment or ini file.

pytest's options and ini values, the options of `kebab-eval`, the values in `Settings` and the table in the
docs are made from `OPTIONS`. To add an option: one entry here, and one field in `Settings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_kebab_eval.comparing.checks import DEFAULT_CHECKS, OTHER_CHECKS, WORSE

_RUN_NAMES = (
    "a run id, a unique prefix of one, latest, latest~1, latest@<branch>, commit:<hash prefix>, or"
    " tag:<name>; several, with commas, are replicates"
)
DEFAULT_FAIL_ON = ",".join((*DEFAULT_CHECKS, WORSE))
_FAIL_ON = (*DEFAULT_CHECKS, WORSE, *OTHER_CHECKS, "loss>N")


Kind = Literal[
    "flag",
    "off flag",  # turns off what is on without it; `html` is given as `--kebab-no-html`
    "text",
    "path",
    "database",  # a path, or the address of a server
    "whole number",  # from 1 on
    "share",  # above 0 and up to 1
    "choice",  # one of the choices
    "words",  # some of the choices, separated by commas, or none; of `loss>N`, N is a number
    "list",  # texts, by repeating the option; in ini, one a line; or none
]
_METAVARS: dict[Kind, str] = {
    "database": "DB",
    "whole number": "K",
    "share": "SHARE",
    "words": "LIST",
}
_EXAMPLES: dict[Kind, str] = {
    "path": "name a file",
    "database": "name a file",
    "flag": "write true or false",
    "off flag": "write true or false",
}


class Option(NamedTuple):
    """One setting, under all its names; the option `--kebab-run-a` is `run_a` in `Settings`."""

    name: str
    kind: Kind
    help: str
    default: Any = None  # as a user would write it
    default_text: str | None = None  # describes a default that is found at run time
    value_name: str | None = None  # in the help, where its kind has none
    choices: tuple[str, ...] = ()
    env: str | None = None
    has_ini: bool = True
    in_command: bool = True  # whether commands that compare have it, too
    flag_name: str | None = None  # where it is not the name
    more_flags: tuple[str, ...] = ()
    example: str | None = None  # what to give instead of an empty value, where its kind says too little

    @property
    def flag(self) -> str:
        return f"--kebab-{self.command_flag[2:]}"

    @property
    def command_flag(self) -> str:
        """The option of `kebab-eval`."""
        return f"--{(self.flag_name or self._written).replace('_', '-')}"

    @property
    def ini(self) -> str:
        """The ini value, which is also where pytest keeps the option's value."""
        return f"kebab_{self._written}"

    @property
    def _written(self) -> str:
        return f"no_{self.name}" if self.kind == "off flag" else self.name

    @property
    def metavar(self) -> str | None:
        """What the help calls the value."""
        return self.value_name or _METAVARS.get(self.kind)

    @property
    def is_flag(self) -> bool:
        """Whether it is given without a value."""
        return self.kind in ("flag", "off flag")

    @property
    def is_path(self) -> bool:
        """Whether its value is, or may be, a path."""
        return self.kind in ("path", "database")

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be given more than once, without the last value hiding the others."""
        return self.is_flag or self.kind == "list"

    @property
    def advice(self) -> str:
        """What to give instead of an empty value."""
        if self.choices:
            none = " or none" if self.kind == "words" else ""
            return f"give {'some' if none else 'one'} of {', '.join(self.choices)}{none}"
        return self.example or _EXAMPLES.get(self.kind, "give a value")

    @property
    def description(self) -> str:
        """The help, with the default."""
        default = self.default_text or self.default
        return f"{self.help} (default: {default})" if default else self.help


def _run_option(name: str, what: str, env: str) -> Option:
    return Option(
        name,
        "text",
        f"{what}: {_RUN_NAMES}",
        value_name="RUN",
        env=env,
        has_ini=False,
        example="name a run",
        in_command=False,
    )


OPTIONS = (
    _run_option("run_a", "the baseline", "KEBAB_EVAL_RUN_A"),
    _run_option("run_b", "the candidate", "KEBAB_EVAL_RUN_B"),
    Option(
        "db",
        "database",
        "the database that holds the runs: an SQLite file, or postgresql://…",
        default_text="kebab.sqlite here, else kebab's own",
        env="KEBAB_EVAL_DB",
    ),
    Option("db_a", "database", "the database of run A, where it is another"),
    Option("db_b", "database", "the database of run B, where it is another"),
    Option(
        "golden",
        "path",
        "the golden queries: YAML, JSON or JSONL",
        default="fixtures/golden_queries.yaml",
        value_name="FILE",
        env="KEBAB_EVAL_GOLDEN",
    ),
    Option("suite", "text", "the suite that latest and commit: look in", value_name="NAME"),
    Option(
        "gates",
        "list",
        "a condition on a metric, such as 'hit@5 >= 0.80' or 'delta mrr >= -5%' (repeatable)",
        default=(),
        value_name="GATE",
        flag_name="gate",
        example="give a condition such as 'hit@5 >= 0.80', or none",
    ),
    Option(
        "if_no_baseline",
        "choice",
        "what to do where run A is not there yet: fail, or pass, judging run B alone",
        default="fail",
        choices=("fail", "pass"),
    ),
    Option(
        "runs_dir",
        "path",
        "where the reports go",
        default="runs",
        value_name="DIR",
        example="name a directory",
        in_command=False,
    ),
    Option(
        "fail_on",
        "words",
        f"what a query fails on, of {', '.join(_FAIL_ON)} (worse: where a metric of the summary is);"
        " +coverage for the defaults and coverage, -worse for the defaults without it; none for gates alone",
        default=DEFAULT_FAIL_ON,
        choices=_FAIL_ON,
    ),
    Option(
        "require",
        "choice",
        "where the golden file does not say: any target is enough, or B must find all targets that A found",
        default="any",
        choices=("any", "all"),
    ),
    Option(
        "alpha",
        "share",
        "how often a session may fail by noise alone, where several runs a side show how much there is",
        default=0.05,
    ),
    Option(
        "strict_chunker_version",
        "flag",
        "refuse to compare runs of different chunker versions",
        default=False,
        more_flags=("--strict-chunker-version",),
    ),
    Option(
        "allow_document_matching",
        "flag",
        "compare across chunkers also where most passages are known by their document alone",
        default=False,
    ),
    Option("k", "whole number", "the cutoff of the @k metrics for queries without their own", default=5),
    Option("compare_k", "whole number", "how deep the comparison looks for a correct hit", default=10),
    Option(
        "span_overlap",
        "share",
        "the part of the shorter span or text that must be shared by another chunker's",
        default=0.5,
    ),
    Option(
        "record",
        "text",
        "record what the tests give to the fixture kebab_recorder as a run of this id;"
        " with --kebab-run-a, judge it when they have run",
        value_name="RUN_ID",
        has_ini=False,
        example="give the new run an id",
        in_command=False,
    ),
    Option(
        "resume",
        "flag",
        "go on with a run of --kebab-record that was not finished; queries that are recorded are skipped",
        default=False,
        has_ini=False,
        in_command=False,
    ),
    Option("html", "off flag", "do not write report.html", default=False, in_command=False),
    Option("store", "off flag", "do not write aggregate_json", default=False, in_command=False),
    Option(
        "mask",
        "list",
        "a key of the runs' configurations to mask in all output, such as '*.host' (repeatable);"
        " what looks like a secret always is",
        default=(),
        value_name="PATTERN",
        example="give a pattern for keys such as '*.host'",
    ),
    Option(
        "snapshot",
        "choice",
        "compare the report with its syrupy snapshot: auto (if there is one), require, off",
        default="auto",
        choices=("auto", "require", "off"),
        in_command=False,
    ),
)
BY_NAME = {option.name: option for option in OPTIONS}


# -- where values come from -----------------------------------------------------------------------


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
        from pytest_kebab_eval.settings.resolving import convert

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
        from pytest_kebab_eval.settings.resolving import refuse_empty

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
