"""A guard against a trap of pytest's: its rootdir follows any path on the command line.

pytest looks for its ini file before it knows this plugin's options, and so takes the value in
`--kebab-db /data/kebab.sqlite` for a test path. With `--kebab-db=/data/kebab.sqlite` it does not.
"""

from __future__ import annotations

import os
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_kebab_eval.settings import OPTIONS
from pytest_kebab_eval.text import printable, shown_path

_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_WITH_SECTION = {"pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}


def refuse_a_lost_ini_file(config: pytest.Config) -> None:
    """A usage error if an option's value has cost the user their ini file."""
    params = config.invocation_params
    if hasattr(config, "workerinput") or config.getoption("inifilename") or config.getoption("rootdir"):
        return
    paths = {option.flag for option in OPTIONS if option.is_path}
    words = [*_words(os.environ.get("PYTEST_ADDOPTS", "")), *params.args]
    for flag, value in pairwise(words):
        if flag in paths and (params.dir / value).exists():
            ini_file = _ini_file(_start(config))
            if ini_file is not None and ini_file != config.inipath:
                raise pytest.UsageError(
                    f"pytest took its root directory from the value of {flag} and did not read"
                    f" {shown_path(ini_file)}; write {flag}={printable(value)} in one word"
                )


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _start(config: pytest.Config) -> Path:
    """Where pytest would look for its ini file: at the test paths it was given, else here."""
    here = Path(config.invocation_params.dir)
    given = [here / str(arg).split("::")[0] for arg in config.option.file_or_dir]
    found = [path if path.is_dir() else path.parent for path in given if path.exists()]
    return Path(os.path.commonpath(found)) if found else here


def _ini_file(directory: Path) -> Path | None:
    """The ini file that pytest would use from here without arguments."""
    for parent in (directory, *directory.parents):
        for name in _ALWAYS:
            if (parent / name).is_file():
                return parent / name
        for name, section in _WITH_SECTION.items():
            path = parent / name
            if path.is_file() and section in path.read_text(encoding="utf-8", errors="replace"):
                return path
    return None
