"""`kebab-eval store`: the tables of a database of a server."""

from __future__ import annotations

from typing import Any

import click

from pytest_kebab_eval.cli.group import Subcommand
from pytest_kebab_eval.cli.options import options, sources_from
from pytest_kebab_eval.cli.output import tell
from pytest_kebab_eval.settings import database_of
from pytest_kebab_eval.store import Made, backend_of, shown_address

_SAID = {
    Made.NEW: "the tables are made in {}",
    Made.UPDATED: "the tables of {} are brought up to date",
    Made.AS_THEY_WERE: "{} has its tables already; nothing was changed",
    Made.NOT_NEEDED: "{} is an SQLite file, which gets its tables when a run is recorded; nothing was done",
}


@click.group("store")
def store_group() -> None:
    """Prepare a PostgreSQL database to hold runs."""


@store_group.command("init", cls=Subcommand)
@options("db")
def init(**given: Any) -> None:
    """Make the tables, or bring those of an older version up to date.

    May be called again: where nothing is to be done, nothing is. Tables that it did not make are refused, and
    so are those of a newer version.
    """
    address = database_of(sources_from(**given))
    tell(_SAID[backend_of(address).make_tables()].format(shown_address(address)))
