"""What all commands have in common: how errors are told, and what is loaded only when asked for."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.text import shown_path

REGRESSION = 1
WRONG_USE = 2
STOPPED, PIPE_CLOSED = 130, 141  # as a shell says of a program that Ctrl-C, or `| head`, stopped


class Group(click.Group):
    """Turns errors into one message and an exit code; loads the importers when asked."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return sorted([*super().list_commands(ctx), "import"])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name != "import":
            return super().get_command(ctx, cmd_name)
        from pytest_kebab_eval.cli.importing import import_group

        return import_group

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # → and ↓ are not in every encoding
        try:
            return super().invoke(ctx)
        except KebabEvalError as error:
            text = str(error).replace("--kebab-", "--")  # the same options, without their prefix
            click.echo(f"kebab-eval: {text}", err=True)
            ctx.exit(REGRESSION if isinstance(error, StoreError) else WRONG_USE)
        except KeyboardInterrupt:
            click.echo("kebab-eval: stopped", err=True)
            ctx.exit(STOPPED)
        except BrokenPipeError:
            _drop_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            _drop_output()
            what = shown_path(Path(error.filename)) if error.filename else "cannot write the output"
            click.echo(f"kebab-eval: {what}: {error.strerror or error}", err=True)
            ctx.exit(REGRESSION)


def _drop_output() -> None:
    """Nobody can have what is left of it, and trying again at the end would only complain."""
    with contextlib.suppress(OSError, AttributeError):  # where it has no number, or is not there
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
