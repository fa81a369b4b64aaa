"""`kebab-eval demo`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from pytest_kebab_eval.cli.bundled import bundled
from pytest_kebab_eval.cli.output import exit_with


@click.command()
@click.argument(
    "directory", metavar="[DIRECTORY]", default="kebab-demo", type=click.Path(file_okay=False, path_type=Path)
)
def demo(directory: Path) -> None:
    """Build the bundled example in a directory and catch its regressions.

    Nothing is replaced: if a file is there that it would write, it stops and writes none.
    """
    command = [sys.executable, str(bundled("quickstart") / "demo.py"), str(directory)]
    exit_with(subprocess.run(command, check=False).returncode)  # noqa: S603  our own script
