"""The command `kebab-eval`: the same logic as the plugin, for scripts and for people.

To add a command: one function in a file of this package, and one line in `_TABLE`.
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
    """Turns errors into one message and an exit code."""

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

_TABLE = (  # a command, its file, and what it does
    ("aggregate", "runs", "Compute the aggregates of runs anew and store them; says which metrics changed."),
    (
        "bisect",
        "bisecting",
        "Find the commit that lost what run B lost, between the commits of run A and run B.",
    ),
    ("blame", "blame", "Say in which run a query was last found, and in which it was first lost."),
    ("churn", "churn", "Rank queries by how much their results moved from run A to run B, labelled or not."),
    ("compare", "comparing", "Compare run B, the candidate, with run A, the baseline."),
    ("copy", "moving", "Copy runs from one database to another, all of them or none."),
    ("demo", "init", "Build the bundled example in a directory and catch its regressions."),
    ("export", "moving", "Write a run to a text file, which can be committed, compared and imported."),
    ("history", "runs", "Show how metrics went over the stored runs, the oldest first."),
    ("import", "importing", "Bring a run from another system, all of it or, if a line is bad, nothing."),
    ("init", "init", "Write a golden file, a recording test and a CI workflow that work at once."),
    (
        "leaderboard",
        "leaderboard",
        "Compare many runs with run A, the baseline, and sort them, the best first.",
    ),
    ("lock", "golden", "Write the lock file: where the expected chunks are, by the chunker that made them."),
    ("noise", "noise", "Tell from several runs of one configuration how much is noise."),
    ("propose", "proposing", "Turn a log of questions into golden queries, for a person to review."),
    ("prune", "moving", "Remove all but the newest runs of each suite and branch; a tagged run stays."),
    (
        "reanchor",
        "golden",
        "Replace the golden file's chunk ids by those of a newer chunker, and write the lock file.",
    ),
    ("report", "comparing", "Print the report of B against A; exits with 0 whatever it says."),
    ("review", "reviewing", "Label the top hits of B that nobody has judged, of the queries that fail."),
    ("runs", "runs", "List the stored runs, the newest first."),
    ("schema", "golden", "Print the JSON schema of a golden file, by which editors complete and check it."),
    ("site", "runs", "Write a static site of all runs to a directory, for any file server."),
    ("store", "moving", "Prepare a PostgreSQL database to hold runs."),
    (
        "tag",
        "moving",
        "Give a run a name that you move on purpose, such as baseline; without arguments, list the tags.",
    ),
    ("validate", "golden", "Check the golden file against the database; exits with 1 if something is off."),
)
COMMANDS = [Deferred(*row) for row in _TABLE]


@click.group(cls=CommandGroup, commands=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="pytest-kebab-eval")
def main() -> None:
    """Tell whether a change to a retrieval or RAG system made it worse.

    Runs are named by an id, a unique prefix of one, latest, latest~1, latest@BRANCH, commit:HASH, or
    tag:NAME; several of one side with commas, or as commit:HASH*. Data goes to standard output, everything
    else to standard error. Exit codes: 0; 1 for a regression, a failed gate or findings; 2 for wrong use;
    130 or 141 where it was stopped, or its output closed.
    """
    if Path(*sys.argv[:1]).stem in {"kebab-eval", "pytest-kebab-eval"}:
        # No collection at the end, in which objects of another program might still write something.
        atexit.register(gc.freeze)
