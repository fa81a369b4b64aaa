"""`kebab-eval validate` and `lock`: the golden file and the database."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_kebab_eval.cli.group import REGRESSION
from pytest_kebab_eval.cli.options import json_option, options, sources_from
from pytest_kebab_eval.cli.output import exit_with, print_json, print_line, tell, tell_size, write_file
from pytest_kebab_eval.errors import InputError
from pytest_kebab_eval.golden import GoldenSet, load_golden_set, lock_path
from pytest_kebab_eval.golden.lock import render_lock
from pytest_kebab_eval.reports.wording import counted
from pytest_kebab_eval.settings import Sources, database_of, golden_of
from pytest_kebab_eval.store import find_run, open_database
from pytest_kebab_eval.text import printable, shown_path
from pytest_kebab_eval.upkeep import validation
from pytest_kebab_eval.upkeep.locking import Locking, make_lock


@click.command()
@options("db", "golden")
@click.option("--golden-only", is_flag=True, help="Check the file alone: no database is needed.")
@json_option
def validate(golden_only: bool, as_json: bool, **given: Any) -> None:
    """Check the golden file against the database; exits with 1 if something is off."""
    sources = sources_from(**given)
    golden = load_golden_set(golden_of(sources))
    tell_size(golden)
    findings = [] if golden_only else _find(golden, sources)
    if as_json:
        print_json([_as_json(finding) for finding in findings])
    else:
        _print_findings(golden.path, findings)
    tell(f"{counted(len(golden.queries), 'query')}, {counted(len(findings), 'finding')}")
    if findings:
        exit_with(REGRESSION)


def _find(golden: GoldenSet, sources: Sources) -> list[validation.Finding]:
    with open_database(database_of(sources)) as database:
        if not database.corpus.has_chunks:
            tell("the database has no chunks, so expected ids are looked for among the stored hits alone")
        return validation.validate(golden, database)


def _print_findings(path: Path, findings: list[validation.Finding]) -> None:
    name = shown_path(path)
    for finding, sentence in validation.summed_up(findings):
        print_line(f"{name}:{finding.line}: {sentence}" if finding else sentence)


def _as_json(finding: validation.Finding) -> dict[str, Any]:
    return {
        "query_id": finding.query_id,
        "line": finding.line,
        "text": finding.text,
        "kind": finding.kind.name.lower(),
    }


@click.command()
@options("db", "golden")
@click.option("--run", metavar="RUN", help="Take what the database's chunks lack from the hits of this run.")
@click.option("--force", is_flag=True, help="Replace a lock file of another chunker.")
@click.option("--no-texts", is_flag=True, help="Store hashes of the chunks' texts, not the texts.")
def lock(run: str | None, force: bool, no_texts: bool, **given: Any) -> None:
    """Write the lock file: where the expected chunks are, by the chunker that made them.

    It has their texts, too. With it the runs of other chunkers can still be judged when the index no longer
    has these chunks. Commit it beside the golden file, and lock again when the golden file changes.
    """
    sources = sources_from(**given)
    golden = load_golden_set(golden_of(sources))
    tell_size(golden)
    with open_database(database_of(sources)) as database:
        made = make_lock(golden, database, find_run(database, run) if run else None, texts=not no_texts)
    _check_lock(made, golden, run, force=force)
    path = lock_path(golden.path)
    write_if_changed(path, render_lock(made.lock))
    for chunk_id in made.unknown:
        name = printable(chunk_id)
        tell(f"warning: the chunk '{name}' is not {_where_looked(run)}, nor now in the lock file")
    version = printable(str(made.lock.chunker_version))
    tell(f"{shown_path(path)}: {len(made.lock.chunks)} chunks of chunker {version}, {_origins(made)}")


def _origins(made: Locking) -> str:
    if len(made.origins) == 1:
        return f"from {next(iter(made.origins))}"
    return ", ".join(f"{count} from {origin}" for origin, count in made.origins.items())


def _where_looked(run: str | None) -> str:
    return f"in the database's chunks or a hit of run {printable(run)}" if run else "in the database's chunks"


def _check_lock(made: Locking, golden: GoldenSet, run: str | None, *, force: bool) -> None:
    """Refuse a lock file that is of several chunkers, of another than the old one, or empty."""
    version = printable(str(made.lock.chunker_version))
    if made.other_versions:
        raise InputError(
            f"the expected chunks are of several chunkers ({version},"
            f" {', '.join(map(printable, made.other_versions))}); a lock file is for one:"
            " see kebab-eval validate"
        )
    old = golden.lock.chunker_version if golden.lock else None
    if old is not None and made.lock.chunks and old != made.lock.chunker_version and not force:
        raise InputError(
            f"the lock file is of chunker {printable(old)}, the database of {version};"
            " say --force to lock the new places, and lose the old"
        )
    if not made.lock.chunks:
        raise InputError(
            f"none of the expected chunks has its place or its text {_where_looked(run)}; {_what_to_do(run)}"
        )


def _what_to_do(run: str | None) -> str:
    if run:
        return "name a run that found them and whose hits have texts, or citations with lines or pages"
    return (
        "name the database that they were taken from, or, with --run RUN, a run whose hits have citations or"
        " texts;"
        " without kebab, record with RunRecorder(…, chunks=…)"
    )


def write_if_changed(path: Path, text: str) -> None:
    """Write a file that is not replaced through a link, unless it holds that text already."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_file(path, [text], follow_link=False)
