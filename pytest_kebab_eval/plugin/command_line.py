"""What the command line says: wrong use, whether items run, the ini file, paths of the golden file."""

from __future__ import annotations

import argparse
import fnmatch
import os
import re
import shlex
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest

from pytest_kebab_eval.errors import KebabEvalError
from pytest_kebab_eval.files import exists, same_file
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import BY_NAME, OPTIONS, Sources
from pytest_kebab_eval.settings.resolving import refuse_two_values
from pytest_kebab_eval.text import brief, pattern, printable, safe_lines, shown_path, without_passwords

# -- wrong use -----------------------------------------------------------------------------------


@contextmanager
def usage_errors() -> Iterator[None]:
    """Raise a `KebabEvalError` from within as a `pytest.UsageError`: exit code 4, without a traceback."""
    try:
        yield
    except KebabEvalError as error:
        raise pytest.UsageError(safe_lines(without_passwords(str(error)))) from None


@contextmanager
def collect_errors() -> Iterator[None]:
    """Raise a usage error from within as the error of the file that is being collected.

    With `--collect-only`, as editors call pytest, the input is first read there, and other tests are listed.
    """
    try:
        yield
    except pytest.UsageError as error:
        raise pytest.Collector.CollectError(safe_lines(str(error))) from None


def refuse_gates_alone(sources: Sources) -> None:
    """A usage error for `--kebab-gate` where no run is judged: it would be a gate that is silently off."""
    with usage_errors():
        gates, recorded = sources.read("gates"), sources.read("record")
    if not gates:  # --kebab-gate=none
        return
    text = "--kebab-gate is given but no run is named; name the run with --kebab-run-b"
    if recorded is not None:
        text = f"--kebab-gate is given but run {brief(recorded)} is only recorded; to judge it, name it with"
        text += " --kebab-run-b, too, or name a baseline with --kebab-run-a"
    raise pytest.UsageError(safe_lines(text))


def refuse_resume_alone(sources: Sources) -> NoReturn:
    """A usage error for `--kebab-resume` where nothing is to be recorded."""
    with usage_errors():
        source = sources.value("resume").source
    raise pytest.UsageError(safe_lines(f"{source} goes on with a run of --kebab-record; name it"))


def refuse_repeated(config: pytest.Config) -> None:
    """A usage error for an option that is given twice in one place, of which pytest would take the last.

    pytest parses `addopts`, then PYTEST_ADDOPTS, then the command line, as one list of words; so that a later
    place wins over an earlier one, each is looked at by itself.
    """
    if hasattr(config, "workerinput"):
        return
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, fromfile_prefix_chars="@")
    for option in OPTIONS:
        if not option.is_repeatable:
            parser.add_argument(option.flag, dest=option.name, action="append", default=[])
    places = {
        "": [os.fspath(word) for word in config.invocation_params.args],
        " in PYTEST_ADDOPTS": shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        " in addopts": config.getini("addopts"),
    }
    with usage_errors():
        for place, words in places.items():
            given, _ = parser.parse_known_args(words)
            for name, values in vars(given).items():
                if values:
                    refuse_two_values(f"{BY_NAME[name].flag}{place}", values, BY_NAME[name])


# -- whether items run ---------------------------------------------------------------------------


def will_run_items(session: pytest.Session) -> bool:
    """Whether pytest's loop gets as far as running items, and not only their setups."""
    is_broken = session.testsfailed and not session.config.option.continue_on_collection_errors
    return not (is_broken or only_looks(session.config))


def only_looks(config: pytest.Config) -> bool:
    """Whether items are collected or set up, and not run."""
    options = config.option
    return options.collectonly or getattr(options, "setuponly", False)  # --setup-plan sets it, too


def selection_of(config: pytest.Config, left_out: int, *, has_golden: bool) -> str:
    """The selection that tests are of which record, as it was given; empty if all of them run.

    A test or file that is named may be the only one that records, which the golden queries tell.
    """
    options = config.option
    expressions = (("-k", options.keyword), ("-m", options.markexpr))
    words = [f"{name} {value}" for name, value in expressions if value and left_out]
    words += [f"--deselect {value}" for value in options.deselect or () if left_out]
    names = (("--lf", "lf"), ("--sw", "stepwise"))  # there are none with -p no:cacheprovider
    words += [name for name, option in names if getattr(options, option, False)]
    words += [arg for arg in config.args if "::" in arg and (has_golden or "[" in arg)]
    if has_golden:
        words += [arg for arg in config.args if arg.endswith(".py")]
        words += [f"--ignore {value}" for value in options.ignore or ()]
        words += [f"--ignore-glob {value}" for value in options.ignore_glob or ()]
    return " ".join(words) or (f"{counted(left_out, 'test')} left out" if left_out else "")


# -- the ini file --------------------------------------------------------------------------------

_INI_FILES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_SECTIONS = {"pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}


def check_ini_file(config: pytest.Config) -> None:
    """A usage error if pytest took an option's value for a test path and so missed the ini file.

    pytest looks for its ini file before it knows this plugin's options. So it takes the value in
    `--kebab-db /data/kebab.sqlite` for a test path, and looks for the ini file there. With
    `--kebab-db=/data/kebab.sqlite` it does not.
    """
    params = config.invocation_params
    if hasattr(config, "workerinput") or config.getoption("inifilename") or config.getoption("rootdir"):
        return
    flags = {option.flag for option in OPTIONS if option.is_path}
    words = [*params.args]
    with suppress(ValueError):
        words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *words]
    for flag, value in pairwise(words):
        if flag in flags and exists(params.dir / value):
            # Where pytest looks for it: at the test paths it was given, else here.
            given = [path for path, _ in _named(config) if exists(path)]
            found = [path if path.is_dir() else path.parent for path in given]
            expected = _ini_file(Path(os.path.commonpath(found)) if found else Path(params.dir))
            if expected is not None and expected != config.inipath:
                text = f"pytest took its root directory from the value of {flag} and did not read"
                text += f" {shown_path(expected)}; write {flag}={printable(value)} in one word"
                raise pytest.UsageError(safe_lines(text))


