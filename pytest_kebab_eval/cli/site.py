"""`kebab-eval site`: a page for all runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.options import options, sources_from
from pytest_kebab_eval.cli.output import REGRESSION, exit_with, progress, tell, tell_errors
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import resolve
from pytest_kebab_eval.text import shown_path


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@options(
    *("db", "golden", "suite", "gates", "fail_on", "strict_chunker_version"),
    *("k", "cutoffs", "compare_k", "span_overlap", "mask"),
)
def site(directory: Path, **given: Any) -> None:
    """Write a static site of all runs to a directory, for any file server.

    It has every run of each suite, the trends of all metrics, the report of each run against the one before
    it, the queries that changed most often, and the first bad run of each regression that is still open.
    Called again, it writes only what is new. A directory with other files in it is refused. Exits with 1 if
    something had to be left out.
    """
    from pytest_kebab_eval.reports.site.building import SiteBuilder

    builder = SiteBuilder(directory, resolve(sources_from(run_b="latest", **given)))
    if builder.why_anew:
        tell(f"{builder.why_anew}, so everything is made anew")
    built = builder.build(partial(progress, label="comparing"))
    tell_errors(built.errors)
    runs = f"{counted(built.runs, 'run')} of {counted(built.suites, 'suite')}"
    work = f"{built.made} new or changed, {counted(built.files, 'file')} written"
    tell(f"{shown_path(directory / 'index.html')}: {runs}, {work}")
    if built.errors:
        exit_with(REGRESSION)
