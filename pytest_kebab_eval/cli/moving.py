"""`kebab-eval export`, `tag` and `prune`: runs that move, get a name, or go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import print_json, print_line, tell, tell_warnings
from pytest_kebab_eval.errors import InputError, SettingsError, StoreError
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import database_of
from pytest_kebab_eval.store import (
    Address,
    backend_of,
    find_run,
    find_runs,
    open_database,
    partial_words,
    shown_address,
)
from pytest_kebab_eval.store.exports import export_runs
from pytest_kebab_eval.store.moving import find_prunable, set_tag
from pytest_kebab_eval.store.sql import Room
from pytest_kebab_eval.text import printable, shown_path

# -- export --------------------------------------------------------------------------------------


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@options("db", "suite")
def export(runs: tuple[str, ...], file: Path, **given: Any) -> None:
    """Write runs to a text file, to commit, compare or import.

    FILE ends in .jsonl or .jsonl.gz. For each run, a line has its row, and each line after that a result
    as it is stored, by query id. Import kebab brings it back byte for byte, and --db takes the file as it
    is. A file that is no export is not replaced.
    """
    sources = sources_from(**given)
    db = database_of(sources)
    with open_database(db) as database:
        found = [run for name in runs for run in find_runs(database, name, sources.read("suite"))]
    run_ids = list(dict.fromkeys(run.run_id for run in found))
    results = export_runs(db, run_ids, file)
    print_line(shown_path(file))
    named = "run" if len(run_ids) == 1 else "runs"
    tell(f"exported {counted(results, 'query')} of {named} {', '.join(map(printable, run_ids))}")


# -- tag -----------------------------------------------------------------------------------------


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--delete", metavar="NAME", help="Forget this tag; the run stays.")
@click.option("--force", is_flag=True, help="Tag the run although it is partial.")
@options("db", "suite")
@json_option
def tag(
    run: str | None, name: str | None, delete: str | None, force: bool, as_json: bool, **given: Any
) -> None:
    """Name a run, such as baseline; without arguments, list tags.

    You move the name on purpose. Wherever a run is named, tag:NAME stands for it. A tagged run is never
    pruned.
    """
    sources = sources_from(**given)
    db = database_of(sources)
    if (run is None) != (name is None) or (run is not None and delete is not None):
        raise SettingsError(
            "kebab-eval tag takes RUN and NAME, or --delete NAME, or nothing to list the tags"
        )
    with open_database(db) as database:
        tags = database.tags()
        found = find_run(database, run, sources.read("suite")) if run is not None else None
    if found is not None and found.recorded.is_partial and not force:
        raise InputError(
            f"run '{printable(found.run_id)}' is partial: {partial_words(found)}; tag a run of all tests, or"
            " say --force"
        )
    if found is not None and name is not None:
        set_tag(db, name, found.run_id)
        before = tags.get(name)
        was = f"; it was {printable(before)}" if before not in (None, found.run_id) else ""
        said = f"tag {printable(name)}: {printable(found.run_id)}{was}"
        _tell_tag(name, found.run_id, said, as_json=as_json)
    elif delete is not None:
        if delete not in tags:
            raise InputError(f"there is no tag '{printable(delete)}' in {shown_address(db)}")
        backend_of(db).tag(delete, None)
        said = f"tag {printable(delete)}: removed; it was {printable(tags[delete])}"
        _tell_tag(delete, None, said, as_json=as_json)
    elif as_json:
        print_json(dict(sorted(tags.items())))
    else:
        width = max(map(len, tags), default=0)
        for tagged, run_id in sorted(tags.items()):
            print_line(f"{printable(tagged):<{width}}  {printable(run_id)}")
        if not tags:
            tell("there are no tags yet; kebab-eval tag RUN NAME sets one")


def _tell_tag(name: str, run_id: str | None, said: str, *, as_json: bool) -> None:
    """Say what a tag names now; for a script, as data."""
    if as_json:
        print_json({name: run_id})
    else:
        tell(said)


# -- prune ---------------------------------------------------------------------------------------


@click.command()
@click.option(
    "--keep",
    metavar="N",
    type=click.IntRange(1),
    required=True,
    help="How many runs of each suite and branch stay.",
)
@click.option(
    "--branch",
    "branches",
    metavar="NAME",
    multiple=True,
    help="Count the runs of this branch for themselves, and those of all others together; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@options("db", "suite")
@json_option
def prune(keep: int, branches: tuple[str, ...], dry_run: bool, as_json: bool, **given: Any) -> None:
    """Remove all but the newest runs of each suite and branch.

    Of all suites, or of one; a tagged run stays. All that is listed is removed, or, if something goes wrong,
    nothing. The room that it took is given back. Chunks are left alone. Partial runs are not counted, and go
    with those of their time; a run whose created_at cannot be read stays.
    """
    sources = sources_from(**given)
    db = database_of(sources)
    found = find_prunable(db, keep, sources.read("suite"), branches)
    tell_warnings(found.warnings)
    if found.to_remove and not dry_run:
        backend_of(db).remove_runs([run.run_id for run in found.to_remove])
    room = None if dry_run else _give_back_room(db)
    if as_json:
        removed, tagged = ([run.run_id for run in runs] for runs in (found.to_remove, found.tagged))
        sizes = {"before": room.before, "after": room.after} if room else None
        print_json({"removed": removed, "tagged": tagged, "dry_run": dry_run, "bytes": sizes})
        return
    for run in found.to_remove:
        print_line(f"{printable(run.run_id)}  {printable(run.created_at)}  {printable(run.suite)}")
    kept = f"; kept, being tagged: {len(found.tagged)}" if found.tagged else ""
    what = "would be removed" if dry_run else "removed"
    tell(f"{counted(len(found.to_remove), 'run')} {what} from {shown_address(db)}{kept}")
    if room and found.to_remove:
        less = _megabytes(room.before - room.after)
        tell(f"it takes {_megabytes(room.after)} now, {less} less than before")


def _give_back_room(db: Address) -> Room | None:
    """What was removed is gone all the same where this fails, so that is a warning."""
    try:
        return backend_of(db).give_back_room()
    except StoreError as error:
        tell_warnings([f"{error}; the next runs fill it, and the next kebab-eval prune tries again"])
        return None


def _megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB"