def _ini_file(directory: Path) -> Path | None:
    """The ini file that pytest would use from here without arguments."""
    for parent in (directory, *directory.parents):
        for name in (*_INI_FILES, *_SECTIONS):
            path = parent / name
            if exists(path) and path.is_file() and os.access(path, os.R_OK):
                section = _SECTIONS.get(name)
                if section is None or section in path.read_text(encoding="utf-8", errors="replace"):
                    return path
    return None


# -- the golden file -----------------------------------------------------------------------------

# How a list of entries begins, after comments and what YAML may put before a document.
_NOTHING = r"\ufeff?(?:\s|#[^\n]*\n|---[^\n]*\n|%[^\n]*\n)*"
_YAML = pattern(_NOTHING + r"(?:-\s|\[)")
_BEGINNINGS = {".yaml": _YAML, ".yml": _YAML, ".json": re.compile(r"\s*\["), ".jsonl": re.compile(r"\s*\{")}
_KEYS = [re.compile(rf"""(?:^|[\s{{,])["']?{key}["']?\s*:""") for key in ("id", "query")]
_HEAD = 65_536  # characters, in which a golden file has its first entry


def named_golden(config: pytest.Config, value: Any) -> Any:
    """The golden file: the value of `--kebab-golden`, else the golden file that is named as a test path."""
    paths = [path for path, _ in _named(config) if _looks_golden(path)]
    first = paths[0] if value is None and paths else config.invocation_params.dir / (value or "")
    other = next((path for path in paths if not same_file(path, first)), None)
    if other is not None and value != "":
        shown = f"{shown_path(first)} and {shown_path(other)}"
        text = f"the command line names two golden files, {shown}; name one, by its path or by --kebab-golden"
        raise pytest.UsageError(safe_lines(text))
    return str(first) if value is None and paths else value


class GoldenPaths:
    """The plugin that says why pytest collects nothing from a golden file, where no run is named."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Add a sentence to the error for each golden file that pytest did not find anything in."""
        try:
            return (yield)
        except pytest.UsageError as error:
            not_found = "\n".join(map(str, error.args))
            named = dict.fromkeys(path for path, _ in _named(self._config))
            advice = "is a golden file; name the runs to judge, --kebab-run-a and --kebab-run-b"
            golden = [path for path in named if str(path) in not_found and _looks_golden(path)]
            lines = [not_found, *(f"{shown_path(path)} {advice}" for path in golden)]
            raise pytest.UsageError(safe_lines("\n".join(lines))) from None


def _looks_golden(path: Path) -> bool:
    """Whether a file is a list of entries with an `id` or a `query`; other plugins have YAML files, too."""
    beginning = _BEGINNINGS.get(path.suffix.lower())
    if beginning is None or not path.is_file():
        return False
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.read(_HEAD)
    except OSError:
        return False
    return bool(beginning.match(head)) and any(key.search(head) for key in _KEYS)


def names_items(config: pytest.Config, golden: Path) -> bool:
    """Whether items of the golden file are named by their node ids."""
    return any(name and same_file(path, golden) for path, name in _named(config))


def reason_left_out(config: pytest.Config, golden: Path) -> str | None:
    """Why the golden file is not to be collected; None if it is."""
    named = list(_named(config))
    if any(same_file(path, golden) for path, _ in named):
        return None
    if named and all(name for _, name in named):
        return "only tests of other files are named"
    option = _ignoring_option(config, _below(golden, [path for path, _ in named]))
    return f"{option} matches the golden file" if option else None


def names_test(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether a test is named by its node id or its file, and not only by a directory that has it."""
    _, _, test = item.nodeid.partition("::")
    return any(
        same_file(path, item.path)
        and (not name or test == name or test.startswith((f"{name}::", f"{name}[")))
        for path, name in _named(config)
    )


def _named(config: pytest.Config) -> Iterator[tuple[Path, str]]:
    """Each path on the command line, and the test in it that is named; empty where all are."""
    for argument in config.option.file_or_dir:
        path, _, name = str(argument).partition("::")
        yield config.invocation_params.dir / path, name


def _below(golden: Path, named: list[Path]) -> list[Path]:
    """The golden file and its directories, up to one that is named: pytest ignores nothing that is named."""
    path = _absolute(golden)
    paths = [path, *path.parents]
    starts = {_absolute(start) for start in named}
    return paths[: next((number for number, parent in enumerate(paths) if parent in starts), len(paths))]


def _ignoring_option(config: pytest.Config, paths: list[Path]) -> str | None:
    """The option of the user's that keeps pytest from any of these."""
    options, here = config.known_args_namespace, config.invocation_params.dir
    if any(_absolute(here / ignored) in paths for ignored in options.ignore or ()):
        return "--ignore"
    globs = [str(_absolute(here / glob)) for glob in options.ignore_glob or ()]
    if any(fnmatch.fnmatch(str(path), glob) for path in paths for glob in globs):
        return "--ignore-glob"
    return None


def _absolute(path: Path) -> Path:
    """Without resolving links, as pytest compares paths."""
    return Path(os.path.abspath(path))  # noqa: PTH100
