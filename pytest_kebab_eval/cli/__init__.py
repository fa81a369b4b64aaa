"""The command `kebab-eval`: the same logic as the plugin, for scripts and for people.

To add a command: one function in a file of this package, and one line in its group of `_TABLE`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import refuse_empty, with_command_flags
from pytest_kebab_eval.cli.output import REGRESSION, safe_messages, tell
from pytest_kebab_eval.errors import KebabEvalError, StoreError
from pytest_kebab_eval.text import shown_path

WRONG_USE = 2
STOPPED, PIPE_CLOSED = 130, 141  # as a shell says of a program that Ctrl-C, or `| head`, stopped


class Deferred(click.Command):
    """A command that is imported when it is called; until then, its name and summary are enough."""

    def __init__(self, name: str, file: str, summary: str) -> None:
        super().__init__(name, short_help=summary)
        self._file = file

    def load(self) -> click.Command:
        """The command itself: the function of its name in that file; `import_` for `import`."""
        module = import_module(f"pytest_kebab_eval.cli.{self._file}")
        command: click.Command = getattr(module, "import_" if self.name == "import" else f"{self.name}")
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


class CommandGroup(click.Group):
    """Lists commands by what one wants to do; turns errors into one message and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        """In the order of the table."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write each group under its heading, all summaries in one column."""
        width = max(map(len, self.commands))
        for heading, rows in _TABLE.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), summary) for name, _, summary in rows])

    def make_context(self, info_name: str | None, args: list[str], *rest: Any, **extra: Any) -> click.Context:
        with safe_messages():
            return super().make_context(info_name, args, *rest, **extra)

    def invoke(self, ctx: click.Context) -> Any:
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


# -- the commands --------------------------------------------------------------------------------

_TABLE = {  # by what one wants to do: a command, its file, and what it does
    "Start": (
        ("init", "init", "Write a golden file, a recording test and a CI workflow."),
        ("demo", "init", "Build the bundled example and catch its regressions."),
    ),
    "Judge": (
        ("compare", "comparing", "Compare run B, the candidate, with run A, the baseline."),
        ("report", "comparing", "Print the report of B against A."),
        ("review", "reviewing", "Label the hits of B that nobody has judged, where queries fail."),
    ),
    "Runs": (
        ("runs", "runs", "List the stored runs, the newest first."),
        ("tag", "moving", "Name a run, such as baseline; without arguments, list tags."),
        ("prune", "moving", "Remove all but the newest runs of each suite and branch."),
        ("import", "importing", "Bring in a run from another system."),
        (
            "export",
            "moving",
            "Write runs to a text file, to commit, compare or import.",
        ),
        ("aggregate", "runs", "Compute the aggregates of runs again, and store them."),
    ),
    "Golden file": (
        ("validate", "golden", "Check the golden file against the database."),
        ("lock", "golden", "Write the lock file: where the expected chunks are."),
        ("reanchor", "golden", "Replace chunk ids by those of a newer chunker."),
        ("schema", "golden", "Print the JSON schema of a golden file."),
    ),
    "Over time": (
        ("history", "runs", "Show how metrics went over the stored runs, the oldest first."),
        ("blame", "blame", "Say in which run a query was first lost."),
        ("site", "runs", "Write a static page of all runs, DIR/index.html."),
    ),
}
COMMANDS = [Deferred(*row) for rows in _TABLE.values() for row in rows]


@click.group(
    cls=CommandGroup,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
    subcommand_metavar="[COMMAND] [ARGS]...",  # as later versions of click say it
)
@click.version_option(package_name="pytest-kebab-eval")
@click.pass_context
def main(context: click.Context) -> None:
    """Tell whether a change to a retrieval or RAG system made it worse.

    Runs are named by an id, a unique prefix of one, latest, latest~1, latest@BRANCH, commit:HASH, or
    tag:NAME; several of one side with commas, or as commit:HASH*. Data goes to standard output,
    everything else to standard error. Exit codes: 0; 1 for a regression, a failed gate or findings; 2 for
    wrong use; 130 or 141 where it was stopped, or its output closed.
    """
    if Path(*sys.argv[:1]).stem in {"kebab-eval", "pytest-kebab-eval"}:
        # No collection at the end, in which objects of another program might still write something.
        atexit.register(gc.freeze)
    if context.invoked_subcommand is None:
        tell(context.get_help())
        context.exit(WRONG_USE)  # as git and ruff do: a script that lost its command must not pass
