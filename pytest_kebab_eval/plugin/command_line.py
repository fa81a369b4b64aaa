"""What the paths, node ids and `--ignore` of the command line say about the golden file."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_kebab_eval.files import same_file


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
    return _ignored_by(config, golden)


def _named(config: pytest.Config) -> Iterator[tuple[Path, bool]]:
    """Each path on the command line, and whether a test in it is named."""
    for argument in config.option.file_or_dir:
        path, separator, _ = str(argument).partition("::")
        yield config.invocation_params.dir / path, bool(separator)


def _ignored_by(config: pytest.Config, golden: Path) -> str | None:
    """The option that keeps pytest from the golden file, or from a directory that it is in."""
    path = Path(os.path.abspath(golden))  # noqa: PTH100  without resolving links, as pytest does
    paths = [path, *path.parents]
    options = config.known_args_namespace
    here = config.invocation_params.dir
    if any(Path(os.path.abspath(here / ignored)) in paths for ignored in options.ignore or ()):  # noqa: PTH100
        return "--ignore matches the golden file"
    globs = [os.path.abspath(here / glob) for glob in options.ignore_glob or ()]  # noqa: PTH100
    if any(fnmatch.fnmatch(str(ignored), glob) for ignored in paths for glob in globs):
        return "--ignore-glob matches the golden file"
    return None
