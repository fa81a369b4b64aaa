"""Checks that pytest read the user's ini file, which an option of ours may have hidden from it.

pytest looks for its ini file before it knows this plugin's options. So it takes the value in
`--kebab-db /data/kebab.sqlite` for a test path, and looks for the ini file there. With
`--kebab-db=/data/kebab.sqlite` it does not.
"""

from __future__ import annotations

import os
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_kebab_eval.files import exists
from pytest_kebab_eval.settings import OPTIONS
from pytest_kebab_eval.text import printable, safe_lines, shown_path

_ALWAYS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
_WITH_SECTION = {"pyproject.toml": "[tool.pytest", "tox.ini": "[pytest]", "setup.cfg": "[tool:pytest]"}


def check_ini_file(config: pytest.Config) -> None:
    """A usage error if pytest took an option's value for a test path and so missed the ini file."""
    params = config.invocation_params
    if hasattr(config, "workerinput") or config.getoption("inifilename") or config.getoption("rootdir"):
        return
    flags = {option.flag for option in OPTIONS if option.is_path}
    words = [*_words(os.environ.get("PYTEST_ADDOPTS", "")), *params.args]
    for flag, value in pairwise(words):
        if flag in flags and exists(params.dir / value):
            _check_ini_file(config, flag, value)


def _check_ini_file(config: pytest.Config, flag: str, value: str) -> None:
    expected = _ini_file(_start(config))
    if expected is not None and expected != config.inipath:
        text = f"pytest took its root directory from the value of {flag} and did not read"
        text += f" {shown_path(expected)}; write {flag}={printable(value)} in one word"
        raise pytest.UsageError(safe_lines(text))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _start(config: pytest.Config) -> Path:
    """Where pytest looks for its ini file: at the test paths it was given, else here."""
    here = Path(config.invocation_params.dir)
    given = [here / str(arg).split("::")[0] for arg in config.option.file_or_dir]
    found = [path if path.is_dir() else path.parent for path in given if exists(path)]
    return Path(os.path.commonpath(found)) if found else here


def _ini_file(directory: Path) -> Path | None:
    """The ini file that pytest would use from here without arguments."""
    for parent in (directory, *directory.parents):
        for name in _ALWAYS:
            if _is_file(parent / name):
                return parent / name
        for name, section in _WITH_SECTION.items():
            path = parent / name
            if _is_file(path) and section in path.read_text(encoding="utf-8", errors="replace"):
                return path
    return None


def _is_file(path: Path) -> bool:
    return exists(path) and path.is_file() and os.access(path, os.R_OK)
