"""What all commands have in common: how errors are shown, and that each is loaded only when it is called."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import refuse_empty, with_command_flags
from pytest_kebab_eval.cli.output import safe_messages, tell
from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.text import shown_path

REGRESSION = 1
WRONG_USE = 2
STOPPED, PIPE_CLOSED = 130, 141  # as a shell says of a program that Ctrl-C, or `| head`, stopped


class Deferred(click.Command):
    """A command that is imported when it is called; until then, its name and summary are enough."""

    def __init__(self, name: str, location: str, summary: str) -> None:
        super().__init__(name, short_help=summary)
        self._location = location

    def load(self) -> click.Command:
        """The command itself, from its location `file:function` in this package."""
        file, _, function = self._location.partition(":")
        command: click.Command = getattr(import_module(f"pytest_kebab_eval.cli.{file}"), function)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command itself, which click then invokes."""
        command = self.load()
        refuse_empty(command, args, parent)
        return command.make_context(info_name, args, parent, **extra)


class Subcommand(click.Command):
    """A command of a command, such as `import trec`."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Check the arguments before click does, as for a `Deferred` command."""
        refuse_empty(self, args, parent)
        return super().make_context(info_name, args, parent, **extra)


class Group(click.Group):
    """Turns errors into one message and an exit code."""

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        """Read the options of `kebab-eval` itself."""
        with safe_messages():
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        _open_closed_streams()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # → and ↓ are not in every encoding
        try:
            with safe_messages():
                return super().invoke(ctx)
        except KebabEvalError as error:
            tell(f"kebab-eval: {with_command_flags(str(error))}")
            ctx.exit(REGRESSION if isinstance(error, StoreError) else WRONG_USE)
        except KeyboardInterrupt:
            tell("kebab-eval: stopped")
            ctx.exit(STOPPED)
        except BrokenPipeError:
            _drop_output()
            ctx.exit(PIPE_CLOSED)
        except OSError as error:
            _drop_output()
            what = shown_path(Path(error.filename)) if error.filename else "cannot write the output"
            tell(f"kebab-eval: {what}: {error.strerror or error}")
            ctx.exit(REGRESSION)


def _open_closed_streams() -> None:
    """Open what was closed (`2>&-`) to nowhere, lest a file that is opened later takes its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  open to the end
            os.set_inheritable(stream.fileno(), True)  # for `demo`, as the others are
            setattr(sys, name, stream)


def _drop_output() -> None:
    """Send the rest to nowhere: at the end Python would try to write it again, and fail again."""
    with contextlib.suppress(OSError, AttributeError):  # it has no file descriptor, or is closed
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
