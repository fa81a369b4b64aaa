"""`kebab-eval export`: a run as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import options, sources_from
from pytest_kebab_eval.cli.output import print_line, tell
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import database_of
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.store.exports.writing import MOST_PARTS, export_run
from pytest_kebab_eval.text import printable, shown_path


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "--partitions",
    metavar="N",
    type=click.IntRange(1, MOST_PARTS),
    default=1,
    help="Write N files, FILE-0001-of-000N, each with a range of the query ids.",
)
@options("db", "suite")
def export(run: str, file: Path, partitions: int, **given: Any) -> None:
    """Write a run to a text file, which can be committed, compared and imported.

    FILE ends in .jsonl, .jsonl.gz or .parquet. The first line has the run's row, each other line a result as
    it is stored, by query id. Import kebab brings it back byte for byte, and --db takes the file as it is. A
    file that is no export is not replaced.
    """
    sources = sources_from(**given)
    db = database_of(sources)
    with open_database(db) as database:
        found = find_run(database, run, sources.read("suite"))
        results = database.result_count(found.run_id)
    for path in export_run(db, found.run_id, file, partitions):
        print_line(shown_path(path))
    tell(f"exported {counted(results, 'query')} of run {printable(found.run_id)}")
