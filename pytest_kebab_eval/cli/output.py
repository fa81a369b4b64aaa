"""Data to standard output, the rest to standard error, files whole or not at all; all of it safe to show."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pytest_kebab_eval.cli.options import with_command_flags
from pytest_kebab_eval.errors import StoreError
from pytest_kebab_eval.files import write_whole
from pytest_kebab_eval.limits import YAML_QUERIES
from pytest_kebab_eval.text import safe_json, safe_lines, shown_path, without_passwords

if TYPE_CHECKING:
    from pytest_kebab_eval.golden import GoldenSet
    from pytest_kebab_eval.settings import Sources

REGRESSION = 1  # the exit code of a regression, a failed gate or findings


def print_line(text: str, colour: str | None = None) -> None:
    """Print data for people."""
    click.secho(safe_lines(text), fg=colour)


def print_report(parts: Iterable[str], form: str) -> None:
    """Print a report, which comes in parts; JSON keeps its values."""
    if sys.stdout is not None:  # which it is where it was closed
        sys.stdout.writelines(map(safe_json if form == "json" else safe_lines, parts))
        sys.stdout.flush()


def print_json(data: Any) -> None:
    """Print data for a script; values of our own are printed by their fields."""
    import msgspec

    click.echo(safe_json(json.dumps(msgspec.to_builtins(data), indent=2, ensure_ascii=False)))


def tell(text: str) -> None:
    """Print what is not data."""
    click.echo(safe_lines(without_passwords(text)), err=True)


def tell_warnings(warnings: Iterable[str]) -> None:
    """Print each warning."""
    for warning in warnings:
        tell(f"warning: {warning}")


def tell_size(golden: GoldenSet) -> None:
    """Say that JSONL loads faster, where the golden file is a large one in YAML."""
    if len(golden.queries) >= YAML_QUERIES and golden.path.suffix.lower() not in {".json", ".jsonl"}:
        name = shown_path(golden.path)
        tell(f"{name} would load faster as .jsonl; docs/golden-file.md says how to convert it")


def read_golden(sources: Sources) -> GoldenSet:
    """The golden file that the options name."""
    from pytest_kebab_eval.golden import load_golden_set
    from pytest_kebab_eval.settings import golden_of

    golden = load_golden_set(golden_of(sources))
    tell_size(golden)
    return golden


def tell_errors(errors: Iterable[str]) -> None:
    """Print what had to be left out."""
    for error in errors:
        tell(f"kebab-eval: {with_command_flags(error)}")


def exit_with(code: int) -> NoReturn:
    """End the command with that exit code."""
    click.get_current_context().exit(code)


def fail_if(found: object) -> None:
    """End the command with 1 if there is anything of this."""
    if found:
        exit_with(REGRESSION)


def write_file(path: Path, parts: Iterable[str], *, follow_link: bool = True) -> None:
    """Write a file whole; a `StoreError` if that is not possible."""
    try:
        write_whole(path, parts, follow_link=follow_link)
    except OSError as error:
        raise StoreError(f"cannot write {shown_path(path)}: {error.strerror or error}") from None


@contextmanager
def safe_messages() -> Iterator[None]:
    """What click itself says of wrong use quotes the command line."""
    try:
        yield
    except click.UsageError as error:
        message = without_passwords(error.format_message())
        if error.format_message() == safe_lines(message):
            raise
        raise click.UsageError(safe_lines(message), error.ctx) from None
