"""Data to standard output, the rest to standard error, files whole or not at all."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import click

from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.files import write_whole
from pytest_kebab_eval.text import shown_path


def print_parts(parts: Iterable[str]) -> None:
    """Print data that comes in parts."""
    sys.stdout.writelines(parts)
    sys.stdout.flush()


def print_json(data: Any) -> None:
    """Print data for a script."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def tell(text: str) -> None:
    """Print what is not data."""
    click.echo(text, err=True)


def tell_warnings(warnings: Iterable[str]) -> None:
    """Print each warning."""
    for warning in warnings:
        tell(f"warning: {warning}")


def exit_with(code: int) -> NoReturn:
    """End the command with that exit code."""
    click.get_current_context().exit(code)


def write_file(path: Path, parts: Iterable[str], *, follow_link: bool = True) -> None:
    """Write a file whole; a `StoreError` if that is not possible."""
    try:
        write_whole(path, parts, follow_link=follow_link)
    except OSError as error:
        raise StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}") from None


@contextmanager
def progress(steps: list[str], label: str) -> Iterator[Iterable[str]]:
    """The steps, with a progress bar if there are several and standard error is a terminal."""
    if len(steps) > 1 and sys.stderr.isatty():
        with click.progressbar(steps, label=label, file=sys.stderr) as bar:
            yield bar
    else:
        yield steps
