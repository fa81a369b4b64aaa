"""What the paths, node ids and `--ignore` of the command line say about the golden file."""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_kebab_eval.errors import SettingsError
from pytest_kebab_eval.files import same_file
from pytest_kebab_eval.plugin.usage import usage_errors
from pytest_kebab_eval.settings import Sources
from pytest_kebab_eval.text import brief, safe_lines, shown_path

# How a list of entries begins, after comments and what YAML may put before a document.
_NOTHING = r"\ufeff?(?:\s|#[^\n]*\n|---[^\n]*\n|%[^\n]*\n)*"
_YAML = re.compile(_NOTHING + r"(?:-\s|\[)")
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


def refuse_gates_alone(sources: Sources) -> None:
    """A usage error for `--kebab-gate` where no run is judged: it would be a gate that is silently off."""
    with usage_errors():
        gates, recorded = sources.read("gates"), sources.read("record")
        if not gates:  # --kebab-gate=none
            return
        if recorded is None:
            raise SettingsError("--kebab-gate is given but no run is named; name the run with --kebab-run-b")
        raise SettingsError(
            f"--kebab-gate is given but run {brief(recorded)} is only recorded; to judge it, name it with"
            " --kebab-run-b, too, or name a baseline with --kebab-run-a"
        )


class GoldenPaths:
    """Says why pytest collects nothing from a golden file that is named as a test path."""

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
            golden = [path for path in named if str(path) in not_found and _looks_golden(path)]
            raise pytest.UsageError(safe_lines("\n".join([not_found, *map(_unjudged, golden)]))) from None


def _unjudged(path: Path) -> str:
    advice = "name the runs to judge, --kebab-run-a and --kebab-run-b"
    return f"{shown_path(path)} is a golden file; {advice}"


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
    return any(is_item and same_file(path, golden) for path, is_item in _named(config))


def reason_left_out(config: pytest.Config, golden: Path) -> str | None:
    """Why the golden file is not to be collected; None if it is."""
    named = list(_named(config))
    if any(same_file(path, golden) for path, _ in named):
        return None
    if named and all(is_item for _, is_item in named):
        return "only tests of other files are named"
    option = _ignoring_option(config, _below(golden, [path for path, _ in named]))
    return f"{option} matches the golden file" if option else None


def _named(config: pytest.Config) -> Iterator[tuple[Path, bool]]:
    """Each path on the command line, and whether a test in it is named."""
    for argument in config.option.file_or_dir:
        path, separator, _ = str(argument).partition("::")
        yield config.invocation_params.dir / path, bool(separator)


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
