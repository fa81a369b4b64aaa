"""`kebab-eval import`: runs of other systems."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli import Subcommand
from pytest_kebab_eval.cli.options import decorated_with, path_to_file
from pytest_kebab_eval.cli.output import print_line, tell, tell_warnings
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.files import is_stream
from pytest_kebab_eval.importers import Importer, Source, import_run, installed_importers, load_importer
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.store import shown_address, to_address
from pytest_kebab_eval.text import shown_path


class _Importers(click.Group):
    """A subcommand for each importer that is installed; one that cannot be used is named, and left out."""

    @cached_property
    def installed(self) -> dict[str, EntryPoint]:
        return installed_importers()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all that can be used; a shell that completes a word sees no sentence on the others."""
        found = []
        for name, entry in sorted(self.installed.items()):
            try:
                load_importer(entry)
            except InputError as error:
                if not ctx.resilient_parsing:
                    tell(f"kebab-eval: {error}")
            else:
                found.append(name)
        return found

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of that name; the other importers are not loaded for it."""
        if cmd_name not in self.installed:
            return None
        try:
            return _command_of(cmd_name, load_importer(self.installed[cmd_name]))
        except InputError:
            if ctx.resilient_parsing:
                return None
            raise


@click.group("import", cls=_Importers)
def import_() -> None:
    """Bring in a run from another system.

    All of it or, if a line is bad, nothing. Files may be plain, gzip-compressed (.gz) or '-' for standard
    input.
    """


def _command_of(name: str, importer: Importer) -> click.Command:
    allow_missing = click.option(
        "--allow-missing", is_flag=True, help="No warning about ids that only one of the files has."
    )
    joins_files = sum(option.is_file for option in importer.options) > 1

    @click.command(name, cls=Subcommand, help=importer.help)
    @decorated_with(
        [
            click.option(
                f"--{option.name}",
                required=option.required,
                metavar="FILE" if option.is_file else "NAME",
                help=option.help,
            )
            for option in importer.options
        ]
    )
    @click.option(
        "--db",
        required=True,
        metavar="DB",
        help="The database to import into: an SQLite file, made if it is not there, or postgresql://….",
    )
    @click.option("--run-id", metavar="ID", help="The id of the run (default: a new one).")
    @click.option(
        "--suite", metavar="NAME", help="The suite of the run (default: default, or that of the export)."
    )
    @click.option(
        "--golden-out",
        metavar="FILE",
        type=path_to_file,
        help="Write the golden queries there (.yaml, .json or .jsonl).",
    )
    @decorated_with([allow_missing] if joins_files else [])
    @click.option("--overwrite", is_flag=True, help="Replace the golden file if it is there.")
    def command(golden_out: Path | None, overwrite: bool, **given: Any) -> None:
        # A link that leads nowhere is there, too.
        if golden_out and not overwrite and os.path.lexists(golden_out) and not is_stream(golden_out):
            raise InputError(f"{shown_path(golden_out)} is there already; say --overwrite to replace it")
        _import(importer, golden_out, **given)

    return command


def _import(
    importer: Importer,
    golden_out: Path | None,
    *,
    allow_missing: bool = False,
    db: str,
    run_id: str | None,
    suite: str | None,
    **options: str | None,
) -> None:
    texts = {option.name: options[option.name.replace("-", "_")] for option in importer.options}
    files = {option.name for option in importer.options if option.is_file}
    given = {
        name: Source(text) if name in files else text for name, text in texts.items() if text is not None
    }
    address = to_address(db)
    made = import_run(importer, given, db=address, run_id=run_id, suite=suite, golden_out=golden_out)
    print_line(made.run_id)
    if made.warning and not allow_missing:
        tell_warnings([made.warning])
    golden = (
        f", {counted(made.golden or 0, 'golden query')} in {shown_path(golden_out)}" if golden_out else ""
    )
    tell(f"imported {counted(made.queries, 'query')} into {shown_address(address)}{golden}")
